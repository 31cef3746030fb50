//! Filters of k-mers.

#[cfg(feature = "gpu")]
use warpset::sequence;
use warpset::sequence::{MappedSequenceFilter, SequenceFilter};

use crate::bloom::in_place;
use crate::capabilities::*;
use crate::error::Result;
use crate::object::{Hits, Object, same};
use crate::options::{Options, with_settings};
use crate::settled::Settled;

/// Queries, in every place.
macro_rules! queries {
    () => {
        fn hits(&self, sequences: &[&[u8]]) -> Result<Hits> {
            Ok(self.count_bulk(sequences)?.into_iter().map(|hits| (hits.found, hits.kmers)).collect())
        }
        fn windows(&self, sequence: &[u8]) -> Result<Vec<bool>> {
            Ok(self.contains_windows(sequence).settled()?.iter().collect())
        }
        fn k(&self) -> Result<u32> {
            Ok(self.layout().k())
        }
    };
}

/// Changes, in memory.
macro_rules! changes {
    () => {
        fn can_change(&self) -> bool {
            true
        }
        fn insert_sequences(&mut self, sequences: &[&[u8]]) -> Result<()> {
            Ok(self.insert_bulk(sequences)?)
        }
        fn clear(&mut self) -> Result<()> {
            self.clear().settled()
        }
        fn merge(&mut self, other: &dyn Object) -> Result<()> {
            Ok(self.merge(same(other)?)?)
        }
    };
}

object! {
    SequenceFilter, SequenceFilter: sized, numbered(fpr), saved(sequence::gpu::SequenceFilter), queries, changes
}
object! { MappedSequenceFilter, SequenceFilter: sized, numbered(fpr), queries }
#[cfg(feature = "gpu")]
object! { sequence::gpu::SequenceFilter, SequenceFilter: sized, on_device, queries, changes }

pub fn build(kmers: u64, options: &Options) -> Result<Box<dyn Object>> {
    in_place!(with_settings!(SequenceFilter::builder(kmers), options; k = k, bits_per_key = bits_per_key), options)
}
