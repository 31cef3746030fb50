//! `sized_filter_agg`: split-block Bloom filters sized by their distinct keys, up to a limit.
//!
//! Join filters of engines with distributed plans are built by this aggregate, since the number of keys is known only
//! at the end. Partial results are lists of distinct hashes, 8 bytes each. If there are more keys than a filter of the
//! largest size is useful for, they are dropped, and the result is a filter of one block with all bits set: it passes
//! every key and costs next to nothing to send and to probe.

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::key::Key;
use warpset_bloom::{Builder, Insert, SplitBlockBloom, SplitBlockLayout, as_hashed, rates};

use crate::error::Cause;
use crate::gather::{Gather, OfKeys, Slots, add_keys};
use crate::joins::layout_for;
use crate::keys;
use crate::rows::Rows;

/// Up to this number, hashes are kept with duplicates.
const FEW: usize = 1024;
/// Partial result with too many keys; no list of hashes has this length.
const TOO_MANY: [u8; 1] = [0xff];
/// The name of the parameter.
const MOST_BYTES: &str = "most_bytes";
/// Default of the largest size in bytes.
const DEFAULT_MOST_BYTES: u64 = 32 << 20;

/// State of `sized_filter_agg(x [, most_bytes])`.
#[derive(Debug)]
pub(crate) struct SizedFilter {
    hashes: Vec<u64>,
    /// Length of the prefix without duplicates.
    distinct: usize,
    /// Whether there were too many keys.
    too_many: bool,
}

/// Limits of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    layout: SplitBlockLayout,
    most_bytes: u64,
    most_keys: usize,
}

impl SizedFilter {
    fn extend(&mut self, limits: &Limits, hashes: impl Iterator<Item = u64>) {
        if self.too_many {
            return;
        }
        self.hashes.extend(hashes);
        if self.hashes.len() > FEW.max(2 * self.distinct) {
            self.drop_copies(limits);
        }
    }

    fn drop_copies(&mut self, limits: &Limits) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.distinct = self.hashes.len();
        if self.distinct > limits.most_keys {
            *self = SizedFilter { hashes: Vec::new(), distinct: 0, too_many: true };
        }
    }
}

/// Returns a filter of one block with all bits set.
fn everything() -> Result<SplitBlockBloom, Cause> {
    let mut filter = Builder::with_layout(SplitBlockLayout::new(1)?).build()?;
    filter.insert_bulk(&Vec::from_iter(0..4096u64))?;
    Ok(filter)
}

