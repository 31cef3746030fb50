//! One grammar: bodies that are generic over every filter, run on the host, on the emulator and on a CUDA device.
//!
//! What names look like is the business of `grammar_names.rs`; this holds what they do.

use std::collections::BTreeMap;
use std::error::Error;
use warpset_primitives::DeviceFilter;

use warpset_base::bitmap::Bitmap;
use warpset_base::filter::{Count, Filter, Insert, Remove, TestAndInsert};
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset_fuse::{BinaryFuse8, BinaryFuse16, BinaryFuse32};
use warpset_gpu::emulator::Config;
use warpset_gpu::{Device, testing};
use warpset_lsm::{CleanupPolicy, Lsm, OrderedMap, SortedArray};
use warpset_mphf::{RecSplitKind, StaticFilter};
use warpset_quotient::{Duplicates, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset_static::StaticSet;

/// Returns keys; another salt gives other keys.
fn keys(count: u64, salt: u64) -> Vec<u64> {
    (0..count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (salt << 60)).collect()
}

/// Joins the texts of an error and its causes.
fn words(error: &dyn Error) -> String {
    let mut all = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        all = format!("{all}: {cause}");
        next = cause.source();
    }
    all
}

/// Checks lookups: every form of answers agrees, empty input is no error, wrong lengths are one.
fn answers_agree<F: Filter>(filter: &F, present: &[u64]) {
    let asked = [present, &keys(500, 7)].concat();
    let answers = filter.contains_bulk(&asked).unwrap();
    assert!(answers[..present.len()].iter().all(|&answer| answer), "a key that was inserted is missing");

    let mut into = vec![false; asked.len()];
    filter.contains_bulk_into(&asked, &mut into).unwrap();
    assert_eq!(into, answers);
    let bitmap = filter.contains_bitmap_bulk(&asked).unwrap();
    assert_eq!(bitmap.iter().collect::<Vec<_>>(), answers);
    let contained = answers.iter().filter(|&&answer| answer).count();
    assert_eq!(filter.count_contained_bulk(&asked).unwrap(), contained);
    let at = [0, present.len() - 1, present.len(), asked.len() - 1];
    assert!(at.into_iter().all(|at| filter.contains(asked[at]).unwrap() == answers[at]));
    assert!(contained < present.len() + 250, "{contained} of {} keys", asked.len());

    assert!(filter.contains_bulk::<u64>(&[]).unwrap().is_empty());
    filter.contains_bulk_into::<u64>(&[], &mut []).unwrap();
    assert!(filter.contains_bitmap_bulk::<u64>(&[]).unwrap().is_empty());
    assert_eq!(filter.count_contained_bulk::<u64>(&[]).unwrap(), 0);

    for places in [0, 1, asked.len() - 1, asked.len() + 1] {
        let refused = filter.contains_bulk_into(&asked, &mut vec![false; places]).unwrap_err();
        let told = words(&refused);
        assert!(told.contains(&format!("places or values for keys: {places} given, {} needed", asked.len())), "{told}");
    }
    assert!(filter.memory_bytes() > 0);
}

/// Checks lookups under a stencil, of every form: the answers without it, and no where it says no.
fn answers_under_stencils<F: Filter>(filter: &F, present: &[u64]) {
    let asked = [present, &keys(500, 7)].concat();
    let answers = filter.contains_bulk(&asked).unwrap();
    for every in [1, 2, 3, 64, usize::MAX] {
        let stencil: Vec<bool> = (0..asked.len()).map(|i| i % every == 0).collect();
        let bytes: Vec<u8> = stencil.iter().map(|&set| u8::from(set) << 7).collect();
        let bits = Bitmap::from_bools(&stencil);
        let expected: Vec<bool> = answers.iter().zip(&stencil).map(|(&answer, &set)| answer && set).collect();
        assert_eq!(filter.contains_if_bulk(&asked, &stencil).unwrap(), expected);
        assert_eq!(filter.contains_if_bulk(&asked, &bytes[..]).unwrap(), expected);
        assert_eq!(filter.contains_if_bitmap_bulk(&asked, &bits).unwrap(), Bitmap::from_bools(&expected));
    }
    assert!(filter.contains_if_bulk::<u64>(&[], &[]).unwrap().is_empty());
    let told = words(&filter.contains_if_bulk(&asked, &[true; 3]).unwrap_err());
    assert!(told.contains(&format!("places or values for keys: 3 given, {} needed", asked.len())), "{told}");
}

