//! Positions of filters in plans, and their effects.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;

use crate::{config, counted, plan, run, screened, set, table};

const FACTS: i64 = 100_000;
const ITEMS: i64 = 10_007;

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

fn tables(context: &SessionContext) {
    let item = || integers((0..FACTS).map(|i| i * 31 % ITEMS));
    table(context, "sales", &[("item", item()), ("price", integers(0..FACTS))], 2, 20);
    let kind = integers((0..ITEMS).map(|i| i % 100));
    table(context, "items", &[("id", integers(0..ITEMS)), ("kind", kind)], 2, 2);
}

const QUERY: &str = "SELECT sum(price) FROM items JOIN sales ON id = item WHERE kind = 7";

/// Returns the names of the operators from the top.
fn operators(plan: &str) -> Vec<&str> {
    plan.lines()
        .filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).find(|word| word.ends_with("Exec")))
        .collect()
}

#[tokio::test]
async fn filters_stand_below_both_exchanges_and_drop_what_they_should() {
    let context = screened(config(2)).await;
    tables(&context);
    let text = plan(&context, QUERY).await;
    let operators = operators(&text);
    let below = |operator: &str| {
        let place = operators.iter().position(|name| *name == operator).unwrap_or_else(|| panic!("{text}"));
        operators[place - 1]
    };
    assert_eq!([below("FilterBuildExec"), below("FilterProbeExec")], ["RepartitionExec"; 2], "{text}");
    let (found, plan) = run(&context, QUERY).await.unwrap();
    let expected: i64 = (0..FACTS).filter(|i| i * 31 % ITEMS % 100 == 7).sum();
    assert_eq!(found, [expected.to_string()]);
    // The keys are dense enough for a bitmap, which no other row passes.
    let dropped = counted(&plan, "FilterProbeExec", "rows_dropped");
    assert_eq!(dropped, (0..FACTS).filter(|i| i * 31 % ITEMS % 100 != 7).count());
    assert_eq!(counted(&plan, "FilterBuildExec", "rows_dropped"), dropped);
    assert_eq!(counted(&plan, "FilterBuildExec", "rows_asked"), FACTS as usize);
    assert!((95..=105).contains(&counted(&plan, "FilterBuildExec", "keys")));
    assert_eq!(counted(&plan, "FilterBuildExec", "filter_bytes"), 1240);
    let analyzed = context.sql(&format!("EXPLAIN ANALYZE {QUERY}")).await.unwrap().to_string().await.unwrap();
    assert!(analyzed.contains("rows_dropped="), "{analyzed}");
}

#[tokio::test]
async fn one_setting_turns_it_off_and_what_does_not_pay_is_left_alone() {
    let context = screened(config(2)).await;
    tables(&context);
    let has_filter = async || plan(&context, QUERY).await.contains("FilterBuildExec");
    assert!(has_filter().await);
    set(&context, "enabled", "false").await;
    assert!(!has_filter().await);
    set(&context, "enabled", "true").await;
    set(&context, "least_probe_rows", "1000000").await;
    assert!(!has_filter().await);
    set(&context, "least_probe_rows", "1000").await;
    assert!(has_filter().await);
    // A filter for at most 400 keys does not pay for a join of items.
    set(&context, "most_filter_bytes", "32").await;
    assert!(!has_filter().await);
}

/// Joins with a large build side without any condition.
#[tokio::test]
async fn whole_tables_make_no_filter_unless_asked_to() {
    let context = screened(config(2)).await;
    table(&context, "a", &[("k", integers(0..150_000))], 2, 4);
    table(&context, "b", &[("k", integers(0..200_000))], 2, 4);
    let whole = "SELECT count(*) FROM a JOIN b ON a.k = b.k";
    let fewer = "SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE a.k % 7 = 0";
    set(&context, "every_build", "false").await;
    assert!(!plan(&context, whole).await.contains("FilterBuildExec"));
    assert!(plan(&context, fewer).await.contains("FilterBuildExec"));
    set(&context, "every_build", "true").await;
    assert!(plan(&context, whole).await.contains("FilterBuildExec"));
    // Every row has a partner, so the filter is suspended before the end.
    let (found, plan) = run(&context, "SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE b.k < 150000").await.unwrap();
    assert_eq!(found, ["150000"]);
    assert!(counted(&plan, "FilterBuildExec", "rows_unasked") > 50_000);
}

