//! Range filters: fixtures, damage.

use warpset::range::{DynamicRangeFilter, DynamicRangeFilterView, RangeFilter, RangeFilterView};
use warpset_tests::files::{damage, fixture, to_words};

fn numbers(n: u64) -> Vec<u64> {
    (0..n).map(|i| u64::wrapping_mul(i * i, 0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn fixtures_of_version_1() {
    let builder = RangeFilter::<u64>::builder().bits_per_key(12.5).seed(42);
    fixture("range_u64.v1", &builder.build_from(&numbers(1500)).unwrap());
    let dense: Vec<i32> = (-300..300).map(|i| i * 3).collect();
    let builder = RangeFilter::<i32>::builder().bits_per_key(16.0).seed(42);
    fixture("range_exact.v1", &builder.build_from(&dense).unwrap());
    let strings = ["filter", "hello", "range", "the first of long keys", "world"];
    let builder = RangeFilter::<[u8]>::builder().bits_per_key(16.0).seed(42);
    fixture("range_strings.v1", &builder.build_from(&strings).unwrap());
    let builder = DynamicRangeFilter::<u64>::builder(1500).fpr_at(0.001, 100).seed(42);
    fixture("range_dynamic.v1", &builder.build_from(&numbers(1500)).unwrap());
    let builder = DynamicRangeFilter::<f64>::builder(4).fpr_at(0.001, 100).seed(42);
    fixture("range_dynamic_f64.v1", &builder.build_from(&[-1.5, 0.25, 0.25, 1e300]).unwrap());
}

/// Checks that damage is noticed; with a right checksum it is an error, or gives some answers.
#[test]
fn damage_is_noticed() {
    let bits = |at| if at < 128 { (0..8).collect() } else { vec![at as u32 % 8] };
    let keys: Vec<u64> = (0..100).chain(numbers(500)).collect();
    let ranges: Vec<_> = keys.iter().step_by(5).map(|&key| key..key.saturating_add(1 << 20)).collect();
    let filter = RangeFilter::<u64>::builder().build_from(&keys).unwrap();
    damage(&filter, bits, |sealed, _| {
        let words = to_words(sealed);
        if let Ok(view) = RangeFilterView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
            assert_eq!(view.may_contain_bulk(&ranges).len(), view.count_at_most_bulk(&ranges).len());
        }
    });
    let filter = DynamicRangeFilter::<u64>::builder(600).fpr_at(0.01, 256).build_from(&keys).unwrap();
    damage(&filter, bits, |sealed, _| {
        let words = to_words(sealed);
        if let Ok(view) = DynamicRangeFilterView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
            assert_eq!(view.may_contain_bulk(&ranges).len(), ranges.len());
        }
    });
}
