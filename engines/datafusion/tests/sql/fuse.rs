//! `fuse_filter_agg`, and `might_contain` of its results.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int32Array};
use warpset_fuse::{BinaryFuse8, BinaryFuse16, BinaryFuse32};

use crate::{column, context, error, integers, number, one, saved, table};

fn keys(n: i64) -> Vec<i64> {
    (0..n).map(|i| (i * i) % 7001 - 1000).collect()
}

#[tokio::test]
async fn the_filter_is_that_of_the_crate_whatever_the_parts() {
    let keys = keys(30_000);
    let eight = BinaryFuse8::builder().build_from(&keys).unwrap().to_bytes();
    let sixteen = BinaryFuse16::builder().build_from(&keys).unwrap().to_bytes();
    let thirty_two = BinaryFuse32::builder().build_from(&keys).unwrap().to_bytes();
    for partitions in [1, 4] {
        for batches in [1, 29] {
            let context = context(partitions);
            table(&context, "t", &[("k", integers(keys.clone()))], batches);
            for (arguments, expected) in [
                ("k", &eight),
                ("k, 8", &eight),
                ("DISTINCT k", &eight),
                ("k, 16", &sixteen),
                ("CAST(k AS SMALLINT), 4 * 8", &thirty_two),
            ] {
                let made = one(&context, &format!("SELECT fuse_filter_agg({arguments}) FROM t")).await;
                assert!(made.as_ref() == Some(expected), "{arguments}: {batches} batches on {partitions} partitions");
            }
        }
    }
}

/// Casts of an integer, every seventh of which is NULL, to types of keys.
const TYPES: &[&str] = &[
    "k",
    "CAST(k AS SMALLINT)",
    "arrow_cast(k, 'UInt32')",
    "CAST(k AS DECIMAL(20, 2))",
    "CAST(k AS DECIMAL(60, 2))",
    "CAST(CAST(k AS INT) AS DATE)",
    "arrow_cast(k, 'Timestamp(Millisecond, None)')",
    "CAST(k AS VARCHAR)",
    "arrow_cast(CAST(k AS VARCHAR), 'LargeBinary')",
    "arrow_cast(CAST(k AS VARCHAR), 'Dictionary(Int16, Utf8)')",
];

#[tokio::test]
async fn lookups_answer_as_in_does() {
    let facts = (0..20_000).map(|k| (k % 7 != 0).then_some(k)).collect::<Int32Array>();
    let items = (0..20_000).step_by(3).map(|k| (k % 7 != 0).then_some(k)).collect::<Int32Array>();
    for partitions in [1, 4] {
        let context = context(partitions);
        table(&context, "facts", &[("k", Arc::new(facts.clone()))], 9);
        table(&context, "items", &[("k", Arc::new(items.clone()))], 5);
        for key in TYPES {
            let (of_facts, of_items) =
                (format!("(SELECT {key} AS x FROM facts)"), format!("(SELECT {key} AS y FROM items)"));
            let found = async |condition: &str| {
                number(&context, &format!("SELECT count(*) FROM {of_facts} WHERE {condition}")).await
            };
            let is_in = format!("x IN {of_items}");
            let expected = found(&is_in).await;
            assert_eq!(expected, 5714, "{key}");
            // A rate of 2^-bits, over 17,142 values; two thirds are not among the items.
            for (bits, most_wrong) in [(8, 100), (16, 3), (32, 0)] {
                let contains = format!("might_contain((SELECT fuse_filter_agg(y, {bits}) FROM {of_items}), x)");
                assert_eq!(found(&format!("{is_in} AND {contains}")).await, expected, "{key}, {bits} bits");
                let wrong = found(&contains).await - expected;
                assert!(wrong <= most_wrong, "{key}, {bits} bits: {wrong} false positives");
                assert_eq!(found(&format!("{contains} IS NULL")).await, 2858, "{key}, {bits} bits");
            }
        }
    }
}

#[tokio::test]
async fn nulls_are_no_keys_and_nothing_gives_null() {
    let context = context(2);
    let column = Arc::new((0..1000).map(|i| (i % 3 == 0).then_some(i)).collect::<Int32Array>());
    table(&context, "t", &[("k", column)], 5);
    let expected: Vec<i32> = (0..1000).step_by(3).collect();
    let expected = BinaryFuse8::builder().build_from(&expected).unwrap().to_bytes();
    assert!(one(&context, "SELECT fuse_filter_agg(k) FROM t").await.unwrap() == expected);
    for nothing in [
        "SELECT fuse_filter_agg(k) FROM t WHERE k IS NULL",
        "SELECT fuse_filter_agg(k, 16) FROM t WHERE k > 5000",
        "SELECT fuse_filter_agg(k) FILTER (WHERE k > 5000) FROM t",
        "SELECT fuse_filter_agg(NULL)",
    ] {
        assert_eq!(one(&context, nothing).await, None, "{nothing}");
    }
    let filtered = one(&context, "SELECT fuse_filter_agg(k) FILTER (WHERE k < 10) FROM t").await.unwrap();
    assert!(filtered == BinaryFuse8::builder().build_from(&[0, 3, 6, 9]).unwrap().to_bytes());
    // An aggregate of no keys is NULL, but the crate has an empty filter.
    let empty = BinaryFuse8::builder().build_from::<u64>(&[]).unwrap().to_bytes();
    let hex: String = empty.iter().map(|byte| format!("{byte:02x}")).collect();
    let answers = column_of(&context, &format!("SELECT might_contain(X'{hex}', k) FROM t")).await;
    assert_eq!(answers, [(0..334).map(|_| Some(false)).collect::<Vec<_>>(), vec![None; 666]].concat());
}

