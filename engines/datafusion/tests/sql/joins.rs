//! Filters before joins, the main use of the functions.

use datafusion::arrow::util::pretty::pretty_format_batches;

use datafusion::prelude::SessionConfig;

use crate::{context, integers, number, rows, table, with_config};

const FACTS: i64 = 200_000;

fn tables(context: &datafusion::prelude::SessionContext) {
    table(
        context,
        "sales",
        &[("item", integers((0..FACTS).map(|i| i * 31 % 20_011))), ("price", integers(0..FACTS))],
        16,
    );
    table(context, "items", &[("id", integers(0..20_011)), ("kind", integers((0..20_011).map(|i| i % 100)))], 2);
}

const PLAIN: &str = "SELECT sum(price) FROM sales JOIN items ON item = id WHERE kind = 7";
const FILTERED: &str = "SELECT sum(price) FROM sales JOIN items ON item = id WHERE kind = 7
    AND might_contain((SELECT bloom_filter_agg(id, 1000, 0.001) FROM items WHERE kind = 7), item)";

#[tokio::test]
async fn a_filter_before_a_join_changes_nothing_in_the_answer() {
    for partitions in [1, 3] {
        let context = context(partitions);
        tables(&context);
        let expected: i64 = (0..FACTS).filter(|i| i * 31 % 20_011 % 100 == 7).sum();
        assert_eq!(number(&context, PLAIN).await, expected);
        assert_eq!(number(&context, FILTERED).await, expected);
    }
}

/// Runs the query with the engine's own subqueries, and with the joins that distributed engines replace them by.
#[tokio::test]
async fn a_shared_filter_answers_the_same() {
    for physical in [true, false] {
        let config = SessionConfig::new()
            .with_target_partitions(2)
            .set_bool("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", physical);
        let context = with_config(config);
        tables(&context);
        let expected = number(&context, PLAIN).await;
        assert_eq!(number(&context, FILTERED).await, expected);
        let shared =
            FILTERED.replace("bloom_filter_agg(id, 1000, 0.001)", "shared_filter(bloom_filter_agg(id, 1000, 0.001))");
        assert_ne!(shared, FILTERED);
        assert_eq!(number(&context, &shared).await, expected);
        let nothing = shared.replace("WHERE kind = 7)", "WHERE kind = 700)");
        assert_eq!(number(&context, &format!("SELECT count(*) FROM ({nothing})")).await, 1);
        let counts = "SELECT count(*) FROM sales WHERE might_contain((SELECT shared_filter(NULL)), item)";
        assert_eq!(number(&context, counts).await, 0);
    }
}

#[tokio::test]
async fn the_filter_stands_below_the_join() {
    let context = context(2);
    tables(&context);
    let plan = rows(&context, &format!("EXPLAIN FORMAT INDENT {FILTERED}")).await.unwrap();
    let plan = pretty_format_batches(&plan).unwrap().to_string();
    let physical = &plan[plan.find("physical_plan").unwrap()..];
    println!("{plan}");
    let (join, filter) = (physical.find("HashJoinExec").unwrap(), physical.find("might_contain").unwrap());
    assert!(join < filter, "{plan}");
}

#[tokio::test]
async fn keys_that_two_tables_share() {
    let context = context(2);
    table(&context, "a", &[("k", integers(0..30_000))], 5);
    table(&context, "b", &[("k", integers(20_000..60_000))], 5);
    let sql = "SELECT approx_intersection_count(
        (SELECT quotient_filter_agg(k, 50000, 0.0001) FROM a), (SELECT quotient_filter_agg(k, 50000, 0.0001) FROM b))";
    let shared = number(&context, sql).await;
    assert!((10_000..10_020).contains(&shared), "{shared}");
}
