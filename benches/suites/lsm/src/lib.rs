//! Ordered dictionaries: a window over events as a real job; on generated keys insertion, lookup, count and range,
//! cleanup, beside the sorted array, beside the standard library's `BTreeMap` and `HashMap`, and beside a database on
//! disk; other loads; the tables of the paper on devices.
//!
//! Source: Ashkiani et al., "GPU LSM", IPDPS 2018, section V. All keys are different, keys and values of 32 bits; sizes
//! are those at which every level is full, the worst case for queries.

mod device;
#[cfg(feature = "peers")]
mod disk;
mod events;
mod host;
mod loads;
mod paper;
mod several_devices;
mod slices;
mod values;

use bench_frame::clock::Effort;
use bench_frame::suite::{Setup, Step, Suite};

/// The dictionaries' benches.
pub struct Lsm;

impl Suite for Lsm {
    fn name(&self) -> &'static str {
        "lsm"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        setup.targets.iter().map(|target| events::step(target.clone(), setup.effort)).collect()
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = published::steps(setup);
        if setup.cpu() {
            steps.extend(shapes(setup.effort).into_iter().map(|shape| host::step(shape, setup.effort)));
            #[cfg(feature = "peers")]
            steps.push(disk::step(setup.effort));
        }
        steps.extend(several_devices::steps(setup));
        for device in setup.devices() {
            steps.extend(device::shapes(device, setup.effort).into_iter().map(|shape| device::step(shape, device)));
            steps.extend(paper::steps(device, setup.effort));
            steps.push(slices::step(device));
        }
        steps.extend(setup.targets.iter().map(|target| loads::step(target.clone(), setup.effort)));
        steps.extend(setup.targets.iter().map(|target| values::step(target.clone(), setup.effort)));
        steps
    }
}

mod published;

/// Seed of all generated keys.
const SEED: u64 = 0x15_4d;
/// Streams of keys: inserted, and never inserted.
const INSERTED: u64 = 0;
const OTHERS: u64 = 1;

/// Number of elements, and of elements per batch.
#[derive(Clone, Copy, Debug)]
struct Shape {
    log2_n: u32,
    log2_batch: u32,
}

impl Shape {
    /// Returns the number of elements: one batch less than the power of two, so that all levels are full.
    fn len(self) -> usize {
        (1 << self.log2_n) - (1 << self.log2_batch)
    }

    fn batch(self) -> usize {
        1 << self.log2_batch
    }

    fn name(self) -> String {
        format!("2^{} elements in batches of 2^{}", self.log2_n, self.log2_batch)
    }
}

fn shapes(effort: Effort) -> Vec<Shape> {
    let shape = |log2_n, log2_batch| Shape { log2_n, log2_batch };
    match effort {
        Effort::Quick => vec![shape(20, 16)],
        Effort::Standard => vec![shape(20, 12), shape(22, 16)],
        Effort::Full => vec![shape(24, 16), shape(24, 20), shape(27, 16)],
    }
}
