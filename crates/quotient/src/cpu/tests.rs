//! Filters against a multiset: random operations at tiny and large `q`, all cluster shapes, full filters.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpset_base::testing::{keys, tier};
use warpset_core::quotient::rank_select::counters;
use warpset_core::quotient::slots::Container;

use super::QuotientFilter;
use crate::{
    Builder, Duplicates, Error, Filter, Hashed, Insert, Layout, LengthMismatch, RankSelect, Remove, SlotKind, Standard,
    StandardBuilder, StandardQuotientFilter,
};

/// Runs each test for both kinds of slots.
macro_rules! for_kinds {
    ($($test:ident)*) => {
        mod standard {
            $(#[test]
            fn $test() {
                super::$test::<crate::Standard>();
            })*
        }
        mod rank_select {
            $(#[test]
            fn $test() {
                super::$test::<crate::RankSelect>();
            })*
        }
    };
}

type Model = BTreeMap<u64, u64>;

/// One operation; fingerprints are drawn from all quotients or from few.
#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    Remove(u64),
    InsertBulk(Vec<u64>),
    RemoveBulk(Vec<u64>),
    Merge(Vec<u64>),
    Subtract(Vec<u64>),
    Intersect(Vec<u64>),
    Double,
    Halve,
    OtherForm,
    SaveAndLoad,
    InsertCounted(u64, u64),
    RemoveCounted(u64, u64),
    RetainCounts(u64),
}

fn op(max: u64) -> impl Strategy<Value = Op> {
    // Half of the fingerprints crowd near one end.
    let fingerprint = prop_oneof![0..=max, (0..=max / 8).prop_map(move |f| max - f)];
    let some = prop::collection::vec(fingerprint.clone(), 0..40);
    let copies = prop_oneof![8 => 0..20u64, 1 => 0..u64::MAX];
    prop_oneof![
        6 => fingerprint.clone().prop_map(Op::Insert),
        4 => fingerprint.clone().prop_map(Op::Remove),
        2 => (fingerprint.clone(), copies.clone()).prop_map(|(f, n)| Op::InsertCounted(f, n)),
        1 => (fingerprint, copies).prop_map(|(f, n)| Op::RemoveCounted(f, n)),
        1 => (1..4u64).prop_map(Op::RetainCounts),
        4 => some.clone().prop_map(Op::InsertBulk),
        3 => some.clone().prop_map(Op::RemoveBulk),
        1 => some.clone().prop_map(Op::Merge),
        1 => some.clone().prop_map(Op::Subtract),
        1 => some.prop_map(Op::Intersect),
        1 => Just(Op::Double),
        1 => Just(Op::Halve),
        1 => Just(Op::OtherForm),
        1 => Just(Op::SaveAndLoad),
    ]
}

fn total(model: &Model) -> u64 {
    model.values().sum()
}

fn add(model: &mut Model, fingerprints: &[u64], keep: bool) {
    for &f in fingerprints {
        let count = model.entry(f).or_default();
        *count = if keep { *count + 1 } else { 1 };
    }
}

fn take(model: &mut Model, fingerprints: &[u64]) {
    for f in fingerprints {
        if let Some(count) = model.get_mut(f) {
            *count -= 1;
            if *count == 0 {
                model.remove(f);
            }
        }
    }
}

/// Returns the slots of a number of copies.
fn slots(layout: &Layout, copies: u64) -> u64 {
    if layout.is_counted() { counters::slots(copies, layout.remainder_bits()) } else { copies }
}

/// Whether these fingerprints would fit, by the filter's definition.
fn fits(layout: &Layout, model: &Model) -> bool {
    let (mut free, mut used) = (0u64, 0u64);
    for (&f, &copies) in model {
        let slots = slots(layout, copies);
        free = free.max(layout.split.quotient(f)).saturating_add(slots);
        used = used.saturating_add(slots);
    }
    used <= layout.limit() && free < layout.slots()
}

