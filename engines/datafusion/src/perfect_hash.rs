//! `perfect_hash_agg`: gathers the hashes of keys, and builds a minimal perfect hash function of them at the end.
//!
//! A function cannot be merged with another, so a partial result is the hashes: 16 bytes per different key. They are
//! those that the function takes of its keys with seed 0, so it answers for the keys as if it were built from them.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::{Hash128, Key, Seed};
use warpset_recsplit::{RecSplit, RecSplitView};

use crate::error::Cause;
use crate::gather::{Gather, OfKeys, Slots, add_keys};
use crate::lookup::Ask;
use crate::quotient::signed;
use crate::rows::Rows;
use crate::{keys, verified};

/// The seed of the hashes.
const SEED: Seed = Seed::new(0);
/// Hashes up to this number are kept with their copies.
const FEW: usize = 1024;

/// `perfect_hash_agg(x)`.
#[derive(Debug, Default)]
pub(crate) struct PerfectHashOfKeys {
    hashes: Vec<Hash128>,
    /// How many of them have no copies among each other: those at the front.
    distinct: usize,
}

impl PerfectHashOfKeys {
    /// Drops copies when there are twice as many hashes as different ones at the last time.
    fn make_room(&mut self) {
        if self.hashes.len() > FEW.max(2 * self.distinct) {
            self.drop_copies();
        }
    }

    fn drop_copies(&mut self) {
        self.hashes.sort_unstable_by_key(|hash| (hash.high, hash.low));
        self.hashes.dedup();
        self.distinct = self.hashes.len();
    }
}

impl Gather for PerfectHashOfKeys {
    const NAME: &'static str = "perfect_hash_agg";
    const IGNORES_COPIES: bool = true;
    type Settings = ();

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        keys::check_type(argument)
    }

    fn settings(_: &[ScalarValue]) -> Result<(), Cause> {
        Ok(())
    }

    fn add(settings: &(), slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_keys(settings, slots, values, rows)
    }

    fn merge((): &(), slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        let (hashes, []) = partial.as_chunks::<16>() else {
            return Err(Cause::PartialResult { bytes: partial.len() });
        };
        let hashes = hashes.iter().map(|&bytes| {
            let bits = u128::from_le_bytes(bytes);
            Hash128 { high: (bits >> 64) as u64, low: bits as u64 }
        });
        let this = slot.get_or_insert_default();
        this.hashes.extend(hashes);
        this.make_room();
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<Hash128>()
    }

    fn partial(&mut self, (): &()) -> Result<Vec<u8>, Cause> {
        self.drop_copies();
        let bits = |hash: &Hash128| (u128::from(hash.high) << 64 | u128::from(hash.low)).to_le_bytes();
        Ok(self.hashes.iter().flat_map(bits).collect())
    }

    fn result(&mut self, (): &()) -> Result<Vec<u8>, Cause> {
        self.drop_copies();
        let function = RecSplit::builder().build_from(&self.hashes)?;
        if function.seed() != SEED.get() {
            return Err(Cause::Reseeded { keys: self.hashes.len() });
        }
        Ok(function.to_bytes())
    }
}

impl OfKeys for PerfectHashOfKeys {
    fn empty() -> Self {
        PerfectHashOfKeys::default()
    }

    fn insert<K: Key + Copy>(&mut self, (): &(), key: K) -> Result<(), Cause> {
        self.hashes.push(SEED.hash128(&key));
        self.make_room();
        Ok(())
    }

    fn insert_bulk<K: Key + Copy>(&mut self, (): &(), keys: &[K]) -> Result<(), Cause> {
        self.hashes.extend(keys.iter().map(|key| SEED.hash128(key)));
        self.make_room();
        Ok(())
    }
}

/// `perfect_hash_index(function, x)`.
pub(crate) struct PerfectHashIndex;

impl Ask for PerfectHashIndex {
    const NAME: &'static str = "perfect_hash_index";
    const RETURNS: DataType = DataType::Int64;
    type Answer = u64;

    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [u64]) -> Result<(), Cause> {
        let view = verified::open(saved, RecSplitView::from_bytes, RecSplitView::from_bytes_unverified)?;
        Ok(view.get_bulk_into(keys, answers)?)
    }

    fn array(answers: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
        signed(answers, nulls)
    }
}
