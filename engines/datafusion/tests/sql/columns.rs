//! All types of columns as keys: the filter of a column is the filter of its documented keys, in both directions.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, DictionaryArray, FixedSizeBinaryArray, Int8Array,
    Int32Array, LargeBinaryArray, LargeStringArray, StringArray, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type, TimeUnit, i256};
use warpset_bloom::{Key, SplitBlockBloom};
use warpset_fuse::BinaryFuse8;

use crate::{column, context, one, table};

/// Compares the filter of a column, and its lookups, with the crate's filter of `keys`, the values that are not null.
async fn check<K: Key>(column_of: ArrayRef, keys: &[K]) {
    let name = column_of.data_type().to_string();
    for partitions in [1, 3] {
        let context = context(partitions);
        let groups = crate::integers((0..column_of.len() as i64).map(|row| row % 2));
        table(&context, "t", &[("x", column_of.clone()), ("g", groups)], 3);
        let expected = SplitBlockBloom::builder(500).build_from(keys).unwrap().to_bytes();
        let filter = one(&context, "SELECT bloom_filter_agg(x, 500) FROM t").await;
        assert!(filter.as_ref() == Some(&expected), "{name}");
        let merged = "SELECT bloom_filter_merge(f) FROM (SELECT bloom_filter_agg(x, 500) AS f FROM t GROUP BY g)";
        assert!(one(&context, merged).await == Some(expected), "{name} in groups");
        let expected = BinaryFuse8::builder().build_from(keys).unwrap().to_bytes();
        assert!(one(&context, "SELECT fuse_filter_agg(x) FROM t").await == Some(expected), "{name}");
        for made in ["bloom_filter_agg(x, 500)", "fuse_filter_agg(x)"] {
            let answers = format!("SELECT might_contain((SELECT {made} FROM t), x) FROM t");
            let answers = column(&context, &answers).await.unwrap();
            assert_eq!(answers.null_count(), column_of.logical_nulls().map_or(0, |nulls| nulls.null_count()), "{name}");
            assert!(answers.as_boolean().iter().flatten().all(|there| there), "{made}: {name}");
        }
    }
}

fn numbers() -> Int32Array {
    (0..100).map(|i| (i % 7 != 0).then_some(i)).collect()
}

fn valid() -> Vec<i32> {
    numbers().iter().flatten().collect()
}

#[tokio::test]
async fn integers_dates_and_times_are_their_integer() {
    use DataType::*;
    let small = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Date32, Time32(TimeUnit::Second)];
    for kind in small.into_iter().chain([Time32(TimeUnit::Millisecond)]) {
        check(cast(&numbers(), &kind).unwrap(), &valid()).await;
    }
    let wide = cast(&numbers(), &Int64).unwrap();
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        check(cast(&wide, &Timestamp(unit, None)).unwrap(), &valid()).await;
        check(cast(&wide, &Timestamp(unit, Some("+02:00".into()))).unwrap(), &valid()).await;
        check(cast(&wide, &Duration(unit)).unwrap(), &valid()).await;
    }
    for kind in [Date64, Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)] {
        check(cast(&wide, &kind).unwrap(), &valid()).await;
    }
}

#[tokio::test]
async fn decimals_are_their_integer_without_the_point() {
    use DataType::*;
    let hundredths: Vec<i64> = valid().into_iter().map(|value| 100 * i64::from(value)).collect();
    for kind in [Decimal32(9, 2), Decimal64(18, 2), Decimal128(38, 2)] {
        check(cast(&numbers(), &kind).unwrap(), &hundredths).await;
    }
    let bytes: Vec<[u8; 32]> = hundredths.iter().map(|&value| i256::from(value).to_le_bytes()).collect();
    check(cast(&numbers(), &Decimal256(60, 2)).unwrap(), &bytes).await;
}

#[tokio::test]
async fn strings_and_binaries_are_their_bytes() {
    let text = |i: i32| format!("key number {i}, longer than a view keeps in itself");
    let texts: Vec<Option<String>> = numbers().iter().map(|number| number.map(text)).collect();
    let keys: Vec<String> = texts.iter().flatten().cloned().collect();
    let bytes = || texts.iter().map(|text| text.as_ref().map(|text| text.as_bytes()));
    let columns: [ArrayRef; 6] = [
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from_iter(texts.clone())),
        Arc::new(BinaryArray::from_iter(bytes())),
        Arc::new(LargeBinaryArray::from_iter(bytes())),
        Arc::new(BinaryViewArray::from_iter(bytes())),
    ];
    for column in columns {
        check(column.clone(), &keys).await;
        let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(column.data_type().clone()));
        if let Ok(column) = cast(&column, &dictionary) {
            check(column, &keys).await;
        }
    }
    let fixed = numbers().iter().map(|number| number.map(|i| [i as u8, 1, 2])).collect::<Vec<_>>();
    let keys: Vec<[u8; 3]> = fixed.iter().flatten().copied().collect();
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3).unwrap();
    check(Arc::new(fixed), &keys).await;
}

#[tokio::test]
async fn dictionaries_are_their_values() {
    let numbers: Int32Array = (0..100).map(|i| (i % 7 != 0).then_some(i % 20)).collect();
    let valid: Vec<i32> = numbers.iter().flatten().collect();
    let dictionary =
        cast(&numbers, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int32))).unwrap();
    check(dictionary, &valid).await;
    // Nulls among the values, values that no row has, and no values at all.
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("unused"), Some("b")]));
    let rows = Int32Array::from(vec![Some(0), Some(1), None, Some(3), Some(0)]);
    check(Arc::new(DictionaryArray::<Int32Type>::new(rows, values)), &["a", "b"]).await;
    let values: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    let none = DictionaryArray::new(Int8Array::from(vec![None, None, None]), values);
    let context = context(1);
    table(&context, "t", &[("x", Arc::new(none))], 1);
    assert_eq!(one(&context, "SELECT bloom_filter_agg(x) FROM t").await, None);
    assert_eq!(one(&context, "SELECT fuse_filter_agg(x) FROM t").await, None);
    assert_eq!(one(&context, "SELECT perfect_hash_agg(x) FROM t").await, None);
}

#[tokio::test]
async fn a_filter_answers_for_columns_of_other_widths() {
    let context = context(1);
    let narrow: ArrayRef = Arc::new(numbers());
    let wide = cast(&narrow, &DataType::Int64).unwrap();
    table(&context, "narrow", &[("x", narrow)], 1);
    table(&context, "wide", &[("x", wide)], 1);
    for (of, asked) in [("narrow", "wide"), ("wide", "narrow")] {
        for made in ["bloom_filter_agg(x, 500)", "fuse_filter_agg(x)"] {
            let sql = format!(
                "SELECT bool_and(might_contain((SELECT {made} FROM {of}), x)) FROM {asked} WHERE x IS NOT NULL"
            );
            assert!(column(&context, &sql).await.unwrap().as_boolean().value(0));
        }
    }
}
