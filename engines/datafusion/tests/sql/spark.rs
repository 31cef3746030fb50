//! `spark_might_contain`, with a filter that Spark 4.3.0 wrote.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};

use crate::{column, context, error, integers, number, table};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;

/// Version 2, of the integers -1, 0, 1, 2, 42, 1000000007, and the smallest and the largest of 64 bits.
const LONGS: &str =
    "X'000000020000000900000000000000048109414226001483014a0012b08289e040900813202129042c201401161c4700'";
/// Version 1, of nine strings, `warpset` among them.
const STRINGS: &str = "X'000000010000000900000004062070003460036be01600f10c820002106f802062d60a802091020e0000040e'";

#[tokio::test]
async fn filters_of_spark_are_asked_where_they_lie() {
    let context = context(2);
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("warpset"), None, Some("other"), Some("日本語")]));
    table(&context, "t", &[("k", integers([42, 2, 43, -1])), ("name", names)], 3);
    let count = async |condition: String| number(&context, &format!("SELECT count(*) FROM t WHERE {condition}")).await;
    assert_eq!(count(format!("spark_might_contain({LONGS}, k)")).await, 3);
    for kind in ["INT", "SMALLINT", "TINYINT"] {
        assert_eq!(count(format!("spark_might_contain({LONGS}, arrow_cast(k, 'Int8')::{kind})")).await, 3);
    }
    assert_eq!(count(format!("spark_might_contain({STRINGS}, name)")).await, 2);
    let dictionary = "arrow_cast(name, 'Dictionary(Int32, Utf8)')";
    assert_eq!(count(format!("spark_might_contain({STRINGS}, {dictionary})")).await, 2);
    assert_eq!(count(format!("spark_might_contain({STRINGS}, name) IS NULL")).await, 1);
    assert_eq!(count(format!("spark_might_contain(CASE WHEN k > 2 THEN {LONGS} END, k)")).await, 1);
    assert_eq!(count("spark_might_contain(NULL, k) IS NULL".into()).await, 4);
    let one = column(&context, &format!("SELECT spark_might_contain({LONGS}, 42)")).await.unwrap();
    assert_eq!(format!("{one:?}").matches("true").count(), 1);
}

#[tokio::test]
async fn what_is_none_of_them_is_an_error() {
    let context = context(1);
    table(&context, "t", &[("k", integers([42]))], 1);
    let cut = LONGS.replace("4700'", "'");
    for (filter, key, cause) in [
        (cut.as_str(), "k", "more or fewer words"),
        ("X'00'", "k", "within its header"),
        (LONGS, "k * 0.5", "cannot be a key"),
        ("1", "k", "cannot hold a filter"),
    ] {
        let error = error(&context, &format!("SELECT spark_might_contain({filter}, {key}) FROM t")).await;
        assert!(error.contains(cause), "{error}");
    }
}

/// Returns the bytes of a result as an SQL literal.
async fn literal(context: &datafusion::prelude::SessionContext, sql: &str) -> String {
    let found = cast(&column(context, sql).await.unwrap(), &DataType::Binary).unwrap();
    let digits: String = found.as_binary::<i32>().value(0).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("X'{digits}'")
}

#[tokio::test]
async fn the_aggregate_gives_the_bytes_of_spark() {
    let context = context(3);
    let keys = [i64::MIN, -1, 0, 1, 2, 42, 1_000_000_007, i64::MAX];
    let names = ["", "a", "ab", "abc", "abcd", "warpset", "日本語", "🚀🚀", "hello world, this is a string"];
    table(&context, "longs", &[("k", integers(keys))], 3);
    let names: ArrayRef = Arc::new(StringArray::from_iter(names.map(Some).into_iter().chain([None])));
    table(&context, "names", &[("name", names)], 4);
    assert_eq!(literal(&context, "SELECT spark_bloom_filter_agg(k, 20, 256, 2) FROM longs").await, LONGS);
    assert_eq!(literal(&context, "SELECT spark_bloom_filter_agg(name, 20, 256) FROM names").await, STRINGS);
    let nothing = "SELECT count(*) FROM (SELECT spark_bloom_filter_agg(k) AS f FROM longs WHERE k = 3) WHERE f IS NULL";
    assert_eq!(number(&context, nothing).await, 1);
    // Lists and filters, with and without groups, on one partition and several.
    let many = integers((0..40_000).map(|i| i % 30_000));
    table(&context, "many", &[("k", many)], 8);
    for items in [100, 1000, 100_000] {
        let all = literal(&context, &format!("SELECT spark_bloom_filter_agg(k, {items}) FROM many")).await;
        let missed = format!("SELECT count(*) FROM many WHERE NOT spark_might_contain({all}, k)");
        assert_eq!(number(&context, &missed).await, 0);
        let groups = format!(
            "SELECT count(DISTINCT f) FROM (SELECT k % 3 AS g, spark_bloom_filter_agg(k % 3 + 7, {items}) AS f FROM many GROUP BY k % 3)"
        );
        assert_eq!(number(&context, &groups).await, 3);
    }
    // 8 bits per item, except without arguments; Spark's limits.
    for (arguments, expected) in [("", 12 + 1_048_576), (", 100", 12 + 104), (", 100000000", 12 + 67_108_864 / 8)] {
        let found = literal(&context, &format!("SELECT spark_bloom_filter_agg(k{arguments}) FROM longs")).await;
        assert_eq!((found.len() - "X''".len()) / 2, expected, "{arguments}");
    }
    for (arguments, cause) in [("0", "`items` is 0"), ("10, 0", "`bits` is 0"), ("10, 64, 3", "1 or 2")] {
        let error = error(&context, &format!("SELECT spark_bloom_filter_agg(k, {arguments}) FROM longs")).await;
        assert!(error.contains(cause), "{error}");
    }
}
