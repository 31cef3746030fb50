//! Joins screened by subqueries: equal answers, and positions of the filters.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::tpch;

use crate::{config, plan, rows, set, table};

/// Returns a context that screens all joins that qualify by subqueries.
pub async fn screened(config: SessionConfig) -> SessionContext {
    let mut context = SessionContext::new_with_config(config);
    warpset_datafusion::register_all(&mut context).unwrap();
    let state = warpset_datafusion::screen_by_subquery(context.state());
    let context = SessionContext::new_with_state(warpset_datafusion::screen_by_subquery(state));
    for (setting, value) in [("subqueries", "true"), ("least_probe_rows", "0"), ("every_build", "true")] {
        set(&context, setting, value).await;
    }
    context
}

#[tokio::test]
async fn tpch_has_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    tpch::write(folder.path(), 0.01, 2048, 1).unwrap();
    let plain = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    // The setting of engines with distributed plans.
    let joins = "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery";
    let context = screened(config(2).set_bool(joins, false)).await;
    for context in [&plain, &context] {
        tpch::register(context, folder.path()).await.unwrap();
    }
    let mut filters = Vec::new();
    for query in tpch::queries() {
        let expected = rows(&plain, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let found = rows(&context, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(found, expected, "{query}");
        filters.push(plan(&context, query).await.matches("filter=might_contain").count());
    }
    assert!(filters.iter().filter(|filters| **filters > 0).count() >= 14, "{filters:?}");
}

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// Returns a context with a large table and a small one.
async fn with_tables() -> SessionContext {
    let context = screened(config(2)).await;
    set(&context, "every_build", "false").await;
    let item = integers((0..50_000).map(|i| i * 31 % 5003));
    table(&context, "sales", &[("item", item), ("price", integers(0..50_000))], 2, 8);
    table(&context, "items", &[("id", integers(0..5003)), ("kind", integers((0..5003).map(|i| i % 100)))], 2, 2);
    context
}

#[tokio::test]
async fn the_filter_stands_on_the_larger_table_and_is_made_of_the_smaller_one() {
    let context = with_tables().await;
    for query in [
        "SELECT sum(price) FROM items JOIN sales ON id = item WHERE kind = 7",
        "SELECT sum(price) FROM sales JOIN items ON id = item WHERE kind = 7",
        "SELECT sum(price) FROM sales WHERE item IN (SELECT id FROM items WHERE kind = 7)",
        "SELECT sum(n) FROM items JOIN (SELECT item, count(*) AS n FROM sales GROUP BY item) ON id = item WHERE kind = 7",
        "SELECT count(a.price) FROM sales AS a JOIN sales AS b ON a.price = b.price JOIN items ON id = a.item WHERE kind = 7",
    ] {
        let text = plan(&context, query).await;
        // From the top: the query's join, the filter, then its own table and the large one.
        let lines: Vec<&str> = text.lines().collect();
        let place = lines
            .iter()
            .position(|line| line.contains("NestedLoopJoinExec") && line.contains("filter=might_contain"))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(lines[..place].iter().any(|line| line.contains("HashJoinExec")), "{text}");
        assert!(lines[place].contains("join_type=RightSemi"), "{text}");
        assert!(lines[place..].iter().any(|line| line.contains("aggr=[sized_filter_agg")), "{text}");
        assert_eq!(text.matches("filter=might_contain").count(), 1, "{text}");
    }
}

#[tokio::test]
async fn joins_that_do_not_pay_or_may_not_lose_rows_are_left_alone() {
    let context = with_tables().await;
    let screened = async |query: &str| plan(&context, query).await.contains("might_contain");
    for query in [
        // No condition on the small table; all rows of the large one count; NULL has its own rules.
        "SELECT sum(price) FROM items JOIN sales ON id = item",
        "SELECT sum(price), sum(kind) FROM sales LEFT JOIN (SELECT * FROM items WHERE kind = 7) ON id = item",
        "SELECT sum(price) FROM sales WHERE item NOT IN (SELECT id FROM items WHERE kind = 7)",
        "SELECT sum(price) FROM sales JOIN items ON id IS NOT DISTINCT FROM item WHERE kind = 7",
        // Two scans of the small table would differ.
        "SELECT sum(price) FROM items JOIN sales ON id = item WHERE kind = 7 AND random() < 0.5",
        "SELECT sum(price) FROM (SELECT id FROM items WHERE kind < 50 LIMIT 70) JOIN sales ON id = item",
    ] {
        assert!(!screened(query).await, "{query}");
    }
    let query = "SELECT sum(price) FROM items JOIN sales ON id = item WHERE kind = 7";
    assert!(screened(query).await);
    for (setting, value, default) in
        [("subqueries", "false", "true"), ("enabled", "false", "true"), ("least_probe_rows", "50001", "0")]
    {
        set(&context, setting, value).await;
        assert!(!screened(query).await, "{setting}");
        set(&context, setting, default).await;
    }
    // A table that is sent to all partitions saves no exchange.
    let threshold = "SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 100000";
    context.sql(threshold).await.unwrap();
    assert!(!screened(query).await);
}

#[tokio::test]
async fn no_keys_and_too_many_keys() {
    let context = with_tables().await;
    let query = |condition: &str| {
        format!(
            "SELECT count(*), count(kind) FROM (SELECT * FROM items WHERE {condition}) RIGHT JOIN sales ON id = item"
        )
    };
    assert_eq!(rows(&context, &query("kind > 100")).await.unwrap(), ["50000|0"]);
    let query = |condition: &str| format!("SELECT count(*) FROM items JOIN sales ON id = item WHERE {condition}");
    assert_eq!(rows(&context, &query("kind > 100")).await.unwrap(), ["0"]);
    set(&context, "most_filter_bytes", "32").await;
    let all = (0..50_000i64).filter(|i| i * 31 % 5003 % 100 < 50).count();
    assert_eq!(rows(&context, &query("kind < 50")).await.unwrap(), [all.to_string()]);
}
