//! Subjects on the CPU: our filter with its serial and its parallel operations, a peer, and our Bloom filter.

use rayon::prelude::*;
use warpset::bloom::SplitBlockBloom;
use warpset::prelude::{Filter as _, Insert, Remove};
use warpset::quotient::{
    Builder, Container, Duplicates, Layout, QuotientFilter, RankSelect, RankSelectQuotientFilter, SlotKind, Standard,
    StandardBuilder, StandardQuotientFilter,
};

use super::{MAX_LOAD, Size};
use bench_frame::machine;

/// A filter and the way that it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Standard slots, operations on many keys.
    Bulk(Container),
    /// Slots with rank and select, operations on many keys.
    RankSelect,
    /// Standard slots, one key after the other: the paper's serial filter.
    OneByOne,
    /// Slots with rank and select, one key after the other.
    RankSelectOneByOne,
    /// The crate `qfilter`, a rank-and-select quotient filter: fingerprints as long as ours.
    Qfilter,
    /// Our split-block Bloom filter, made for the keys that there are and the paper's rate of false positives.
    Bloom,
}

impl Kind {
    /// All of them, ours first.
    pub const ALL: [Kind; 7] = [
        Kind::Bulk(Container::Packed),
        Kind::Bulk(Container::Bytes),
        Kind::RankSelect,
        Kind::OneByOne,
        Kind::RankSelectOneByOne,
        Kind::Qfilter,
        Kind::Bloom,
    ];

    /// Returns the name in rows.
    pub fn name(self) -> String {
        match self {
            Kind::Bulk(container) => container_name(container).into(),
            Kind::RankSelect => "rank-select".into(),
            Kind::OneByOne => "packed, one by one".into(),
            Kind::RankSelectOneByOne => "rank-select, one by one".into(),
            Kind::Qfilter => format!("qfilter {}", machine::version("qfilter")),
            Kind::Bloom => "split-block Bloom".into(),
        }
    }

    /// Whether several threads may change it.
    pub fn changes_in_parallel(self) -> bool {
        matches!(self, Kind::Bulk(_) | Kind::RankSelect | Kind::Bloom)
    }

    /// Whether lookups on all threads say more than those on one.
    pub fn asks_in_parallel(self) -> bool {
        !matches!(self, Kind::OneByOne | Kind::RankSelectOneByOne)
    }

    /// Whether keys can be removed.
    pub fn removes(self) -> bool {
        self != Kind::Bloom
    }

    /// Whether it takes `n` keys without growing.
    pub fn takes(self, size: Size, n: usize) -> bool {
        n <= if self == Kind::Qfilter { size.keys(0.95) } else { size.keys(MAX_LOAD) }
    }

    /// Makes a filter of these keys, untimed.
    pub fn filled(self, size: Size, keys: &[u32]) -> anyhow::Result<Filter> {
        let mut filter = self.empty(size, keys.len())?;
        match &mut filter {
            Filter::Ours { filter, .. } => *filter = filter.of_same_layout(keys)?,
            Filter::Qfilter(filter) => *filter = qfilter_sorted(size, keys)?,
            Filter::Bloom(filter) => filter.insert_bulk(keys)?,
        }
        Ok(filter)
    }

    /// Makes a filter for `n` keys.
    pub fn empty(self, size: Size, n: usize) -> anyhow::Result<Filter> {
        Ok(match self {
            Kind::Bulk(container) => {
                let layout = layout(size, container, Duplicates::Dropped)?;
                Filter::Ours { filter: Ours::empty::<Standard>(layout)?, one_by_one: false }
            }
            Kind::RankSelect | Kind::OneByOne | Kind::RankSelectOneByOne => {
                let layout = layout(size, Container::Packed, Duplicates::Dropped)?;
                let filter = match self {
                    Kind::OneByOne => Ours::empty::<Standard>(layout)?,
                    _ => Ours::empty::<RankSelect>(layout)?,
                };
                Filter::Ours { filter, one_by_one: self != Kind::RankSelect }
            }
            Kind::Qfilter => Filter::Qfilter(qfilter_for(size)?),
            Kind::Bloom => {
                let fpr = 2f64.powi(-(size.remainder_bits as i32));
                Filter::Bloom(SplitBlockBloom::builder(n.max(1) as u64).fpr(fpr).build()?)
            }
        })
    }

