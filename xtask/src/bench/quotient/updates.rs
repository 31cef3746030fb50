//! Batches inserted and removed over the fill (Figure 10b), and inserts over the size of the batch (Figure 10c), on the
//! CPU.

use std::collections::HashSet;

use rayon::prelude::*;
use warpset::quotient::{Container, StandardBuilder, StandardQuotientFilter};

use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::super::table::{pivot, rate};
use super::subject::{Filter, Kind, threads};
use super::{BATCH, COMMON_LOAD, INSERTED, Size, keys};

/// The steps.
pub fn steps(loads: &'static [f64], size: Size) -> Vec<Step> {
    let over_fill = format!("quotient: inserts and deletes, {}", size.name());
    let over_batch = format!("quotient: inserts by batch, {}", size.name());
    vec![
        Step::new(over_fill, move |session| {
            for &load in loads {
                self::over_fill(session, size, load)?;
            }
            show(session, size);
            Ok(())
        }),
        Step::new(over_batch, move |session| self::over_batch(session, size)),
    ]
}

/// What is left of the fingerprints of `all` once those of `batch` are removed, each removing its equals.
pub fn rest(filter: &StandardQuotientFilter, all: &[u32], batch: &[u32]) -> anyhow::Result<StandardQuotientFilter> {
    let layout = *filter.layout();
    let gone: HashSet<u64> = batch.iter().map(|key| layout.fingerprint(*key)).collect();
    let stay = all.par_iter().map(|key| layout.fingerprint(*key)).filter(|fingerprint| !gone.contains(fingerprint));
    Ok(StandardBuilder::with_layout(layout).build_from_fingerprints(&stay.collect::<Vec<u64>>())?)
}

/// Times a change of `filter`, made anew before each repeat; `filter` is then as the last repeat left it.
fn change(
    session: &Session,
    threads: Threads,
    filter: &mut Filter,
    mut work: impl FnMut(&mut Filter) -> anyhow::Result<()> + Send,
) -> anyhow::Result<f64> {
    let before = filter.clone();
    session.time(
        threads,
        filter,
        |filter| {
            filter.clone_from(&before);
            Ok(())
        },
        |filter| work(filter),
    )
}

fn over_fill(session: &mut Session, size: Size, load: f64) -> anyhow::Result<()> {
    let (inserted, batch) = (keys(INSERTED, size.keys(load)), keys(BATCH, size.batch()));
    // Keys from all over the filter; fewer than the batch only where the filter holds fewer.
    let step = (inserted.len() / batch.len()).max(1);
    let removed: Vec<u32> = inserted.iter().copied().step_by(step).take(batch.len()).collect();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.removes()) {
        if !kind.takes(size, inserted.len() + batch.len()) {
            continue;
        }
        let mut wanted = None;
        for &threads in threads(kind.changes_in_parallel()) {
            if session.skips(threads) {
                continue;
            }
            let filled = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
            if let (Some(ours), None) = (filled.ours(), &wanted) {
                wanted = Some(session.pool(Threads::All).install(|| {
                    let all = [&inserted[..], &batch[..]].concat();
                    let grown = StandardBuilder::with_layout(*ours.layout()).build_from(&all)?;
                    anyhow::Ok((grown, rest(ours, &inserted, &removed)?))
                })?);
            }

            let mut filter = filled.clone();
            let seconds = change(session, threads, &mut filter, |filter| filter.insert(&batch))?;
            let mut right = filter.count(&batch)? == batch.len();
            if let (Some(ours), Some((grown, _))) = (filter.ours(), &wanted) {
                right &= ours == grown;
            }
            push(session, kind, "insert", batch.len(), size, load, threads, seconds, right, "update over fill");

            let mut filter = filled;
            let seconds = change(session, threads, &mut filter, |filter| {
                filter.remove(&removed);
                Ok(())
            })?;
            // In a set, a key's equals go with it.
            let mut right = filter.count(&removed)? == 0;
            if let (Some(ours), Some((_, less))) = (filter.ours(), &wanted) {
                right &= ours == less;
            }
            push(session, kind, "remove", removed.len(), size, load, threads, seconds, right, "update over fill");
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "a row has as many columns")]
fn push(
    session: &mut Session,
    kind: Kind,
    operation: &str,
    n: usize,
    size: Size,
    load: f64,
    threads: Threads,
    seconds: f64,
    right: bool,
    study: &str,
) {
    let mut row = kind.row(study, operation, n, size, load, seconds);
    row.checked =
        session.verify(right, || format!("{}, load {load}: {operation} of {n} keys left another filter", kind.name()));
    session.push_on(&Target::Cpu, row, threads);
}

fn over_batch(session: &mut Session, size: Size) -> anyhow::Result<()> {
    let inserted = keys(INSERTED, size.keys(COMMON_LOAD));
    // Up to two million, as in the paper: a filter of 2^23 slots then is full to 0.94.
    let most = 2_000_000.min(size.keys(0.24));
    let batches = [100, 1000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000];
    let batches = batches.into_iter().take_while(|batch| *batch < most).chain([most]);
    let batches: Vec<Vec<u32>> = batches.map(|batch| keys(BATCH, batch)).collect();
    for kind in [Kind::Bulk(Container::Packed), Kind::OneByOne, Kind::Qfilter, Kind::Bloom] {
        let filled = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
        for batch in &batches {
            let mut grown = None;
            for &threads in threads(kind.changes_in_parallel()) {
                if session.skips(threads) {
                    continue;
                }
                let mut filter = filled.clone();
                let seconds = change(session, threads, &mut filter, |filter| filter.insert(batch))?;
                let mut right = filter.count(batch)? == batch.len();
                if let Some(ours) = filter.ours() {
                    if grown.is_none() {
                        let all = [&inserted[..], batch].concat();
                        let build = || StandardBuilder::with_layout(*ours.layout()).build_from(&all);
                        grown = Some(session.pool(Threads::All).install(build)?);
                    }
                    right &= grown.as_ref() == Some(ours);
                }
                let n = batch.len();
                push(session, kind, "insert", n, size, COMMON_LOAD, threads, seconds, right, "insert over batch");
            }
        }
    }
    Ok(())
}

/// Figure 10b as a table, of one thread.
fn show(session: &Session, size: Size) {
    let rows: Vec<&Record> = session
        .study("update over fill")
        .into_iter()
        .filter(|row| row.number("quotient_bits") == Some(size.quotient_bits.into()))
        .filter(|row| row.number("threads") == Some(1.0) && row.backend == "cpu")
        .collect();
    let title = format!("Batches of {} keys over the load, keys a second, one thread (Figure 10b)", size.batch());
    let line = |row: &Record| {
        format!("{}, {}", row.operation, row.text("variant").or(row.implementation()).unwrap_or_default())
    };
    let load = |row: &Record| format!("{}", row.number("load").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, rate);
    session.print(&pivot(&title, &rows, line, load, cell));
}
