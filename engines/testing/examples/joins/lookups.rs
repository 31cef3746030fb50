//! Costs of a lookup per row.

use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::tpch::{median, sum};

/// Measures joins without any partner, so that lookups are the only work.
pub async fn measure(rounds: usize) -> Result<()> {
    println!("| MB | nanoseconds per lookup: median | least | per key of the build: median |");
    println!("| ---: | ---: | ---: | ---: |");
    for megabytes in [1, 10, 100] {
        let keys = megabytes * 8_000_000 / 11;
        let mut context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        warpset_datafusion::register_joins(&mut context);
        for setting in ["every_build = true", "most_filter_bytes = 200000000", "least_probe_rows = 0"] {
            context.sql(&format!("SET warpset_joins.{setting}")).await?;
        }
        let rows = keys.max(20_000_000);
        // Odd keys and even probes, both shuffled.
        for (table, count, odd) in [("keys", keys, 1), ("probes", rows, 0)] {
            let value = format!("(value * 7919 % {count}) * 2 + {odd}");
            let rows = format!("CREATE TABLE {table} AS SELECT {value} AS k FROM range({count})");
            context.sql(&rows).await?.collect().await?;
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
        let least = lookup.iter().copied().fold(f64::INFINITY, f64::min);
        println!("| {megabytes} | {:.2} | {least:.2} | {:.1} |", median(lookup), median(build));
    }
    Ok(())
}
