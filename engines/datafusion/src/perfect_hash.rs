//! `perfect_hash_agg` and `perfect_hash_index`: minimal perfect hash functions of a column's distinct values.
//!
//! A function is built from the hashes of its keys with seed 0, so it has the same bytes as one built from the keys.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::{Hash128, Key, Seed};
use warpset_mphf::{RecSplit, RecSplitView};

use crate::error::Cause;
use crate::lookup::Ask;
use crate::quotient::signed;
use crate::statics::Static;
use crate::verified;

/// The seed of the hashes.
const SEED: Seed = Seed::new(0);

/// The function that `perfect_hash_agg(x)` builds.
#[derive(Debug)]
pub(crate) struct PerfectHash;

impl Static for PerfectHash {
    const OF_KEYS: &'static str = "perfect_hash_agg";
    const PARAMETERS: &'static [(&'static str, DataType)] = &[];
    type Settings = ();
    type Item = Hash128;

    fn settings(_: &[ScalarValue]) -> Result<(), Cause> {
        Ok(())
    }

    fn item<K: Key>(key: &K) -> Hash128 {
        SEED.hash128(key)
    }

    fn build((): &(), hashes: &[Hash128]) -> Result<Vec<u8>, Cause> {
        let function = RecSplit::builder().build_from(hashes)?;
        if function.seed() != SEED.get() {
            return Err(Cause::Reseeded { keys: hashes.len() });
        }
        Ok(function.to_bytes())
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
