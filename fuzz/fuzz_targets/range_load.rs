//! Range filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_range::{DynamicRangeFilter, DynamicRangeFilterView, KeyOf, RangeFilter, RangeFilterView, RangeKey};

fuzz_target!(|bytes: &[u8]| {
    load::<u64, u64>(bytes, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64));
    load::<i32, i32>(bytes, |i| (i as i32).wrapping_mul(0x9e37_79b9_u32 as i32) >> (i % 32));
    load::<u128, u128>(bytes, |i| u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> (i % 128));
    load::<[u8], [u8; 3]>(bytes, |i| [i as u8, (i >> 2) as u8, 7]);
});

fn load<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(bytes: &[u8], key: impl Fn(u64) -> Q + Copy) {
    let ranges: Vec<_> = (0..300).map(|i| key(i)..key(i * 7 + 1)).collect();
    let ask = |view: RangeFilterView<'_, K>| {
        let answers = view.may_contain_bulk(&ranges).into_iter().zip(view.count_at_most_bulk(&ranges));
        for (range, (answer, count)) in ranges.iter().zip(answers) {
            assert_eq!(view.may_contain(range.clone()), answer);
            assert_eq!(view.count_at_most(range.clone()), count);
            assert!(count <= view.len());
        }
    };
    let use_it = |filter: RangeFilter<K>| ask(filter.view());
    warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = RangeFilterView::<K>::from_bytes_unverified(bytes) {
            ask(view);
        }
    });
    let ask = |view: DynamicRangeFilterView<'_, K>| {
        for (range, answer) in ranges.iter().zip(view.may_contain_bulk(&ranges)) {
            assert_eq!(view.may_contain(range.clone()), answer);
        }
    };
    let use_it = |mut filter: DynamicRangeFilter<K>| {
        ask(filter.view());
        let (keys, before): (Vec<Q>, _) = ((0..50).map(key).collect(), filter.len());
        if filter.insert_bulk(&keys).is_ok() {
            assert!(filter.contains_bulk(&keys).iter().all(|&found| found));
            assert_eq!(filter.remove_bulk(&keys).unwrap(), 50);
        }
        assert_eq!(filter.len(), before);
    };
    warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = DynamicRangeFilterView::<K>::from_bytes_unverified(bytes) {
            ask(view);
        }
    });
}
