//! Two genomes: one screened against the other, as the Bloom filters do it; then what those cannot: the other one added,
//! the common part counted, and taken out again, without a trace.

use indicatif::HumanCount;
use warpset::quotient::gpu::StandardQuotientFilter as DeviceFilter;
use warpset::quotient::{Duplicates, StandardBuilder, StandardQuotientFilter};

use super::super::clock::median_seconds;
use super::super::machine;
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::super::table::{grid, rate};
use super::as_expected;

/// The rate of false positives that every filter is built for.
const FPR: f64 = 0.01;

/// The steps: not for the emulator.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let targets: Vec<Target> = setup.targets.iter().filter(|target| !target.is_emulator()).cloned().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    vec![Step::new("quotient: genome screen", move |session| genomes(session, &targets))]
}

/// A reference, and the keys of a sample, those of the reference first.
struct Screen<'a> {
    title: String,
    reference: &'a [u64],
    asked: Vec<u64>,
    shared: usize,
}

/// What a filter said.
struct Said {
    name: String,
    on: String,
    bits_per_key: f64,
    answers: Vec<bool>,
    fpr: f64,
    build: f64,
    query: f64,
}

fn genomes(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let Some((reference, samples)) = input.genomes.split_first() else { return Ok(()) };
    for sample in samples {
        let (mut asked, absent) = sample.screen(reference);
        let shared = asked.len();
        asked.extend(absent);
        let title = format!("{} in {}", sample.name, reference.name);
        let screen = Screen { title, reference: &reference.distinct, asked, shared };
        let mut lines = vec![truth(&screen)];
        for target in targets {
            let said = match target {
                Target::Cpu => on_cpu(session, &screen)?,
                Target::Gpu(device) => on_device(session, device, &screen)?,
            };
            lines.push(line(session, target, &screen, said));
        }
        if targets.contains(&Target::Cpu) {
            let said = by_peer(session, &screen)?;
            lines.push(line(session, &Target::Cpu, &screen, said));
        }
        let header = ["filter", "on", "bits/key", "says yes", "missed", "false positives", "expected", "built, keys/s"];
        let header = header.into_iter().chain(["queries/s"]).map(String::from).collect();
        let title = format!(
            "Which of {} distinct 31-mers of {} are in {} ({} distinct)? Quotient filters for {} % false positives.",
            HumanCount(screen.asked.len() as u64),
            sample.name,
            reference.name,
            HumanCount(reference.distinct.len() as u64),
            100.0 * FPR
        );
        session.print(&grid(&title, header, lines));
        if targets.contains(&Target::Cpu) {
            forget(session, &screen)?;
        }
    }
    Ok(())
}

fn truth(screen: &Screen<'_>) -> Vec<String> {
    let shared = HumanCount(screen.shared as u64).to_string();
    ["(the truth)", "", "", &shared, "0", "0", "", "", ""].map(String::from).into()
}

fn on_cpu(session: &mut Session, screen: &Screen<'_>) -> anyhow::Result<Said> {
    let builder = StandardQuotientFilter::builder(screen.reference.len() as u64).fpr(FPR);
    let mut filter = builder.build()?;
    let build = session.time(
        Threads::All,
        &mut filter,
        |_| Ok(()),
        |filter| {
            *filter = builder.build_from(screen.reference)?;
            Ok(())
        },
    )?;
    let mut answers = vec![false; screen.asked.len()];
    let ask = |answers: &mut Vec<bool>| Ok(filter.contains_bulk_into(&screen.asked, answers)?);
    let query = session.time(Threads::All, &mut answers, |_| Ok(()), ask)?;
    Ok(Said {
        name: "quotient filter".into(),
        on: "cpu".into(),
        bits_per_key: 8.0 * filter.memory_bytes() as f64 / screen.reference.len() as f64,
        answers,
        fpr: filter.fpr(),
        build,
        query,
    })
}