fn check<S: SlotKind>(filter: &QuotientFilter<S>, model: &Model) -> Result<(), TestCaseError> {
    let counted: Vec<(u64, u64)> = model.iter().map(|(&f, &count)| (f, count)).collect();
    prop_assert_eq!(filter.fingerprint_counts().collect::<Vec<_>>(), counted);
    prop_assert_eq!(filter.len(), total(model));
    prop_assert_eq!(filter.distinct(), model.len() as u64);
    let mut histogram = vec![0; 5];
    model.values().for_each(|&count| histogram[count.min(4) as usize] += 1);
    prop_assert_eq!(filter.count_histogram(4)?, histogram);
    S::validate(&filter.view()).map_err(|e| TestCaseError::fail(e.to_string()))?;
    if total(model) > 1 << 16 {
        return Ok(());
    }
    let expected: Vec<u64> = model.iter().flat_map(|(&f, &count)| (0..count).map(move |_| f)).collect();
    prop_assert_eq!(filter.fingerprints().collect::<Vec<_>>(), expected.clone());
    let rebuilt = Builder::<S>::with_layout(*filter.layout()).build_from_fingerprints(&expected).unwrap();
    prop_assert!(rebuilt == *filter, "not the bytes of a build");
    Ok(())
}

/// Checks a filter against a model; `other_form` writes its fingerprints in another form, if its slots have several.
fn behaves_like_a_multiset<S: SlotKind>(
    layout: Layout,
    ops: Vec<Op>,
    other_form: impl Fn(&QuotientFilter<S>) -> QuotientFilter<S>,
) -> Result<(), TestCaseError> {
    let mut filter = QuotientFilter::<S>::with_layout(layout).unwrap();
    let mut model = Model::new();
    let keep = layout.keeps_duplicates();
    for op in ops {
        let before = filter.clone();
        let mut wanted = model.clone();
        let layout = *filter.layout();
        let (result, fit) = match op {
            Op::Insert(f) => {
                add(&mut wanted, &[f], keep);
                let present = filter.contains_fingerprint(f);
                let result = filter.insert_fingerprint(f);
                if let Ok(stored) = result {
                    prop_assert_eq!(stored, keep || !present);
                }
                (result.map(|_| ()), fits(&layout, &wanted))
            }
            Op::Remove(f) => {
                let there = model.contains_key(&f);
                take(&mut wanted, &[f]);
                prop_assert_eq!(filter.remove_fingerprint(f), there);
                (Ok(()), true)
            }
            Op::InsertBulk(some) => {
                add(&mut wanted, &some, keep);
                let result = filter.insert_fingerprints_bulk(&some);
                if let Ok(stored) = result {
                    prop_assert_eq!(stored, total(&wanted) - total(&model));
                }
                (result.map(|_| ()), fits(&layout, &wanted))
            }
            Op::RemoveBulk(some) => {
                take(&mut wanted, &some);
                prop_assert_eq!(filter.remove_fingerprints_bulk(&some).unwrap(), total(&model) - total(&wanted));
                (Ok(()), true)
            }
            Op::Merge(some) => {
                let mut other = QuotientFilter::<S>::with_layout(
                    layout
                        .with_quotient_bits(
                            (layout.quotient_bits() + 3).min(layout.fingerprint_bits() - 1),
                            S::MAX_LOAD,
                        )
                        .unwrap(),
                )
                .unwrap();
                if other.insert_fingerprints_bulk(&some).is_err() {
                    continue;
                }
                let mut theirs = Model::new();
                add(&mut theirs, &some, keep);
                let common: u64 = theirs.iter().map(|(f, &count)| count.min(model.get(f).copied().unwrap_or(0))).sum();
                prop_assert_eq!(filter.intersection_count(&other).unwrap(), common);
                prop_assert_eq!(other.union_count(&filter).unwrap(), total(&theirs) + total(&model) - common);
                add(&mut wanted, &some, keep);
                (filter.merge(&other), fits(&layout, &wanted))
            }
            Op::Subtract(some) => {
                let mut other = QuotientFilter::<S>::with_layout(layout).unwrap();
                if other.insert_fingerprints_bulk(&some).is_err() {
                    continue;
                }
                let mut theirs = Model::new();
                add(&mut theirs, &some, keep);
                let theirs: Vec<u64> = theirs.iter().flat_map(|(&f, &count)| (0..count).map(move |_| f)).collect();
                take(&mut wanted, &theirs);
                (filter.subtract(&other), true)
            }
            Op::Intersect(some) => {
                let mut other = QuotientFilter::<S>::with_layout(layout).unwrap();
                if other.insert_fingerprints_bulk(&some).is_err() {
                    continue;
                }
                wanted = Model::new();
                for f in other.fingerprints() {
                    let count = wanted.get(&f).copied().unwrap_or(0);
                    if count < model.get(&f).copied().unwrap_or(0) {
                        wanted.insert(f, count + 1);
                    }
                }
                (filter.intersect(&other), true)
            }
            Op::Double if layout.remainder_bits() > 1 => {
                let doubled = layout.with_quotient_bits(layout.quotient_bits() + 1, S::MAX_LOAD).unwrap();
                (filter.double(), fits(&doubled, &wanted))
            }
            Op::Halve if layout.quotient_bits() > 1 && layout.remainder_bits() < 61 => {
                let halved = layout.with_quotient_bits(layout.quotient_bits() - 1, S::MAX_LOAD).unwrap();
                (filter.halve(), fits(&halved, &wanted))
            }
            Op::OtherForm => {
                filter = other_form(&filter);
                (Ok(()), true)
            }
            Op::SaveAndLoad => {
                filter = QuotientFilter::from_bytes(&filter.to_bytes()).unwrap();
                (Ok(()), true)
            }
            Op::InsertCounted(f, n) if keep || n < 2 => {
                *wanted.entry(f).or_default() += n.min(1 << 60);
                wanted.retain(|_, count| *count > 0);
                if !keep && n == 1 {
                    wanted.insert(f, 1);
                }
                let result = filter.insert_counted_fingerprint(f, n.min(1 << 60));
                if let Ok(stored) = result {
                    prop_assert_eq!(stored, total(&wanted) - total(&model));
                }
                (result.map(|_| ()), total(&wanted) < 1 << 63 && fits(&layout, &wanted))
            }
            Op::RemoveCounted(f, n) => {
                if let Some(count) = wanted.get_mut(&f) {
                    *count = count.saturating_sub(n);
                }
                wanted.retain(|_, count| *count > 0);
                prop_assert_eq!(filter.remove_counted_fingerprint(f, n), total(&model) - total(&wanted));
                (Ok(()), true)
            }
            Op::RetainCounts(least) => {
                wanted.retain(|_, count| *count >= least);
                prop_assert_eq!(filter.retain_counts(least).unwrap(), total(&model) - total(&wanted));
                (Ok(()), true)
            }
            Op::Double | Op::Halve | Op::InsertCounted(..) => (Ok(()), true),
        };
        match result {
            Ok(()) => {
                prop_assert!(fit, "more than fits");
                model = wanted;
            }
            Err(Error::Full { .. } | Error::OverflowRegionFull { .. } | Error::TooManyCopies) => {
                prop_assert!(!fit, "called full with room for all");
                prop_assert!(filter == before, "changed by an operation that failed");
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        check(&filter, &model)?;
    }
    for f in 0..=layout.last_fingerprint().min(300) {
        prop_assert_eq!(filter.contains_fingerprint(f), model.contains_key(&f));
        let hash = f << (64 - filter.layout().fingerprint_bits());
        prop_assert_eq!(filter.count(Hashed(hash)), model.get(&f).copied().unwrap_or(0));
    }
    Ok(())
}

fn layout(q: u32, r: u32, max_load: f64, packed: bool, keep: bool) -> Layout {
    let container = if packed { Container::Packed } else { Container::Bytes };
    let duplicates = if keep { Duplicates::Kept } else { Duplicates::Dropped };
    StandardBuilder::with_bits(q, r).max_load(max_load).container(container).duplicates(duplicates).layout().unwrap()
}

fn in_the_other_container(filter: &StandardQuotientFilter) -> StandardQuotientFilter {
    let other = match filter.layout().container() {
        Container::Bytes => Container::Packed,
        Container::Packed => Container::Bytes,
    };
    filter.with_container(other).unwrap()
}

/// Draws tiny filters with few fingerprints, in which every shape of cluster occurs.
fn tiny() -> impl Strategy<Value = (Layout, Vec<Op>)> {
    (1..9u32, 1..5u32, 0.5..0.99, any::<bool>(), any::<bool>()).prop_flat_map(|(q, r, load, packed, keep)| {
        let layout = layout(q, r, load, packed, keep);
        (Just(layout), prop::collection::vec(op(layout.last_fingerprint()), 1..60))
    })
}

/// Makes layouts packed.
fn packed((layout, ops): (Layout, Vec<Op>)) -> (Layout, Vec<Op>) {
    (Layout { container: Container::Packed, ..layout }, ops)
}

/// Makes layouts with counters.
fn counted((layout, ops): (Layout, Vec<Op>)) -> (Layout, Vec<Op>) {
    (Layout { duplicates: Duplicates::Counted, ..layout }, ops)
}

/// Draws filters of any width; most fingerprints are far apart.
fn wide() -> impl Strategy<Value = (Layout, Vec<Op>)> {
    (1..11u32, 5..=61u32, any::<bool>(), any::<bool>()).prop_flat_map(|(q, r, packed, keep)| {
        let layout = layout(q.min(64 - r), r, 0.9, packed, keep);
        (Just(layout), prop::collection::vec(op(layout.last_fingerprint()), 1..15))
    })
}

proptest! {
    // The environment may ask for fewer cases.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(tier(64, 128)), ..ProptestConfig::default() })]

    #[test]
    fn tiny_filters_behave_like_multisets((layout, ops) in tiny()) {
        behaves_like_a_multiset(layout, ops, in_the_other_container)?;
    }

    #[test]
    fn filters_of_every_width_behave_like_multisets((layout, ops) in wide()) {
        behaves_like_a_multiset(layout, ops, in_the_other_container)?;
    }

    #[test]
    fn tiny_rank_select_filters_behave_like_multisets((layout, ops) in tiny().prop_map(packed)) {
        behaves_like_a_multiset::<RankSelect>(layout, ops, Clone::clone)?;
    }

    #[test]
    fn tiny_filters_with_counters_behave_like_multisets((layout, ops) in tiny().prop_map(packed).prop_map(counted)) {
        behaves_like_a_multiset::<RankSelect>(layout, ops, Clone::clone)?;
    }

    #[test]
    fn filters_with_counters_of_every_width_behave_like_multisets((layout, ops) in wide().prop_map(packed).prop_map(counted)) {
        behaves_like_a_multiset::<RankSelect>(layout, ops, Clone::clone)?;
    }

    #[test]
    fn rank_select_filters_of_every_width_behave_like_multisets((layout, ops) in wide().prop_map(packed)) {
        behaves_like_a_multiset::<RankSelect>(layout, ops, Clone::clone)?;
    }
}

for_kinds! {
    full_filters_in_parallel_parts
    one_key_too_many_changes_nothing
    a_key_repeated_too_often_at_the_end_is_an_error
    filters_that_do_not_match_are_refused
    longer_fingerprints_merge_into_shorter_ones
    empty_inputs
    filters_grow_with_iterators
    forms_of_answers_agree
}

fn full_filters_in_parallel_parts<S: SlotKind>() {
    // Several threads on every machine, so that there are several parts with seams between them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    pool.install(|| {
        for (packed, keep) in [(true, false), (false, false), (true, true)] {
            let layout = layout(17, 9, 0.95, packed, keep);
            if !S::lies_in(layout.container()) {
                continue;
            }
            let all = keys(layout.limit(), 1);
            let built = Builder::<S>::with_layout(layout).build_from(&all).unwrap();
            S::validate(&built.view()).unwrap();
            assert_eq!(built.count_contained_bulk(&all).unwrap(), all.len());
            assert!(built.contains_bulk(&all).unwrap().iter().all(|&yes| yes));
            // Batches in place up to the limit give the bytes of the serial filter.
            let mut filled = QuotientFilter::<S>::with_layout(layout).unwrap();
            for batch in all.chunks(5000) {
                filled.insert_bulk(batch).unwrap();
            }
            assert!(filled == built);
            let mut serial = QuotientFilter::<S>::with_layout(layout).unwrap();
            all.iter().for_each(|key| assert!(serial.insert(key).is_ok()));
            assert!(serial == built);
            // Removals give the bytes of the serial filter, too.
            let (gone, stay) = all.split_at(all.len() / 2);
            for batch in gone.chunks(5000) {
                filled.remove_bulk(batch).unwrap();
            }
            gone.iter().for_each(|key| _ = serial.remove(key));
            assert!(serial == filled);
            let mut at_once = built.clone();
            at_once.remove_bulk(gone).unwrap();
            assert!(at_once == filled);
            if keep {
                assert_eq!(filled.len(), stay.len() as u64);
                assert_eq!(filled.count_contained_bulk(stay).unwrap(), stay.len());
                assert!(filled == Builder::<S>::with_layout(layout).build_from(stay).unwrap());
            }
        }
    });
}

