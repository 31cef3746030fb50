//! TPC-H with screened joins and without.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use datafusion::error::Result;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::tpch;

use crate::answers::Answer;
use crate::{parse, wrong};

/// A way to run joins.
#[derive(Debug)]
struct Way {
    name: &'static str,
    ours: bool,
    /// Whether joins on dense integers get bitmaps.
    bitmaps: bool,
    /// Whether the engine's dynamic filters are on.
    engines: bool,
    /// Whether scans drop rows, in addition to row groups and pages.
    rows_in_scan: bool,
}

const WAYS: [Way; 6] = [
    Way { name: "neither", ours: false, bitmaps: false, engines: false, rows_in_scan: false },
    Way { name: "engine", ours: false, bitmaps: false, engines: true, rows_in_scan: false },
    Way { name: "ours", ours: true, bitmaps: true, engines: true, rows_in_scan: false },
    Way { name: "bloom", ours: true, bitmaps: false, engines: true, rows_in_scan: false },
    Way { name: "engine-in-scan", ours: false, bitmaps: false, engines: true, rows_in_scan: true },
    Way { name: "ours-in-scan", ours: true, bitmaps: true, engines: true, rows_in_scan: true },
];

/// Options of the measurement.
#[derive(Debug)]
pub struct Options {
    folder: PathBuf,
    rounds: usize,
    partitions: usize,
    /// Whether both sides of all joins are exchanged.
    partitioned: bool,
    ways: Vec<&'static Way>,
    answers: Option<PathBuf>,
    queries: Vec<usize>,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>, partitions: usize) -> Result<Options> {
        let folder = parse(arguments.next(), "FOLDER")?;
        let ways = WAYS[..3].iter().collect();
        let mut options =
            Options { folder, rounds: 5, partitions, partitioned: false, ways, answers: None, queries: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => options.rounds = parse(arguments.next(), "number of rounds")?,
                "--partitions" => options.partitions = parse(arguments.next(), "number of partitions")?,
                "--partitioned" => options.partitioned = true,
                "--answers" => options.answers = Some(parse(arguments.next(), "FOLDER")?),
                "--ways" => options.ways = ways_of(&parse::<String>(arguments.next(), "way")?)?,
                _ => options.queries.push(parse(Some(argument), "number of a query")?),
            }
        }
        Ok(options)
    }
}

fn ways_of(names: &str) -> Result<Vec<&'static Way>> {
    let way =
        |name: &str| WAYS.iter().find(|way| way.name == name).ok_or_else(|| wrong(&format!("{name:?} is no way")));
    names.split(',').map(way).collect()
}

/// Median costs of one way.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    seconds: f64,
    processor: f64,
}

/// Measures and prints, query by query.
pub async fn measure(options: &Options) -> Result<()> {
    let names: Vec<&str> = options.ways.iter().map(|way| way.name).collect();
    let costs = names.iter().map(|name| format!("{name}: s")).chain(names.iter().map(|name| format!("{name}: cpu s")));
    println!(
        "| query | {} | s of last / of its left | cpu | dropped of asked |",
        costs.collect::<Vec<_>>().join(" | ")
    );
    println!("| --- |{}", " ---: |".repeat(2 * names.len() + 3));
    let mut contexts = Vec::new();
    for way in &options.ways {
        contexts.push(context(options, way).await?);
    }
    let (mut sums, mut ratios) = (vec![Cost::default(); names.len()], Vec::new());
    for (i, query) in tpch::queries().into_iter().enumerate() {
        if !options.queries.is_empty() && !options.queries.contains(&(i + 1)) {
            continue;
        }
        let (costs, counts) = in_turns(options, &contexts, i + 1, query).await?;
        sums.iter_mut().zip(&costs).for_each(|(sum, cost)| {
            sum.seconds += cost.seconds;
            sum.processor += cost.processor;
        });
        let (seconds, _) = print(&format!("{}", i + 1), &costs, &format!("{} of {}", counts[0], counts[1]));
        ratios.push((seconds, i + 1));
    }
    print("all", &sums, "");
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let [(best, first), .., (worst, last)] = ratios[..] {
        println!("best: query {first}, {best:.3}; worst: query {last}, {worst:.3}");
    }
    Ok(())
}

