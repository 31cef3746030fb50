//! Sequence filters, straight from letters, beside Bloom filters of ready k-mers with as many bits: our split-block
//! filter, and the crate `fastbloom`. A rival that starts from letters would roll the k-mers first; its rows leave that
//! out.

mod device;
mod host;

use super::record::Record;
use super::suite::{Setup, Step, Suite};

/// The sequence filters' benches.
pub struct SequenceFilters;

impl Suite for SequenceFilters {
    fn name(&self) -> &'static str {
        "sequence-filter"
    }

    fn real(&self, _setup: &Setup) -> Vec<Step> {
        Vec::new()
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = if setup.cpu() { host::steps(setup.effort) } else { Vec::new() };
        steps.extend(device::steps(setup));
        steps
    }
}

/// Bases of a k-mer.
const K: usize = 31;
/// Bits per k-mer.
const BITS: f64 = 16.0;
/// Letters of a read.
const READ: usize = 150;

/// A row of an operation on random sequences.
fn row(operation: &str, n: usize, seconds: f64, kmers: usize) -> Record {
    let row = Record::new("sequence-filter", operation, n).time(seconds).param("kmers", kmers);
    row.param("input", "generated").param("key", "k-mer of 31 bases")
}

/// Random letters with `kmers` k-mers.
fn letters(kmers: usize, seed: u64) -> Vec<u8> {
    let words = crate::input::keys::KeySpace::new(seed).stream(0).u64_keys((kmers + K - 1).div_ceil(32));
    let mut letters: Vec<u8> =
        words.iter().flat_map(|word| (0..32).map(move |i| b"ACGT"[(word >> (2 * i) & 3) as usize])).collect();
    letters.truncate(kmers + K - 1);
    letters
}
