//! Table 1 of Rao's paper: restarts until the first-level function fits a batch of keys in its buckets.
//!
//! The paper gives no setting beside "randomly generated strings". It follows from section 5.2: 48 buckets, and batches
//! of 256 keys a bucket, so that a load of 80% is 0.8 * 12288 keys of which no bucket may get more than 256. (Were it
//! the 4054 keys of a whole bucket, every good function would fit 95% at once.) A restart draws new strings, since
//! most of these functions have no seed. `++` stands for 200 restarts and more.
//!
//! ```text
//! cargo run --release -p warpset-bloom --example rao_table_1 [FUNCTION...]
//! ```

use warpset_bloom::StringHash;

const BUCKETS: usize = 48;
const KEYS_IN_BUCKET: u32 = 256;
const KEY_BYTES: usize = 41;
const MOST_RESTARTS: u32 = 200;
/// Runs of which the median is shown.
const RUNS: u64 = 5;

/// Random strings over 64 letters, digits and signs, ten characters from each step of SplitMix64.
struct Strings(u64);

impl Strings {
    fn next(&mut self) -> [u8; KEY_BYTES] {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut string = [0; KEY_BYTES];
        for characters in string.chunks_mut(10) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = warpset_core::hash::finalise(self.0);
            for (i, character) in characters.iter_mut().enumerate() {
                *character = ALPHABET[(word >> (6 * i)) as usize % 64];
            }
        }
        string
    }
}

fn overflows(function: StringHash, keys: usize, strings: &mut Strings) -> bool {
    let mut loads = [0u32; BUCKETS];
    (0..keys).any(|_| {
        let load = &mut loads[function.hash_bytes(&strings.next()) as usize % BUCKETS];
        *load += 1;
        *load > KEYS_IN_BUCKET
    })
}

fn restarts(function: StringHash, load: f64, seed: u64) -> u32 {
    let keys = (load * BUCKETS as f64 * KEYS_IN_BUCKET as f64) as usize;
    let mut strings = Strings(seed << 40);
    (0..MOST_RESTARTS).find(|_| !overflows(function, keys, &mut strings)).unwrap_or(MOST_RESTARTS)
}

fn main() {
    println!("{:10} {:>6} {:>6} {:>6} {:>6}", "", "80%", "85%", "90%", "95%");
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for function in StringHash::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == function.name()) {
            continue;
        }
        print!("{:10}", function.name());
        for load in [0.80, 0.85, 0.90, 0.95] {
            let mut runs: Vec<u32> = (1..=RUNS).map(|seed| restarts(function, load, seed)).collect();
            runs.sort_unstable();
            match runs[runs.len() / 2] {
                MOST_RESTARTS => print!(" {:>6}", "++"),
                median => print!(" {median:>6}"),
            }
        }
        println!();
    }
}
