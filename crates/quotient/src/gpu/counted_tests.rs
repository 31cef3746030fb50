//! Counters and exact filters on devices give the host's bytes, answers and errors, operation by operation.

use std::fmt::Debug;
use warpset_base::filter::Filter;
use warpset_primitives::DeviceFilter as _;

use proptest::prelude::*;
use warpset_core::bits::lowest;
use warpset_gpu::Device;
use warpset_gpu::testing::devices;

use crate::gpu::{DeviceSlotKind, QuotientFilter as DeviceFilter};
use crate::{Builder, Count, Duplicates, Error, Insert, QuotientFilter, RankSelectBuilder, Remove, Standard};

/// Operation on both filters.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u64>),
    Remove(Vec<u64>),
    InsertCounted(Vec<(u64, u64)>),
    RemoveCounted(Vec<(u64, u64)>),
    Merge(Vec<(u64, u64)>),
    Subtract(Vec<(u64, u64)>),
    Intersect(Vec<(u64, u64)>),
    Retain(u64),
    Double,
    Halve,
}

fn key() -> impl Strategy<Value = u64> {
    prop_oneof![0..12u64, 0..400u64, any::<u64>()]
}

/// Draws numbers of copies around digits of all widths, few and very many.
fn copies() -> impl Strategy<Value = u64> {
    prop_oneof![0..5u64, (0..62u32, 0..4u64).prop_map(|(bits, more)| (1 << bits) + more), Just(u64::MAX),]
}

fn pairs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((key(), copies()), 0..20)
}

fn op() -> impl Strategy<Value = Op> {
    let keys = || prop::collection::vec(key(), 0..40);
    prop_oneof![
        4 => keys().prop_map(Op::Insert),
        2 => keys().prop_map(Op::Remove),
        4 => pairs().prop_map(Op::InsertCounted),
        2 => pairs().prop_map(Op::RemoveCounted),
        1 => pairs().prop_map(Op::Merge),
        1 => pairs().prop_map(Op::Subtract),
        1 => pairs().prop_map(Op::Intersect),
        1 => (0..4u64).prop_map(Op::Retain),
        1 => Just(Op::Double),
        1 => Just(Op::Halve),
    ]
}

