//! `bloom_filter_agg`, `bloom_filter_merge`, `might_contain` and the conversions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, Int32Array};
use datafusion::parquet::bloom_filter::Sbbf;
use warpset_bloom::{PhysicalType, SplitBlockBloom};

use crate::{column, context, error, integers, one, rows, saved, table};

fn keys(n: i64) -> Vec<i64> {
    (0..n).map(|i| i * 7919 - 1000).collect()
}

#[tokio::test]
async fn the_filter_is_that_of_the_crate() {
    let keys = keys(50_000);
    for partitions in [1, 4] {
        let context = context(partitions);
        table(&context, "t", &[("k", integers(keys.clone()))], 13);
        for (arguments, builder) in [
            ("k", SplitBlockBloom::builder(1_000_000)),
            ("k, 50000", SplitBlockBloom::builder(50_000)),
            ("k, 50000, 0.001", SplitBlockBloom::builder(50_000).fpr(0.001)),
            ("k, 50000, 16", SplitBlockBloom::builder(50_000).bits_per_key(16.0)),
            ("k, 40 * 1000 + 10000, 12.5", SplitBlockBloom::builder(50_000).bits_per_key(12.5)),
            ("k, 50000, 0.01, 'int32'", SplitBlockBloom::builder(50_000).column(PhysicalType::Int32)),
            ("DISTINCT k, 50000", SplitBlockBloom::builder(50_000)),
        ] {
            let expected = builder.build_from(&keys).unwrap().to_bytes();
            let sql = format!("SELECT bloom_filter_agg({arguments}) FROM t");
            assert!(one(&context, &sql).await.unwrap() == expected, "{sql} on {partitions}");
        }
    }
}

#[tokio::test]
async fn a_list_and_a_filter_give_the_same_bytes() {
    // A filter for 1000 keys is a list up to 41 hashes: both sides of the limit, in one part and in many.
    for n in [1, 40, 41, 42, 43, 200, 1000] {
        let expected = SplitBlockBloom::builder(1000).build_from(&keys(n)).unwrap().to_bytes();
        for batches in [1, 3, 40] {
            let context = context(4);
            table(&context, "t", &[("k", integers(keys(n)))], batches);
            let filter = one(&context, "SELECT bloom_filter_agg(k, 1000) FROM t").await.unwrap();
            assert!(filter == expected, "{n} keys in {batches} batches");
        }
    }
}

#[tokio::test]
async fn nulls_are_no_keys_and_nothing_gives_null() {
    let context = context(2);
    let column = Arc::new((0..1000).map(|i| (i % 3 == 0).then_some(i)).collect::<Int32Array>());
    table(&context, "t", &[("k", column)], 5);
    let expected: Vec<i32> = (0..1000).step_by(3).collect();
    let expected = SplitBlockBloom::builder(1000).build_from(&expected).unwrap().to_bytes();
    assert!(one(&context, "SELECT bloom_filter_agg(k, 1000) FROM t").await.unwrap() == expected);
    for nothing in [
        "SELECT bloom_filter_agg(k, 1000) FROM t WHERE k IS NULL",
        "SELECT bloom_filter_agg(k, 1000) FROM t WHERE k > 5000",
        "SELECT bloom_filter_agg(k, 1000) FILTER (WHERE k > 5000) FROM t",
        "SELECT bloom_filter_agg(NULL)",
        "SELECT bloom_filter_merge(f) FROM (SELECT bloom_filter_agg(k) AS f FROM t WHERE k > 5000)",
        "SELECT bloom_filter_merge(NULL)",
    ] {
        assert_eq!(one(&context, nothing).await, None, "{nothing}");
    }
    let filtered = one(&context, "SELECT bloom_filter_agg(k, 1000) FILTER (WHERE k < 10) FROM t").await.unwrap();
    assert!(filtered == SplitBlockBloom::builder(1000).build_from(&[0, 3, 6, 9]).unwrap().to_bytes());
}

