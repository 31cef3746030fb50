//! Binary fuse filters, beside those of the crate `xorf`, and beside our Bloom and quotient filters of the same rate;
//! static functions.

mod device;
mod functions;
mod host;
mod several_devices;

use bench_frame::clock::Effort;
use bench_frame::suite::{Generated, Step};
use bench_record::Record;
use warpset::gpu::Device;

/// The binary fuse filters' benches.
pub const FUSE: Generated = Generated { name: "fuse", host: host_steps, device: device_steps };

fn host_steps(effort: Effort) -> Vec<Step> {
    [host::steps(effort), functions::steps(effort)].into_iter().flatten().collect()
}

fn device_steps(device: &Device, effort: Effort) -> Vec<Step> {
    let steps = [device::steps, functions::device_steps, several_devices::steps];
    steps.into_iter().flat_map(|steps| steps(device, effort)).collect()
}

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