/// Returns a result with its error as text.
fn told<T>(result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

fn both_told<T: PartialEq + Debug>(
    device: Result<T, Error>,
    host: Result<T, Error>,
    op: &str,
) -> Result<bool, TestCaseError> {
    let done = host.is_ok();
    prop_assert_eq!(told(device), told(host), "{}", op);
    Ok(done)
}

/// Builds a filter of pairs on the host, of as many as fit.
fn other<S: DeviceSlotKind>(builder: &Builder<S>, pairs: &[(u64, u64)]) -> QuotientFilter<S> {
    let mut filter = builder.build().unwrap();
    for &(key, copies) in pairs {
        let _ = filter.insert_counted(key, copies % (1 << 40));
    }
    filter
}

/// Checks a filter on a device against that of the host.
fn same<S: DeviceSlotKind>(
    filter: &DeviceFilter<S>,
    host: &QuotientFilter<S>,
    asked: &[u64],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(filter.len(), host.len());
    prop_assert_eq!(filter.load_factor(), host.load_factor());
    prop_assert!(filter.to_host().unwrap() == *host);
    prop_assert_eq!(filter.fingerprint_counts().unwrap(), host.fingerprint_counts().collect::<Vec<_>>());
    prop_assert_eq!(filter.distinct().unwrap(), host.distinct());
    prop_assert_eq!((filter.fpr().unwrap(), filter.expected_fpr(9)), (host.fpr(), host.expected_fpr(9)));
    prop_assert_eq!(filter.measured_fpr(64, 1).unwrap(), host.measured_fpr(64, 1));
    prop_assert_eq!(filter.count_histogram(3).unwrap(), host.count_histogram(3).unwrap());
    prop_assert!(matches!(filter.count_histogram(usize::MAX), Err(Error::OutOfMemory(_))));
    if host.len() < 1000 {
        prop_assert_eq!(filter.fingerprints().unwrap(), host.fingerprints().collect::<Vec<_>>());
    }
    prop_assert_eq!(filter.contains_bulk(asked).unwrap(), host.contains_bulk(asked)?);
    prop_assert_eq!(filter.count_bulk(asked).unwrap(), host.count_bulk(asked)?);
    let device = filter.device();
    let keys = device.from_slice(asked).unwrap();
    let mut answers = device.alloc_uninit::<u8>(asked.len()).unwrap();
    filter.contains_device(keys.as_slice(), answers.as_mut_slice()).unwrap();
    prop_assert!(answers.to_vec().unwrap().iter().map(|&yes| yes == 1).eq(host.contains_bulk(asked)?));
    let mut counts = device.alloc_uninit::<u64>(asked.len()).unwrap();
    filter.count_device(keys.as_slice(), counts.as_mut_slice()).unwrap();
    prop_assert_eq!(counts.to_vec().unwrap(), host.count_bulk(asked)?);
    match host.key_counts() {
        Ok(keys) => prop_assert_eq!(filter.key_counts().unwrap(), keys.collect::<Vec<_>>()),
        Err(_) => prop_assert!(matches!(filter.key_counts(), Err(Error::NotExact))),
    }
    if host.layout().is_exact() && host.len() < 1000 {
        prop_assert_eq!(filter.keys().unwrap(), host.keys().unwrap().collect::<Vec<_>>());
    }
    Ok(())
}

/// Does the operations on both; `mask` makes keys of an exact filter, and some of them may be too wide.
fn behaves_like_the_host<S: DeviceSlotKind>(
    device: &Device,
    builder: Builder<S>,
    mask: u64,
    ops: &[Op],
) -> Result<(), TestCaseError> {
    let mut host = builder.build().unwrap();
    let mut filter = builder.on(device).build().unwrap();
    let counted = host.layout().duplicates() == Duplicates::Counted;
    let mut asked = vec![0, 1, mask, mask.wrapping_add(1), !0];
    let masked = |key: u64| if key % 64 == 63 { key } else { key & mask };
    for op in ops {
        let name = format!("{op:?}");
        match op {
            Op::Insert(keys) | Op::Remove(keys) => {
                let keys: Vec<u64> = keys.iter().map(|&key| masked(key)).collect();
                asked.extend(&keys);
                let on_device = device.from_slice(&keys).unwrap();
                let narrow: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
                if matches!(op, Op::Insert(_)) {
                    both_told(filter.insert_device(on_device.as_slice()), host.insert_bulk(&keys), &name)?;
                    both_told(
                        filter.insert_bulk(&narrow[..keys.len() / 4]),
                        host.insert_bulk(&narrow[..keys.len() / 4]),
                        &name,
                    )?;
                } else {
                    both_told(filter.remove_device(on_device.as_slice()), host.remove_bulk(&keys), &name)?;
                    both_told(
                        filter.remove_bulk(&keys[..keys.len() / 2]),
                        host.remove_bulk(&keys[..keys.len() / 2]),
                        &name,
                    )?;
                }
            }
            Op::InsertCounted(pairs) | Op::RemoveCounted(pairs) => {
                let (keys, copies): (Vec<u64>, Vec<u64>) =
                    pairs.iter().map(|&(key, copies)| (masked(key), copies)).unzip();
                asked.extend(&keys);
                let (keys_there, copies_there) =
                    (device.from_slice(&keys).unwrap(), device.from_slice(&copies).unwrap());
                if matches!(op, Op::InsertCounted(_)) {
                    // Keys that are not inserted may be invalid on the host.
                    if keys.iter().zip(&copies).any(|(&key, &copies)| copies == 0 && key > mask) {
                        continue;
                    }
                    let wanted = host.insert_counted_bulk(&keys, &copies);
                    let there = filter.insert_counted_device(keys_there.as_slice(), copies_there.as_slice());
                    if both_told(there, wanted, &name)? {
                        let few = keys.len().min(3);
                        let wanted = host.insert_counted_bulk(&keys[..few], &copies[..few]);
                        both_told(filter.insert_counted_bulk(&keys[..few], &copies[..few]), wanted, &name)?;
                    }
                } else {
                    let removed = keys
                        .iter()
                        .zip(&copies)
                        .map(|(&key, &copies)| host.remove_counted(key, copies.min(host.len())))
                        .sum::<u64>();
                    let there = filter.remove_counted_device(keys_there.as_slice(), copies_there.as_slice());
                    both_told(there, Ok(removed), &name)?;
                }
            }
            Op::Merge(pairs) | Op::Subtract(pairs) | Op::Intersect(pairs) => {
                let pairs: Vec<(u64, u64)> = pairs.iter().map(|&(key, copies)| (masked(key), copies)).collect();
                let (quotient_bits, remainder_bits) = (host.layout().quotient_bits(), host.layout().remainder_bits());
                let longer =
                    Builder::<S>::with_bits(quotient_bits, (remainder_bits + 3).min(61).min(64 - quotient_bits))
                        .duplicates(host.layout().duplicates());
                let builder = if host.layout().is_exact() { Builder::with_layout(*host.layout()) } else { longer };
                let theirs = other(&builder, &pairs);
                let there = theirs.to_device(device).unwrap();
                both_told(filter.intersection_count(&there), host.intersection_count(&theirs), &name)?;
                both_told(filter.union_count(&there), host.union_count(&theirs), &name)?;
                match op {
                    Op::Merge(_) => both_told(filter.merge(&there), host.merge(&theirs), &name)?,
                    Op::Subtract(_) => both_told(filter.subtract(&there), host.subtract(&theirs), &name)?,
                    _ => both_told(filter.intersect(&there), host.intersect(&theirs), &name)?,
                };
            }
            Op::Retain(least) => {
                both_told(filter.retain_counts(*least), host.retain_counts(*least), &name)?;
            }
            Op::Double => {
                both_told(filter.double(), host.double(), &name)?;
            }
            Op::Halve if host.layout().quotient_bits() > 1 => {
                both_told(filter.halve(), host.halve(), &name)?;
            }
            Op::Halve => {}
        }
        prop_assert!(counted || filter.len() <= host.layout().limit());
        same(&filter, &host, &asked)?;
    }
    Ok(())
}

/// Draws quotient and remainder bits: fingerprints of 32 and of 64 bits, digits of one bit and of many.
fn shape() -> impl Strategy<Value = (u32, u32)> {
    (3..9u32, prop::sample::select(vec![1u32, 2, 5, 8, 23, 24, 30, 40, 55]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn filters_with_counters_behave_like_the_hosts(
        (q, r) in shape(), seed in 0..3u64, ops in prop::collection::vec(op(), 1..7),
    ) {
        for device in devices(seed) {
            let builder = RankSelectBuilder::with_bits(q, r).seed(seed).duplicates(Duplicates::Counted);
            behaves_like_the_host(&device, builder, !0, &ops)?;
        }
    }

    #[test]
    fn exact_filters_behave_like_the_hosts(
        (q, bits) in (3..9u32, prop::sample::select(vec![12u32, 32, 33, 62, 63, 64])),
        kind in 0..5usize, seed in 0..3u64, ops in prop::collection::vec(op(), 1..5),
    ) {
        let duplicates = [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted][kind % 3];
        for device in devices(seed) {
            if kind < 3 {
                let builder = RankSelectBuilder::with_bits(q, bits - q).seed(seed).duplicates(duplicates).exact(bits);
                behaves_like_the_host(&device, builder, lowest(bits), &ops)?;
            } else {
                let builder = Builder::<Standard>::with_bits(q, bits - q).seed(seed).duplicates(duplicates).exact(bits);
                behaves_like_the_host(&device, builder, lowest(bits), &ops)?;
            }
        }
    }

    #[test]
    fn counts_that_are_given_make_the_hosts_filter(
        (q, r) in shape(), kind in 0..5usize,
        pairs in prop::collection::btree_map(any::<u64>(), prop_oneof![1..4u64, 1..300u64, 1..u64::MAX], 0..60),
        broken in 0..8usize,
    ) {
        let duplicates = [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted][kind % 3];
        let mut pairs: std::collections::BTreeMap<u64, u64> =
            pairs.into_iter().map(|(key, copies)| (key >> (64 - q - r), copies)).collect();
        if broken > 1 {
            pairs.values_mut().for_each(|copies| *copies %= 1 << 57);
            pairs.retain(|_, copies| *copies > 0);
        }
        let mut pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
        if broken == 0 && pairs.len() > 3 {
            pairs[2].0 = pairs[1].0;
        }
        for device in devices(1) {
            if kind < 3 {
                given(&device, RankSelectBuilder::with_bits(q, r).duplicates(duplicates), &pairs)?;
            } else {
                given(&device, Builder::<Standard>::with_bits(q, r).duplicates(duplicates), &pairs)?;
            }
        }
    }
}

fn given<S: DeviceSlotKind>(device: &Device, builder: Builder<S>, pairs: &[(u64, u64)]) -> Result<(), TestCaseError> {
    let host = builder
        .build_from_fingerprint_counts(|first| pairs[pairs.partition_point(|pair| pair.0 < first)..].iter().copied());
    let (fingerprints, copies): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let (fingerprints, copies) = (device.from_slice(&fingerprints).unwrap(), device.from_slice(&copies).unwrap());
    let there = builder.on(device).build_from_fingerprint_counts_device(fingerprints.as_slice(), copies.as_slice());
    match (there, host) {
        (Ok(there), Ok(host)) => same(&there, &host, &[1, 2, 3]),
        (Err(Error::NotAscending { .. }), Err(_)) => Ok(()),
        (there, host) => {
            prop_assert_eq!(told(there.map(|_| ())), told(host.map(|_| ())));
            Ok(())
        }
    }
}

/// Checks sizes around tiles and warps, one hot key, many copies of all, and counts at the bounds of digits.
#[test]
fn multisets_of_all_sizes_are_the_hosts() {
    for device in devices(5) {
        let sizes = [1, 31, 33, 255, 256, 257, 1023, 1024, 1025, 2049, 4097];
        // All sizes occur once, and a few of them with remainders of the other widths.
        for (first, step, r) in [(0, 1, 3), (2, 4, 19), (1, 4, 20), (0, 5, 40)] {
            let builder = RankSelectBuilder::with_bits(13, r).duplicates(Duplicates::Counted);
            for &n in sizes.iter().skip(first).step_by(step) {
                let mut keys: Vec<u64> = (0..n).collect();
                keys.extend(std::iter::repeat_n(7, 2500));
                keys.extend((0..n).filter(|key| key % 3 == 0));
                let host = builder.build_from(&keys).unwrap();
                let on_device = device.from_slice(&keys).unwrap();
                let filter = builder.on(&device).build_from_device(on_device.as_slice()).unwrap();
                assert!(filter.to_host().unwrap() == host && filter.len() == host.len());
            }
        }
        for r in [1, 2, 5, 8, 16, 33] {
            let builder = RankSelectBuilder::with_bits(11, r).duplicates(Duplicates::Counted);
            let base = 1u64 << r;
            let counts = [
                1,
                2,
                base - 1,
                base,
                base + 1,
                base + 2,
                base.saturating_mul(base).min(1 << 58) + 1,
                (1 << 32) - 1,
                1 << 32,
                1 << 50,
            ];
            let (keys, copies): (Vec<u64>, Vec<u64>) = counts
                .into_iter()
                .cycle()
                .take(60)
                .enumerate()
                .map(|(key, copies)| (key as u64, copies.max(1)))
                .unzip();
            let mut host = builder.build().unwrap();
            host.insert_counted_bulk(&keys, &copies).unwrap();
            let mut filter = builder.on(&device).build().unwrap();
            filter.insert_counted_bulk(&keys, &copies).unwrap();
            assert!(filter.to_host().unwrap() == host, "{r}");
            assert_eq!(filter.count_bulk(&keys).unwrap(), host.count_bulk(&keys).unwrap());
        }
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    for device in devices(6) {
        let builder = RankSelectBuilder::with_bits(7, 8).duplicates(Duplicates::Counted);
        let keys: Vec<u64> = (0..100).collect();
        let mut filter = builder.on(&device).build_from(&keys).unwrap();
        let before = filter.to_host().unwrap();
        let more: Vec<u64> = (0..60).collect();
        assert!(matches!(
            filter.insert_bulk(&more),
            Err(Error::Full { items: 159 | 160, limit: 121, duplicates: Duplicates::Counted })
        ));
        assert!(matches!(filter.insert_counted_bulk(&[3u64], &[u64::MAX]), Err(Error::TooManyCopies)));
        assert!(matches!(filter.insert_counted_bulk(&[3u64], &[1, 2]), Err(Error::LengthMismatch(_))));
        assert!(filter.to_host().unwrap() == before);

        let exact = RankSelectBuilder::with_capacity(100).exact(20).duplicates(Duplicates::Counted);
        let mut filter = exact.on(&device).build_from(&[1u64, 2, 2]).unwrap();
        let before = filter.to_host().unwrap();
        let wide = device.from_slice(&[3u64, 1 << 20]).unwrap();
        let signed = device.from_slice(&[-1i32, 5]).unwrap();
        let hashes = device.from_slice(&[crate::Hashed(2)]).unwrap();
        let ones = device.from_slice(&[1u64, 1]).unwrap();
        assert!(matches!(filter.insert_device(wide.as_slice()), Err(Error::KeyTooWide { bits: 20 })));
        assert!(matches!(filter.insert_device(signed.as_slice()), Err(Error::KeyTooWide { .. })));
        assert!(matches!(filter.insert_device(hashes.as_slice()), Err(Error::KeyTooWide { .. })));
        assert!(matches!(filter.insert_bulk(&["one"]), Err(Error::KeyTooWide { .. })));
        assert!(matches!(exact.on(&device).build_from_device(wide.as_slice()), Err(Error::KeyTooWide { .. })));
        let counted = filter.insert_counted_device(wide.as_slice(), ones.as_slice());
        assert!(matches!(counted, Err(Error::KeyTooWide { .. })));
        assert_eq!(filter.remove_device(wide.as_slice()).unwrap(), 0);
        assert_eq!(filter.remove_counted_device(wide.as_slice(), ones.as_slice()).unwrap(), 0);
        assert_eq!(filter.count_contained_device(hashes.as_slice()).unwrap(), 0);
        assert!(filter.to_host().unwrap() == before);
        assert_eq!(filter.contains_bulk(&[1u128, 1 << 100 | 1, 2]).unwrap(), [true, false, true]);
        assert_eq!(filter.count_bulk(&[2u8, 7]).unwrap(), [2, 0]);

        let hashed = RankSelectBuilder::with_bits(7, 13).duplicates(Duplicates::Counted).on(&device).build().unwrap();
        assert!(matches!(filter.merge(&hashed), Err(Error::DifferentKeyBits { .. })));
        let kept = RankSelectBuilder::with_bits(7, 13).duplicates(Duplicates::Kept).on(&device);
        let mut kept = kept.build_from(&[9u64, 9, 9, 4]).unwrap();
        assert!(matches!(kept.insert_counted_bulk(&[9u64], &[1]), Err(Error::NoCounters { .. })));
        assert_eq!(
            kept.remove_counted_device(device.from_slice(&[9u64]).unwrap().as_slice(), ones.slice(..1)).unwrap(),
            1
        );
        assert_eq!((kept.retain_counts(2).unwrap(), kept.len()), (1, 2));
    }
}

/// Checks that as many different keys as were asked for fit, with counts that fall like those of words.
#[test]
fn builders_have_room_for_keys_and_their_counts() {
    for device in devices(7) {
        for (fpr, exact) in [(0.01, None), (0.3, None), (1e-6, Some(40))] {
            for keys in [10, 1000, 6000u64] {
                let builder = |keys| {
                    let builder = RankSelectBuilder::with_capacity(keys).fpr(fpr).duplicates(Duplicates::Counted);
                    exact.map_or(builder, |bits| builder.exact(bits))
                };
                let layout = builder(keys).layout().unwrap();
                // The filter is filled up to the most keys for this size.
                let full = (keys..).take_while(|&keys| builder(keys).layout().is_ok_and(|other| other == layout));
                let keys: Vec<u64> = (0..full.last().unwrap()).collect();
                // The rarest keys come 5 times, so that the geometric mean is about 5 e.
                let zipf: Vec<u64> = keys.iter().map(|rank| 5 * keys.len() as u64 / (rank + 1)).collect();
                let mut host = builder(keys.len() as u64).build().unwrap();
                assert_eq!(*host.layout(), layout);
                host.insert_counted_bulk(&keys, &zipf).unwrap();
                assert_eq!(host.len(), zipf.iter().sum::<u64>());
                let mut filter = builder(keys.len() as u64).on(&device).build().unwrap();
                filter.insert_counted_bulk(&keys, &zipf).unwrap();
                assert!(filter.to_host().unwrap() == host);
            }
        }
    }
}
