//! Builds over the fill (Figures 11 to 13), with and without duplicates, on the CPU; and the memory of an item (Table I).

use rayon::slice::ParallelSliceMut;
use warpset::quotient::{Container, Duplicates, StandardBuilder, StandardQuotientFilter};

use super::super::machine;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::super::table::{pivot, rate};
use super::subject::{Kind, container_name, layout, qfilter_for, qfilter_sorted, row, threads};
use super::{ABSENT, INSERTED, Size, as_expected, keys};

/// The steps.
pub fn steps(loads: &'static [f64], size: Size) -> Vec<Step> {
    vec![Step::new(format!("quotient: builds, {}", size.name()), move |session| {
        for &load in loads {
            over_fill(session, size, load)?;
        }
        show(session, size);
        Ok(())
    })]
}

/// The step of Table I; the number of slots does not matter.
pub fn memory_step(quotient_bits: u32) -> Step {
    Step::new("quotient: bytes an item", move |session| memory(session, Size::of(quotient_bits)))
}

/// How a filter is built.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// Sorted, laid out, written.
    Sorted(Container, Duplicates),
    /// The paper's serial filter: inserts from empty.
    OneByOne(Duplicates),
    /// The peer, its inserts from empty.
    Qfilter,
    /// The peer, sorted fingerprints handed to its builder.
    QfilterSorted,
}

impl Method {
    const ALL: [Method; 7] = [
        Method::Sorted(Container::Packed, Duplicates::Dropped),
        Method::Sorted(Container::Packed, Duplicates::Kept),
        Method::Sorted(Container::Bytes, Duplicates::Dropped),
        Method::OneByOne(Duplicates::Dropped),
        Method::OneByOne(Duplicates::Kept),
        Method::Qfilter,
        Method::QfilterSorted,
    ];

    fn name(self) -> String {
        match self {
            Method::Sorted(container, _) => format!("{}, sorted", container_name(container)),
            Method::OneByOne(_) => "packed, one by one".into(),
            Method::Qfilter => format!("qfilter {}", machine::version("qfilter")),
            Method::QfilterSorted => format!("qfilter {}, sorted", machine::version("qfilter")),
        }
    }

    fn duplicates(self) -> Duplicates {
        match self {
            Method::Sorted(_, duplicates) | Method::OneByOne(duplicates) => duplicates,
            Method::Qfilter | Method::QfilterSorted => Duplicates::Dropped,
        }
    }

    /// Whether fingerprints are sorted first, on all threads; the peer's too.
    fn is_sorted(self) -> bool {
        matches!(self, Method::Sorted(..) | Method::QfilterSorted)
    }

    fn build(self, size: Size, keys: &[u32]) -> anyhow::Result<Built> {
        Ok(match self {
            Method::Sorted(container, duplicates) => {
                Built::Ours(StandardBuilder::with_layout(layout(size, container, duplicates)?).build_from(keys)?)
            }
            Method::OneByOne(duplicates) => {
                let layout = layout(size, Container::Packed, duplicates)?;
                let mut filter = StandardBuilder::with_layout(layout).build()?;
                for key in keys {
                    filter.insert(*key)?;
                }
                Built::Ours(filter)
            }
            Method::Qfilter => {
                let mut filter = qfilter_for(size)?;
                for key in keys {
                    filter.insert(key)?;
                }
                Built::Qfilter(filter)
            }
            Method::QfilterSorted => Built::Qfilter(qfilter_sorted(size, keys)?),
        })
    }
}

enum Built {
    Ours(StandardQuotientFilter),
    Qfilter(qfilter::Filter),
}

fn over_fill(session: &mut Session, size: Size, load: f64) -> anyhow::Result<()> {
    let keys = keys(INSERTED, size.keys(load));
    for method in Method::ALL.into_iter().filter(|method| method.is_sorted() || !size.is_large()) {
        for &threads in threads(method.is_sorted()) {
            if session.skips(threads) {
                continue;
            }
            let mut built = None;
            let seconds = session.time(
                threads,
                &mut built,
                |built| {
                    *built = None;
                    Ok(())
                },
                |built| {
                    *built = Some(method.build(size, &keys)?);
                    Ok(())
                },
            )?;
            let (right, bytes) = match built {
                Some(Built::Ours(filter)) => (is_right(&filter, &keys), filter.memory_bytes()),
                Some(Built::Qfilter(filter)) => {
                    (keys.iter().all(|key| filter.contains(key)), filter.memory_usage() as u64)
                }
                None => (false, 0),
            };
            let label = if method.name().contains("qfilter") { "implementation" } else { "variant" };
            let mut row = row("build over fill", "build", keys.len(), size, load, seconds).param(label, method.name());
            let duplicates = if method.duplicates() == Duplicates::Kept { "kept" } else { "dropped" };
            row = row.param("duplicates", duplicates);
            row.bits_per_item = Some(8.0 * bytes as f64 / keys.len() as f64);
            row.checked = session.verify(right, || format!("{}, load {load}: a wrong filter", method.name()));
            session.push_on(&Target::Cpu, row, threads);
        }
    }
    bloom(session, size, load, &keys)
}

/// The fingerprints are those of the keys, each once or each as often as it comes.
fn is_right(filter: &StandardQuotientFilter, keys: &[u32]) -> bool {
    let mut fingerprints: Vec<u64> = keys.iter().map(|key| filter.layout().fingerprint(*key)).collect();
    fingerprints.par_sort_unstable();
    if filter.layout().duplicates() == Duplicates::Dropped {
        fingerprints.dedup();
    }
    filter.fingerprints().eq(fingerprints) && filter.count_contained_bulk(keys) == keys.len()
}