/// Inserts every third key, by a stencil of each form, and checks that the others are absent.
fn changes_under_stencils<F: Insert>(make: &impl Fn() -> F) {
    let batch = keys(900, 3);
    let stencil: Vec<bool> = (0..batch.len()).map(|i| i % 3 == 0).collect();
    let meant: Vec<u64> = batch.iter().copied().step_by(3).collect();
    let (mut filter, mut other) = (make(), make());
    filter.insert_if_bulk(&batch, &stencil).unwrap();
    other.insert_bulk(&meant).unwrap();
    assert_eq!(filter.contains_bulk(&batch).unwrap(), other.contains_bulk(&batch).unwrap());
    answers_under_stencils(&filter, &meant);
    let told = words(&filter.insert_if_bulk(&batch, &[1u8, 2][..]).unwrap_err());
    assert!(told.contains("places or values for keys: 2 given, 900 needed"), "{told}");
    filter.insert_if_bulk::<u64>(&[], &Bitmap::default()).unwrap();
    let seen = filter.contains_bitmap_bulk(&batch).unwrap();
    other.clear().unwrap();
    other.insert_if_bulk(&batch, &seen).unwrap();
    assert!(other.count_contained_bulk(&meant).unwrap() == meant.len());
}

/// Checks changes: inserted keys are found, merging adds, clearing removes, empty input changes nothing.
fn changes<F: Insert>(make: impl Fn() -> F) {
    let (first, second) = (keys(1000, 1), keys(700, 2));
    let mut filter = make();
    filter.insert_bulk::<u64>(&[]).unwrap();
    assert_eq!(filter.count_contained_bulk(&first).unwrap(), 0);

    filter.insert_bulk(&first).unwrap();
    answers_agree(&filter, &first);
    let mut other = make();
    other.insert_bulk(&second).unwrap();
    filter.merge(&other).unwrap();
    answers_agree(&filter, &[first, second.clone()].concat());
    answers_agree(&other, &second);

    let bytes = filter.memory_bytes();
    filter.clear().unwrap();
    assert_eq!((filter.count_contained_bulk(&second).unwrap(), filter.memory_bytes()), (0, bytes));
    filter.insert_bulk(&second).unwrap();
    answers_agree(&filter, &second);
    changes_under_stencils(&make);
}

/// Checks that every key is new at most once.
fn tests_and_inserts<F: TestAndInsert>(make: impl Fn() -> F) {
    let mut filter = make();
    let batch = [keys(300, 1), keys(300, 1), keys(100, 3)].concat();
    let new = filter.test_and_insert_bulk(&batch).unwrap();
    assert!(new[300..600].iter().all(|&new| !new));
    assert!(new.iter().filter(|&&new| new).count() > 350);
    assert!(filter.test_and_insert_bulk(&batch).unwrap().iter().all(|&new| !new));
    assert!(filter.test_and_insert_bulk::<u64>(&[]).unwrap().is_empty());
    let more = keys(200, 5);
    let stencil: Vec<bool> = (0..200).map(|i| i % 2 == 0).collect();
    let new = filter.test_and_insert_if_bulk(&more, &stencil).unwrap();
    assert!(new.iter().zip(&stencil).all(|(&new, &set)| set || !new));
    assert!(new.iter().filter(|&&new| new).count() > 90);
    let mut by_one = make();
    by_one.insert(batch[0]).unwrap();
    assert!(by_one.contains(batch[0]).unwrap() && !by_one.test_and_insert_bulk(&batch[..1]).unwrap()[0]);
    answers_agree(&filter, &batch);
}

/// Copies are counted and removed one by one; in a set there is one of each.
fn counts_and_removes<F: Remove + Count>(make: impl Fn() -> F, is_set: bool) {
    let mut filter = make();
    let batch = [keys(200, 1), keys(100, 1), keys(50, 4)].concat();
    let mut model = BTreeMap::new();
    for &key in &batch {
        let copies = model.entry(key).or_insert(0u64);
        *copies = if is_set { 1 } else { *copies + 1 };
    }
    filter.insert_bulk(&batch).unwrap();
    let distinct: Vec<u64> = model.keys().copied().collect();
    assert_eq!(filter.count_bulk(&distinct).unwrap(), model.values().copied().collect::<Vec<_>>());
    assert!(filter.count_bulk::<u64>(&[]).unwrap().is_empty());
    assert_eq!(filter.remove_bulk::<u64>(&[]).unwrap(), 0);

    assert_eq!(filter.remove_bulk(&distinct).unwrap(), distinct.len() as u64);
    model.values_mut().for_each(|copies| *copies -= 1);
    assert_eq!(filter.count_bulk(&distinct).unwrap(), model.values().copied().collect::<Vec<_>>());
    assert_eq!(filter.remove_bulk(&keys(20, 9)).unwrap(), 0);

    let (mut left, all) = (make(), keys(100, 1));
    left.insert_bulk(&all).unwrap();
    let stencil: Vec<bool> = (0..100).map(|i| i < 60).collect();
    assert_eq!(left.remove_if_bulk(&all, &stencil).unwrap(), 60);
    assert!(left.contains_bulk(&all).unwrap().iter().zip(&stencil).all(|(&found, &removed)| found != removed));
}

