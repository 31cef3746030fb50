//! Range filters, on the host beside the crates `grafite` and `range-filters` (Diva; feature `peers`), and on devices.

mod device;
mod host;

use bench_frame::input::keys::KeySpace;
use bench_frame::suite::Generated;
use bench_record::Record;

/// The range filters' benches.
pub const RANGE: Generated = Generated { name: "range", host: host::steps, device: device::steps };

/// Seed of all generated keys.
const SEED: u64 = 0x7a4e;
/// Bits per key of every filter.
const BITS: u8 = 16;
/// Keys of a range.
const LENGTH: u64 = 100;

/// Makes a row of an operation on a filter of `keys`.
fn row(operation: &str, n: usize, seconds: f64, keys: usize) -> Record {
    let row = Record::new("range", operation, n).time(seconds).param("keys", keys).param("length", LENGTH);
    row.param("input", "generated").param("key", "u64")
}

/// Returns keys, and first keys of ranges that are nearly all empty.
fn input(keys: usize, asked: usize) -> (Vec<u64>, Vec<u64>) {
    let stream = |i| KeySpace::new(SEED).stream(i);
    (stream(0).u64_keys(keys), stream(1).u64_keys(asked).into_iter().map(|key| key.min(u64::MAX - LENGTH)).collect())
}

/// Returns the bound of the rate of these ranges at these bits per key.
fn rate() -> f64 {
    LENGTH as f64 / f64::from(BITS - 2).exp2()
}

/// Whether the number of ranges that passed is within the bound, which ranges of random keys nearly reach.
fn plausible(passed: usize, asked: usize) -> bool {
    let expected = asked as f64 * rate();
    (passed as f64 - expected).abs() < 0.1 * expected + 6.0 * expected.sqrt() + 6.0
}