fn bloom(session: &mut Session, size: Size, load: f64, keys: &[u32]) -> anyhow::Result<()> {
    let kind = Kind::Bloom;
    for &threads in threads(true) {
        if session.skips(threads) {
            continue;
        }
        let mut filter = kind.empty(size, keys.len())?;
        let clear = |filter: &mut super::subject::Filter| {
            if let super::subject::Filter::Bloom(filter) = filter {
                filter.clear();
            }
            Ok(())
        };
        let seconds = session.time(threads, &mut filter, clear, |filter| filter.insert(keys))?;
        let right = filter.count(keys)? == keys.len();
        let mut row = kind.row("build over fill", "build", keys.len(), size, load, seconds);
        row.bits_per_item = Some(8.0 * filter.bytes() as f64 / keys.len() as f64);
        row.checked = session.verify(right, || "a Bloom filter lost keys".into());
        session.push_on(&Target::Cpu, row, threads);
    }
    Ok(())
}

/// Figure 11 as a table, of one thread.
fn show(session: &Session, size: Size) {
    let rows: Vec<&Record> = session
        .study("build over fill")
        .into_iter()
        .filter(|row| row.number("quotient_bits") == Some(size.quotient_bits.into()))
        .filter(|row| row.number("threads") == Some(1.0) && row.backend == "cpu")
        .collect();
    let title = format!("Builds over the load, keys a second, one thread, {} (Figures 11 to 13)", size.name());
    let line = |row: &Record| {
        let kept = if row.text("duplicates") == Some("kept") { ", duplicates kept" } else { "" };
        format!("{}{kept}", row.text("variant").or(row.implementation()).unwrap_or_default())
    };
    let load = |row: &Record| format!("{}", row.number("load").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, rate);
    session.print(&pivot(&title, &rows, line, load, cell));
}

/// Table I: the remainders that the paper's three error rates take, at the paper's load of 0.75 and at higher ones.
fn memory(session: &mut Session, size: Size) -> anyhow::Result<()> {
    // In the paper: one, two and three bytes a slot.
    for (remainder_bits, error) in [(5, 0.03), (13, 1e-4), (21, 5e-7)] {
        for load in [0.75, 0.9, 0.95] {
            let inserted = keys(INSERTED, size.keys(load));
            let absent = keys(ABSENT, 1 << 20);
            let of_load = Size { remainder_bits, ..size };
            for kind in [Kind::Bulk(Container::Packed), Kind::Bulk(Container::Bytes), Kind::Qfilter] {
                let filter = session.pool(Threads::All).install(|| kind.filled(of_load, &inserted))?;
                push_memory(session, kind, of_load, load, error, &filter, &inserted, &absent)?;
            }
        }
        // The rate itself, whatever remainder it takes: what the packed form allows beyond the paper.
        let n = size.keys(0.9);
        let layout = StandardBuilder::with_capacity(n as u64).fpr(error).max_load(0.9).layout()?;
        let exact = Size { quotient_bits: layout.quotient_bits(), remainder_bits: layout.remainder_bits() };
        let inserted = keys(INSERTED, n);
        let absent = keys(ABSENT, 1 << 20);
        for kind in [Kind::Bulk(Container::Packed), Kind::Bloom] {
            let filter = session.pool(Threads::All).install(|| match kind {
                Kind::Bloom => {
                    let mut bloom = warpset::bloom::SplitBlockBloom::builder(n as u64).fpr(error).build()?;
                    bloom.insert_bulk(&inserted);
                    Ok(super::subject::Filter::Bloom(bloom))
                }
                _ => kind.filled(exact, &inserted),
            })?;
            push_memory(session, kind, exact, 0.9, error, &filter, &inserted, &absent)?;
        }
    }
    let rows = session.study("memory");
    let line = |row: &Record| {
        let name = row.text("variant").or(row.implementation()).unwrap_or_default();
        match row.number("remainder_bits") {
            Some(r) if name != "split-block Bloom" => {
                format!("{name}, r = {r}, load {}", row.number("load").unwrap_or_default())
            }
            _ => name.into(),
        }
    };
    let rate = |row: &Record| format!("{:e}", row.number("error_rate").unwrap_or_default());
    let cell = |row: &Record| row.bits_per_item.map_or_else(String::new, |bits| format!("{:.2}", bits / 8.0));
    session.print(&pivot("Bytes an item by error rate (Table I)", &rows, line, rate, cell));
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "a row has as many columns")]
fn push_memory(
    session: &mut Session,
    kind: Kind,
    size: Size,
    load: f64,
    error: f64,
    filter: &super::subject::Filter,
    inserted: &[u32],
    absent: &[u32],
) -> anyhow::Result<()> {
    let yes = session.pool(Threads::All).install(|| filter.count(absent))?;
    let all = session.pool(Threads::All).install(|| filter.count(inserted))? == inserted.len();
    let right = all && filter.fpr(size).is_none_or(|fpr| as_expected(yes, fpr * absent.len() as f64));
    let mut row = kind.row("memory", "memory", inserted.len(), size, load, 0.0);
    (row.seconds, row.items_per_second) = (None, None);
    row = row.param("error_rate", error);
    row.bits_per_item = Some(8.0 * filter.bytes() as f64 / inserted.len() as f64);
    row.fpr = Some(yes as f64 / absent.len() as f64);
    row.checked = session.verify(right, || format!("{}: {yes} false positives of {}", kind.name(), absent.len()));
    session.push_on(&Target::Cpu, row, Threads::All);
    Ok(())
}
