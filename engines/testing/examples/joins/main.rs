//! Costs and gains of screened joins: `cargo run --release --example joins -- WHAT`, with `WHAT` one of
//!
//! - `write SCALE FOLDER [FILES]`: writes TPC-H's tables as Parquet files, the large ones in `FILES` files each;
//! - `tpch FOLDER [--rounds N] [--partitions N] [--partitioned] [--ways NAME,NAME] [--answers FOLDER] [QUERY...]`: runs
//!   the queries alternately with and without screening, compares the answers, and prints medians of seconds on the
//!   clock and of processor seconds, planning included. `--partitioned` exchanges both sides of every join, as clusters
//!   do; `--answers` writes each answer as a text file, for `peers.py`;
//! - `lookups [ROUNDS]`: measures lookups per row in filters of 1 to 100 MB, on one thread (`RAYON_NUM_THREADS=1` for
//!   builds, too).

mod answers;
mod lookups;
mod tpch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let partitions = std::thread::available_parallelism().map_or(1, usize::from);
    // Threads stay alive, because Linux reports the time of existing threads only.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(partitions)
        .thread_keep_alive(Duration::from_secs(3600))
        .enable_all()
        .build()?;
    match arguments.next().as_deref() {
        Some("write") => {
            let scale = parse(arguments.next(), "SCALE")?;
            let folder: PathBuf = parse(arguments.next(), "FOLDER")?;
            let files = arguments.next().map_or(Ok(1), |files| parse(Some(files), "FILES"))?;
            let started = Instant::now();
            warpset_engines_testing::tpch::write(&folder, scale, 1 << 17, files)?;
            println!("wrote TPC-H at scale factor {scale} in {:.1} s", started.elapsed().as_secs_f64());
            Ok(())
        }
        Some("tpch") => {
            let options = tpch::Options::parse(arguments, partitions)?;
            runtime.block_on(tpch::measure(&options))
        }
        Some("lookups") => {
            let rounds = arguments.next().map_or(Ok(5), |rounds| parse(Some(rounds), "ROUNDS"))?;
            runtime.block_on(lookups::measure(rounds))
        }
        _ => Err(wrong("write, tpch or lookups has to be the first argument")),
    }
}

/// Parses the value of an argument.
fn parse<T: std::str::FromStr>(argument: Option<String>, name: &str) -> Result<T> {
    let value = argument.ok_or_else(|| wrong(&format!("{name} is missing")))?;
    value.parse().map_err(|_| wrong(&format!("{value:?} is no {name}")))
}

fn wrong(message: &str) -> DataFusionError {
    DataFusionError::Configuration(message.to_owned())
}