    /// Whether it is another crate's.
    pub fn is_peer(self) -> bool {
        self == Kind::Qfilter
    }
}

/// Returns the container's name.
pub fn container_name(container: Container) -> &'static str {
    match container {
        Container::Packed => "packed",
        Container::Bytes => "bytes",
    }
}

/// Returns the parameters of our filters.
pub fn layout(size: Size, container: Container, duplicates: Duplicates) -> anyhow::Result<Layout> {
    let builder = StandardBuilder::with_bits(size.quotient_bits, size.remainder_bits).max_load(MAX_LOAD);
    Ok(builder.container(container).duplicates(duplicates).layout()?)
}

/// Makes a peer with the same number of slots.
pub fn qfilter_for(size: Size) -> anyhow::Result<qfilter::Filter> {
    let bits = (size.quotient_bits + size.remainder_bits) as u8;
    Ok(qfilter::Filter::with_fingerprint_size(size.keys(0.95) as u64, bits)?)
}

/// Makes a peer of these keys: its builder gets sorted fingerprints.
pub fn qfilter_sorted(size: Size, keys: &[u32]) -> anyhow::Result<qfilter::Filter> {
    let bits = (size.quotient_bits + size.remainder_bits) as u8;
    let hash = |key: &u32| qfilter::compute_fingerprint_with_hasher(&qfilter::StableBuildHasher, key, bits);
    let mut fingerprints: Vec<u64> = keys.par_iter().with_min_len(1 << 12).map(hash).collect();
    fingerprints.par_sort_unstable();
    let mut builder = qfilter::Builder::new(qfilter_for(size)?);
    for fingerprint in fingerprints {
        builder.insert_fingerprint(false, fingerprint)?;
    }
    Ok(builder.into_filter())
}

/// Change of a filter by a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The batch's keys are inserted.
    Insert,
    /// The batch's keys are removed.
    Remove,
}

impl Change {
    /// Returns the operation of its rows.
    pub fn name(self) -> &'static str {
        match self {
            Change::Insert => "insert",
            Change::Remove => "remove",
        }
    }
}

/// One of our quotient filters.
#[derive(Clone, PartialEq)]
pub enum Ours {
    /// With standard slots.
    Standard(StandardQuotientFilter),
    /// With rank and select.
    RankSelect(RankSelectQuotientFilter),
}

impl From<StandardQuotientFilter> for Ours {
    fn from(filter: StandardQuotientFilter) -> Ours {
        Ours::Standard(filter)
    }
}

impl From<RankSelectQuotientFilter> for Ours {
    fn from(filter: RankSelectQuotientFilter) -> Ours {
        Ours::RankSelect(filter)
    }
}

/// Runs the body with the filter, whichever kind it is.
macro_rules! with_ours {
    ($ours:expr, |$filter:ident| $body:expr) => {
        match $ours {
            Ours::Standard($filter) => $body,
            Ours::RankSelect($filter) => $body,
        }
    };
}
pub(super) use with_ours;

/// Makes a filter of these keys with the layout of another.
fn of_same_layout<S: SlotKind>(filter: &QuotientFilter<S>, keys: &[u32]) -> anyhow::Result<QuotientFilter<S>> {
    Ok(Builder::<S>::with_layout(*filter.layout()).build_from(keys)?)
}

impl Ours {
    /// Makes an empty filter.
    pub fn empty<S: SlotKind>(layout: Layout) -> anyhow::Result<Ours>
    where
        Ours: From<QuotientFilter<S>>,
    {
        Ok(Builder::<S>::with_layout(layout).build()?.into())
    }

    /// Makes a filter of these keys with the layout of this one.
    pub fn of_same_layout(&self, keys: &[u32]) -> anyhow::Result<Ours> {
        Ok(with_ours!(self, |filter| of_same_layout(filter, keys)?.into()))
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        with_ours!(self, |filter| filter.layout())
    }
}

/// A filter with keys in it.
#[derive(Clone)]
pub enum Filter {
    /// Ours.
    Ours {
        /// The filter.
        filter: Ours,
        /// Whether keys come one by one.
        one_by_one: bool,
    },
    /// The peer.
    Qfilter(qfilter::Filter),
    /// The Bloom filter.
    Bloom(SplitBlockBloom),
}

