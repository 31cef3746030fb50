//! Saved structures as bytes: all types of columns, any address, and wrong bytes.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BinaryArray, BinaryViewArray, DictionaryArray, Int8Array, Int32Array, LargeBinaryArray,
    RecordBatch,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use warpset_bloom::SplitBlockBloom;
use warpset_fuse::{BinaryFuse8, BinaryFuse16, BinaryFuse32, StaticFunction};
use warpset_mphf::RecSplit;
use warpset_quotient::{Duplicates, RankSelectQuotientFilter};
use warpset_range::RangeFilter;

use crate::{context, integers, table};

/// Calls a function of a structure and a key without an engine; the key is both ends of a range.
fn call(function: &str, structure: ColumnarValue, key: ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    let function = warpset_datafusion::scalars().into_iter().find(|f| f.name() == function).unwrap();
    let field = |value: &ColumnarValue| Arc::new(Field::new("a", value.data_type(), true));
    let keys = if function.name() == "range_may_contain" { vec![key.clone(), key] } else { vec![key] };
    let args: Vec<ColumnarValue> = [structure].into_iter().chain(keys).collect();
    let returns = function.return_type(&args.iter().map(ColumnarValue::data_type).collect::<Vec<_>>()).unwrap();
    function.invoke_with_args(ScalarFunctionArgs {
        arg_fields: args.iter().map(field).collect(),
        args,
        number_rows: rows,
        return_field: Arc::new(Field::new("r", returns, true)),
        config_options: Arc::default(),
    })
}

fn bloom() -> SplitBlockBloom {
    SplitBlockBloom::builder(100).fpr(1e-4).build_from(&[2i64, 3, 5, 7]).unwrap()
}

fn expect(structures: ArrayRef, expected: &[Option<bool>]) {
    let keys = integers((0..expected.len() as i64).map(|i| 2 + i));
    let answers = call("might_contain", ColumnarValue::Array(structures), ColumnarValue::Array(keys), expected.len());
    let ColumnarValue::Array(answers) = answers.unwrap() else { panic!("not an array") };
    assert_eq!(answers.as_boolean().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn every_type_of_column_at_any_address() {
    let saved = bloom().to_bytes();
    let expected = [Some(true), Some(true), None, Some(true), Some(false), Some(true)];
    // An odd length before the filters varies their alignment.
    for shift in 0..9 {
        let junk = vec![9u8; shift];
        let all: Vec<Option<&[u8]>> =
            [Some(&junk[..])].into_iter().chain(expected.iter().map(|there| there.map(|_| &saved[..]))).collect();
        let arrays: [ArrayRef; 3] = [
            Arc::new(BinaryArray::from(all.clone())),
            Arc::new(LargeBinaryArray::from(all.clone())),
            Arc::new(BinaryViewArray::from_iter(all.clone())),
        ];
        for array in arrays {
            expect(array.slice(1, expected.len()), &expected);
        }
        let values: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&junk[..]), Some(&saved), None]));
        let keys = Int32Array::from(vec![Some(1), Some(1), None, Some(1), Some(1), Some(1)]);
        expect(Arc::new(DictionaryArray::new(keys, values.clone())), &expected);
        // NULL as a value of the dictionary.
        let keys = Int8Array::from(vec![1, 1, 2, 1, 1, 1]);
        expect(Arc::new(DictionaryArray::new(keys, values)), &expected);
    }
    let none: ArrayRef = Arc::new(BinaryArray::from(Vec::<Option<&[u8]>>::new()));
    expect(Arc::new(DictionaryArray::new(Int32Array::from(vec![None, None]), none.clone())), &[None, None]);
    expect(none, &[]);
}

#[test]
fn batches_of_no_rows() {
    let filter = ScalarValue::Binary(Some(bloom().to_bytes()));
    let empty = integers([]);
    for structure in [ColumnarValue::Scalar(filter), ColumnarValue::Scalar(ScalarValue::Binary(None))] {
        let answers = call("might_contain", structure, ColumnarValue::Array(empty.clone()), 0).unwrap();
        assert!(matches!(answers, ColumnarValue::Array(answers) if answers.is_empty()));
    }
}

#[test]
fn scalars_of_every_type() {
    let bytes = Some(bloom().to_bytes());
    let dictionary = ScalarValue::Dictionary(Box::new(DataType::Int32), Box::new(ScalarValue::Binary(bytes.clone())));
    for filter in [
        ScalarValue::Binary(bytes.clone()),
        ScalarValue::LargeBinary(bytes.clone()),
        ScalarValue::BinaryView(bytes),
        dictionary,
    ] {
        let key = |key| ColumnarValue::Scalar(ScalarValue::Int64(key));
        let ask = |key_value| {
            let answer = call("might_contain", ColumnarValue::Scalar(filter.clone()), key(key_value), 3).unwrap();
            let ColumnarValue::Scalar(ScalarValue::Boolean(answer)) = answer else { panic!("not a scalar: {answer}") };
            answer
        };
        assert_eq!([ask(Some(7)), ask(Some(8)), ask(None)], [Some(true), Some(false), None]);
    }
}

