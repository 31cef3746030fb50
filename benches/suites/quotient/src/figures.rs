//! The paper's figures on the CPU: lookups over the fill (Figures 8 and 9) and over the number of keys asked for at
//! once (10a), batches inserted and removed over the fill (10b) and over their size (10c), builds (11 to 13); and
//! packed slots against slots of whole bytes, for several widths of the remainder.

use std::collections::HashSet;

use rayon::prelude::*;
use warpset::quotient::{Builder, Container, Duplicates, QuotientFilter, RankSelectBuilder, SlotKind, StandardBuilder};

use super::subject::{Change, Filter, Kind, Ours, container_name, layout, qfilter_for, qfilter_sorted, with_ours};
use super::{ABSENT, BATCH, COMMON_LOAD, INSERTED, Point, Size, as_expected, keys};
use bench_frame::clock::Effort;
use bench_frame::limits::Access;
use bench_frame::machine;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_frame::table::{grid, rate};
use bench_record::Record;

/// The most lookups: enough for a rate, on a CPU.
const ASKED: usize = 1 << 21;
const LOOKUPS: &str = "lookup over fill";
const UPDATES: &str = "update over fill";
const BUILDS: &str = "build over fill";
const CONTAINERS: &str = "containers";

/// Makes the steps of one size.
pub fn steps(loads: &'static [f64], size: Size) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |what: &str, run: fn(&mut Session, Size, &[f64]) -> anyhow::Result<()>| {
        let step = Step::new(format!("quotient: {what}, {}", size.name()), move |session| run(session, size, loads));
        steps.push(if what.ends_with("by batch") { step.except_quick() } else { step });
    };
    add("lookups", lookups);
    add("lookups by batch", lookups_by_batch);
    add("inserts and deletes", updates);
    add("inserts by batch", inserts_by_batch);
    add("builds", builds);
    steps
}

/// Compares packed slots with slots of whole bytes: in the second-level cache over the load; in the third over the
/// width, some of which fill whole bytes.
pub fn containers(effort: Effort) -> Vec<Step> {
    match effort {
        Effort::Quick => vec![container_step(16, &[5, 8], &[0.75])],
        Effort::Standard => vec![
            container_step(16, &[5, 6, 13], &[0.5, 0.75, 0.9]),
            container_step(22, &[3, 5, 6, 8, 13, 16, 21, 29, 61], &[0.75]),
        ],
        Effort::Full => [16, 22, 25]
            .map(|bits| container_step(bits, &[3, 5, 6, 8, 13, 16, 21, 29, 61], &[0.5, 0.75, 0.9, 0.95]))
            .into(),
    }
}

/// A filter of a kind at a point of a figure, on these threads.
#[derive(Clone, Copy)]
struct Run {
    point: Point,
    kind: Kind,
    threads: Threads,
}

impl Run {
    fn push(self, session: &mut Session, operation: &str, n: usize, seconds: f64, filter: &Filter, right: bool) {
        let row = self.point.row(operation, n, seconds).by(self.kind.name(), self.kind.is_peer());
        self.push_row(session, row, filter, right);
    }

    fn push_row(self, session: &mut Session, mut row: Record, filter: &Filter, right: bool) {
        let items = self.point.size.keys(self.point.load);
        row.bits_per_item = Some(8.0 * filter.bytes() as f64 / items as f64);
        session.add(&Target::Cpu, self.threads, row, right);
    }

    /// Asks for keys that are there, or for others.
    fn lookup(self, session: &mut Session, filter: &Filter, keys: &[u32], there: bool) -> anyhow::Result<()> {
        let n = keys.len();
        let mut answers = vec![false; n];
        let seconds = session.time(self.threads, &mut answers, |answers| filter.contains(keys, answers))?;
        let yes = answers.iter().filter(|answer| **answer).count();
        let operation = if there { "contains hit" } else { "contains miss" };
        let mut row = self.point.row(operation, n, seconds).by(self.kind.name(), self.kind.is_peer());
        if self.point.study == LOOKUPS {
            let reads = session.random_limit(self.threads, Access::Read, self.point.size.bytes());
            row.limit_fraction = row.items_per_second.map(|rate| rate / reads);
        }
        let mut right = yes == n;
        if !there {
            row.fpr = Some(yes as f64 / n as f64);
            right = true;
            if let Some(fpr) = filter.fpr(self.point.size) {
                row = row.param("expected", fpr * n as f64);
                right = as_expected(yes, fpr * n as f64);
            }
        }
        self.push_row(session, row, filter, right);
        Ok(())
    }