fn one_key_too_many_changes_nothing<S: SlotKind>() {
    for packed in [true, false] {
        let layout = layout(12, 20, 0.95, packed, true);
        if !S::lies_in(layout.container()) {
            continue;
        }
        let all = keys(layout.limit(), 5);
        let full = Builder::<S>::with_layout(layout).build_from(&all).unwrap();
        let mut filter = full.clone();
        let limit = layout.limit();
        let error = filter.insert(7u64).unwrap_err();
        assert!(matches!(error, Error::Full { items, limit: l, .. } if items == limit + 1 && l == limit), "{error}");
        assert!(matches!(filter.insert_bulk(&[7u64, 8]), Err(Error::Full { items, .. }) if items == limit + 2));
        assert!(matches!(filter.merge(&full), Err(Error::Full { items, .. }) if items == 2 * limit));
        assert!(matches!(filter.halve(), Err(Error::Full { .. })));
        assert!(filter == full);
        filter.double().unwrap();
        filter.insert(7u64).unwrap();
        filter.merge(&full).unwrap_err();
        assert_eq!(filter.count_contained_bulk(&all).unwrap(), all.len());
        assert_eq!(filter.fpr(), filter.distinct() as f64 / 2f64.powi(32));
    }
}

fn a_key_repeated_too_often_at_the_end_is_an_error<S: SlotKind>() {
    let layout = layout(16, 8, 0.9, true, true);
    let mut filter = QuotientFilter::<S>::with_layout(layout).unwrap();
    let last = vec![Hashed(u64::MAX); 20_000];
    assert!(matches!(filter.insert_bulk(&last), Err(Error::OverflowRegionFull { .. })));
    assert!(filter.is_empty() && filter.words().iter().all(|&w| w == 0));
    while filter.insert(last[0]).is_ok() {}
    assert_eq!(filter.len(), layout.slots() - layout.quotients());
    assert_eq!(filter.count(last[0]), filter.len());
    S::validate(&filter.view()).unwrap();
    // A set stores one fingerprint.
    let mut set = QuotientFilter::<S>::with_layout(Layout { duplicates: Duplicates::Dropped, ..layout }).unwrap();
    assert_eq!(set.insert_bulk(&last).unwrap(), 1);
}

