//! Packed slots against slots of whole bytes: speed against bytes an item, for several widths of the remainder, on one
//! CPU thread.

use warpset::quotient::Container;

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::super::table::{grid, rate};
use super::subject::{Filter, Kind, container_name};
use super::{ABSENT, BATCH, INSERTED, Size, as_expected, keys};

/// The step.
pub fn steps(effort: Effort) -> Vec<Step> {
    match effort {
        Effort::Quick => vec![step(16, &[5, 8], &[0.75])],
        // In the second-level cache over the load; in the third over the width, some of which fill whole bytes.
        Effort::Standard => {
            vec![step(16, &[5, 6, 13], &[0.5, 0.75, 0.9]), step(22, &[3, 5, 6, 8, 13, 16, 21, 29, 61], &[0.75])]
        }
        Effort::Full => {
            [16, 22, 25].map(|bits| step(bits, &[3, 5, 6, 8, 13, 16, 21, 29, 61], &[0.5, 0.75, 0.9, 0.95])).into()
        }
    }
}

/// The step of one number of slots, widths of remainders, and loads.
pub fn step(quotient_bits: u32, widths: &'static [u32], loads: &'static [f64]) -> Step {
    Step::new(format!("quotient: packed and bytes, 2^{quotient_bits} slots"), move |session| {
        let fits = |bits: &&u32| quotient_bits + **bits <= 64;
        for &remainder_bits in widths.iter().filter(fits) {
            for &load in loads {
                for container in [Container::Packed, Container::Bytes] {
                    measure(session, Size { quotient_bits, remainder_bits }, load, container)?;
                }
            }
        }
        show(session, quotient_bits);
        Ok(())
    })
}

const OPERATIONS: [&str; 5] = ["build", "contains hit", "contains miss", "insert", "remove"];

fn measure(session: &mut Session, size: Size, load: f64, container: Container) -> anyhow::Result<()> {
    let kind = Kind::Bulk(container);
    let n = size.keys(load);
    let inserted = keys(INSERTED, n);
    let absent = keys(ABSENT, n.clamp(1 << 14, 1 << 20));
    let batch = keys(BATCH, (n / 64).max(1));
    let mut filter = kind.empty(size, n)?;

    for operation in OPERATIONS {
        let mut answers = vec![false; 0];
        let (asked, seconds) = match operation {
            "build" => {
                let build = |filter: &mut Filter| {
                    *filter = kind.filled(size, &inserted)?;
                    Ok(())
                };
                (n, session.time(Threads::One, &mut filter, |_| Ok(()), build)?)
            }
            "contains hit" | "contains miss" => {
                let keys = if operation == "contains hit" { &inserted[..n.min(absent.len())] } else { &absent[..] };
                answers.resize(keys.len(), false);
                let ask = |answers: &mut Vec<bool>| filter.contains(keys, answers);
                (keys.len(), session.time(Threads::One, &mut answers, |_| Ok(()), ask)?)
            }
            _ => {
                let before = filter.clone();
                let again = |filter: &mut Filter| {
                    filter.clone_from(&before);
                    Ok(())
                };
                let change = |filter: &mut Filter| match operation {
                    "insert" => filter.insert(&batch),
                    _ => {
                        filter.remove(&batch);
                        Ok(())
                    }
                };
                (batch.len(), session.time(Threads::One, &mut filter, again, change)?)
            }
        };
        let yes = answers.iter().filter(|answer| **answer).count();
        let right = match operation {
            "contains hit" => yes == answers.len(),
            "contains miss" => as_expected(yes, filter.fpr(size).unwrap_or_default() * absent.len() as f64),
            "remove" => filter.count(&batch)? == 0,
            "insert" => filter.count(&batch)? == batch.len(),
            _ => filter.count(&inserted)? == n,
        };
        let mut row = kind.row("containers", operation, asked, size, load, seconds);
        row.bits_per_item = Some(8.0 * filter.bytes() as f64 / n as f64);
        row.checked = session.verify(right, || {
            format!("{}, r = {}, load {load}: {operation} went wrong", container_name(container), size.remainder_bits)
        });
        session.push_on(&Target::Cpu, row, Threads::One);
    }
    Ok(())
}

/// One line a width and container, at the middle load.
fn show(session: &Session, quotient_bits: u32) {
    let rows: Vec<&Record> = session
        .study("containers")
        .into_iter()
        .filter(|row| row.number("quotient_bits") == Some(quotient_bits.into()) && row.backend == "cpu")
        .collect();
    let mut lines: Vec<(u64, f64, &str)> = Vec::new();
    for row in &rows {
        let (Some(bits), Some(load), Some(name)) =
            (row.number("remainder_bits"), row.number("load"), row.text("variant"))
        else {
            continue;
        };
        if !lines.contains(&(bits as u64, load, name)) {
            lines.push((bits as u64, load, name));
        }
    }
    let lines = lines.into_iter().map(|(bits, load, name)| {
        let mine = |row: &&&Record| {
            row.number("remainder_bits") == Some(bits as f64)
                && row.number("load") == Some(load)
                && row.text("variant") == Some(name)
        };
        let of = |operation: &str| rows.iter().filter(mine).find(|row| row.operation == operation);
        let bytes =
            of("build").and_then(|row| row.bits_per_item).map_or_else(String::new, |b| format!("{:.2}", b / 8.0));
        let rates = OPERATIONS
            .iter()
            .map(|operation| of(operation).and_then(|row| row.items_per_second).map_or_else(String::new, rate));
        [format!("r = {bits}, load {load}, {name}"), bytes].into_iter().chain(rates).collect()
    });
    let header = ["", "bytes an item"].into_iter().chain(OPERATIONS).map(String::from).collect();
    let title = format!("Packed and bytes, 2^{quotient_bits} slots, keys a second, one thread");
    session.print(&grid(&title, header, lines.collect()));
}