    /// Inserts or removes a batch; `wanted` is what ours must be then. Returns the changed filter.
    fn change(
        self,
        session: &mut Session,
        before: &Filter,
        change: Change,
        batch: &[u32],
        wanted: Option<&Ours>,
    ) -> anyhow::Result<Filter> {
        let mut filter = before.clone();
        let seconds = session.time_change(self.threads, before, &mut filter, |filter| filter.change(change, batch))?;
        // In a set, a key's equals go with it.
        let mut right = filter.count(batch)? == if change == Change::Insert { batch.len() } else { 0 };
        if let (Some(ours), Some(wanted)) = (filter.ours(), wanted) {
            right &= ours == wanted;
        }
        self.push(session, change.name(), batch.len(), seconds, before, right);
        Ok(filter)
    }
}

/// Prints the rows of one thread of a study, over the load.
fn show(session: &Session, study: &str, size: Size, title: &str) {
    let wanted = |row: &Record| {
        row.number("quotient_bits") == Some(size.quotient_bits.into())
            && row.number("threads") == Some(1.0)
            && row.backend == "cpu"
    };
    let load = |row: &Record| format!("{}", row.number("load").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, rate);
    session.show(
        study,
        &format!("{title}, keys per second over the load, one thread, {}", size.name()),
        wanted,
        load,
        cell,
    );
}

fn lookups(session: &mut Session, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let n = size.keys(load);
        let (inserted, absent) = (keys(INSERTED, n), keys(ABSENT, n.clamp(1 << 16, ASKED)));
        let point = Point { study: LOOKUPS, size, load };
        for kind in Kind::ALL {
            let filter = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
            for &threads in session.threads(kind.asks_in_parallel()) {
                let run = Run { point, kind, threads };
                run.lookup(session, &filter, &inserted[..n.min(ASKED)], true)?;
                run.lookup(session, &filter, &absent, false)?;
            }
        }
    }
    show(session, LOOKUPS, size, "Lookups (Figure 8)");
    Ok(())
}

fn lookups_by_batch(session: &mut Session, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let inserted = keys(INSERTED, size.keys(COMMON_LOAD));
    let most = inserted.len().min(ASKED);
    let point = Point { study: "lookup over batch", size, load: COMMON_LOAD };
    for kind in [Kind::Bulk(Container::Packed), Kind::RankSelect, Kind::Qfilter, Kind::Bloom] {
        let filter = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
        for &threads in session.threads(kind.asks_in_parallel()) {
            for batch in (8..32).step_by(2).map(|log| 1 << log).take_while(|batch| *batch <= most) {
                Run { point, kind, threads }.lookup(session, &filter, &inserted[..batch], true)?;
            }
        }
    }
    Ok(())
}

/// Returns the filter of the fingerprints of `all` without those of `batch` and their equals.
pub fn rest<S: SlotKind>(filter: &QuotientFilter<S>, all: &[u32], batch: &[u32]) -> anyhow::Result<QuotientFilter<S>> {
    let layout = *filter.layout();
    let gone: HashSet<u64> = batch.iter().filter_map(|key| layout.fingerprint(*key)).collect();
    let stay =
        all.par_iter().filter_map(|key| layout.fingerprint(*key)).filter(|fingerprint| !gone.contains(fingerprint));
    Ok(Builder::<S>::with_layout(layout).build_from_fingerprints(&stay.collect::<Vec<u64>>())?)
}

/// Returns the filter of both lists of keys, with the layout of `filter`.
fn grown(filter: &Ours, keys: &[u32], more: &[u32]) -> anyhow::Result<Ours> {
    filter.of_same_layout(&[keys, more].concat())
}

fn updates(session: &mut Session, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let (inserted, batch) = (keys(INSERTED, size.keys(load)), keys(BATCH, size.batch()));
        let removed = spread(&inserted, batch.len());
        let point = Point { study: UPDATES, size, load };
        let fits = |kind: &Kind| kind.removes() && kind.takes(size, inserted.len() + batch.len());
        for kind in Kind::ALL.into_iter().filter(fits) {
            let filled = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
            let wanted = filled.ours().map(|ours| {
                let both = || {
                    let less = with_ours!(ours, |ours| rest(ours, &inserted, &removed)?.into());
                    anyhow::Ok((grown(ours, &inserted, &batch)?, less))
                };
                session.pool(Threads::All).install(both)
            });
            let (more, less) = wanted.transpose()?.unzip();
            for &threads in session.threads(kind.changes_in_parallel()) {
                let run = Run { point, kind, threads };
                run.change(session, &filled, Change::Insert, &batch, more.as_ref())?;
                run.change(session, &filled, Change::Remove, &removed, less.as_ref())?;
            }
        }
    }
    show(session, UPDATES, size, &format!("Batches of {} keys (Figure 10b)", size.batch()));
    Ok(())
}