/// Checks that empty batches do nothing and empty ranges have nothing, and that wrong lengths are errors that change
/// nothing. The crate's own tests compare all updates and queries with `BTreeMap`.
fn takes_any_length<D: OrderedMap<u64, u32>>(mut dictionary: D) {
    let (all, values) = (keys(1000, 1), (0..1000).collect::<Vec<u32>>());
    assert!(dictionary.is_empty().unwrap());
    dictionary.insert_bulk(&all, &values).unwrap();
    dictionary.insert_bulk(&[], &[]).unwrap();
    dictionary.remove_bulk(&[]).unwrap();
    dictionary.update_bulk(&[], &[], &[]).unwrap();
    assert!(dictionary.get_bulk(&[]).unwrap().is_empty() && dictionary.contains_bulk(&[]).unwrap().is_empty());
    let told = words(&dictionary.insert_bulk(&all, &values[1..]).unwrap_err());
    assert!(told.contains("values: 999 given, 1000 needed"), "{told}");
    let told = words(&dictionary.update_bulk(&all, &values, &[true; 200]).unwrap_err());
    assert!(told.contains("flags: 200 given, 1000 needed"), "{told}");
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let nothing = [7..=6];
    assert_eq!(dictionary.count_range_bulk(&nothing).unwrap(), [0]);
    assert!(dictionary.get_bulk(&all).unwrap().into_iter().eq(values.into_iter().map(Some)));
    assert!(dictionary.resident_len() >= 1000 && dictionary.memory_bytes() > 0);
    dictionary.clear().unwrap();
    assert!(dictionary.is_empty().unwrap() && dictionary.get_bulk(&all).unwrap().iter().all(Option::is_none));
}

/// Runs the body on the devices for device filters.
fn on_devices(body: impl Fn(&Device)) {
    testing::devices(5).iter().for_each(body);
}

#[test]
fn bloom_filters_on_the_host() {
    let (split, blocked) = (SplitBlockBloom::builder(2000).fpr(0.001), BlockedBloom::builder(2000).fpr(0.001));
    let rao = RaoBloom::builder(4000).fpr(0.001);
    changes(|| split.build().unwrap());
    changes(|| blocked.build().unwrap());
    changes(|| rao.build().unwrap());
    tests_and_inserts(|| split.build().unwrap());
    tests_and_inserts(|| blocked.build().unwrap());
    tests_and_inserts(|| rao.build().unwrap());
}

#[test]
fn bloom_filters_on_devices() {
    let (split, blocked) = (SplitBlockBloom::builder(2000).fpr(0.001), BlockedBloom::builder(2000).fpr(0.001));
    let rao = RaoBloom::builder(4000).fpr(0.001);
    on_devices(|device| {
        changes(|| split.clone().on(device).build().unwrap());
        changes(|| blocked.clone().on(device).build().unwrap());
        changes(|| rao.clone().on(device).build().unwrap());
        changes(|| split.sharded_on(&device.into()).build().unwrap());
        tests_and_inserts(|| split.clone().on(device).build().unwrap());
        tests_and_inserts(|| blocked.clone().on(device).build().unwrap());
        tests_and_inserts(|| rao.clone().on(device).build().unwrap());
    });
}

#[test]
fn quotient_filters_on_the_host() {
    let set = StandardQuotientFilter::builder(2000).fpr(1e-6);
    let multiset = set.duplicates(Duplicates::Kept);
    changes(|| set.build().unwrap());
    changes(|| multiset.build().unwrap());
    counts_and_removes(|| set.build().unwrap(), true);
    counts_and_removes(|| multiset.build().unwrap(), false);
    tests_and_inserts(|| set.build().unwrap());

    let set = RankSelectQuotientFilter::builder(2000).fpr(1e-6);
    changes(|| set.build().unwrap());
    counts_and_removes(|| set.build().unwrap(), true);
    for duplicates in [Duplicates::Kept, Duplicates::Counted] {
        let multiset = set.duplicates(duplicates);
        changes(|| multiset.build().unwrap());
        counts_and_removes(|| multiset.build().unwrap(), false);
        tests_and_inserts(|| multiset.build().unwrap());
    }
}

