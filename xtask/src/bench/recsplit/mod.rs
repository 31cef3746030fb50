//! Minimal perfect hash functions: every method at the shapes that are compared, on real and on generated keys, beside
//! the other crates on the same keys; the measurements behind the thesis's figures.

mod generated;
mod measure;
mod ours;
mod peers;
mod real;
mod studies;
mod variants;

use super::suite::{Setup, Step, Suite};

/// The benches of minimal perfect hashing.
pub struct RecSplit;

impl Suite for RecSplit {
    fn name(&self) -> &'static str {
        "recsplit"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        real::steps(setup)
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = generated::steps(setup);
        steps.extend(studies::steps(setup));
        steps.extend(variants::steps(setup));
        steps
    }
}