/// Returns `n` keys from all over the filter; fewer only if it holds fewer.
pub fn spread(keys: &[u32], n: usize) -> Vec<u32> {
    keys.iter().copied().step_by((keys.len() / n).max(1)).take(n).collect()
}

fn inserts_by_batch(session: &mut Session, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let inserted = keys(INSERTED, size.keys(COMMON_LOAD));
    let point = Point { study: "insert over batch", size, load: COMMON_LOAD };
    let kinds = [
        Kind::Bulk(Container::Packed),
        Kind::RankSelect,
        Kind::OneByOne,
        Kind::RankSelectOneByOne,
        Kind::Qfilter,
        Kind::Bloom,
    ];
    for kind in kinds {
        let filled = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
        for n in size.batches(&[100, 1000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000]) {
            let batch = keys(BATCH, n);
            let grow = |ours| session.pool(Threads::All).install(|| grown(ours, &inserted, &batch));
            let wanted = filled.ours().map(grow).transpose()?;
            for &threads in session.threads(kind.changes_in_parallel()) {
                Run { point, kind, threads }.change(session, &filled, Change::Insert, &batch, wanted.as_ref())?;
            }
        }
    }
    Ok(())
}

/// Method of a build.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// Sorted, laid out, written.
    Sorted(Container, Duplicates),
    /// Sorted and built into slots with rank and select.
    RankSelectSorted(Duplicates),
    /// The paper's serial filter: inserts from empty.
    OneByOne(Duplicates),
    /// The peer, its inserts from empty.
    Qfilter,
    /// The peer, sorted fingerprints handed to its builder.
    QfilterSorted,
    /// Our Bloom filter, for the same keys and rate.
    Bloom,
}

impl Method {
    const ALL: [Method; 11] = [
        Method::Sorted(Container::Packed, Duplicates::Dropped),
        Method::Sorted(Container::Packed, Duplicates::Kept),
        Method::Sorted(Container::Bytes, Duplicates::Dropped),
        Method::RankSelectSorted(Duplicates::Dropped),
        Method::RankSelectSorted(Duplicates::Kept),
        Method::RankSelectSorted(Duplicates::Counted),
        Method::OneByOne(Duplicates::Dropped),
        Method::OneByOne(Duplicates::Kept),
        Method::Qfilter,
        Method::QfilterSorted,
        Method::Bloom,
    ];

    fn name(self) -> String {
        match self {
            Method::Sorted(container, _) => format!("{}, sorted", container_name(container)),
            Method::RankSelectSorted(Duplicates::Counted) => "rank-select, counted, sorted".into(),
            Method::RankSelectSorted(_) => "rank-select, sorted".into(),
            Method::OneByOne(_) => Kind::OneByOne.name(),
            Method::Qfilter => Kind::Qfilter.name(),
            Method::QfilterSorted => format!("qfilter {}, sorted", machine::version("qfilter")),
            Method::Bloom => Kind::Bloom.name(),
        }
    }

    fn is_peer(self) -> bool {
        matches!(self, Method::Qfilter | Method::QfilterSorted)
    }

    /// Whether one insertion per key is all that it does.
    fn is_slow(self) -> bool {
        matches!(self, Method::OneByOne(_) | Method::Qfilter)
    }

    fn build(self, size: Size, keys: &[u32]) -> anyhow::Result<Filter> {
        Ok(match self {
            Method::Sorted(container, duplicates) => {
                let layout = layout(size, container, duplicates)?;
                let filter = StandardBuilder::with_layout(layout).build_from(keys)?.into();
                Filter::Ours { filter, one_by_one: false }
            }
            Method::RankSelectSorted(duplicates) => {
                let builder = RankSelectBuilder::with_bits(size.quotient_bits, size.remainder_bits);
                let filter = builder.max_load(super::MAX_LOAD).duplicates(duplicates).build_from(keys)?.into();
                Filter::Ours { filter, one_by_one: false }
            }
            Method::OneByOne(duplicates) => {
                let layout = layout(size, Container::Packed, duplicates)?;
                let mut filter = StandardBuilder::with_layout(layout).build()?;
                for key in keys {
                    filter.insert(*key)?;
                }
                Filter::Ours { filter: filter.into(), one_by_one: false }
            }
            Method::Qfilter => {
                let mut filter = Filter::Qfilter(qfilter_for(size)?);
                filter.change(Change::Insert, keys)?;
                filter
            }
            Method::QfilterSorted => Filter::Qfilter(qfilter_sorted(size, keys)?),
            Method::Bloom => {
                let mut filter = Kind::Bloom.empty(size, keys.len())?;
                filter.change(Change::Insert, keys)?;
                filter
            }
        })
    }
}