#[tokio::test]
async fn filters_of_parts_merge_to_that_of_all() {
    let context = context(3);
    table(&context, "t", &[("k", integers(keys(10_000)))], 7);
    let expected = SplitBlockBloom::builder(10_000).build_from(&keys(10_000)).unwrap().to_bytes();
    for group in ["k - k", "k % 2", "k % 1000"] {
        let sql = format!(
            "SELECT bloom_filter_merge(f) FROM (SELECT bloom_filter_agg(k, 10000) AS f FROM t GROUP BY {group})"
        );
        assert!(one(&context, &sql).await.unwrap() == expected, "{sql}");
    }
    let message = error(
        &context,
        "SELECT bloom_filter_merge(f) FROM (SELECT bloom_filter_agg(k, 100) AS f FROM t
         UNION ALL SELECT bloom_filter_agg(k, 200) FROM t)",
    )
    .await;
    assert!(message.contains("bloom_filter_merge: the filters differ in bytes"), "{message}");
}

#[tokio::test]
async fn lookups_answer_as_the_crate_does() {
    let context = context(2);
    let keys = keys(5000);
    table(&context, "t", &[("k", integers(keys.clone()))], 3);
    table(&context, "f", &[("half", integers(keys[..2500].to_vec()))], 1);
    let filter = SplitBlockBloom::builder(2500).fpr(0.1).build_from(&keys[..2500]).unwrap();
    let expected: Vec<bool> = keys.iter().map(|&key| filter.contains(key)).collect();
    let answers = column(
        &context,
        "SELECT might_contain((SELECT bloom_filter_agg(half, 2500, 0.1) FROM f), k) FROM t ORDER BY k",
    )
    .await
    .unwrap();
    assert_eq!(*answers.as_boolean(), BooleanArray::from(expected));
    // Literals on either side, and other types of the same values.
    let hex: String = filter.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    for (sql, expected) in [
        (format!("SELECT might_contain(X'{hex}', {})", keys[7]), Some(true)),
        (format!("SELECT might_contain(X'{hex}', CAST({} AS INT))", keys[7]), Some(true)),
        (format!("SELECT might_contain(X'{hex}', CAST({} AS DECIMAL(20, 0)))", keys[7]), Some(true)),
        (format!("SELECT might_contain(X'{hex}', NULL)"), None),
        ("SELECT might_contain(NULL, 5)".into(), None),
    ] {
        let answers = column(&context, &sql).await.unwrap();
        let answer = answers.is_valid(0).then(|| answers.as_boolean().value(0));
        assert_eq!(answer, expected, "{}", &sql[sql.len() - 60..]);
    }
}

#[tokio::test]
async fn a_filter_per_row() {
    let context = context(2);
    table(&context, "t", &[("k", integers(0..3000))], 4);
    let sql = "SELECT count(*) FILTER (WHERE might_contain(f, k)), count(*) FILTER (WHERE NOT might_contain(f, k))
               FROM t JOIN (SELECT k % 3 AS g, bloom_filter_agg(k, 1000, 0.0001) AS f FROM t GROUP BY k % 3)
               ON g = (k + SHIFT) % 3";
    let counts = async |shift: &str| {
        let all = rows(&context, &sql.replace("SHIFT", shift)).await.unwrap();
        let count = |i: usize| all[0].column(i).as_primitive::<datafusion::arrow::datatypes::Int64Type>().value(0);
        (count(0), count(1))
    };
    assert_eq!(counts("0").await, (3000, 0));
    let (hits, misses) = counts("1").await;
    assert!(hits < 10 && hits + misses == 3000, "{hits} false positives");
}

#[tokio::test]
async fn a_window_sees_the_filter_grow() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..60))], 1);
    let filters =
        column(&context, "SELECT bloom_filter_agg(k, 1000) OVER (ORDER BY k) FROM t ORDER BY k").await.unwrap();
    for (i, filter) in saved(&filters).into_iter().enumerate() {
        let keys: Vec<i64> = (0..=i as i64).collect();
        assert!(filter.unwrap() == SplitBlockBloom::builder(1000).build_from(&keys).unwrap().to_bytes(), "{i}");
    }
}

