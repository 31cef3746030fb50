//! `quotient_filter_agg` and its companions.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use warpset_quotient::{Duplicates, Insert, RankSelectQuotientFilter};

use crate::{column, context, error, integers, number, one, table};

fn filter(items: u64, keys: &[i64]) -> RankSelectQuotientFilter {
    let mut filter =
        RankSelectQuotientFilter::builder(items).fpr(0.001).duplicates(Duplicates::Counted).build().unwrap();
    while filter.insert_bulk(keys).is_err() {
        filter.double().unwrap();
    }
    filter
}

fn keys(n: i64) -> Vec<i64> {
    (0..n).map(|i| (i * i) % 7001).collect()
}

#[tokio::test]
async fn the_filter_is_that_of_the_crate_whatever_the_parts() {
    let keys = keys(30_000);
    for partitions in [1, 4] {
        for batches in [1, 29] {
            let context = context(partitions);
            table(&context, "t", &[("k", integers(keys.clone()))], batches);
            // A filter for 100 items has to grow five times.
            for items in [100, 5000, 100_000] {
                let expected = filter(items, &keys).to_bytes();
                let sql = format!("SELECT quotient_filter_agg(k, {items}, 0.001) FROM t");
                let made = one(&context, &sql).await.unwrap();
                assert!(
                    made == expected,
                    "{items} on {partitions} partitions: {} bytes, {} bytes",
                    made.len(),
                    expected.len()
                );
                let sql = format!(
                    "SELECT quotient_filter_merge(f) FROM
                     (SELECT quotient_filter_agg(k, {items}, 0.001) AS f FROM t GROUP BY k % 7)"
                );
                assert!(one(&context, &sql).await.unwrap() == expected, "{items} on {partitions} partitions, merged");
            }
        }
    }
}

#[tokio::test]
async fn counts_are_those_of_the_rows() {
    let context = context(3);
    table(&context, "t", &[("k", integers(keys(30_000)))], 9);
    let sql = "SELECT quotient_filter_count((SELECT quotient_filter_agg(k, 7001, 1e-9) FROM t), k) - c
               FROM (SELECT k, count(*) AS c FROM t GROUP BY k)";
    let surplus = column(&context, sql).await.unwrap();
    assert!(surplus.as_primitive::<Int64Type>().values().iter().all(|&surplus| surplus == 0));
    let absent = "SELECT quotient_filter_count((SELECT quotient_filter_agg(k, 7001, 1e-9) FROM t), 7001)";
    assert_eq!(number(&context, absent).await, 0);
}

#[tokio::test]
async fn what_a_filter_contains_it_has_counted() {
    let context = context(3);
    table(&context, "t", &[("k", integers(keys(30_000)))], 9);
    let filter = "(SELECT quotient_filter_agg(k, 7001, 1e-9) FROM t)";
    for (copies, least) in [("", 1), (", 1", 1), (", 8", 8), (", 0", 0)] {
        let differ = format!(
            "SELECT count(*) FROM (SELECT value AS k FROM range(8000))
             WHERE quotient_filter_contains({filter}, k{copies}) <> (quotient_filter_count({filter}, k) >= {least})"
        );
        assert_eq!(number(&context, &differ).await, 0, "{copies}");
    }
    // A number of copies per row, and NULL for NULL.
    let counted = "SELECT count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k)";
    let contains = |copies: &str| format!("{counted} WHERE quotient_filter_contains({filter}, k, {copies})");
    assert_eq!(number(&context, &contains("c")).await, number(&context, counted).await);
    assert_eq!(number(&context, &contains("c + 1")).await, 0);
    assert_eq!(number(&context, &contains("NULL")).await, 0);
    assert_eq!(number(&context, "SELECT CAST(quotient_filter_contains(NULL, 5) IS NULL AS BIGINT)").await, 1);
}

#[tokio::test]
async fn copies_count_in_intersections() {
    let context = context(2);
    table(&context, "t", &[("k", integers(keys(30_000)))], 4);
    let common = |a: &str, b: &str| {
        format!(
            "SELECT approx_intersection_count((SELECT quotient_filter_agg({a}, 7001, 1e-9) FROM t),
                                              (SELECT quotient_filter_agg({b}, 7001, 1e-9) FROM t))"
        )
    };
    assert_eq!(number(&context, &common("k", "k")).await, 30_000);
    let once = common("k", "k").replacen("FROM t", "FROM (SELECT DISTINCT k FROM t)", 1);
    assert_eq!(number(&context, &once).await, number(&context, "SELECT count(DISTINCT k) FROM t").await);
    assert_eq!(number(&context, &common("k", "k + 10000")).await, 0);
    // One row each.
    let each = "SELECT sum(approx_intersection_count(f, f)) FROM
                (SELECT quotient_filter_agg(k, 7001, 1e-9) AS f FROM t GROUP BY k % 3)";
    assert_eq!(number(&context, each).await, 30_000);
}

#[tokio::test]
async fn filters_of_other_rates_merge_at_the_coarser_one() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..1000))], 1);
    let union = |a: &str, b: &str| {
        format!(
            "SELECT quotient_filter_merge(f) FROM (SELECT quotient_filter_agg(k, 1000, {a}) AS f FROM t
             UNION ALL SELECT quotient_filter_agg(k, 1000, {b}) FROM t)"
        )
    };
    for (a, b) in [("0.1", "0.0001"), ("0.0001", "0.1")] {
        let merged = RankSelectQuotientFilter::from_bytes(&one(&context, &union(a, b)).await.unwrap()).unwrap();
        assert_eq!(merged.len(), 2000);
        assert!((0..1000i64).all(|key| merged.count(key) >= 2));
        assert_eq!(merged.layout().fingerprint_bits(), 14);
    }
}

#[tokio::test]
async fn wrong_calls_are_errors() {
    let context = context(1);
    table(&context, "t", &[("k", integers(0..10))], 1);
    for (sql, expected) in [
        ("SELECT quotient_filter_agg(k, 0) FROM t", "`items` is 0"),
        ("SELECT quotient_filter_agg(k, 10, 12) FROM t", "`fpr` is 12, but must be a rate between 0 and 1"),
        ("SELECT quotient_filter_agg(k, 10, 1e-300) FROM t", "quotient_filter_agg: "),
        ("SELECT quotient_filter_agg(DISTINCT k, 10) FROM t", "DISTINCT is not available where copies are counted"),
        (
            "SELECT quotient_filter_agg(k, 1, 0.5) FROM range(100) AS t(k)",
            "more different keys than fingerprints of 4 bits",
        ),
        ("SELECT quotient_filter_count(X'00', 5)", "quotient_filter_count: 128 bytes needed, 1 found"),
        ("SELECT quotient_filter_contains(X'00', 5, 2)", "quotient_filter_contains: 128 bytes needed, 1 found"),
        ("SELECT quotient_filter_contains(X'00')", "quotient_filter_contains: 1 arguments, where 2 to 3 are taken"),
        ("SELECT approx_intersection_count(X'00')", "1 arguments, where 2 to 2 are taken"),
        ("SELECT approx_intersection_count(1, 2)", "Int64 cannot hold a filter"),
    ] {
        let message = error(&context, sql).await;
        assert!(message.contains(expected), "{sql}: {message}");
    }
}
