//! Filters of fingerprints that the caller has counted.

use std::sync::OnceLock;

use super::QuotientFilter;
use super::fingerprint_source::{Ascending, AscendingSource, Buffer, Each};
use super::rewrite::lay_out;
use crate::slot_kind::{Copies, SlotKind};
use crate::{Error, Layout};

/// Pairs from the caller's function.
struct Given<F> {
    from: F,
    last_fingerprint: u64,
    /// Fingerprint that is too wide, has no copies, or does not ascend.
    broken: OnceLock<u64>,
}

/// Reader of a [`Given`] from a fingerprint on. It ends before the first pair that breaks the contract.
struct GivenFrom<'a, I> {
    pairs: I,
    /// Least possible next fingerprint; `None` after the largest.
    least: Option<u64>,
    last_fingerprint: u64,
    broken: &'a OnceLock<u64>,
    buffer: Buffer<Copies>,
}

impl<I: Iterator<Item = (u64, u64)>> GivenFrom<'_, I> {
    #[inline]
    fn fill(&mut self) {
        let Buffer { items, next, end } = &mut self.buffer;
        (*next, *end) = (0, 0);
        for place in items {
            let Some((fingerprint, copies)) = self.pairs.next() else { break };
            let ascends = self.least.is_some_and(|least| fingerprint >= least);
            if !ascends || copies == 0 || fingerprint > self.last_fingerprint {
                // Another thread may have noted another one first.
                let _ = self.broken.set(fingerprint);
                self.least = None;
                break;
            }
            self.least = fingerprint.checked_add(1);
            *place = Copies { fingerprint, copies };
            *end += 1;
        }
    }
}

impl<I: Iterator<Item = (u64, u64)>> Ascending for GivenFrom<'_, I> {
    type Item = Copies;

    #[inline]
    fn ready(&mut self) -> &[Copies] {
        if self.buffer.next >= self.buffer.end {
            self.fill();
        }
        self.buffer.left()
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.buffer.next += count;
    }
}

impl<F, I> AscendingSource for Given<F>
where
    F: Fn(u64) -> I + Sync,
    I: Iterator<Item = (u64, u64)>,
{
    type Item = Copies;
    type Run<'a>
        = GivenFrom<'a, I>
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> GivenFrom<'_, I> {
        GivenFrom {
            pairs: (self.from)(first),
            least: Some(first),
            last_fingerprint: self.last_fingerprint,
            broken: &self.broken,
            buffer: Buffer::empty(),
        }
    }
}

