//! Two genomes: one screened against the other, as the Bloom filters do it; then what those cannot: the other one
//! added, the common part counted, and taken out again, without a trace.

use indicatif::HumanCount;
use rayon::prelude::*;
use warpset::gpu::Device;
use warpset::prelude::{Filter, Insert, Remove};
use warpset::quotient::gpu::StandardQuotientFilter as DeviceFilter;
use warpset::quotient::{Duplicates, StandardBuilder, StandardQuotientFilter};

use super::as_expected;
use super::subject::Kind;
use bench_frame::clock::median_seconds;
use bench_frame::screen::{FPR, Said, Screen};
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Makes the steps: not for the emulator.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let targets: Vec<Target> = setup.targets.iter().filter(|target| !target.is_emulator()).cloned().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    vec![Step::new("quotient: genome screen", move |session| genomes(session, &targets))]
}

fn genomes(session: &mut Session, targets: &[Target]) -> anyhow::Result<()> {
    let input = session.input();
    let Some((reference, samples)) = input.genomes.split_first() else { return Ok(()) };
    for sample in samples {
        let (screen, asked) = Screen::of_genomes("quotient", reference, sample);
        let mut lines = Vec::new();
        for target in targets {
            let said = match target {
                Target::Cpu => on_cpu(session, &reference.distinct, &asked)?,
                Target::Gpu(device) => on_device(session, device, &reference.distinct, &asked)?,
            };
            lines.push(screen.judge(session, target, &with_fpr(said, &screen)));
        }
        if targets.contains(&Target::Cpu) {
            let said = by_peer(session, &reference.distinct, &asked)?;
            lines.push(screen.judge(session, &Target::Cpu, &with_fpr(said, &screen)));
        }
        screen.print(session, lines);
        if targets.contains(&Target::Cpu) {
            forget(session, &screen, &reference.distinct, &asked)?;
        }
    }
    Ok(())
}

/// Adds the expected false positives of absent keys: the share of stored fingerprints among all.
fn with_fpr((said, fpr): (Said, f64), screen: &Screen<'_>) -> Said {
    Said { expected: Some(fpr * (screen.asked - screen.shared) as f64), ..said }
}

fn said(inserted: usize, build: f64, query: f64, bytes: u64, answers: Vec<bool>) -> Said {
    Said {
        name: "quotient filter".into(),
        peer: false,
        operation: "build",
        inserted,
        threads: Threads::All,
        build,
        query,
        bits: 8.0 * bytes as f64,
        hashes: None,
        expected: None,
        agrees: as_expected,
        answers,
    }
}

fn on_cpu(session: &mut Session, keys: &[u64], asked: &[u64]) -> anyhow::Result<(Said, f64)> {
    let builder = StandardQuotientFilter::builder(keys.len() as u64).fpr(FPR);
    let (build, filter) = session.made(Threads::All, || Ok(builder.build_from(keys)?))?;
    let mut answers = vec![false; asked.len()];
    let query = session.time(Threads::All, &mut answers, |answers| Ok(filter.contains_bulk_into(asked, answers)?))?;
    Ok((said(keys.len(), build, query, filter.memory_bytes(), answers), filter.fpr()))
}

/// Measures from host memory and back, with the copies.
fn on_device(session: &mut Session, device: &Device, keys: &[u64], asked: &[u64]) -> anyhow::Result<(Said, f64)> {
    let layout = StandardQuotientFilter::builder(keys.len() as u64).fpr(FPR).layout()?;
    let mut filter = StandardBuilder::with_layout(layout).on(device).build()?;
    let build = |filter: &mut DeviceFilter| {
        *filter = StandardBuilder::with_layout(layout).on(device).build_from(keys)?;
        Ok(())
    };
    let build = median_seconds(session.effort, &mut filter, |_| Ok(()), build)?;
    let mut answers = Vec::new();
    let ask = |answers: &mut Vec<bool>| {
        *answers = filter.contains_bulk(asked)?;
        Ok(())
    };
    let query = median_seconds(session.effort, &mut answers, |_| Ok(()), ask)?;
    let host = filter.to_host()?;
    let same = host == StandardBuilder::with_layout(layout).build_from(keys)?;
    session.verify(same, || "genome screen: the device's filter differs from the CPU's".into());
    Ok((said(keys.len(), build, query, filter.memory_bytes(), answers), host.fpr()))
}

