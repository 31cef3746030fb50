//! One value is one key, whatever the integer type that it comes in: on every structure and every executor.

use warpset_base::filter::{Filter, Insert};
use warpset_base::key::Key;
use warpset_bloom::{
    BlockedBloom, BucketShape, Builder, FirstLevel, PhysicalType, RaoLayout, SplitBlockBloom, StringHash,
};
use warpset_gpu::{DeviceSlice, testing};
use warpset_mphf::{RecSplit, StaticFilter};
use warpset_primitives::DeviceFilter;
use warpset_quotient::StandardQuotientFilter;

/// Values that every signed type has; more than one word of answers.
const VALUES: [i8; 7] = [5, 0, -1, -7, i8::MAX, i8::MIN, 100];

/// Calls `$then` with the values in each type that has all of them.
macro_rules! in_each_type {
    ($values:expr, |$keys:ident| $then:expr) => {{
        in_each_type!(@ $values, |$keys| $then; i8, i16, i32, i64, isize, i128);
    }};
    (@ $values:expr, |$keys:ident| $then:expr; $($ty:ty),*) => {$({
        let $keys: Vec<$ty> = $values.iter().map(|&value| value as $ty).collect();
        $then
    })*};
}

/// Fills a filter by one type, and asks by all.
fn one_key<F: Insert>(make: impl Fn() -> F) {
    fn asked<F: Filter>(filter: &F) {
        in_each_type!(VALUES, |keys| assert_eq!(filter.count_contained_bulk(&keys).unwrap(), 7));
        // Unsigned types have the values from 0 on, and as words of 64 bits the others too.
        assert_eq!(filter.count_contained_bulk(&[5u8, 0, 127, 100]).unwrap(), 4);
        assert_eq!(filter.count_contained_bulk(&[5u16, 0, 127, 100]).unwrap(), 4);
        assert_eq!(filter.count_contained_bulk(&[5u32, 0, 127, 100]).unwrap(), 4);
        assert_eq!(filter.count_contained_bulk(&VALUES.map(|value| value as u64)).unwrap(), 7);
        assert_eq!(filter.count_contained_bulk(&[5u128, 0, 127, 100]).unwrap(), 4);
        // No 32-bit value that only has the low bits of one.
        assert_eq!(filter.count_contained_bulk(&[-7i32 as u32, -1i32 as u32]).unwrap(), 0);
    }
    in_each_type!(VALUES, |keys| {
        let mut filter = make();
        filter.insert_bulk(&keys).unwrap();
        asked(&filter);
    });
    let mut filter = make();
    filter.insert_bulk(&[5u32, 0, 127, 100]).unwrap();
    filter.insert_bulk(&VALUES.map(|value| value as u64)).unwrap();
    asked(&filter);
}

fn rao(first_level: FirstLevel) -> Builder<RaoLayout> {
    let shape = BucketShape::new(256, 20).unwrap();
    Builder::with_layout(RaoLayout::new(3, shape, 2, first_level, 42).unwrap())
}

const FIRST_LEVELS: [FirstLevel; 2] = [FirstLevel::Mixed, FirstLevel::String(StringHash::Bkdr)];

#[test]
fn filters_on_the_host() {
    one_key(|| SplitBlockBloom::builder(1000).fpr(1e-6).build().unwrap());
    one_key(|| BlockedBloom::builder(1000).fpr(1e-6).seed(3).build().unwrap());
    FIRST_LEVELS.into_iter().for_each(|level| one_key(|| rao(level).build().unwrap()));
    one_key(|| StandardQuotientFilter::builder(1000).fpr(1e-6).build().unwrap());
}

#[test]
fn filters_on_devices() {
    for device in &testing::devices(5) {
        one_key(|| SplitBlockBloom::builder(1000).fpr(1e-6).on(device).build().unwrap());
        one_key(|| BlockedBloom::builder(1000).fpr(1e-6).seed(3).on(device).build().unwrap());
        FIRST_LEVELS.into_iter().for_each(|level| one_key(|| rao(level).on(device).build().unwrap()));
        one_key(|| StandardQuotientFilter::builder(1000).fpr(1e-6).on(device).build().unwrap());
    }
}