/// From host memory and back, with the copies.
fn on_device(session: &mut Session, device: &warpset::gpu::Device, screen: &Screen<'_>) -> anyhow::Result<Said> {
    let layout = StandardQuotientFilter::builder(screen.reference.len() as u64).fpr(FPR).layout()?;
    let mut filter = StandardBuilder::with_layout(layout).on(device).build()?;
    let build = |filter: &mut DeviceFilter| {
        *filter = StandardBuilder::with_layout(layout).on(device).build_from(screen.reference)?;
        Ok(())
    };
    let build = median_seconds(session.effort, &mut filter, |_| Ok(()), build)?;
    let mut answers = Vec::new();
    let ask = |answers: &mut Vec<bool>| {
        *answers = filter.contains_bulk(&screen.asked)?;
        Ok(())
    };
    let query = median_seconds(session.effort, &mut answers, |_| Ok(()), ask)?;
    let host = filter.to_host()?;
    let same = host == StandardBuilder::with_layout(layout).build_from(screen.reference)?;
    session.verify(same, || format!("{}: the device's filter differs from the CPU's", screen.title));
    Ok(Said {
        name: "quotient filter".into(),
        on: "cuda".into(),
        bits_per_key: 8.0 * filter.memory_bytes() as f64 / screen.reference.len() as f64,
        answers,
        fpr: host.fpr(),
        build,
        query,
    })
}

fn by_peer(session: &mut Session, screen: &Screen<'_>) -> anyhow::Result<Said> {
    use rayon::prelude::*;
    let mut filter = qfilter::Filter::new(screen.reference.len() as u64, FPR)?;
    // One thread: it has no way to use several.
    let build = session.time(
        Threads::One,
        &mut filter,
        |filter| {
            filter.clear();
            Ok(())
        },
        |filter| {
            for key in screen.reference {
                filter.insert(key)?;
            }
            Ok(())
        },
    )?;
    let mut answers = vec![false; screen.asked.len()];
    let ask = |answers: &mut Vec<bool>| {
        let share = screen.asked.len().div_ceil(rayon::current_num_threads()).max(1);
        answers.par_chunks_mut(share).zip(screen.asked.par_chunks(share)).for_each(|(answers, keys)| {
            answers.iter_mut().zip(keys).for_each(|(answer, key)| *answer = filter.contains(key));
        });
        Ok(())
    };
    let query = session.time(Threads::All, &mut answers, |_| Ok(()), ask)?;
    let fpr = filter.len() as f64 / 2f64.powi(i32::from(filter.fingerprint_size()));
    Ok(Said {
        name: format!("qfilter {}", machine::version("qfilter")),
        on: "cpu".into(),
        bits_per_key: 8.0 * filter.memory_usage() as f64 / screen.reference.len() as f64,
        answers,
        fpr,
        build,
        query,
    })
}

/// Holds the answers against the truth; makes the rows and the line of the table.
fn line(session: &mut Session, target: &Target, screen: &Screen<'_>, said: Said) -> Vec<String> {
    let (inside, outside) = said.answers.split_at(screen.shared);
    let missed = inside.iter().filter(|answer| !**answer).count();
    let false_positives = outside.iter().filter(|answer| **answer).count();
    // What is stored, as a share of all fingerprints: the load times 2^-r.
    let expected = said.fpr * outside.len() as f64;
    let yes = inside.len() - missed + false_positives;
    let right = session.verify(missed == 0 && as_expected(false_positives, expected), || {
        format!(
            "{}: {} missed {missed}, {false_positives} false positives, {expected:.1} expected",
            screen.title, said.name
        )
    });
    let label = if said.name.starts_with("qfilter") { "implementation" } else { "variant" };
    let threads = if label == "implementation" { Threads::One } else { Threads::All };
    let row = |operation: &str, n: usize, seconds: f64| {
        let row = Record::new("quotient", operation, n).time(seconds).param(label, said.name.clone());
        let mut row = row.param("input", screen.title.clone()).param("key", "u64");
        row.bits_per_item = Some(said.bits_per_key);
        row.checked = right;
        row
    };
    session.push_on(target, row("build", screen.reference.len(), said.build), threads);
    let mut query = row("screen", screen.asked.len(), said.query);
    query = query.param("truth", screen.shared).param("said", yes).param("false_positives", false_positives);
    query = query.param("expected", expected);
    query.fpr = (!outside.is_empty()).then(|| false_positives as f64 / outside.len() as f64);
    session.push_on(target, query, Threads::All);
    let count = |n: usize| HumanCount(n as u64).to_string();
    vec![
        said.name,
        said.on,
        format!("{:.2}", said.bits_per_key),
        count(yes),
        count(missed),
        count(false_positives),
        format!("{expected:.1}"),
        rate(screen.reference.len() as f64 / said.build),
        rate(screen.asked.len() as f64 / said.query),
    ]
}

