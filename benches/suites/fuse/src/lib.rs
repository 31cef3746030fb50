//! Binary fuse filters, beside those of the crate `xorf`, and beside our Bloom and quotient filters of the same rate.

mod device;
mod host;

use bench_frame::suite::Generated;
use bench_record::Record;

/// The binary fuse filters' benches.
pub const FUSE: Generated = Generated { name: "fuse", host: host::steps, device: device::steps };

/// Seed of all generated keys.
const SEED: u64 = 0xf05e;

/// Makes a row of an operation on generated integers.
fn row(operation: &str, n: usize, seconds: f64, width: u32, keys: usize) -> Record {
    let row = Record::new("fuse", operation, n).time(seconds).param("width", width).param("keys", keys);
    row.param("input", "generated").param("key", "u64")
}

/// Whether the number of keys that passed is the expected one, within six standard deviations.
fn plausible(passed: usize, asked: usize, rate: f64) -> bool {
    let expected = asked as f64 * rate;
    (passed as f64 - expected).abs() < 6.0 * expected.sqrt() + 6.0
}