impl Gather for SizedFilter {
    const NAME: &'static str = "sized_filter_agg";
    const IGNORES_COPIES: bool = true;
    const PARAMETERS: &'static [(&'static str, DataType)] = &[(MOST_BYTES, DataType::Int64)];
    type Settings = Limits;

    fn check_type(argument: &DataType) -> Result<(), Cause> {
        keys::check_type(argument)
    }

    fn settings(parameters: &[ScalarValue]) -> Result<Limits, Cause> {
        let most_bytes = match parameters.first() {
            None => DEFAULT_MOST_BYTES,
            Some(ScalarValue::Int64(Some(bytes @ 32..))) => *bytes as u64,
            Some(ScalarValue::Int64(Some(bytes))) => {
                let (found, allowed) = (bytes.to_string(), "32 or more, the bytes of a block");
                return Err(Cause::InvalidParameter { parameter: MOST_BYTES, found, allowed });
            }
            Some(_) => return Err(Cause::NotLiteral { parameter: MOST_BYTES }),
        };
        let most_keys = usize::try_from(rates::worthwhile_keys(most_bytes)).unwrap_or(usize::MAX);
        Ok(Limits { layout: SplitBlockLayout::new(1)?, most_bytes, most_keys })
    }

    fn add(limits: &Limits, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause> {
        add_keys(limits, slots, values, rows)
    }

    fn merge(limits: &Limits, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause> {
        let filter = slot.get_or_insert_with(Self::empty);
        if partial == TOO_MANY {
            *filter = SizedFilter { hashes: Vec::new(), distinct: 0, too_many: true };
            return Ok(());
        }
        let (hashes, []) = partial.as_chunks::<8>() else {
            return Err(Cause::PartialResult { bytes: partial.len() });
        };
        filter.extend(limits, hashes.iter().map(|&hash| u64::from_le_bytes(hash)));
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }

    fn partial(&mut self, limits: &Limits) -> Result<Vec<u8>, Cause> {
        self.drop_copies(limits);
        if self.too_many {
            return Ok(TOO_MANY.to_vec());
        }
        Ok(self.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect())
    }

    fn result(&mut self, limits: &Limits) -> Result<Vec<u8>, Cause> {
        self.drop_copies(limits);
        if self.too_many {
            return Ok(everything()?.to_bytes());
        }
        let mut filter = Builder::with_layout(layout_for(self.distinct as u64, limits.most_bytes)?).build()?;
        filter.insert_bulk(as_hashed(&self.hashes))?;
        Ok(filter.to_bytes())
    }
}

impl OfKeys for SizedFilter {
    fn empty() -> Self {
        SizedFilter { hashes: Vec::new(), distinct: 0, too_many: false }
    }

    fn insert<K: Key + Copy>(&mut self, limits: &Limits, key: K) -> Result<(), Cause> {
        self.extend(limits, [limits.layout.hash(key).0].into_iter());
        Ok(())
    }

    fn insert_bulk<K: Key + Copy>(&mut self, limits: &Limits, keys: &[K]) -> Result<(), Cause> {
        self.extend(limits, keys.iter().map(|key| limits.layout.hash(*key).0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(most_bytes: i64) -> Limits {
        SizedFilter::settings(&[ScalarValue::Int64(Some(most_bytes))]).unwrap()
    }

    fn of(keys: std::ops::Range<u64>, limits: &Limits) -> SizedFilter {
        let mut filter = SizedFilter::empty();
        filter.insert_bulk(limits, &Vec::from_iter(keys)).unwrap();
        filter
    }

    #[test]
    fn a_filter_has_the_size_of_its_keys_however_they_came() {
        let limits = limits(1 << 20);
        let expected = of(0..5000, &limits).result(&limits).unwrap();
        assert!((7000..8000).contains(&expected.len()), "{}", expected.len());
        let mut slot = None;
        for keys in [0..3000, 2000..5000, 0..0, 100..4000] {
            let partial = of(keys, &limits).partial(&limits).unwrap();
            SizedFilter::merge(&limits, &mut slot, &partial).unwrap();
        }
        let mut merged = slot.unwrap();
        assert_eq!(merged.partial(&limits).unwrap().len(), 8 * 5000);
        assert_eq!(merged.result(&limits).unwrap(), expected);
        let filter = SplitBlockBloom::from_bytes(&expected).unwrap();
        assert!((0..5000u64).all(|key| filter.contains(key)));
        assert!((5000..15_000u64).filter(|&key| filter.contains(key)).count() < 200);
    }

    #[test]
    fn too_many_keys_become_a_filter_that_lets_everything_pass() {
        let limits = limits(4096);
        let few = rates::worthwhile_keys(4096);
        let header = everything().unwrap().to_bytes().len() - 32;
        assert_eq!(of(0..few, &limits).result(&limits).unwrap().len(), header + 4096);
        let mut many = of(0..few + 1, &limits);
        assert_eq!(many.partial(&limits).unwrap(), TOO_MANY);
        assert_eq!(many.memory_bytes(), 0);
        let mut slot = Some(of(0..10, &limits));
        SizedFilter::merge(&limits, &mut slot, &TOO_MANY).unwrap();
        for mut filter in [many, slot.unwrap()] {
            let filter = SplitBlockBloom::from_bytes(&filter.result(&limits).unwrap()).unwrap();
            assert!((0..100_000u64).all(|key| filter.contains(key)));
        }
    }

    #[test]
    fn wrong_limits_and_partial_results_are_errors() {
        for wrong in [ScalarValue::Int64(Some(31)), ScalarValue::Int64(Some(-1)), ScalarValue::Int64(None)] {
            assert!(SizedFilter::settings(&[wrong]).is_err());
        }
        for wrong in [&[0u8; 1][..], &[0; 7], &[0; 12]] {
            assert!(SizedFilter::merge(&limits(4096), &mut None, wrong).is_err());
        }
    }
}
