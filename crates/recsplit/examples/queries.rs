//! What queries cost on this machine: one by one, each after the answer to the one before, and in batches.
//!
//! ```sh
//! cargo run --release -p warpset-recsplit --example queries -- 1000000 rotation:8:2000 grouped:16:2000
//! ```
//!
//! The first argument is the number of keys, the others are `method:leaf size:bucket size`. Nanoseconds a query with one
//! thread, as in the fastest tenth of stretches of 1024, since machines are busy with other work; the kinds of queries take
//! turns, and each of them gets keys of its own. All answers are compared.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use warpset_recsplit::{Builder, Hash128, Method, RecSplit};

/// Queries timed together.
const STRETCH: usize = 1024;
/// Queries of a kind before another's turn: vectors need a while to reach their speed.
const ROUND: usize = 1 << 18;
/// Turns of each kind.
const ROUNDS: usize = 6;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn one_by_one(function: &RecSplit, keys: &[Hash128], numbers: &mut [u64]) {
    keys.iter().zip(numbers).for_each(|(key, number)| *number = function.get_hash(*key));
}

/// Each query waits for the number of the one before.
fn in_a_chain(function: &RecSplit, keys: &[Hash128], numbers: &mut [u64]) {
    let mut zero = 0;
    for (key, number) in keys.iter().zip(numbers) {
        *number = function.get_hash(Hash128 { high: key.high ^ zero, low: key.low });
        // Nothing knows that it is.
        zero = black_box(*number >> 63);
    }
}

fn in_batches(function: &RecSplit, keys: &[Hash128], numbers: &mut [u64]) {
    function.get_many_hashes(keys, numbers);
}

/// The time of a query as in the fastest tenth.
fn fast(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 10].as_nanos() as f64 / STRETCH as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (count, shapes) = arguments.split_first().ok_or("arguments: keys method:leaf:bucket...")?;
    let count: usize = count.parse()?;
    let mut state = 1;
    let keys: Vec<Hash128> =
        (0..count).map(|_| Hash128 { high: random(&mut state), low: random(&mut state) }).collect();
    println!("shape                  bits     one   chain   batch");
    for shape in shapes {
        let parts: Vec<&str> = shape.split(':').collect();
        let [method, leaf, bucket] = parts[..] else { return Err("method:leaf:bucket".into()) };
        let method = match method {
            "brute" => Method::BruteForce,
            "rotation" => Method::Rotation,
            "grouped" => Method::Grouped,
            _ => return Err("methods: brute, rotation, grouped".into()),
        };
        let function =
            Builder::new().method(method).leaf_size(leaf.parse()?).bucket_size(bucket.parse()?).build(&keys)?;
        type Queries = fn(&RecSplit, &[Hash128], &mut [u64]);
        let kinds: [Queries; 3] = [one_by_one, in_a_chain, in_batches];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (kind, times) in kinds.iter().zip(&mut times) {
                let queries: Vec<Hash128> = (0..ROUND).map(|_| keys[random(&mut state) as usize % count]).collect();
                let mut numbers = vec![0; ROUND];
                for (queries, numbers) in queries.chunks_exact(STRETCH).zip(numbers.chunks_exact_mut(STRETCH)) {
                    let start = Instant::now();
                    kind(&function, queries, numbers);
                    times.push(start.elapsed());
                }
                let mut others = vec![0; ROUND];
                one_by_one(&function, &queries, &mut others);
                assert_eq!(numbers, others, "{shape}");
            }
        }
        let [one, chain, batch] = times.map(fast);
        println!("{shape:<18} {:>8.4} {one:>7.1} {chain:>7.1} {batch:>7.1}", function.bits_per_key());
    }
    Ok(())
}