impl<S: SlotKind> QuotientFilter<S> {
    /// Builds a filter of the pairs; see
    /// [`Builder::build_from_fingerprint_counts`](crate::Builder::build_from_fingerprint_counts).
    pub(crate) fn from_given<F, I>(layout: Layout, from: F) -> Result<QuotientFilter<S>, Error>
    where
        F: Fn(u64) -> I + Sync,
        I: Iterator<Item = (u64, u64)>,
    {
        let given = Given { from, last_fingerprint: layout.last_fingerprint(), broken: OnceLock::new() };
        let filter = if layout.is_counted() {
            lay_out(layout, &given)
        } else {
            let (mut fingerprints, mut total) = (Vec::new(), 0u64);
            for Copies { fingerprint, copies } in Each(given.read_from(0)) {
                let copies = if layout.keeps_duplicates() { copies } else { 1 };
                total = total.saturating_add(copies);
                if total <= layout.limit() {
                    fingerprints.extend(std::iter::repeat_n(fingerprint, copies as usize));
                }
            }
            match total > layout.limit() {
                true => Err(layout.full(total)),
                false => QuotientFilter::from_fingerprints(layout, &fingerprints),
            }
        };
        match given.broken.into_inner() {
            None => filter,
            Some(fingerprint) => Err(Error::NotAscending { fingerprint }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::{Builder, Duplicates, Error, RankSelect, RankSelectBuilder};

    fn build(builder: &RankSelectBuilder, pairs: &[(u64, u64)]) -> Result<crate::RankSelectQuotientFilter, Error> {
        builder.build_from_fingerprint_counts(|first| {
            pairs[pairs.partition_point(|pair| pair.0 < first)..].iter().copied()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Builds give the bytes of single insertions, on one thread and on several.
        #[test]
        fn counts_make_the_filter_of_their_copies(
            model in prop::collection::btree_map(0u64..1 << 26, 1u64..9, 0..200),
            duplicates in prop::sample::select(vec![Duplicates::Counted, Duplicates::Kept, Duplicates::Dropped]),
            q in prop::sample::select(vec![11u32, 16]),
            threads in 1usize..4,
        ) {
            let builder = Builder::<RankSelect>::with_bits(q, 26 - q).duplicates(duplicates);
            let pairs: Vec<(u64, u64)> = model.iter().map(|(&f, &c)| (f, c)).collect();
            let mut wanted = builder.build().unwrap();
            for &(fingerprint, copies) in &pairs {
                wanted.insert_counted_fingerprint(fingerprint, copies).unwrap();
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let built = pool.install(|| build(&builder, &pairs)).unwrap();
            prop_assert!(built == wanted);
            prop_assert_eq!(built.len(), wanted.len());
        }
    }

    #[test]
    fn large_filters_are_built_in_parts_and_keys_in_bulk_make_the_same() {
        let builder = Builder::<RankSelect>::with_bits(18, 22).duplicates(Duplicates::Counted).exact(40);
        let keys: Vec<u64> = (0..150_000u64).map(|i| (i * i * i) & ((1 << 40) - 1)).collect();
        let copies: Vec<u64> = (0..150_000).map(|i| i % 3).collect();
        let layout = builder.layout().unwrap();
        let mut model = BTreeMap::<u64, u64>::new();
        for (&key, &copies) in keys.iter().zip(&copies).filter(|(_, copies)| **copies > 0) {
            *model.entry(layout.fingerprint(key).unwrap()).or_default() += copies;
        }
        let pairs: Vec<(u64, u64)> = model.into_iter().collect();
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let built = pool.install(|| build(&builder, &pairs)).unwrap();
            assert!(built.fingerprint_counts().eq(pairs.iter().copied()));
            let mut inserted = builder.build().unwrap();
            let added = pool.install(|| inserted.insert_counted_bulk(&keys, &copies)).unwrap();
            assert!(inserted == built && added == built.len());
        }
    }

    #[test]
    fn what_does_not_ascend_or_fit_is_an_error() {
        for duplicates in [Duplicates::Counted, Duplicates::Kept, Duplicates::Dropped] {
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                for q in [8, 16] {
                    let builder = Builder::<RankSelect>::with_bits(q, 20 - q).duplicates(duplicates);
                    let tried = |pairs: &[(u64, u64)]| pool.install(|| build(&builder, pairs));
                    let broken = |pairs: &[(u64, u64)], at: u64| match tried(pairs) {
                        Err(Error::NotAscending { fingerprint }) => assert_eq!(fingerprint, at),
                        other => panic!("{other:?}"),
                    };
                    broken(&[(7, 1), (7, 1)], 7);
                    broken(&[(9, 1), (0, 1)], 0);
                    broken(&[(9, 0)], 9);
                    broken(&[(9, 1), (1 << 20, 1)], 1 << 20);
                    assert_eq!(tried(&[]).unwrap().len(), 0);
                    let many: Vec<(u64, u64)> = (0..1 << q).map(|i| (i << (20 - q), 1)).collect();
                    assert!(matches!(tried(&many), Err(Error::Full { .. })));
                }
            }
        }
        let builder = Builder::<RankSelect>::with_bits(8, 8).duplicates(Duplicates::Counted);
        assert!(matches!(build(&builder, &[(1, 1 << 62), (2, 1 << 62)]), Err(Error::TooManyCopies)));
        assert_eq!(build(&builder, &[(1, 1 << 62), (2, 5)]).unwrap().count_fingerprint(1), 1 << 62);
    }
}
