//! Lookups over the fill (Figures 8 and 9) and over the number of keys asked for at once (Figure 10a), on the CPU.

use warpset::quotient::Container;

use super::super::limits::Access;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::super::table::{pivot, rate};
use super::subject::{Filter, Kind, threads};
use super::{ABSENT, COMMON_LOAD, INSERTED, Size, as_expected, keys};

/// Most keys that are asked for: enough for a rate, on a CPU.
const ASKED: usize = 1 << 21;

/// The steps, one a load.
pub fn steps(loads: &'static [f64], size: Size) -> Vec<Step> {
    let mut steps: Vec<Step> = loads
        .iter()
        .map(|&load| {
            let title = format!("quotient: lookups, {}, load {load}", size.name());
            Step::new(title, move |session| over_fill(session, size, load))
        })
        .collect();
    let title = format!("quotient: lookups by batch, {}", size.name());
    steps.push(Step::new(title, move |session| over_batch(session, size)));
    steps
}

/// Times one kind of question, and checks the answers.
fn ask(session: &mut Session, filter: &Filter, threads: Threads, keys: &[u32], wanted: Wanted) -> anyhow::Result<Row> {
    let mut answers = vec![false; keys.len()];
    let seconds = session.time(threads, &mut answers, |_| Ok(()), |answers| filter.contains(keys, answers))?;
    let yes = answers.iter().filter(|answer| **answer).count();
    let right = match wanted {
        Wanted::All => yes == keys.len(),
        Wanted::Rate(fpr) => fpr.is_none_or(|fpr| as_expected(yes, fpr * keys.len() as f64)),
    };
    Ok(Row { seconds, yes, right })
}

#[derive(Clone, Copy)]
enum Wanted {
    All,
    Rate(Option<f64>),
}

struct Row {
    seconds: f64,
    yes: usize,
    right: bool,
}

fn over_fill(session: &mut Session, size: Size, load: f64) -> anyhow::Result<()> {
    let n = size.keys(load);
    let inserted = keys(INSERTED, n);
    let absent = keys(ABSENT, n.clamp(1 << 16, ASKED));
    let present = &inserted[..n.min(ASKED)];
    for kind in Kind::ALL {
        let filter = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
        let fpr = filter.fpr(size);
        for &threads in threads(kind.asks_in_parallel()) {
            if session.skips(threads) {
                continue;
            }
            let reads = session.random_limit(threads, Access::Read, size.bytes());
            let questions = [("contains hit", present, Wanted::All), ("contains miss", &absent[..], Wanted::Rate(fpr))];
            for (operation, keys, wanted) in questions {
                let Row { seconds, yes, right } = ask(session, &filter, threads, keys, wanted)?;
                let mut row = kind.row("lookup over fill", operation, keys.len(), size, load, seconds);
                row.bits_per_item = Some(8.0 * filter.bytes() as f64 / n as f64);
                row.limit_fraction = row.items_per_second.map(|rate| rate / reads);
                if operation == "contains miss" {
                    row.fpr = Some(yes as f64 / keys.len() as f64);
                    if let Some(fpr) = fpr {
                        row = row.param("expected", fpr * keys.len() as f64);
                    }
                }
                row.checked = session.verify(right, || {
                    format!("{}, load {load}: yes to {yes} of {} keys, {operation}", kind.name(), keys.len())
                });
                session.push_on(&Target::Cpu, row, threads);
            }
        }
    }
    if load == 0.9 {
        show(session, size);
    }
    Ok(())
}

/// Figure 8 as a table, of one thread.
fn show(session: &Session, size: Size) {
    let rows: Vec<&Record> = session
        .study("lookup over fill")
        .into_iter()
        .filter(|row| row.number("quotient_bits") == Some(size.quotient_bits.into()))
        .filter(|row| row.number("threads") == Some(1.0) && row.backend == "cpu")
        .collect();
    let title = format!("Lookups over the load, keys a second, one thread, {} (Figure 8)", size.name());
    let line = |row: &Record| {
        let name = row.text("variant").or(row.implementation()).unwrap_or_default();
        format!("{name}, {}", if row.operation == "contains hit" { "present" } else { "absent" })
    };
    let load = |row: &Record| format!("{}", row.number("load").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, rate);
    session.print(&pivot(&title, &rows, line, load, cell));
}

fn over_batch(session: &mut Session, size: Size) -> anyhow::Result<()> {
    let inserted = keys(INSERTED, size.keys(COMMON_LOAD));
    let most = inserted.len().min(ASKED);
    let batches: Vec<usize> = (8..32).step_by(2).map(|log| 1 << log).take_while(|batch| *batch <= most).collect();
    for kind in [Kind::Bulk(Container::Packed), Kind::Qfilter, Kind::Bloom] {
        let filter = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
        for &threads in threads(kind.asks_in_parallel()) {
            if session.skips(threads) {
                continue;
            }
            for &batch in &batches {
                let Row { seconds, right, .. } = ask(session, &filter, threads, &inserted[..batch], Wanted::All)?;
                let mut row = kind.row("lookup over batch", "contains hit", batch, size, COMMON_LOAD, seconds);
                row.checked = session.verify(right, || format!("{} lost keys of a batch of {batch}", kind.name()));
                session.push_on(&Target::Cpu, row, threads);
            }
        }
    }
    Ok(())
}
