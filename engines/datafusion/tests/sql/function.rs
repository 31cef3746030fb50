//! `lookup_or_null`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryArray, StringArray};
use warpset_fuse::StaticFunction;

use crate::{context, number, table};

#[tokio::test]
async fn every_key_has_its_value_and_others_have_none() {
    let context = context(2);
    let names: Vec<String> = (0..1000).map(|i| format!("name {i}")).collect();
    let values: Vec<u32> = (0..1000).map(|i| i * 7).collect();
    let function = StaticFunction::<u32>::builder().filtered(32).build_from(&names, &values).unwrap().to_bytes();
    table(&context, "f", &[("f", Arc::new(BinaryArray::from(vec![&function[..]])))], 1);
    let rows = (0..2000).map(|i| (i % 4 != 3).then(|| format!("name {i}")));
    let (rows, numbers): (ArrayRef, ArrayRef) =
        (Arc::new(rows.collect::<StringArray>()), crate::integers((0..2000).map(|i| i * 7)));
    table(&context, "t", &[("name", rows), ("n", numbers)], 3);
    let found = "SELECT n, lookup_or_null((SELECT f FROM f), name) AS value FROM t";
    assert_eq!(number(&context, &format!("SELECT count(value) FROM ({found})")).await, 750);
    assert_eq!(number(&context, &format!("SELECT count(*) FROM ({found}) WHERE n = value")).await, 750);
}