fn by_peer(session: &mut Session, keys: &[u64], asked: &[u64]) -> anyhow::Result<(Said, f64)> {
    let mut filter = qfilter::Filter::new(keys.len() as u64, FPR)?;
    // One thread: it has no way to use several.
    let clear = |filter: &mut qfilter::Filter| {
        filter.clear();
        Ok(())
    };
    let build = session.time_after(Threads::One, &mut filter, clear, |filter| {
        for key in keys {
            filter.insert(key)?;
        }
        Ok(())
    })?;
    let mut answers = vec![false; asked.len()];
    let query = session.time(Threads::All, &mut answers, |answers| {
        let share = asked.len().div_ceil(rayon::current_num_threads()).max(1);
        answers.par_chunks_mut(share).zip(asked.par_chunks(share)).for_each(|(answers, keys)| {
            answers.iter_mut().zip(keys).for_each(|(answer, key)| *answer = filter.contains(key));
        });
        Ok(())
    })?;
    let fpr = filter.len() as f64 / 2f64.powi(i32::from(filter.fingerprint_size()));
    let ours = said(keys.len(), build, query, filter.memory_usage() as u64, answers);
    Ok((Said { name: Kind::Qfilter.name(), peer: true, threads: Threads::One, ..ours }, fpr))
}

/// Inserts the other genome, compares, and removes it again: multisets, so that removing a key leaves its equals.
fn forget(session: &mut Session, screen: &Screen<'_>, reference: &[u64], asked: &[u64]) -> anyhow::Result<()> {
    let keys = reference.len() + asked.len();
    let builder = StandardQuotientFilter::builder(keys as u64).fpr(FPR).duplicates(Duplicates::Kept);
    let build = |keys: &[u64]| session.pool(Threads::All).install(|| builder.build_from(keys));
    let (alone, other) = (build(reference)?, build(asked)?);
    let bits = 8.0 * alone.memory_bytes() as f64;
    let push = |session: &mut Session, operation: &str, n: usize, seconds: f64, right: bool, items: u64| {
        let row = Record::new("quotient", operation, n).time(seconds).by("quotient filter, multiset", false);
        let mut row = row.param("input", screen.input.clone()).param("key", "u64");
        row.bits_per_item = Some(bits / items.max(1) as f64);
        session.add(&Target::Cpu, Threads::All, row, right);
    };

    let mut both = alone.clone();
    let seconds = session.time_change(Threads::All, &alone, &mut both, |filter| {
        filter.insert_bulk(asked)?;
        Ok(())
    })?;
    let right = both.len() as usize == keys && both.count_contained_bulk(asked)? == asked.len();
    push(session, "insert", asked.len(), seconds, right, both.len());

    let mut merged = alone.clone();
    let seconds = session.time_change(Threads::All, &alone, &mut merged, |filter| Ok(filter.merge(&other)?))?;
    push(session, "merge", keys, seconds, merged == both, both.len());

    let (seconds, common) = session.made(Threads::All, || Ok(alone.intersection_count(&other)?))?;
    // Common keys, and other keys with equal fingerprints by chance.
    let by_chance = alone.fpr() * (screen.asked - screen.shared) as f64;
    let extra = (common as usize).saturating_sub(screen.shared);
    let right = common as usize >= screen.shared && as_expected(extra, by_chance);
    push(session, "intersection count", keys, seconds, right, alone.len());

    let mut left = both.clone();
    let seconds = session.time_change(Threads::All, &both, &mut left, |filter| {
        filter.remove_bulk(asked)?;
        Ok(())
    })?;
    push(session, "remove", asked.len(), seconds, left == alone, both.len());

    session.print(&format!(
        "The second genome inserted: {} fingerprints. In both: {} of {} (truth {}, {by_chance:.1} more by chance). Removed \
         again: {} fingerprints, byte for byte the filter of the first genome{}.\n",
        HumanCount(both.len()),
        HumanCount(common),
        HumanCount(screen.asked as u64),
        HumanCount(screen.shared as u64),
        HumanCount(left.len()),
        if left == alone { "" } else { " (WRONG: it is not)" }
    ));
    Ok(())
}
