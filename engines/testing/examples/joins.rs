//! TPC-H with screened joins and without, one query after the other: `cargo run --release --example joins -- SCALE
//! [ROUNDS [QUERY...]]`. Prints medians in milliseconds, and how many rows the filters dropped.

use std::path::{Path, PathBuf};
use std::time::Instant;

use datafusion::error::Result;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::tpch;

/// What joins are screened by.
const WAYS: [(&str, bool, bool); 4] =
    [("neither", false, false), ("engine's", false, true), ("ours", true, true), ("ours, rows in scan", true, true)];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: f64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (scale, rounds) = (number(1.0), number(5.0) as usize);
    let only: Vec<usize> = arguments.map(|text| text.parse().expect("the number of a query")).collect();
    let folder = PathBuf::from(format!("{}/tpch-{scale}", std::env::temp_dir().display()));
    if !folder.exists() {
        std::fs::create_dir_all(&folder)?;
        tpch::write(&folder, scale, 1 << 17)?;
    }
    println!("| query | {} | ours / engine's | rows dropped of asked |", WAYS.map(|way| way.0).join(" | "));
    println!("| --- |{} ---: | ---: |", " ---: |".repeat(WAYS.len()));
    let mut sums = [0.0; WAYS.len()];
    for (i, query) in tpch::queries().into_iter().enumerate() {
        if !only.is_empty() && !only.contains(&(i + 1)) {
            continue;
        }
        let mut times = vec![Vec::new(); WAYS.len()];
        let mut counts = (0, 0);
        // Round by round, so that a busy machine is as busy for all of them.
        for round in 0..=rounds {
            for (way, times) in WAYS.iter().zip(&mut times) {
                let context = context(&folder, way).await?;
                let plan = context.sql(query).await?.create_physical_plan().await?;
                let start = Instant::now();
                collect(plan.clone(), context.task_ctx()).await?;
                if round > 0 {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                if way.0 == "ours" {
                    counts = (0, 0);
                    count(&plan, &mut counts);
                }
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        sums.iter_mut().zip(&medians).for_each(|(sum, median)| *sum += median);
        let cells: Vec<String> = medians.iter().map(|median| format!("{median:.1}")).collect();
        println!(
            "| {} | {} | {:.2} | {} of {} |",
            i + 1,
            cells.join(" | "),
            medians[2] / medians[1],
            counts.0,
            counts.1
        );
    }
    println!("| all | {} | {:.2} | |", sums.map(|sum| format!("{sum:.0}")).join(" | "), sums[2] / sums[1]);
    Ok(())
}

async fn context(folder: &Path, (name, ours, engine): &(&str, bool, bool)) -> Result<SessionContext> {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", *engine)
        .set_bool("datafusion.execution.parquet.pushdown_filters", name.ends_with("scan"));
    let mut context = SessionContext::new_with_config(config);
    if *ours {
        warpset_datafusion::register_joins(&mut context);
    }
    tpch::register(&context, folder).await?;
    Ok(context)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Adds up what the filters of a plan dropped, and what they were asked.
fn count(plan: &std::sync::Arc<dyn ExecutionPlan>, counts: &mut (usize, usize)) {
    if plan.name() == "FilterBuildExec" {
        for metric in plan.metrics().iter().flat_map(|metrics| metrics.iter()) {
            match metric.value() {
                MetricValue::Count { name, count } if name == "rows_dropped" => counts.0 += count.value(),
                MetricValue::Count { name, count } if name == "rows_asked" => counts.1 += count.value(),
                _ => {}
            }
        }
    }
    plan.children().into_iter().for_each(|child| count(child, counts));
}