#[tokio::test]
async fn other_engines_open_what_is_converted() {
    let context = context(2);
    table(&context, "t", &[("k", integers(keys(1000)))], 4);
    let parquet = "SELECT bloom_filter_to_parquet(bloom_filter_agg(k, 1000)) FROM t";
    let parquet = column(&context, parquet).await.unwrap();
    let parquet = parquet.as_binary::<i32>().value(0);
    let filter = SplitBlockBloom::builder(1000).build_from(&keys(1000)).unwrap();
    assert!(SplitBlockBloom::read_parquet(parquet, PhysicalType::Int64).unwrap() == filter);
    let theirs = Sbbf::new(filter.bitset());
    assert!(keys(1000).iter().all(|key| theirs.check(key)));
    assert!(parquet.ends_with(filter.bitset()));

    let presto = "SELECT bloom_filter_to_presto(f) FROM (SELECT bloom_filter_agg(k, 1000) AS f FROM t)
                  UNION ALL SELECT bloom_filter_to_presto(NULL)";
    let presto = column(&context, presto).await.unwrap();
    assert_eq!((presto.len(), presto.null_count()), (2, 1));
    let row = usize::from(presto.is_null(0));
    assert!(presto.as_binary::<i32>().value(row) == filter.view().velox_bitset());
}

#[tokio::test]
async fn wrong_calls_are_errors_that_say_what_to_do() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..10))], 1);
    for (sql, expected) in [
        ("SELECT bloom_filter_agg() FROM t", "bloom_filter_agg"),
        ("SELECT bloom_filter_agg(k, 10, 0.1, 'INT64', 5) FROM t", "5 arguments, where 1 to 4 are taken"),
        ("SELECT bloom_filter_agg(k, k) FROM t", "the parameter `items` is not a literal"),
        ("SELECT bloom_filter_agg(k, NULL) FROM t", "the parameter `items` is not a literal"),
        ("SELECT bloom_filter_agg(k, 0) FROM t", "`items` is 0, but must be above 0"),
        ("SELECT bloom_filter_agg(k, -5) FROM t", "`items` is -5, but must be above 0"),
        ("SELECT bloom_filter_agg(k, 10, -0.5) FROM t", "a rate between 0 and 1, or 1 to 1024 bits"),
        ("SELECT bloom_filter_agg(k, 10, 1e9) FROM t", "a rate between 0 and 1, or 1 to 1024 bits"),
        ("SELECT bloom_filter_agg(k, 10, 'x') FROM t", "Cannot cast"),
        ("SELECT bloom_filter_agg(k, 10, 0.1, 'FLOAT') FROM t", "INT32, INT64, BYTE_ARRAY"),
        ("SELECT bloom_filter_agg(k, 9000000000000000000) FROM t", "bloom_filter_agg: "),
        ("SELECT bloom_filter_agg(CAST(k AS DOUBLE)) FROM t", "Float64 cannot be a key: cast it"),
        ("SELECT bloom_filter_agg(k > 3) FROM t", "Boolean cannot be a key: cast it"),
        ("SELECT bloom_filter_merge(k) FROM t", "Int64 cannot hold a filter"),
        ("SELECT might_contain(k, k) FROM t", "Int64 cannot hold a filter"),
        ("SELECT might_contain(X'00', INTERVAL '1 day')", "cannot be a key"),
        ("SELECT might_contain(X'00') FROM t", "1 arguments, where 2 to 2 are taken"),
        ("SELECT bloom_filter_to_parquet(5)", "Int64 cannot hold a filter"),
        ("SELECT bloom_filter_to_parquet(X'0102')", "bloom_filter_to_parquet: 128 bytes needed, 2 found"),
    ] {
        let message = error(&context, sql).await;
        assert!(message.contains(expected), "{sql}: {message}");
    }
}