fn filters_that_do_not_match_are_refused<S: SlotKind>() {
    let a = Builder::<S>::with_bits(10, 10).build().unwrap();
    let mut b = Builder::<S>::with_bits(10, 11).build().unwrap();
    assert!(matches!(b.merge(&a), Err(Error::FewerBits { left: 21, right: 20 })));
    let mut c = Builder::<S>::with_bits(10, 10).seed(1).build().unwrap();
    assert!(matches!(c.merge(&a), Err(Error::Incompatible { field: "seed", .. })));
    let mut d = Builder::<S>::with_bits(10, 10).duplicates(Duplicates::Kept).build().unwrap();
    assert!(matches!(
        d.merge(&a),
        Err(Error::DifferentDuplicates { left: Duplicates::Kept, right: Duplicates::Dropped })
    ));
    assert!(matches!(a.clone().insert_fingerprint(1 << 20), Err(Error::InvalidFingerprint { bits: 20, .. })));
    assert!(matches!(a.clone().insert_fingerprints_bulk(&[1 << 20]), Err(Error::InvalidFingerprint { .. })));
    assert!(!a.clone().remove_fingerprint(1 << 20) && !a.contains_fingerprint(1 << 20));
    assert!(matches!(
        a.contains_bulk_into(&[1u64], &mut []),
        Err(Error::LengthMismatch(LengthMismatch { needed: 1, found: 0, .. }))
    ));
}