/// Runs one query in all ways, round by round, so that the load of the machine affects all of them alike.
async fn in_turns(
    options: &Options,
    contexts: &[SessionContext],
    number: usize,
    query: &str,
) -> Result<(Vec<Cost>, [usize; 2])> {
    let (mut costs, mut counts) = (vec![(Vec::new(), Vec::new()); contexts.len()], [0; 2]);
    let mut expected: Option<Answer> = None;
    for round in 0..=options.rounds {
        for ((way, context), costs) in options.ways.iter().zip(contexts).zip(&mut costs) {
            let (started, before) = (Instant::now(), processor_seconds());
            let plan = context.sql(query).await?.create_physical_plan().await?;
            let batches = collect(plan.clone(), context.task_ctx()).await?;
            // The first round reads files.
            if round > 0 {
                costs.0.push(started.elapsed().as_secs_f64());
                costs.1.push(processor_seconds() - before);
            }
            if way.ours {
                counts = ["rows_dropped", "rows_asked"].map(|name| sum(&plan, "FilterBuildExec", name));
            }
            let answer = Answer::of(&batches)?;
            match &expected {
                Some(expected) if !expected.equals(&answer) => {
                    return Err(wrong(&format!("query {number} has another answer by the way {:?}", way.name)));
                }
                Some(_) => {}
                None => {
                    if let Some(folder) = &options.answers {
                        std::fs::create_dir_all(folder)?;
                        answer.write(&folder.join(format!("{number}.txt")))?;
                    }
                    expected = Some(answer);
                }
            }
        }
    }
    let cost = |(seconds, processor)| Cost { seconds: median(seconds), processor: median(processor) };
    Ok((costs.into_iter().map(cost).collect(), counts))
}

/// Prints a row; returns time and processor time of the last way relative to the one before it.
fn print(name: &str, costs: &[Cost], last: &str) -> (f64, f64) {
    let ratio = |of: fn(&Cost) -> f64| match costs {
        [.., before, ours] => of(ours) / of(before),
        _ => 1.0,
    };
    let ratios = (ratio(|cost| cost.seconds), ratio(|cost| cost.processor));
    let cells = costs.iter().map(|cost| cost.seconds).chain(costs.iter().map(|cost| cost.processor));
    let cells: Vec<String> = cells.map(|cost| format!("{cost:.3}")).collect();
    println!("| {name} | {} | {:.3} | {:.3} | {last} |", cells.join(" | "), ratios.0, ratios.1);
    ratios
}

async fn context(options: &Options, way: &Way) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.partitions)
        .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", way.engines)
        .set_bool("datafusion.execution.parquet.pushdown_filters", way.rows_in_scan);
    if options.partitioned {
        for threshold in ["hash_join_single_partition_threshold", "hash_join_single_partition_threshold_rows"] {
            config = config.set_usize(&format!("datafusion.optimizer.{threshold}"), 0);
        }
    }
    let mut context = SessionContext::new_with_config(config);
    if way.ours {
        warpset_datafusion::register_joins(&mut context);
        if !way.bitmaps {
            context.sql("SET warpset_joins.most_bitmap_bytes = 0").await?;
        }
    }
    tpch::register(&context, Path::new(&options.folder)).await?;
    Ok(context)
}

/// Sums the counter `name` over the operators with the given name.
pub fn sum(plan: &Arc<dyn ExecutionPlan>, operator: &str, name: &str) -> usize {
    let metrics = if plan.name() == operator { plan.metrics() } else { None };
    let value = |value: &MetricValue| if value.name() == name { value.as_usize() } else { 0 };
    let here: usize = metrics.iter().flat_map(|metrics| metrics.iter()).map(|metric| value(metric.value())).sum();
    here + plan.children().into_iter().map(|child| sum(child, operator, name)).sum::<usize>()
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the processor seconds of all threads of this process, from Linux's accounts.
fn processor_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let on_processor = |task: std::fs::DirEntry| {
        let account = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        account.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.filter_map(on_processor).sum::<f64>() / 1e9
}
