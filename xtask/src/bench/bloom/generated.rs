//! Generated keys: each operation of each variant at several sizes, beside the peers in the same memory.

use warpset_benches::keys::KeySpace;

use super::super::clock::Effort;
use super::super::limits::Access;
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::peers::Peer;
use super::screen::plausible;
use super::subject::{Keys, Subject};
use super::variant::Variant;

/// Bits a key at all sizes.
pub const BITS_PER_KEY: usize = 16;
/// Seed of all generated keys.
pub const SEED: u64 = 0x2026;
/// Streams of keys: inserted, never inserted.
pub const INSERTED: u64 = 0;
/// See [`INSERTED`].
pub const ABSENT: u64 = 1;

/// Filter sizes in bytes: in the first-level cache, in the second, beyond, in memory.
fn sizes(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Quick => &[1 << 16, 1 << 20, 1 << 23],
        Effort::Standard => &[1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 23, 1 << 25, 1 << 27],
        Effort::Full => &[1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 23, 1 << 25, 1 << 27, 1 << 28, 1 << 30],
    }
}

/// CPU steps: one a filter size for us, one for the peers.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    let mut steps = Vec::new();
    for &bytes in sizes(setup.effort) {
        let title = super::super::table::bytes(bytes as f64);
        for variant in Variant::for_generated(setup.effort) {
            steps.push(Step::new(format!("bloom: {} on generated keys, {title}", variant.name()), move |session| {
                measure(session, bytes, &Measured::Ours(variant))
            }));
        }
        for peer in Peer::ALL {
            steps.push(Step::new(format!("bloom: peer {}, {title}", peer.name()), move |session| {
                measure(session, bytes, &Measured::Peer(peer))
            }));
        }
    }
    steps
}

enum Measured {
    Ours(Variant),
    Peer(Peer),
}

impl Measured {
    fn build(&self, bytes: usize, n: usize, threads: Threads) -> anyhow::Result<Box<dyn Subject>> {
        match self {
            Measured::Ours(variant) => variant.of_size(bytes),
            Measured::Peer(peer) => Ok(peer.build(bytes, n, threads == Threads::All)),
        }
    }

    fn name(&self) -> (&'static str, String) {
        match self {
            Measured::Ours(variant) => ("variant", variant.name()),
            Measured::Peer(peer) => ("implementation", peer.name()),
        }
    }

    fn inserts(&self, threads: Threads) -> bool {
        threads == Threads::One || !matches!(self, Measured::Peer(peer) if !peer.inserts_in_parallel())
    }
}

fn measure(session: &mut Session, bytes: usize, measured: &Measured) -> anyhow::Result<()> {
    let n = bytes * 8 / BITS_PER_KEY;
    let space = KeySpace::new(SEED);
    let inserted = space.stream(INSERTED).u64_keys(n);
    // Enough absent keys for a rate of a thousandth to be seen, not more: they are all asked for.
    let absent = space.stream(ABSENT).u64_keys(n.max(1 << 19));
    let (present, absent) = (Keys::U64(&inserted), Keys::U64(&absent[..n]));
    for threads in [Threads::One, Threads::All] {
        if session.skips(threads) {
            continue;
        }
        measure_on(session, bytes, measured, threads, present, absent)?;
    }
    Ok(())
}

