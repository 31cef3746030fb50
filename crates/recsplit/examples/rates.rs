//! What shapes cost on this machine: space, time to build, time of queries one by one and in batches.
//!
//! ```sh
//! cargo run --release -p warpset-recsplit --example rates -- 1000000 rotation:8:2000 grouped:16:2000
//! ```
//!
//! The first argument is the number of keys, the others are `method:leaf size:bucket size`, or the same with `:first:second`
//! fanouts. Space in bits a key, with the part of the lists of buckets, and as the cost model has it. Nanoseconds a key: of the
//! fastest build with one thread, as the cost model has it, and with all threads; of queries one by one and in batches, one
//! thread, as in the fastest tenth of stretches of 1024, since machines are busy with other work. With `--all` before the number
//! of keys only builds with all threads are measured, for shapes that take one thread too long; with `--disk` also those from disk.

mod inputs;

use inputs::random;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use warpset_recsplit::{Hash128, RecSplit};

/// Queries timed together.
const STRETCH: usize = 1024;
/// Queries in all. None comes twice, so that nothing learns the answers.
const QUERIES: usize = 1 << 21;

/// Nanoseconds a query of `work`, which is called for each stretch: as in the fastest tenth of them.
fn per_query(queries: &[Hash128], mut work: impl FnMut(&[Hash128])) -> f64 {
    let time = |stretch: &[Hash128]| {
        let start = Instant::now();
        work(stretch);
        start.elapsed()
    };
    let mut times: Vec<Duration> = queries.chunks_exact(STRETCH).map(time).collect();
    times.sort_unstable();
    times[times.len() / 10].as_nanos() as f64 / STRETCH as f64
}

/// A function and the nanoseconds a key of the fastest of several builds, or of a single one that takes long.
fn fastest<E>(keys: usize, mut build: impl FnMut() -> Result<RecSplit, E>) -> Result<(RecSplit, f64), E> {
    let (mut fastest, mut spent) = (Duration::MAX, Duration::ZERO);
    loop {
        let start = Instant::now();
        let function = build()?;
        let time = start.elapsed();
        (fastest, spent) = (fastest.min(time), spent + time);
        if spent > Duration::from_millis(500) {
            return Ok((function, fastest.as_nanos() as f64 / keys as f64));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let (all, disk) = match arguments.first().map(String::as_str) {
        Some("--all") => (true, false),
        Some("--disk") => (true, true),
        _ => (false, false),
    };
    if all {
        arguments.remove(0);
    }
    let (count, shapes) = arguments.split_first().ok_or("arguments: keys method:leaf:bucket...")?;
    let count: usize = count.parse()?;
    let mut state = 1;
    let keys = inputs::hashes(count, &mut state);
    let queries: Vec<Hash128> = (0..QUERIES).map(|_| keys[random(&mut state) as usize % count]).collect();
    match all {
        true => println!("shape                  bits   lists   model       all    disk"),
        false => println!("shape                  bits   lists   model     build     model      all     one   batch"),
    }
    for shape in shapes {
        let builder = inputs::builder(shape)?;
        let estimate = builder.estimate()?;
        let (function, together) = fastest(count, || builder.build(&keys))?;
        let bits = function.bits_per_key();
        let lists = function.space().buckets as f64 / count as f64;
        print!("{shape:<18} {bits:>8.4} {lists:>7.4} {:>7.4}", estimate.bits_per_key);
        if disk {
            let keys = || Ok(keys.iter().copied().map(Ok));
            let (_, external) = fastest(count, || builder.external().build(keys))?;
            println!(" {together:>9.1} {external:>7.1}");
            continue;
        } else if all {
            println!(" {together:>9.1}");
            continue;
        }
        let builder = builder.threads(1);
        let (function, single) = fastest(count, || builder.build(&keys))?;
        let mut numbers = [0; STRETCH];
        let one = per_query(&queries, |stretch| {
            stretch.iter().zip(&mut numbers).for_each(|(key, number)| *number = function.get_hash(*key));
            black_box(&numbers);
        });
        let mut numbers = [0; STRETCH];
        let batch = per_query(&queries, |stretch| {
            function.get_many_hashes(stretch, &mut numbers);
            black_box(&numbers);
        });
        let model = estimate.nanoseconds_per_key;
        println!(" {single:>9.1} {model:>9.1} {together:>8.1} {one:>7.1} {batch:>7.1}");
    }
    Ok(())
}