/// Checks slices of device memory, in each type that they can have.
#[test]
fn keys_in_device_memory() {
    for device in &testing::devices(5) {
        let (narrow, wide) = (VALUES.map(i32::from), VALUES.map(i64::from));
        let unsigned = [5u32, 0, 127, 100];
        let narrow = device.from_slice(&narrow).unwrap();
        let (wide, unsigned) = (device.from_slice(&wide).unwrap(), device.from_slice(&unsigned).unwrap());
        macro_rules! same {
            ($make:expr, $host:expr) => {{
                let mut host = $host;
                Insert::insert_bulk(&mut host, &VALUES).unwrap();
                let (mut by_narrow, mut by_wide) = ($make, $make);
                by_narrow.insert_device(narrow.as_slice()).unwrap();
                by_wide.insert_device(wide.as_slice()).unwrap();
                assert!(by_narrow.to_host().unwrap() == host && by_wide.to_host().unwrap() == host);
                let slice: DeviceSlice<'_, i32> = narrow.as_slice();
                assert_eq!(by_wide.count_contained_device(slice).unwrap(), 7);
                assert_eq!(by_narrow.count_contained_device(wide.as_slice()).unwrap(), 7);
                assert_eq!(by_wide.count_contained_device(unsigned.as_slice()).unwrap(), 4);
            }};
        }
        for column in [PhysicalType::Int32, PhysicalType::Int64] {
            let builder = SplitBlockBloom::builder(1000).fpr(1e-6).column(column);
            same!(builder.clone().on(device).build().unwrap(), builder.build().unwrap());
        }
        let builder = BlockedBloom::builder(1000).fpr(1e-6).seed(3);
        same!(builder.clone().on(device).build().unwrap(), builder.build().unwrap());
        for level in FIRST_LEVELS {
            same!(rao(level).on(device).build().unwrap(), rao(level).build().unwrap());
        }
        let builder = StandardQuotientFilter::builder(1000).fpr(1e-6);
        same!(builder.on(device).build().unwrap(), builder.build().unwrap());
    }
}

/// Checks columns of type INT32, which hash four bytes, with keys of every integer type.
#[test]
fn parquet_columns_of_int32() {
    let builder = SplitBlockBloom::builder(1000).fpr(1e-6).column(PhysicalType::Int32);
    let of_i32 = builder.build_from(&VALUES.map(i32::from)).unwrap();
    in_each_type!(VALUES, |keys| assert!(builder.build_from(&keys).unwrap() == of_i32));
    for device in &testing::devices(5) {
        in_each_type!(VALUES, |keys| {
            let filter = builder.clone().on(device).build_from(&keys).unwrap();
            assert!(filter.to_host().unwrap() == of_i32);
            assert!(filter.count_contained_bulk(&VALUES).unwrap() == 7);
        });
    }
}

#[test]
fn one_key_at_a_time() {
    // Without a suffix, a literal is an `i32`.
    let mut split = SplitBlockBloom::builder(100).build().unwrap();
    split.insert(5);
    assert!(split.contains(5u64) && split.contains(5u8) && split.contains(5i128));
    let mut quotient = StandardQuotientFilter::builder(100).build().unwrap();
    quotient.insert(-5).unwrap();
    assert!(quotient.contains(-5i64) && quotient.contains(-5i128));
}

#[test]
fn functions_and_static_filters() {
    let function = RecSplit::builder().build_from(&VALUES).unwrap();
    let filter = StaticFilter::builder().width(32).build_from(&VALUES).unwrap();
    let numbers: Vec<u64> = VALUES.iter().map(|key| function.get(*key)).collect();
    fn held<K: Key>(filter: &StaticFilter, keys: &[K]) {
        assert_eq!(filter.count_contained_bulk(keys).unwrap(), keys.len());
    }
    in_each_type!(VALUES, |keys| {
        assert_eq!(function.get_bulk(&keys), numbers);
        held(&filter, &keys);
    });
    held(&filter, &[5u8, 0, 127, 100]);
    held(&filter, &[5u32, 0, 127, 100]);
    held(&filter, &[5u128, 0, 127, 100]);
    // Different values of one type stay different keys.
    let wide = [-1i128, i128::from(u64::MAX), i128::MIN, 1 << 64, -7, (1 << 64) - 7];
    assert_eq!(RecSplit::builder().build_from(&wide).unwrap().len(), 6);
}