impl Filter {
    /// Asks for all keys, on the threads of the current pool.
    pub fn contains(&self, keys: &[u32], answers: &mut [bool]) -> anyhow::Result<()> {
        match self {
            Filter::Ours { filter, one_by_one: true } => {
                with_ours!(filter, |filter| {
                    keys.iter().zip(answers).for_each(|(key, answer)| *answer = filter.contains(*key));
                });
            }
            Filter::Ours { filter, .. } => with_ours!(filter, |filter| filter.contains_bulk_into(keys, answers)?),
            Filter::Qfilter(filter) => {
                let share = keys.len().div_ceil(rayon::current_num_threads()).max(1);
                keys.par_chunks(share).zip(answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
                    keys.iter().zip(answers).for_each(|(key, answer)| *answer = filter.contains(key));
                });
            }
            Filter::Bloom(filter) => filter.contains_bulk_into(keys, answers)?,
        }
        Ok(())
    }

    /// Counts the keys that it claims to contain.
    pub fn count(&self, keys: &[u32]) -> anyhow::Result<usize> {
        let mut answers = vec![false; keys.len()];
        self.contains(keys, &mut answers)?;
        Ok(answers.into_iter().filter(|answer| *answer).count())
    }

    /// Inserts or removes all keys. A Bloom filter cannot remove any: it stays as it is.
    pub fn change(&mut self, change: Change, keys: &[u32]) -> anyhow::Result<()> {
        match (self, change) {
            (Filter::Ours { filter, one_by_one: true }, Change::Insert) => {
                with_ours!(filter, |filter| for key in keys {
                    filter.insert(*key)?;
                });
            }
            (Filter::Ours { filter, one_by_one: true }, Change::Remove) => {
                with_ours!(filter, |filter| keys.iter().for_each(|key| _ = filter.remove(*key)));
            }
            (Filter::Ours { filter, .. }, Change::Insert) => {
                with_ours!(filter, |filter| _ = filter.insert_bulk(keys)?)
            }
            (Filter::Ours { filter, .. }, Change::Remove) => {
                with_ours!(filter, |filter| _ = filter.remove_bulk(keys)?)
            }
            (Filter::Qfilter(filter), Change::Insert) => {
                for key in keys {
                    filter.insert(key)?;
                }
            }
            (Filter::Qfilter(filter), Change::Remove) => keys.iter().for_each(|key| _ = filter.remove(key)),
            (Filter::Bloom(filter), Change::Insert) => filter.insert_bulk(keys)?,
            (Filter::Bloom(_), Change::Remove) => {}
        }
        Ok(())
    }

    /// Returns the rate of false positives at the current load, if the filter has it exactly.
    pub fn fpr(&self, size: Size) -> Option<f64> {
        match self {
            Filter::Ours { filter, .. } => Some(with_ours!(filter, |filter| filter.fpr())),
            // Different fingerprints: it holds each once, as ours does.
            Filter::Qfilter(filter) => {
                Some(filter.len() as f64 / 2f64.powi((size.quotient_bits + size.remainder_bits) as i32))
            }
            Filter::Bloom(_) => None,
        }
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Filter::Ours { filter, .. } => with_ours!(filter, |filter| filter.memory_bytes()),
            Filter::Qfilter(filter) => filter.memory_usage() as u64,
            Filter::Bloom(filter) => filter.memory_bytes(),
        }
    }

    /// Returns our filter, to compare bytes.
    pub fn ours(&self) -> Option<&Ours> {
        match self {
            Filter::Ours { filter, .. } => Some(filter),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ABSENT, INSERTED, as_expected, keys};
    use super::*;

    #[test]
    fn every_kind_holds_what_it_was_given() {
        let size = Size::of(12);
        let (inside, outside) = (keys(INSERTED, size.keys(0.7)), keys(ABSENT, 20_000));
        for kind in Kind::ALL {
            let mut filter = kind.filled(size, &inside).unwrap();
            assert_eq!(filter.count(&inside).unwrap(), inside.len(), "{kind:?}");
            if let Some(fpr) = filter.fpr(size) {
                assert!(as_expected(filter.count(&outside).unwrap(), fpr * outside.len() as f64), "{kind:?}");
            }
            filter.change(Change::Remove, &inside).unwrap();
            assert_eq!(filter.count(&inside).unwrap(), if kind.removes() { 0 } else { inside.len() }, "{kind:?}");
        }
    }
}
