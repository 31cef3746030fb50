//! Minimal perfect hash functions: every method at the shapes that are compared, on real and on generated keys, beside
//! the other crates on the same keys; filters of known keys; the measurements of the thesis's figures; how builds scale over threads.

mod device_build;
mod device_lookups;
mod filters;
mod measure;
mod ours;
mod peers;
mod real;
mod scaling;
mod several_devices;
mod shapes;
mod variants;

pub use ours::Settings;

use super::clock::Effort;
use super::suite::{Setup, Step, Suite};

/// Seed of all generated keys.
const SEED: u64 = 0x2026;

/// The benches of minimal perfect hashing.
pub struct RecSplit;

impl Suite for RecSplit {
    fn name(&self) -> &'static str {
        "recsplit"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        if setup.cpu() { real::steps(setup) } else { Vec::new() }
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = device_build::steps(setup);
        steps.extend(several_devices::steps(setup));
        steps.extend(device_lookups::steps(setup));
        if !setup.cpu() {
            return steps;
        }
        steps.extend(shapes::steps(setup));
        steps.extend(variants::steps());
        steps.extend(filters::steps());
        steps.extend(scaling::steps(setup));
        steps
    }
}

/// Queries in one measurement.
fn queries(effort: Effort) -> usize {
    if effort == Effort::Quick { 1 << 17 } else { 1 << 20 }
}
