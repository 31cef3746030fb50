//! Minimal perfect hash functions: every method at the shapes that are compared, on real and on generated keys, beside
//! the other crates on the same keys; filters of known keys; the measurements of the thesis's figures; how builds scale
//! over threads.

mod device_build;
mod device_lookups;
mod device_shapes;
mod device_spaces;
mod filters;
mod function;
mod measure;
mod ours;
mod peer_key;
mod peers;
mod real;
mod scaling;
mod several_devices;
mod shapes;
mod spaces;
mod variants;

pub use ours::Settings;

use warpset::gpu::Device;

use bench_frame::clock::Effort;
use bench_frame::gpu_limits::GpuAccess;
use bench_frame::suite::{Session, Setup, Step, Suite};
use bench_record::Record;

/// Seed of all generated keys.
const SEED: u64 = 0x2026;

/// The benches of minimal perfect hashing.
#[derive(Default)]
pub struct RecSplit {
    /// Shapes instead of those of the effort, unless it is empty.
    pub shapes: Vec<Settings>,
}

impl Suite for RecSplit {
    fn name(&self) -> &'static str {
        "recsplit"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        if setup.cpu() { real::steps(setup, &self.shapes) } else { Vec::new() }
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = device_build::steps(setup, &self.shapes);
        steps.extend(several_devices::steps(setup, &self.shapes));
        steps.extend(device_lookups::steps(setup, &self.shapes));
        steps.extend(device_shapes::steps(setup, &self.shapes));
        steps.extend(device_spaces::steps(setup));
        if !setup.cpu() {
            return steps;
        }
        steps.extend(shapes::steps(setup, &self.shapes));
        steps.extend(spaces::steps());
        steps.extend(variants::steps());
        steps.extend(filters::steps());
        steps.extend(scaling::steps(&self.shapes));
        steps
    }
}

/// Returns the number of queries in one measurement.
fn queries(effort: Effort) -> usize {
    if effort == Effort::Quick { 1 << 17 } else { 1 << 20 }
}

/// Measures trial hashes per second on an otherwise idle device.
fn hash_limit(session: &mut Session, device: &Device) -> anyhow::Result<f64> {
    session.gpu_limit(device, GpuAccess::TrialHash, 0)
}

/// Adds the hash rate to a timed row: the search takes `per_key` trial hashes per key, and `limit` per second are
/// possible.
fn with_hashes(mut row: Record, per_key: f64, limit: f64) -> Record {
    let rate = row.items_per_second.map(|rate| rate * per_key);
    row.limit_fraction = rate.map(|rate| rate / limit);
    row.param("hashes_per_key", per_key.round()).param("hashes_per_second", rate.unwrap_or_default().round())
}