#[test]
fn quotient_filters_on_devices() {
    let set = StandardQuotientFilter::builder(2000).fpr(1e-6);
    let multiset = set.duplicates(Duplicates::Kept);
    on_devices(|device| {
        changes(|| set.on(device).build().unwrap());
        changes(|| multiset.on(device).build().unwrap());
        counts_and_removes(|| set.on(device).build().unwrap(), true);
        counts_and_removes(|| multiset.on(device).build().unwrap(), false);
    });
    let set = RankSelectQuotientFilter::builder(2000).fpr(1e-6);
    let multiset = set.duplicates(Duplicates::Kept);
    on_devices(|device| {
        changes(|| set.on(device).build().unwrap());
        changes(|| multiset.on(device).build().unwrap());
        counts_and_removes(|| set.on(device).build().unwrap(), true);
        counts_and_removes(|| multiset.on(device).build().unwrap(), false);
        let counted = set.duplicates(Duplicates::Counted);
        changes(|| counted.on(device).build().unwrap());
        counts_and_removes(|| counted.on(device).build().unwrap(), false);
        tests_and_inserts(|| set.on(device).build().unwrap());
        let exact = counted.exact(64);
        counts_and_removes(|| exact.on(device).build().unwrap(), false);
    });
}

#[test]
fn dictionaries_on_the_host() {
    for policy in [CleanupPolicy::Manual, CleanupPolicy::default(), CleanupPolicy::EveryBatches(2)] {
        takes_any_length(Lsm::builder().batch_size(256).cleanup(policy).build().unwrap());
    }
    takes_any_length(SortedArray::builder().build().unwrap());
}

#[test]
fn dictionaries_on_devices() {
    on_devices(|device| takes_any_length(Lsm::builder().batch_size(256).on(device).build().unwrap()));
    on_devices(|device| takes_any_length(SortedArray::builder().on(device).build().unwrap()));
    on_devices(|device| takes_any_length(Lsm::builder().sharded_on(&device.into()).build().unwrap()));
}

#[test]
fn binary_fuse_filters() {
    let present = keys(1000, 1);
    let (narrow, wide) = (BinaryFuse8::builder(), BinaryFuse32::builder().for_space());
    let sharded = BinaryFuse16::builder().for_build();
    answers_agree(&narrow.build_from(&present).unwrap(), &present);
    answers_agree(&wide.build_from(&present).unwrap().view(), &present);
    answers_under_stencils(&sharded.build_from(&present).unwrap(), &present);
    on_devices(|device| {
        answers_agree(&narrow.on(device).build_from(&present).unwrap(), &present);
        answers_agree(&wide.on(device).build_from(&present).unwrap(), &present);
        answers_agree(&sharded.on(device).build_from(&present).unwrap(), &present);
        answers_under_stencils(&sharded.on(device).build_from(&present).unwrap(), &present);
    });
}

#[test]
fn filters_that_never_change() {
    let present = keys(1000, 1);
    let filter = StaticFilter::builder_of_kind(RecSplitKind).width(16).build_from(&present).unwrap();
    answers_agree(&filter, &present);
    answers_under_stencils(&filter, &present);
    for device in testing::devices(1) {
        answers_agree(&filter.to_device(&device).unwrap(), &present);
        answers_under_stencils(&filter.to_device(&device).unwrap(), &present);
        let second_kind = StaticFilter::builder().width(16).on(&device).build_from(&present).unwrap();
        answers_agree(&second_kind, &present);
        answers_under_stencils(&second_kind, &present);
    }
    let set = StaticSet::<u64>::builder().build_from(&present).unwrap();
    answers_agree(&set, &present);
    answers_under_stencils(&set, &present);
    for device in testing::devices(1) {
        let set = StaticSet::<u64>::builder().on(&device).build_from(&present).unwrap();
        answers_agree(&set, &present);
        answers_under_stencils(&set, &present);
    }
}

