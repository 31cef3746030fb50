//! `spark_might_contain`, with a filter that Spark 4.3.0 wrote.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};

use crate::{column, context, error, integers, number, table};

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