/// The other genome comes, is compared, and goes again: multisets, so that no key takes another along.
fn forget(session: &mut Session, screen: &Screen<'_>) -> anyhow::Result<()> {
    let keys = screen.reference.len() + screen.asked.len();
    let builder = StandardQuotientFilter::builder(keys as u64).fpr(FPR).duplicates(Duplicates::Kept);
    let pool = |session: &Session, keys: &[u64]| session.pool(Threads::All).install(|| builder.build_from(keys));
    let (alone, other) = (pool(session, screen.reference)?, pool(session, &screen.asked)?);
    let push = |session: &mut Session, operation: &str, n: usize, seconds: f64, right: bool, items: u64| {
        let mut row = Record::new("quotient", operation, n).time(seconds).param("variant", "quotient filter, multiset");
        row = row.param("input", screen.title.clone()).param("key", "u64");
        row.bits_per_item = Some(8.0 * alone.memory_bytes() as f64 / items.max(1) as f64);
        row.checked = session.verify(right, || format!("{}: {operation} left a wrong filter", screen.title));
        session.push_on(&Target::Cpu, row, Threads::All);
    };
    let again = |before: &StandardQuotientFilter| {
        let before = before.clone();
        move |filter: &mut StandardQuotientFilter| {
            filter.clone_from(&before);
            Ok(())
        }
    };

    let mut both = alone.clone();
    let insert = |filter: &mut StandardQuotientFilter| {
        filter.insert_bulk(&screen.asked)?;
        Ok(())
    };
    let seconds = session.time(Threads::All, &mut both, again(&alone), insert)?;
    let right = both.len() as usize == keys && both.count_contained_bulk(&screen.asked) == screen.asked.len();
    push(session, "insert", screen.asked.len(), seconds, right, both.len());

    let mut merged = alone.clone();
    let seconds = session.time(Threads::All, &mut merged, again(&alone), |filter| Ok(filter.merge(&other)?))?;
    push(session, "merge", keys, seconds, merged == both, both.len());

    let mut common = 0;
    let count = |common: &mut u64| {
        *common = alone.intersection_count(&other)?;
        Ok(())
    };
    let seconds = session.time(Threads::All, &mut common, |_| Ok(()), count)?;
    // Those that both have, and those of the rest whose fingerprints happen to be equal.
    let by_chance = alone.fpr() * (screen.asked.len() - screen.shared) as f64;
    let extra = (common as usize).saturating_sub(screen.shared);
    let right = common as usize >= screen.shared && as_expected(extra, by_chance);
    push(session, "intersection count", keys, seconds, right, alone.len());

    let mut left = both.clone();
    let remove = |filter: &mut StandardQuotientFilter| {
        filter.remove_bulk(&screen.asked);
        Ok(())
    };
    let seconds = session.time(Threads::All, &mut left, again(&both), remove)?;
    push(session, "remove", screen.asked.len(), seconds, left == alone, both.len());

    let count = |n: usize| HumanCount(n as u64).to_string();
    session.print(&format!(
        "The second genome inserted: {} fingerprints. In both: {} of {} (truth {}, {:.1} more by chance). Removed again: \
         {} fingerprints, byte for byte the filter of the first genome{}.\n",
        count(both.len() as usize),
        count(common as usize),
        count(screen.asked.len()),
        count(screen.shared),
        by_chance,
        count(left.len() as usize),
        if left == alone { "" } else { " (WRONG: it is not)" }
    ));
    Ok(())
}
