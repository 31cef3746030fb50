//! TPC-H with screened joins and without, one query after the other: `cargo run --release --example joins -- SCALE
//! [ROUNDS [QUERY...]]`. Prints the least processor milliseconds, which a busy machine changes less than the time, and
//! how many rows the filters dropped. With a scale of 0: what a lookup costs per row in filters of 1 to 100 MB, one
//! thread (`RAYON_NUM_THREADS=1` for builds, too).

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    if scale == 0.0 {
        return lookups(rounds).await;
    }
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
        let mut counts = [0; 2];
        // Round by round, so that a busy machine is as busy for all of them.
        for round in 0..=rounds {
            for (way, times) in WAYS.iter().zip(&mut times) {
                let context = context(&folder, way).await?;
                let plan = context.sql(query).await?.create_physical_plan().await?;
                let start = processor_milliseconds();
                collect(plan.clone(), context.task_ctx()).await?;
                if round > 0 {
                    times.push(processor_milliseconds() - start);
                }
                if way.0 == "ours" {
                    counts = ["rows_dropped", "rows_asked"].map(|name| sum(&plan, "FilterBuildExec", name));
                }
            }
        }
        let least: Vec<f64> = times.into_iter().map(least).collect();
        sums.iter_mut().zip(&least).for_each(|(sum, time)| *sum += time);
        let cells: Vec<String> = least.iter().map(|time| format!("{time:.1}")).collect();
        println!("| {} | {} | {:.2} | {} of {} |", i + 1, cells.join(" | "), least[2] / least[1], counts[0], counts[1]);
    }
    println!("| all | {} | {:.2} | |", sums.map(|sum| format!("{sum:.0}")).join(" | "), sums[2] / sums[1]);
    Ok(())
}

/// Joins of which no row of the probe side has a partner, so that lookups are all that is done for them.
async fn lookups(rounds: usize) -> Result<()> {
    println!("| MB | nanoseconds per lookup | nanoseconds per key of the build |\n| ---: | ---: | ---: |");
    for megabytes in [1, 10, 100] {
        let keys = megabytes * 8_000_000 / 11;
        let mut context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        warpset_datafusion::register_joins(&mut context);
        for setting in ["every_build = true", "most_filter_bytes = 200000000", "least_probe_rows = 0"] {
            context.sql(&format!("SET warpset_joins.{setting}")).await?;
        }
        let rows = keys.max(20_000_000);
        // Odd keys, even probes, both in an order of their own.
        for (table, count, odd) in [("keys", keys, 1), ("probes", rows, 0)] {
            let value = format!("(value * 7919 % {count}) * 2 + {odd}");
            context
                .sql(&format!("CREATE TABLE {table} AS SELECT {value} AS k FROM range({count})"))
                .await?
                .collect()
                .await?;
        }
        let (mut lookup, mut build) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let query = "SELECT count(*) FROM keys JOIN probes ON keys.k = probes.k";
            let plan = context.sql(query).await?.create_physical_plan().await?;
            collect(plan.clone(), context.task_ctx()).await?;
            let time = |operator: &str, name: &str| sum(&plan, operator, name) as f64;
            let asked = time("FilterBuildExec", "rows_asked");
            lookup.push(time("FilterProbeExec", "lookup_time") / asked);
            build.push(time("FilterBuildExec", "elapsed_compute") / keys as f64);
        }
        println!("| {megabytes} | {:.1} | {:.1} |", least(lookup), least(build));
    }
    Ok(())
}

/// What the operators of a name counted under a name.
fn sum(plan: &Arc<dyn ExecutionPlan>, operator: &str, name: &str) -> usize {
    let metrics = if plan.name() == operator { plan.metrics() } else { None };
    let value = |value: &MetricValue| if value.name() == name { value.as_usize() } else { 0 };
    let here: usize = metrics.iter().flat_map(|metrics| metrics.iter()).map(|metric| value(metric.value())).sum();
    here + plan.children().into_iter().map(|child| sum(child, operator, name)).sum::<usize>()
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

/// What all threads of this process have been on a processor, by Linux' account of them.
fn processor_milliseconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let on_processor = |task: std::fs::DirEntry| {
        let account = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        account.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.filter_map(on_processor).sum::<f64>() / 1e6
}

fn least(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}