#[test]
fn views_answer_as_what_they_borrow() {
    let present = keys(1000, 1);
    let mut split = SplitBlockBloom::builder(2000).fpr(0.001).build().unwrap();
    split.insert_bulk(&present).unwrap();
    answers_agree(&split.view(), &present);
    let quotient = StandardQuotientFilter::builder(2000).fpr(1e-6).build_from(&present).unwrap();
    answers_agree(&quotient.view(), &present);
    let quotient = RankSelectQuotientFilter::builder(2000).fpr(1e-6).build_from(&present).unwrap();
    answers_agree(&quotient.view(), &present);
    let fixed = StaticFilter::builder_of_kind(RecSplitKind).width(16).build_from(&present).unwrap();
    answers_agree(&fixed.view(), &present);
    let fixed = StaticFilter::builder().width(16).build_from(&present).unwrap();
    answers_agree(&fixed, &present);
    answers_agree(&fixed.view(), &present);
    let set = StaticSet::<u64>::builder().build_from(&present).unwrap();
    answers_agree(&set.view(), &present);
}

/// Checks that memory of another device is the same error on every type.
#[test]
fn memory_of_another_device() {
    let (here, there) = (Device::emulator(Config::seeded(1)), Device::emulator(Config::seeded(2)));
    let mut foreign = there.from_slice(&keys(100, 1)).unwrap();
    let mut answers = there.alloc_zeroed::<u8>(100).unwrap();

    macro_rules! refused {
        ($($result:expr),* $(,)?) => {$({
            let told = words(&$result.err().expect(stringify!($result)));
            assert!(told.contains("but something given is on"), "{}: {told}", stringify!($result));
        })*};
    }
    let mut split = SplitBlockBloom::builder(1000).on(&here).build().unwrap();
    let mut quotient = StandardQuotientFilter::builder(1000).on(&here).build().unwrap();
    let set = StaticSet::<u64>::builder().on(&here).build_from(&keys(10, 1)).unwrap();
    refused![
        split.insert_device(foreign.as_slice()),
        split.contains_device(foreign.as_slice(), answers.as_mut_slice()),
        quotient.insert_device(foreign.as_slice()),
        quotient.remove_device(foreign.as_slice()),
        quotient.contains_device(foreign.as_slice(), answers.as_mut_slice()),
        SplitBlockBloom::builder(1000).on(&here).build_from_device(foreign.as_slice()),
        StandardQuotientFilter::builder(1000).on(&here).build_from_device(foreign.as_slice()),
        set.contains_device(foreign.as_slice(), answers.as_mut_slice()),
        StaticSet::<u64>::builder().on(&here).build_from_device(foreign.as_slice()),
        split.merge(&SplitBlockBloom::builder(1000).on(&there).build().unwrap()),
        quotient.merge(&StandardQuotientFilter::builder(1000).on(&there).build().unwrap()),
    ];
    assert_eq!(split.count_contained_bulk(&keys(100, 1)).unwrap(), 0);
    assert!(quotient.is_empty());
    // Empty slices do nothing, wherever they are.
    let nothing = foreign.as_mut_slice().slice(..0).to_vec().unwrap();
    split.insert_bulk(&nothing).unwrap();
    quotient.insert_bulk(&nothing).unwrap();
}

/// Checks that too few places on a device are the same error on every type.
#[test]
fn places_on_a_device_are_as_many_as_keys() {
    let device = Device::emulator(Config::seeded(1));
    let all = keys(100, 1);
    let there = device.from_slice(&all).unwrap();
    let (mut kept, mut answers) = (device.alloc_zeroed::<u64>(99).unwrap(), device.alloc_zeroed::<u8>(99).unwrap());

    macro_rules! refused {
        ($($filter:expr, $of:ident;)*) => {$({
            let filter = $filter.unwrap();
            for refused in [
                filter.retain_contained_device(there.as_slice(), kept.as_mut_slice()).map(|_| ()),
                filter.contains_device(there.as_slice(), answers.as_mut_slice()),
            ] {
                assert!(matches!(refused, Err($of::Error::LengthMismatch(_))), "{refused:?}");
            }
        })*};
    }
    refused![
        SplitBlockBloom::builder(100).on(&device).build(), warpset_bloom;
        BlockedBloom::builder(100).on(&device).build(), warpset_bloom;
        RaoBloom::builder(100).on(&device).build(), warpset_bloom;
        StandardQuotientFilter::builder(100).on(&device).build(), warpset_quotient;
        RankSelectQuotientFilter::builder(100).on(&device).build(), warpset_quotient;
        StaticFilter::builder().width(8).build_from(&all).unwrap().to_device(&device), warpset_mphf;
        BinaryFuse8::builder().on(&device).build_from(&all), warpset_fuse;
        StaticSet::<u64>::builder().on(&device).build_from(&all), warpset_static;
    ];
}
