//! Sequence filters, straight from letters, beside Bloom filters of ready k-mers with as many bits: our split-block
//! filter, and the crate `fastbloom`. A rival that starts from letters would roll the k-mers first; its rows leave that
//! out.

mod device;
mod host;

use bench_frame::input::genome::random_letters;
use bench_frame::suite::Generated;
use bench_record::Record;

/// The sequence filters' benches.
pub const SEQUENCE_FILTERS: Generated = Generated { name: "sequence-filter", host: host::steps, device: device::steps };

/// Bases of a k-mer.
const K: usize = 31;
/// Bits per k-mer.
const BITS: f64 = 16.0;
/// Letters of a read.
const READ: usize = 150;

/// Makes a row of an operation on random sequences.
fn row(operation: &str, n: usize, seconds: f64, kmers: usize) -> Record {
    let row = Record::new("sequence-filter", operation, n).time(seconds).param("kmers", kmers);
    row.param("input", "generated").param("key", "k-mer of 31 bases")
}

/// Generates random letters with `kmers` k-mers.
fn letters(kmers: usize, seed: u64) -> Vec<u8> {
    random_letters(kmers + K - 1, seed)
}