fn measure_on(
    session: &mut Session,
    bytes: usize,
    measured: &Measured,
    threads: Threads,
    present: Keys<'_>,
    absent: Keys<'_>,
) -> anyhow::Result<()> {
    let n = present.len();
    let (label, name) = measured.name();
    let mut filter = measured.build(bytes, n, threads)?;
    let ours = matches!(measured, Measured::Ours(_));
    let row = |operation: &str, seconds: f64, filter: &dyn Subject| {
        let mut row = Record::new("bloom", operation, n).time(seconds);
        row = row.param(label, name.clone()).param("input", "generated").param("key", present.kind());
        row = row.param("filter_bytes", bytes);
        if let Some(hashes) = filter.hashes() {
            row = row.param("hashes", hashes);
        }
        row.bits_per_item = Some(filter.bytes() as f64 * 8.0 / n as f64);
        row
    };
    let reads = session.random_limit(threads, Access::Read, bytes);
    let updates = session.random_limit(threads, Access::Update, bytes);
    let mut answers = vec![false; n];

    let can_insert = measured.inserts(threads);
    if can_insert {
        let insert =
            session.time_after(threads, &mut filter, |filter| filter.clear(), |filter| filter.insert(present))?;
        session.pool(threads).install(|| filter.contains(present, &mut answers))?;
        let mut insert = row("insert", insert, &*filter);
        insert.checked = session.verify(answers.iter().all(|answer| *answer), || format!("{name} lost keys"));
        insert.limit_fraction = insert.items_per_second.map(|rate| rate / updates);
        session.push_on(&Target::Cpu, insert, threads);
    } else {
        // Filled by one thread, asked by all.
        session.pool(Threads::One).install(|| filter.insert(present))?;
    }

    answers.fill(false);
    let hit = session.time_after(threads, &mut answers, |_| Ok(()), |answers| filter.contains(present, answers))?;
    let mut hit = row("contains hit", hit, &*filter);
    hit.checked = session.verify(answers.iter().all(|answer| *answer), || format!("{name} lost keys"));
    hit.limit_fraction = hit.items_per_second.map(|rate| rate / reads);
    session.push_on(&Target::Cpu, hit, threads);

    let miss = session.time_after(threads, &mut answers, |_| Ok(()), |answers| filter.contains(absent, answers))?;
    let mut miss = row("contains miss", miss, &*filter);
    let positives = answers.iter().filter(|answer| **answer).count();
    let expected = filter.theory(n).map(|rate| rate * n as f64);
    miss.checked = session.verify(expected.is_none_or(|expected| plausible(positives, expected)), || {
        format!("{name}, {bytes} bytes: {positives} false positives of {n}, expected {expected:?}")
    });
    miss.fpr = Some(positives as f64 / n as f64);
    miss.limit_fraction = miss.items_per_second.map(|rate| rate / reads);
    session.push_on(&Target::Cpu, miss, threads);

    if can_insert {
        let mut state = (&mut filter, &mut answers);
        let test = session.time_after(
            threads,
            &mut state,
            |(filter, _)| filter.clear(),
            |(filter, new)| filter.test_and_insert(present, new),
        )?;
        let mut test = row("test_and_insert", test, &*filter);
        let new = answers.iter().filter(|new| **new).count();
        // One by one, the peers find a few of the distinct keys there already; ours answers for the batch.
        let wanted = if ours { new == n } else { new as f64 > 0.9 * n as f64 };
        test.checked = session.verify(wanted, || format!("{name}: {new} of {n} distinct keys were new"));
        test.limit_fraction = test.items_per_second.map(|rate| rate / updates);
        session.push_on(&Target::Cpu, test, threads);
    }
    if ours {
        union(session, bytes, measured, threads, present, filter, row)?;
    }
    Ok(())
}

/// The union of two halves is the whole.
fn union(
    session: &mut Session,
    bytes: usize,
    measured: &Measured,
    threads: Threads,
    present: Keys<'_>,
    whole: Box<dyn Subject>,
    row: impl Fn(&str, f64, &dyn Subject) -> Record,
) -> anyhow::Result<()> {
    let Keys::U64(keys) = present else { return Ok(()) };
    let (low, high) = keys.split_at(keys.len() / 2);
    let mut halves = (measured.build(bytes, keys.len(), threads)?, measured.build(bytes, keys.len(), threads)?);
    session.pool(Threads::All).install(|| {
        halves.0.insert(Keys::U64(low))?;
        halves.1.insert(Keys::U64(high))
    })?;
    let seconds = session.time_after(threads, &mut halves, |_| Ok(()), |(low, high)| low.union(&**high))?;
    let mut answers = vec![false; keys.len()];
    session.pool(Threads::All).install(|| halves.0.contains(present, &mut answers))?;
    let mut union = row("union", seconds, &*whole);
    // Two reads and a write for each byte, where a copy is a read and a write.
    let copied = session.copy_limit(threads, bytes);
    union.limit_fraction = Some(3.0 * bytes as f64 / seconds / copied);
    union.checked = session.verify(answers.iter().all(|answer| *answer), || "a union lost keys".into());
    session.push_on(&Target::Cpu, union, threads);
    Ok(())
}
