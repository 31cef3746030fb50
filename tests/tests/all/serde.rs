//! Structures as values of serde.

use serde::Serialize;
use serde::de::DeserializeOwned;
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset_fuse::{BinaryFuse16, StaticFunction};
use warpset_lsm::{Lsm, SortedArray};
use warpset_mphf::{Consensus, Placement, RecSplit, StaticFilter};
use warpset_quotient::{Maplet, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset_range::{DynamicRangeFilter, RangeFilter};
use warpset_sequence::SequenceFilter;
use warpset_static::{StaticMap, StaticSet};

/// Takes a structure through JSON and back; damage and bytes of another structure are errors.
fn through_json<T: Serialize + DeserializeOwned + PartialEq>(of: T) {
    let json = serde_json::to_string(&of).unwrap();
    assert!(serde_json::from_str::<T>(&json).unwrap() == of);
    assert!(serde_json::from_value::<T>(serde_json::to_value(&of).unwrap()).unwrap() == of);
    assert!(serde_json::from_str::<T>("[1, 2, 3]").is_err());
    assert!(serde_json::from_str::<T>(&json.replacen("87", "88", 1)).is_err());
}

#[test]
fn structures_go_through_json_and_back() {
    let keys: Vec<u64> = (0..100).collect();
    through_json(SplitBlockBloom::builder(100).build_from(&keys).unwrap());
    through_json(RaoBloom::builder(100).build_from(&keys).unwrap());
    through_json(BinaryFuse16::builder().build_from(&keys).unwrap());
    through_json(StaticFunction::<u64>::builder().build_from(&keys, &keys).unwrap());
    through_json(Lsm::<u64, u64>::builder().build_from(&keys, &keys).unwrap());
    through_json(SortedArray::<u64, ()>::builder().build_from(&keys, &[(); 100]).unwrap());
    through_json(RecSplit::builder().build_from(&keys).unwrap());
    through_json(Placement::builder().build_from(&keys).unwrap());
    through_json(Consensus::builder().build_from(&keys).unwrap());
    through_json(StaticFilter::builder().width(9).build_from(&keys).unwrap());
    through_json(StandardQuotientFilter::builder(100).build_from(&keys).unwrap());
    through_json(RankSelectQuotientFilter::builder(100).build_from(&keys).unwrap());
    through_json::<Maplet>(RankSelectQuotientFilter::builder(100).values(8).build_from(&keys, &keys).unwrap());
    through_json(RangeFilter::<u64>::builder().build_from(&keys).unwrap());
    through_json(DynamicRangeFilter::<u64>::builder(100).build_from(&keys).unwrap());
    through_json(SequenceFilter::builder(50).k(9).build_from(&["GATTACACCGGTTA"]).unwrap());
    through_json(StaticMap::<u64, u64>::builder().build_from(&keys, &keys).unwrap());
}

/// Returns the message of the error from reading one structure as another.
fn refusal<T: DeserializeOwned>(of: &impl Serialize) -> String {
    let error = serde_json::from_str::<T>(&serde_json::to_string(of).unwrap()).err();
    error.expect("these are other types").to_string()
}

#[test]
fn other_structures_are_refused_by_name() {
    let filter = SplitBlockBloom::builder(100).build_from(&[1u64]).unwrap();
    assert!(refusal::<BlockedBloom>(&filter).contains("this is a saved `SplitBlockBloom`"));
    let array = SortedArray::<u32, ()>::builder().build_from(&[3, 1], &[(), ()]).unwrap();
    assert!(refusal::<Lsm<u32, ()>>(&array).contains("this is a saved `SortedArray<u32, ()>`"));
    let map = StaticMap::<u32, u64>::builder().build_from(&[3, 1, 2], &[30, 10, 20]).unwrap();
    assert!(refusal::<StaticSet<u32>>(&map).contains("this is a saved `StaticMap<u32, u64>`"));
    let ranges = RangeFilter::<u32>::builder().build_from(&[3, 1, 2_000_000]).unwrap();
    assert!(refusal::<RangeFilter<i32>>(&ranges).contains("RangeFilter<u32>"));
}