fn longer_fingerprints_merge_into_shorter_ones<S: SlotKind>() {
    let (some, more) = (keys(3000, 1), keys(2000, 2));
    let mut short = Builder::<S>::with_bits(13, 8).build_from(&some).unwrap();
    let long = Builder::<S>::with_bits(12, 20).build_from(&more).unwrap();
    let expected = Builder::<S>::with_bits(13, 8).build_from(&[some, more].concat()).unwrap();
    let union = short.union_count(&long).unwrap();
    assert_eq!(long.union_count(&short).unwrap(), union);
    short.merge(&long).unwrap();
    assert_eq!(short.len(), union);
    assert!(short == expected);
}

fn empty_inputs<S: SlotKind>() {
    let mut filter = Builder::<S>::with_bits(1, 1).build().unwrap();
    assert_eq!(filter.insert_bulk::<u64>(&[]).unwrap(), 0);
    assert_eq!(filter.remove_bulk::<u64>(&[]).unwrap(), 0);
    assert!(filter.contains_bulk::<u64>(&[]).unwrap().is_empty());
    filter.contains_bytes_bulk_into::<u64>(&[], &mut []).unwrap();
    assert_eq!(filter.fingerprints().count(), 0);
    let empty = filter.clone();
    filter.merge(&empty).unwrap();
    assert_eq!((filter.len(), filter.fpr(), filter.union_count(&empty).unwrap()), (0, 0.0, 0));
    assert!(Builder::<S>::with_bits(8, 8).build_from::<u64>(&[]).unwrap().is_empty());
}

