//! `perfect_hash_agg` and `perfect_hash_index`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use warpset_mphf::RecSplit;

use crate::{context, integers, number, one, table};

#[tokio::test]
async fn every_key_has_its_number() {
    for partitions in [1, 4] {
        let context = context(partitions);
        let copies = |i: i64| i * i % 9973;
        let names: ArrayRef =
            Arc::new((0..20_000).map(|i| (i % 5 != 0).then(|| format!("name {}", copies(i)))).collect::<StringArray>());
        table(&context, "t", &[("k", integers((0..20_000).map(copies))), ("name", names)], 7);
        for key in ["k", "name", "DISTINCT k"] {
            let bare = key.trim_start_matches("DISTINCT ");
            let keys = number(&context, &format!("SELECT count(DISTINCT {bare}) FROM t")).await;
            let numbers = format!(
                "SELECT perfect_hash_index((SELECT perfect_hash_agg({key}) FROM t), {bare}) AS n FROM t WHERE {bare} IS NOT NULL"
            );
            for (what, expected) in [("count(DISTINCT n)", keys), ("min(n)", 0), ("max(n)", keys - 1)] {
                assert_eq!(
                    number(&context, &format!("SELECT {what} FROM ({numbers})")).await,
                    expected,
                    "{what} of {key}"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_function_is_one_of_the_crate() {
    let context = context(2);
    let keys: Vec<i64> = (0..5000).map(|i| i * 3).collect();
    table(&context, "t", &[("k", integers(keys.clone()))], 3);
    let bytes = one(&context, "SELECT perfect_hash_agg(k) FROM t").await.unwrap();
    // Trees depend on hashes, not on the order of the keys.
    assert!(bytes == RecSplit::builder().build_from(&keys).unwrap().to_bytes());
}