/// Changes every byte of a small structure, cuts it at every length, and passes other structures: errors, no panics.
#[test]
fn wrong_bytes_are_errors() {
    let keys: Vec<i64> = (0..100).collect();
    let bloom = bloom().to_bytes();
    let quotient = RankSelectQuotientFilter::builder(100).duplicates(Duplicates::Counted).build_from(&keys).unwrap();
    let (quotient, hash) = (quotient.to_bytes(), RecSplit::builder().build_from(&keys).unwrap().to_bytes());
    let fuse = [
        BinaryFuse8::builder().build_from(&keys).unwrap().to_bytes(),
        BinaryFuse16::builder().build_from(&keys).unwrap().to_bytes(),
        BinaryFuse32::builder().build_from(&keys).unwrap().to_bytes(),
    ];
    let values: Vec<u8> = (0..100).collect();
    let static_function = StaticFunction::<u8>::builder().build_from(&keys, &values).unwrap().to_bytes();
    let range_filter = RangeFilter::<u32>::builder().build_from(&[5u32, 1_000_000]).unwrap().to_bytes();
    let ask = |function: &str, bytes: &[u8]| {
        let structure = ColumnarValue::Scalar(ScalarValue::Binary(Some(bytes.to_vec())));
        call(function, structure, ColumnarValue::Array(integers([5])), 1)
    };
    let [fuse_8, fuse_16, fuse_32] = &fuse;
    for (function, right) in [
        ("might_contain", &bloom),
        ("might_contain", fuse_8),
        ("might_contain", fuse_16),
        ("might_contain", fuse_32),
        ("quotient_filter_count", &quotient),
        ("perfect_hash_index", &hash),
        ("lookup_or_null", &static_function),
        ("range_may_contain", &range_filter),
    ] {
        ask(function, right).unwrap();
        let check = |bytes: &[u8], what: &str| {
            let error = ask(function, bytes).expect_err(what).to_string();
            assert!(error.contains(&format!("{function}: ")), "{error}");
        };
        for at in 0..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << (at % 8);
            check(&wrong, &format!("{function} with byte {at} changed"));
            check(&right[..at], &format!("{function} cut to {at} bytes"));
        }
        check(&[&right[..], &[0]].concat(), "a byte too many");
        let functions = [
            (&quotient, "quotient_filter_count"),
            (&hash, "perfect_hash_index"),
            (&static_function, "lookup_or_null"),
            (&range_filter, "range_may_contain"),
        ];
        let filters = [&bloom, fuse_8, fuse_16, fuse_32].map(|filter| (filter, "might_contain"));
        for (other, _) in functions.into_iter().chain(filters).filter(|&(_, of)| of != function) {
            check(other, "another structure");
        }
    }
}

#[tokio::test]
async fn wrong_bytes_in_aggregates_are_errors() {
    let context = context(2);
    let bloom = bloom().to_bytes();
    let mut damaged = bloom.clone();
    *damaged.last_mut().unwrap() ^= 1;
    table(&context, "t", &[("f", Arc::new(BinaryArray::from(vec![Some(&bloom[..]), Some(&damaged), None])))], 2);
    for (sql, function) in [
        ("SELECT bloom_filter_merge(f) FROM t", "bloom_filter_merge: checksum"),
        ("SELECT quotient_filter_merge(f) FROM t", "quotient_filter_merge: this is a saved `SplitBlockBloom`"),
        ("SELECT bloom_filter_to_parquet(f) FROM t", "bloom_filter_to_parquet: checksum"),
        (
            "SELECT approx_intersection_count(f, f) FROM t",
            "approx_intersection_count: this is a saved `SplitBlockBloom`",
        ),
    ] {
        let message = crate::error(&context, sql).await;
        assert!(message.contains(function), "{sql}: {message}");
    }
}

/// Checks that a function merges its own partial results only.
#[test]
fn wrong_partial_results_are_errors() {
    let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
    for aggregate in warpset_datafusion::aggregates() {
        let expressions = [datafusion::physical_expr::expressions::col("k", &schema).unwrap()];
        let args = || datafusion::logical_expr::function::AccumulatorArgs {
            return_field: Arc::new(Field::new("r", DataType::Binary, true)),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: aggregate.name(),
            is_distinct: false,
            exprs: &expressions,
            expr_fields: &[],
        };
        for bytes in [&b"WARPFEW\x01________"[..], b"WARPFEW\0___", b"nonsense", &[1; 15], &[0; 129]] {
            let partial: ArrayRef = Arc::new(LargeBinaryArray::from(vec![Some(bytes)]));
            let name = aggregate.name();
            let mut one = aggregate.accumulator(args()).unwrap();
            let refused = one.merge_batch(std::slice::from_ref(&partial)).and_then(|()| one.evaluate());
            let mut many = aggregate.create_groups_accumulator(args()).unwrap();
            let also = many.merge_batch(&[partial], &[0], 1);
            let hash_bytes = match name {
                "perfect_hash_agg" => 16,
                "fuse_filter_agg" | "sized_filter_agg" => 8,
                _ => usize::MAX,
            };
            if bytes.len().is_multiple_of(hash_bytes) {
                continue; // Any bytes of this number are hashes.
            }
            assert!(refused.unwrap_err().to_string().contains(&format!("{name}: ")));
            assert!(also.unwrap_err().to_string().contains(&format!("{name}: ")));
        }
    }
}

/// Checks that results keep their type through a table in memory.
#[tokio::test]
async fn results_are_dictionaries() {
    let context = context(2);
    table(&context, "t", &[("k", integers(0..100))], 4);
    let batches: Vec<RecordBatch> =
        crate::rows(&context, "SELECT k % 5 AS g, bloom_filter_agg(k, 10) AS f FROM t GROUP BY g").await.unwrap();
    let ordered = "SELECT k % 5 AS g, bloom_filter_agg(k, 10) AS f FROM t GROUP BY g ORDER BY g DESC";
    for batch in batches.into_iter().chain(crate::rows(&context, ordered).await.unwrap()) {
        let filters = batch.column_by_name("f").unwrap().as_dictionary::<Int32Type>();
        assert_eq!(filters.values().data_type(), &DataType::Binary);
    }
}
