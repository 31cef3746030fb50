//! `range_may_contain`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::prelude::SessionContext;
use warpset_range::{KeyOf, RangeFilter, RangeKey};

use crate::{column, context, integers, table};

fn saved<K: RangeKey + ?Sized, Q: KeyOf<K>>(keys: &[Q]) -> Vec<u8> {
    RangeFilter::<K>::builder().bits_per_key(30.0).build_from(keys).unwrap().to_bytes()
}

/// Filters of few integers, which are exact, for all types.
fn integer_filters() -> Vec<Vec<u8>> {
    macro_rules! filters {
        ($($key:ty)*) => { vec![$(saved::<$key, $key>(&[3, 50, 51, 100])),*] };
    }
    filters!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128)
}

async fn answers(context: &SessionContext, sql: &str) -> Vec<Option<bool>> {
    let answers = column(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    answers.as_boolean().iter().collect()
}

#[tokio::test]
async fn integers_of_any_width_are_bounds_of_filters_of_any_width() {
    let contains = |low: i64, high: i64| [3, 50, 51, 100].iter().any(|key| (low..=high).contains(key));
    let small: Vec<(i64, i64)> = (0..120).flat_map(|low| (0..120).step_by(7).map(move |high| (low, high))).collect();
    let (min, max) = (i64::MIN, i64::MAX);
    let wide = vec![(min, max), (min, -1), (-300, 2), (-300, 3), (100, 70_000), (101, max), (300, 900), (min, min)];
    use DataType::*;
    let columns = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Date32, Time32(TimeUnit::Second)];
    let columns = columns.into_iter().chain([Timestamp(TimeUnit::Millisecond, None), Decimal64(18, 0)]);
    let columns = columns.map(|kind| (kind, &small)).chain([(Int64, &wide), (Decimal128(38, 0), &wide)]);
    for (kind, ranges) in columns {
        let context = context(2);
        let (low, high): (Vec<i64>, Vec<i64>) = ranges.iter().copied().unzip();
        let ends = [low, high].map(|ends| {
            let narrow = if matches!(kind, Date32 | Time32(_)) { Int32 } else { Int64 };
            cast(&cast(&integers(ends), &narrow).unwrap(), &kind).unwrap()
        });
        table(&context, "t", &[("low", ends[0].clone()), ("high", ends[1].clone())], 1);
        let expected: Vec<Option<bool>> = ranges.iter().map(|&(low, high)| Some(contains(low, high))).collect();
        for (i, filter) in integer_filters().iter().enumerate() {
            let name = format!("f{i}");
            table(&context, &name, &[("f", Arc::new(BinaryArray::from(vec![&filter[..]])))], 1);
            let sql = format!("SELECT range_may_contain((SELECT f FROM {name}), low, high) FROM t");
            assert_eq!(answers(&context, &sql).await, expected, "{kind} in {name}");
        }
    }
    let context = context(1);
    let largest = saved::<u64, _>(&[u64::MAX]);
    table(&context, "f", &[("f", Arc::new(BinaryArray::from(vec![&largest[..]])))], 1);
    let sql = "SELECT range_may_contain(f, 18446744073709551614, 18446744073709551615) FROM f";
    assert_eq!(answers(&context, sql).await, [Some(true)]);
}

#[tokio::test]
async fn strings_and_floats_are_bounds_in_their_order() {
    let context = context(1);
    let filters =
        [saved::<[u8], _>(&["melon", "peach"]), saved::<f64, f64>(&[-1.5, 2.25]), saved::<f32, f32>(&[-1.5, 2.25])];
    let filters = filters.iter().map(|filter| Some(&filter[..])).chain([None]);
    table(&context, "f", &[("f", Arc::new(filters.collect::<BinaryArray>())), ("n", integers(0..4))], 1);
    for (bounds, filter, expected) in [
        ("'lemon', 'orange'", 0, Some(true)),
        ("arrow_cast('melon', 'LargeBinary'), arrow_cast('melon', 'Dictionary(Int32, Utf8)')", 0, Some(true)),
        ("'peaches', 'plum'", 0, Some(false)),
        ("-2.0, -1.0", 1, Some(true)),
        ("2.5, 3.0", 1, Some(false)),
        ("arrow_cast(2, 'Float32'), arrow_cast(2.5, 'Float32')", 2, Some(true)),
        ("2.0, NULL", 1, None),
        ("NULL, 1", 1, None),
        ("1, 1", 3, None),
    ] {
        let sql = format!("SELECT range_may_contain(f, {bounds}) FROM f WHERE n = {filter}");
        assert_eq!(answers(&context, &sql).await, [expected], "{sql}");
    }
    for (bounds, filter) in [("1, 2", 0), ("1, 2", 1), ("1.0, 2.0", 2), ("'a', 'b'", 1), ("1, 'b'", 0)] {
        let sql = format!("SELECT range_may_contain(f, {bounds}) FROM f WHERE n = {filter}");
        let error = crate::error(&context, &sql).await;
        assert!(error.contains("range_may_contain: a range filter of "), "{error}");
    }
    for bounds in [
        "arrow_cast(5.00, 'Decimal128(10, 2)'), 1000",
        "arrow_cast(5.00, 'Decimal128(10, 2)'), arrow_cast(9.0, 'Decimal128(10, 1)')",
        "DATE '2026-11-01', TIMESTAMP '2026-11-02 00:00:00'",
        "arrow_cast(1, 'Timestamp(Second, None)'), arrow_cast(2, 'Timestamp(Nanosecond, None)')",
    ] {
        let error = crate::error(&context, &format!("SELECT range_may_contain(f, {bounds}) FROM f")).await;
        assert!(error.contains("different units"), "{error}");
    }
    for arguments in ["f, 1", "f, 1, true", "n, 1, 2"] {
        let error = crate::error(&context, &format!("SELECT range_may_contain({arguments}) FROM f")).await;
        assert!(error.contains("range_may_contain: "), "{error}");
    }
}

/// Selects the files whose filters may have a key in a range: one filter per row.
#[tokio::test]
async fn a_column_of_filters_is_asked_row_by_row() {
    let context = context(2);
    let filters: Vec<Vec<u8>> = (0..50u64).map(|file| saved::<u64, u64>(&[file * 10, file * 10 + 1])).collect();
    let filters: ArrayRef = Arc::new(BinaryArray::from(filters.iter().map(|filter| &filter[..]).collect::<Vec<_>>()));
    table(&context, "files", &[("file", integers(0..50)), ("filter", filters)], 7);
    let sql = "SELECT file FROM files WHERE range_may_contain(filter, 35, 51) ORDER BY file";
    let found = column(&context, sql).await.unwrap();
    assert_eq!(found.as_any().downcast_ref::<Int64Array>().unwrap().values(), &[4, 5]);
}