/// Returns the answers of a query, with NULL last.
async fn column_of(context: &datafusion::prelude::SessionContext, sql: &str) -> Vec<Option<bool>> {
    let mut answers: Vec<Option<bool>> = column(context, sql).await.unwrap().as_boolean().iter().collect();
    answers.sort_by_key(Option::is_none);
    answers
}

#[tokio::test]
async fn filters_of_all_kinds_row_by_row() {
    let context = context(3);
    table(&context, "t", &[("k", integers(0..3000))], 7);
    let filters = "SELECT 0 AS g, fuse_filter_agg(k) AS f FROM t WHERE k % 5 = 0
         UNION ALL SELECT 1, fuse_filter_agg(k, 16) FROM t WHERE k % 5 = 1
         UNION ALL SELECT 2, fuse_filter_agg(k, 32) FROM t WHERE k % 5 = 2
         UNION ALL SELECT 3, bloom_filter_agg(k, 1000) FROM t WHERE k % 5 = 3
         UNION ALL SELECT 4, NULL";
    let found = format!("SELECT count(*) FROM t JOIN ({filters}) ON g = k % 5 WHERE might_contain(f, k)");
    assert_eq!(number(&context, &found).await, 2400);
    let groups = "SELECT count(*) FROM t JOIN (SELECT k % 300 AS g, fuse_filter_agg(k, 32) AS f FROM t GROUP BY g)
                  ON g = (k + SHIFT) % 300 WHERE might_contain(f, k)";
    assert_eq!(number(&context, &groups.replace("SHIFT", "0")).await, 3000);
    assert_eq!(number(&context, &groups.replace("SHIFT", "1")).await, 0);
    let shared = "SELECT count(*) FROM t WHERE
                  might_contain((SELECT shared_filter(fuse_filter_agg(k, 32)) FROM t WHERE k < 40), k)";
    assert_eq!(number(&context, shared).await, 40);
}

#[tokio::test]
async fn a_window_sees_the_filter_grow() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..60))], 1);
    let filters = column(&context, "SELECT fuse_filter_agg(k, 16) OVER (ORDER BY k) FROM t ORDER BY k").await.unwrap();
    for (i, filter) in saved(&filters).into_iter().enumerate() {
        let keys: Vec<i64> = (0..=i as i64).collect();
        assert!(filter.unwrap() == BinaryFuse16::builder().build_from(&keys).unwrap().to_bytes(), "{i}");
    }
}

/// Counts 8 bytes per distinct key, not per row.
#[test]
fn memory_is_that_of_the_different_keys() {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
    let expressions = [datafusion::physical_expr::expressions::col("k", &schema).unwrap()];
    let aggregates = warpset_datafusion::aggregates();
    let aggregate = aggregates.iter().find(|aggregate| aggregate.name() == "fuse_filter_agg").unwrap();
    let mut accumulator = aggregate
        .accumulator(datafusion::logical_expr::function::AccumulatorArgs {
            return_field: Arc::new(Field::new("r", DataType::Binary, true)),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: aggregate.name(),
            is_distinct: false,
            exprs: &expressions,
            expr_fields: &[],
        })
        .unwrap();
    let before = accumulator.size();
    for _ in 0..100 {
        accumulator.update_batch(&[integers(0..10_000)]).unwrap();
    }
    let grown = accumulator.size() - before;
    assert!((80_000..=640_000).contains(&grown), "{grown} bytes");
}

#[tokio::test]
async fn wrong_calls_are_errors() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..10))], 1);
    for (sql, expected) in [
        ("SELECT fuse_filter_agg() FROM t", "fuse_filter_agg"),
        ("SELECT fuse_filter_agg(k, 8, 8) FROM t", "fuse_filter_agg: 3 arguments, where 1 to 2 are taken"),
        ("SELECT fuse_filter_agg(k, 12) FROM t", "`bits` is 12, but must be 8, 16 or 32"),
        ("SELECT fuse_filter_agg(k, -8) FROM t", "`bits` is -8, but must be 8, 16 or 32"),
        ("SELECT fuse_filter_agg(k, k) FROM t", "the parameter `bits` is not a literal"),
        ("SELECT fuse_filter_agg(k, NULL) FROM t", "the parameter `bits` is not a literal"),
        ("SELECT fuse_filter_agg(k, 'x') FROM t", "Cannot cast"),
        ("SELECT fuse_filter_agg(CAST(k AS DOUBLE)) FROM t", "Float64 cannot be a key: cast it"),
        (
            "SELECT bloom_filter_merge(f) FROM (SELECT fuse_filter_agg(k) AS f FROM t)",
            "bloom_filter_merge: this is a saved `BinaryFuse8`, where a `SplitBlockBloom` was expected",
        ),
        (
            "SELECT quotient_filter_count((SELECT fuse_filter_agg(k, 16) FROM t), k) FROM t",
            "quotient_filter_count: this is a saved `BinaryFuse16`",
        ),
    ] {
        let message = error(&context, sql).await;
        assert!(message.contains(expected), "{sql}: {message}");
    }
}
