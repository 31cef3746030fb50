//! Sets that do not change: exact sets and maps of integers, beside the standard library's hash tables and, on a GPU,
//! an open-addressing table at half load; and one study over all sets.

mod all_sets;
mod device;
mod host;
mod several_devices;

use bench_frame::clock::Effort;
use bench_frame::suite::{Setup, Step, Suite};
use bench_record::Record;

/// Seed of all generated keys.
const SEED: u64 = 0x57a7;
/// Streams of keys: in the set, and not.
const PRESENT: u64 = 0;
const ABSENT: u64 = 1;

/// The benches of static sets.
pub struct StaticSets;

impl Suite for StaticSets {
    fn name(&self) -> &'static str {
        "static"
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = Vec::new();
        if setup.cpu() {
            steps.extend(host::sizes(setup.effort).iter().map(|&n| host::step(n)));
        }
        for device in setup.devices() {
            steps.extend(device::sizes(device, setup.effort).iter().map(|&n| device::step(device.clone(), n)));
        }
        steps.extend(all_sets::steps(setup));
        steps.extend(several_devices::steps(setup));
        steps
    }
}

/// Makes a row of an operation on `n` keys and a set of `keys`.
fn row(operation: &str, n: usize, keys: usize, key: &str, seconds: f64) -> Record {
    Record::new("static", operation, n).time(seconds).param("input", "generated").param("key", key).param("keys", keys)
}

/// Returns the number of queries in one measurement on the CPU.
fn queries(effort: Effort, keys: usize) -> usize {
    keys.min(if effort == Effort::Quick { 1 << 19 } else { 1 << 23 })
}
