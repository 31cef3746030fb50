//! Generated keys: each operation of each variant at several sizes, beside the peers in the same memory.

use bench_frame::input::keys::KeySpace;

use super::peers::Peer;
use super::subject::{Keys, Subject};
use super::variant::Variant;
use super::{ABSENT, BITS_PER_KEY, INSERTED, SEED, plausible};
use bench_frame::clock::Effort;
use bench_frame::limits::Access;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_frame::table;
use bench_record::Record;

/// Returns filter sizes in bytes: in the first-level cache, in the second, beyond, in memory.
fn sizes(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Quick => &[1 << 16, 1 << 23],
        Effort::Standard => &[1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 23, 1 << 25, 1 << 27],
        Effort::Full => &[1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 23, 1 << 25, 1 << 27, 1 << 28, 1 << 30],
    }
}

/// Makes the CPU steps: one per filter size for us, one for the peers.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    let ours = Variant::for_generated(setup.effort).into_iter().map(Measured::Ours);
    let all: Vec<Measured> = ours.chain(Peer::ALL.iter().copied().map(Measured::Peer)).collect();
    let mut steps = Vec::new();
    for &bytes in sizes(setup.effort) {
        for &measured in &all {
            let title = format!("bloom: {} on generated keys, {}", measured.name(), table::bytes(bytes as f64));
            steps.push(Step::new(title, move |session| measure(session, bytes, measured)));
        }
    }
    steps
}

#[derive(Clone, Copy)]
enum Measured {
    Ours(Variant),
    Peer(Peer),
}

impl Measured {
    fn build(self, bytes: usize, n: usize, threads: Threads) -> anyhow::Result<Box<dyn Subject>> {
        match self {
            Measured::Ours(variant) => variant.of_size(bytes),
            Measured::Peer(peer) => Ok(peer.build(bytes, n, threads == Threads::All)),
        }
    }

    fn name(self) -> String {
        match self {
            Measured::Ours(variant) => variant.name(),
            Measured::Peer(peer) => peer.name(),
        }
    }

    fn is_peer(self) -> bool {
        matches!(self, Measured::Peer(_))
    }

    fn inserts(self, threads: Threads) -> bool {
        threads == Threads::One || !matches!(self, Measured::Peer(peer) if !peer.inserts_in_parallel())
    }
}

fn measure(session: &mut Session, bytes: usize, measured: Measured) -> anyhow::Result<()> {
    let n = bytes * 8 / BITS_PER_KEY;
    let space = KeySpace::new(SEED);
    let (present, absent) = (space.stream(INSERTED).u64_keys(n), space.stream(ABSENT).u64_keys(n));
    for &threads in session.threads(true) {
        On { bytes, measured, threads }.measure(session, &present, Keys::U64(&absent))?;
    }
    Ok(())
}

/// A filter of a size on these threads.
#[derive(Clone, Copy)]
struct On {
    bytes: usize,
    measured: Measured,
    threads: Threads,
}

impl On {
    /// Makes a row of an operation on `n` keys, the number that the filter is sized for.
    fn row(self, operation: &str, n: usize, seconds: f64, filter: &dyn Subject, limit: Option<f64>) -> Record {
        let mut row =
            Record::new("bloom", operation, n).time(seconds).by(self.measured.name(), self.measured.is_peer());
        row = row.param("input", "generated").param("key", "u64").param("filter_bytes", self.bytes);
        if let Some(hashes) = filter.hashes() {
            row = row.param("hashes", hashes);
        }
        row.bits_per_item = Some(filter.bytes() as f64 * 8.0 / n as f64);
        row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
        row
    }

    fn measure(self, session: &mut Session, keys: &[u64], absent: Keys<'_>) -> anyhow::Result<()> {
        let On { bytes, measured, threads } = self;
        let (n, present) = (keys.len(), Keys::U64(keys));
        let mut filter = measured.build(bytes, n, threads)?;
        let ours = !measured.is_peer();
        let reads = Some(session.random_limit(threads, Access::Read, bytes));
        // On several threads our insertions group keys by the part of the filter that one thread writes.
        let is_random = threads == Threads::One || !ours;
        let updates = is_random.then(|| session.random_limit(threads, Access::Update, bytes));
        let mut answers = vec![false; n];
        let all = |answers: &[bool]| answers.iter().all(|answer| *answer);

        let can_insert = measured.inserts(threads);
        if can_insert {
            let insert = |filter: &mut Box<dyn Subject>| filter.insert(present);
            let seconds = session.time_after(threads, &mut filter, |filter| filter.clear(), insert)?;
            session.pool(threads).install(|| filter.contains(present, &mut answers))?;
            let row = self.row("insert", n, seconds, &*filter, updates);
            session.add(&Target::Cpu, threads, row, all(&answers));
        } else {
            // Filled by one thread, asked by all.
            session.pool(Threads::One).install(|| filter.insert(present))?;
        }

        answers.fill(false);
        let seconds = session.time(threads, &mut answers, |answers| filter.contains(present, answers))?;
        session.add(&Target::Cpu, threads, self.row("contains hit", n, seconds, &*filter, reads), all(&answers));

        let seconds = session.time(threads, &mut answers, |answers| filter.contains(absent, answers))?;
        let positives = answers.iter().filter(|answer| **answer).count();
        let right = filter.theory(n).is_none_or(|rate| plausible(positives, rate * n as f64));
        let mut row = self.row("contains miss", n, seconds, &*filter, reads);
        row.fpr = Some(positives as f64 / n as f64);
        session.add(&Target::Cpu, threads, row, right);

        if can_insert {
            let mut state = (&mut filter, &mut answers);
            let seconds = session.time_after(
                threads,
                &mut state,
                |(filter, _)| filter.clear(),
                |(filter, new)| filter.test_and_insert(present, new),
            )?;
            let new = answers.iter().filter(|new| **new).count();
            // One by one, the peers find a few of the distinct keys there already; ours answers for the batch.
            let right = if ours { new == n } else { new as f64 > 0.9 * n as f64 };
            session.add(&Target::Cpu, threads, self.row("test_and_insert", n, seconds, &*filter, updates), right);
        }
        if ours { self.union(session, keys, &*filter) } else { Ok(()) }
    }

    /// Measures a union, and checks that the union of two halves is the whole.
    fn union(self, session: &mut Session, keys: &[u64], whole: &dyn Subject) -> anyhow::Result<()> {
        let On { bytes, measured, threads } = self;
        let (low, high) = keys.split_at(keys.len() / 2);
        let mut halves = (measured.build(bytes, keys.len(), threads)?, measured.build(bytes, keys.len(), threads)?);
        session.pool(Threads::All).install(|| {
            halves.0.insert(Keys::U64(low))?;
            halves.1.insert(Keys::U64(high))
        })?;
        let seconds = session.time(threads, &mut halves, |(low, high)| low.merge(&**high))?;
        let mut answers = vec![false; keys.len()];
        session.pool(Threads::All).install(|| halves.0.contains(Keys::U64(keys), &mut answers))?;
        // No limit: a copy fills lines of the cache that it only writes, a union does not.
        let row = self.row("union", keys.len(), seconds, whole, None);
        session.add(&Target::Cpu, threads, row, answers.iter().all(|answer| *answer));
        Ok(())
    }
}