#[tokio::test]
async fn registering_twice_is_registering_once() {
    let mut context = SessionContext::new_with_config(config(2));
    tables(&context);
    let session = context.session_id();
    warpset_datafusion::register_joins(&mut context);
    set(&context, "least_probe_rows", "1").await;
    warpset_datafusion::register_joins(&mut context);
    assert_eq!(context.session_id(), session);
    let text = plan(&context, QUERY).await;
    assert_eq!(text.matches("FilterBuildExec").count(), 1, "{text}");
}

/// Writes `rows` keys as a Parquet file with Bloom filters and row groups of 1000, shuffled so that statistics prune
/// nothing.
fn parquet(path: &std::path::Path, rows: i64) {
    let k = integers((0..rows).map(|i| i / 1000 + i % 1000 * (rows / 1000)));
    let text: ArrayRef = Arc::new((0..rows).map(|i| Some(format!("row {i}"))).collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("k", k), ("t", text)]).unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(1000)).set_bloom_filter_enabled(true).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test]
async fn scans_prune_by_the_filter() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.parquet");
    parquet(&file, 100_000);
    for in_scan in [false, true] {
        let context = screened(config(2).set_bool("datafusion.execution.parquet.pushdown_filters", in_scan)).await;
        context.register_parquet("facts", &file.to_string_lossy(), Default::default()).await.unwrap();
        table(&context, "few", &[("id", integers([17, 50_017]))], 1, 1);
        let (found, plan) = run(&context, "SELECT t FROM few JOIN facts ON id = k").await.unwrap();
        assert_eq!(found.len(), 2);
        // Both keys are in the row group of their remainder, and the file's own filters exclude the others.
        let scanned = counted(&plan, "DataSourceExec", "output_rows");
        assert!(scanned <= 20_000, "{scanned}: {}", datafusion::physical_plan::displayable(plan.as_ref()).indent(true));
        let asked = counted(&plan, "FilterBuildExec", "rows_asked");
        assert!(asked > 0 && asked <= 20_000, "{asked}");
        // If the scan drops rows, there is no operator for it.
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
        assert_eq!(text.contains("FilterProbeExec"), !in_scan, "{text}");
        // Without any key, nothing is read.
        let (found, plan) = run(&context, "SELECT t FROM few JOIN facts ON id = k WHERE id < 0").await.unwrap();
        assert!(found.is_empty());
        assert_eq!(counted(&plan, "DataSourceExec", "output_rows"), 0);
    }
}

/// Checks that a scan with a limit skips no rows.
#[tokio::test]
async fn scans_with_a_limit_are_not_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sorted.parquet");
    let batch = RecordBatch::try_from_iter([("k", integers(0..10_000))]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    let mut writer = ArrowWriter::try_new(File::create(&file).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for (partitions, in_scan) in [(1, false), (2, true), (2, false)] {
        let config = config(partitions).set_bool("datafusion.execution.parquet.pushdown_filters", in_scan);
        let context = screened(config).await;
        let create = format!(
            "CREATE EXTERNAL TABLE sorted (k BIGINT) STORED AS PARQUET WITH ORDER (k ASC) LOCATION '{}'",
            file.display()
        );
        context.sql(&create).await.unwrap();
        table(&context, "few", &[("id", integers([3, 5017]))], 1, 1);
        for limited in
            ["SELECT k FROM sorted ORDER BY k LIMIT 7", "SELECT k FROM sorted WHERE k >= 0 ORDER BY k LIMIT 7"]
        {
            let sql = format!("SELECT id FROM few JOIN ({limited}) ON id = k");
            let (found, _) = run(&context, &sql).await.unwrap();
            assert_eq!(found, ["3"], "{}", plan(&context, &sql).await);
            assert!(plan(&context, &sql).await.contains("FilterBuildExec"));
        }
    }
}

#[tokio::test]
async fn plans_never_print_a_filter() {
    let context = screened(config(2)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.parquet");
    parquet(&file, 20_000);
    context.register_parquet("facts", &file.to_string_lossy(), Default::default()).await.unwrap();
    table(&context, "many", &[("id", integers(0..10_000))], 1, 1);
    let query = "EXPLAIN ANALYZE SELECT count(*) FROM many JOIN facts ON id = k";
    let text = context.sql(query).await.unwrap().to_string().await.unwrap();
    assert!(text.contains("keys_may_match(k@") && text.len() < 40_000, "{text}");
}
