//! Bloom filters: screens on real input, every operation on generated keys, false-positive rates,
//! the figures of Rao's paper.

mod device;
mod generated;
mod key_size;
mod peers;
mod screen;
mod studies;
mod subject;
mod variant;

use super::suite::{Setup, Step, Suite};

/// The Bloom filters' benches.
pub struct Bloom;

impl Suite for Bloom {
    fn name(&self) -> &'static str {
        "bloom"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        screen::steps(setup)
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = generated::steps(setup);
        steps.extend(device::steps(setup));
        steps.extend(studies::steps(setup));
        steps.extend(key_size::steps(setup));
        steps
    }
}