fn builds(session: &mut Session, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let keys = keys(INSERTED, size.keys(load));
        let point = Point { study: BUILDS, size, load };
        for method in Method::ALL.into_iter().filter(|method| !(method.is_slow() && size.is_large())) {
            for &threads in session.threads(!method.is_slow()) {
                let mut built = None;
                let drop_last = |built: &mut Option<Filter>| {
                    *built = None;
                    Ok(())
                };
                let seconds = session.time_after(threads, &mut built, drop_last, |built| {
                    *built = Some(method.build(size, &keys)?);
                    Ok(())
                })?;
                let Some(filter) = built else { anyhow::bail!("nothing was built") };
                let right = filter.count(&keys)? == keys.len() && filter.ours().is_none_or(|ours| is_of(ours, &keys));
                let kept = filter.ours().is_some_and(|ours| ours.layout().duplicates() != Duplicates::Dropped);
                let row = point.row("build", keys.len(), seconds).by(method.name(), method.is_peer());
                let row = row.param("duplicates", if kept { "kept" } else { "dropped" });
                Run { point, kind: Kind::OneByOne, threads }.push_row(session, row, &filter, right);
            }
        }
    }
    show(session, BUILDS, size, "Builds (Figures 11 to 13)");
    Ok(())
}

/// Whether the fingerprints are those of the keys, each once or each as often as it comes.
fn is_of(filter: &Ours, keys: &[u32]) -> bool {
    let mut fingerprints: Vec<u64> = keys.iter().filter_map(|key| filter.layout().fingerprint(*key)).collect();
    fingerprints.par_sort_unstable();
    if filter.layout().duplicates() == Duplicates::Dropped {
        fingerprints.dedup();
    }
    with_ours!(filter, |filter| filter.fingerprints().eq(fingerprints))
}

const OPERATIONS: [&str; 5] = ["build", "contains hit", "contains miss", "insert", "remove"];

/// Makes the step of one number of slots, widths of remainders, and loads; on one thread.
pub fn container_step(quotient_bits: u32, widths: &'static [u32], loads: &'static [f64]) -> Step {
    let title = format!("quotient: packed and bytes, 2^{quotient_bits} slots");
    let step = Step::new(title, move |session| {
        let mut lines = Vec::new();
        for &remainder_bits in widths.iter().filter(|bits| quotient_bits + **bits <= 64) {
            for &load in loads {
                for container in [Container::Packed, Container::Bytes] {
                    let size = Size { quotient_bits, remainder_bits };
                    lines.push(one_container(session, Point { study: CONTAINERS, size, load }, container)?);
                }
            }
        }
        let header = ["", "bytes per item"].into_iter().chain(OPERATIONS).map(String::from).collect();
        let title = format!("Packed and bytes, 2^{quotient_bits} slots, keys per second, one thread");
        session.print(&grid(&title, header, lines));
        Ok(())
    });
    step.except_quick()
}

/// Adds the rows of one container, and returns their line of the table.
fn one_container(session: &mut Session, point: Point, container: Container) -> anyhow::Result<Vec<String>> {
    let (size, kind) = (point.size, Kind::Bulk(container));
    let n = size.keys(point.load);
    let (inserted, absent) = (keys(INSERTED, n), keys(ABSENT, n.clamp(1 << 14, 1 << 20)));
    let batch = keys(BATCH, (n / 64).max(1));
    let run = Run { point, kind, threads: Threads::One };
    let first = session.study(CONTAINERS).len();
    let (seconds, filter) = session.made(Threads::One, || kind.filled(size, &inserted))?;
    let right = filter.count(&inserted)? == n;
    run.push(session, "build", n, seconds, &filter, right);
    run.lookup(session, &filter, &inserted[..n.min(absent.len())], true)?;
    run.lookup(session, &filter, &absent, false)?;
    let more = run.change(session, &filter, Change::Insert, &batch, None)?;
    run.change(session, &more, Change::Remove, &batch, None)?;

    let head = format!("r = {}, load {}, {}", size.remainder_bits, point.load, container_name(container));
    let bytes = format!("{:.2}", filter.bytes() as f64 / n as f64);
    let rows = session.study(CONTAINERS);
    let rates = rows[first..].iter().map(|row| row.items_per_second.map_or_else(String::new, rate));
    Ok([head, bytes].into_iter().chain(rates).collect())
}
