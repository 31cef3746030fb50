//! How builds scale over threads, beside what the machine gives.
//!
//! ```sh
//! cargo run --release -p warpset-recsplit --example scaling -- 16 rotation:5:5@4000000 grouped:16:2000@1000000
//! ```
//!
//! The first argument is the number of threads, the others are `method:leaf size:bucket size@keys`, or the same with
//! `:first:second` fanouts before the `@`. Three kinds of builds take turns, so that all see the same hour of the machine:
//! - *alone*: one thread builds from all keys;
//! - *beside*: as many threads as asked for run at once, each with keys of its own, an equal part of all, and a build of its own: they
//!   share nothing but the machine, and what they lose against *alone* is the machine's;
//! - *together*: one build from all keys on all threads.
//!
//! Nanoseconds a key and thread. *linear* is alone / together, 1 where threads divide the time by their number; *control* is alone /
//! beside; the last column, beside / together, is what the program makes of what the machine gives. Medians of
//! turns, and then the least times of all turns and their ratios.

mod inputs;

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use warpset_recsplit::{Builder, Hash128, RecSplit};

/// Turns of each kind.
const TURNS: usize = 7;
/// The least time of each turn: builds are repeated.
const TURN: Duration = Duration::from_millis(250);

/// Seconds of one of `repeats` builds, and the last function.
fn time(builder: &Builder, pool: &ThreadPool, keys: &[Hash128], repeats: usize) -> (f64, RecSplit) {
    pool.install(|| {
        let start = Instant::now();
        (1..repeats).for_each(|_| _ = black_box(builder.build(keys)));
        let function = builder.build(keys).expect("distinct keys");
        (start.elapsed().as_secs_f64() / repeats as f64, function)
    })
}

/// Seconds of one build of a part beside the others: the mean of all threads.
fn time_beside(builder: &Builder, pools: &[ThreadPool], keys: &[Hash128], repeats: usize) -> f64 {
    let start = Barrier::new(pools.len());
    let part = keys.len() / pools.len();
    let work = |pool, keys| {
        start.wait();
        time(builder, pool, keys, repeats).0
    };
    let times: Vec<f64> = std::thread::scope(|scope| {
        let workers: Vec<_> = pools
            .iter()
            .zip(keys.chunks_exact(part))
            .map(|(pool, keys)| scope.spawn(move || work(pool, keys)))
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    times.iter().sum::<f64>() / times.len() as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(label: &str, [alone, beside, together]: [f64; 3], [linear, control, of_control]: [f64; 3]) {
    println!("{label:<32} {alone:>9.1} {beside:>9.1} {together:>9.1} {linear:>8.2} {control:>8.2} {of_control:>8.2}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (threads, shapes) = arguments.split_first().ok_or("arguments: threads method:leaf:bucket@keys...")?;
    let threads: usize = threads.parse()?;
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    let all = pool(threads)?;
    let pools = (0..threads).map(|_| pool(1)).collect::<Result<Vec<_>, _>>()?;
    println!(
        "{:<32} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}",
        format!("{threads} threads"),
        "alone",
        "beside",
        "together",
        "linear",
        "control",
        "ratio"
    );
    for shape in shapes {
        let (name, count) = shape.split_once('@').ok_or("method:leaf:bucket@keys")?;
        let count: usize = count.parse()?;
        if count < threads {
            return Err("fewer keys than threads".into());
        }
        let builder = inputs::builder(name)?;
        let keys = inputs::hashes(count, &mut 1);
        let (once, function) = time(&builder, &all, &keys, 1);
        let repeats = |once: f64| (TURN.as_secs_f64() / once).ceil() as usize;
        let (few, many) = (repeats(once * threads as f64), repeats(once));
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            let (alone, same) = time(&builder, &pools[0], &keys, few);
            assert!(same == function, "the same bits whatever the threads");
            let beside = time_beside(&builder, &pools, &keys, many);
            let (together, _) = time(&builder, &all, &keys, many);
            // Of a key and thread.
            let per_key = 1e9 / count as f64;
            turns.push([alone * per_key, beside * threads as f64 * per_key, together * threads as f64 * per_key]);
        }
        let ratios = |[alone, beside, together]: [f64; 3]| [alone / together, alone / beside, beside / together];
        let medians =
            |of: &dyn Fn([f64; 3]) -> [f64; 3]| [0, 1, 2].map(|i| median(turns.iter().map(|&turn| of(turn)[i])));
        let least = [0, 1, 2].map(|i| turns.iter().map(|turn| turn[i]).fold(f64::INFINITY, f64::min));
        print(shape, medians(&|turn| turn), medians(&ratios));
        print("    least", least, ratios(least));
    }
    Ok(())
}