fn forms_of_answers_agree<S: SlotKind>() {
    let filter = Builder::<S>::with_capacity(20_000).build_from(&keys(20_000, 1)).unwrap();
    for n in [1, 63, 64, 20_000] {
        let mut asked = [keys(n, 1), keys(n, 2)].concat();
        let answers = filter.contains_bulk(&asked).unwrap();
        let mut bytes = vec![7; asked.len()];
        filter.contains_bytes_bulk_into(&asked, &mut bytes).unwrap();
        assert!(bytes.iter().zip(&answers).all(|(&byte, &yes)| byte == u8::from(yes)));
        assert!(filter.contains_bitmap_bulk(&asked).unwrap().iter().eq(answers.iter().copied()));
        let left: Vec<_> = asked.iter().zip(&answers).filter(|(_, yes)| **yes).map(|(&key, _)| key).collect();
        filter.retain_contained_bulk(&mut asked).unwrap();
        assert_eq!(asked, left);
        assert!(matches!(filter.contains_bytes_bulk_into(&left, &mut []), Err(Error::LengthMismatch(_))));
    }
}

fn filters_grow_with_iterators<S: SlotKind>() {
    let filter: QuotientFilter<S> = keys(10_000, 3).into_iter().collect();
    assert_eq!(filter.count_contained_bulk(&keys(10_000, 3)).unwrap(), 10_000);
    assert!(filter.fpr() <= crate::DEFAULT_FPR && filter.layout().duplicates() == Duplicates::Dropped);
    let none: QuotientFilter<S> = std::iter::empty::<&str>().collect();
    assert!(none.is_empty());

    let builder = QuotientFilter::<S>::builder(1000).fpr(1e-9).duplicates(Duplicates::Kept).seed(5);
    let mut grown = builder.build().unwrap();
    grown.extend(keys(150_000, 4));
    grown.extend(["a", "b"]);
    assert_eq!((grown.len(), grown.count("a")), (150_002, 1));
    assert_eq!(grown.layout().fingerprint_bits(), builder.layout().unwrap().fingerprint_bits());
}

#[test]
fn builders_of_known_layouts() {
    type S = Standard;
    let filter = QuotientFilter::<S>::builder(1000).fpr(1e-4).seed(3).build_from(&keys(700, 1)).unwrap();
    let builder = Builder::<S>::with_layout(*filter.layout());
    assert_eq!(builder.layout().unwrap(), *filter.layout());
    assert!(builder.build_from_fingerprints(&filter.fingerprints().collect::<Vec<_>>()).unwrap() == filter);
    let other = builder.container(Container::Bytes).seed(4).duplicates(Duplicates::Kept).layout().unwrap();
    assert_eq!((other.limit(), other.slots()), (filter.layout().limit(), filter.layout().slots()));
    assert_eq!((other.container(), other.seed(), other.duplicates()), (Container::Bytes, 4, Duplicates::Kept));
}
