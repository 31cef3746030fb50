//! Building and asking one function: the rows of a construction and of its queries.

use rayon::prelude::*;
use warpset_mphf::{Consensus, Placement};

use super::function::{Function, Key};
use super::ours::Settings;
use super::peers::Peer;
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Target, Threads};
use bench_record::Record;

/// Seconds from which a build on one thread shows how far it is.
const LONG: f64 = 1.0;

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// This project: RecSplit.
    Ours(Settings),
    /// This project: Consensus, with this overhead in bits per key.
    Consensus(f64),
    /// This project: placement, with this many keys per seed.
    Placement(f64),
    /// Another crate.
    Peer(Peer),
}

impl Subject {
    /// Builds with the threads of the current pool. A build that takes long shows its progress: the calls for that take
    /// no time that would count there.
    fn build<'a, K: Key + 'a>(
        self,
        keys: &[K],
        show: Option<impl Fn(u64, u64) + Send + Sync + 'static>,
    ) -> anyhow::Result<Box<dyn Function<K> + 'a>> {
        match self {
            Subject::Ours(settings) => {
                let mut builder = settings.builder();
                if let Some(show) = show
                    && settings.seconds_per_key()? * keys.len() as f64 > LONG
                {
                    builder = builder.progress(move |progress| show(progress.keys_done, progress.keys));
                }
                Ok(Box::new(builder.build_from(keys)?))
            }
            Subject::Consensus(overhead) => Ok(Box::new(Consensus::builder().overhead(overhead).build_from(keys)?)),
            Subject::Placement(keys_per_seed) => {
                Ok(Box::new(Placement::builder().keys_per_seed(keys_per_seed).build_from(keys)?))
            }
            Subject::Peer(peer) => peer.build(keys),
        }
    }

    /// Makes a row of this subject.
    fn row(self, operation: &str, items: usize, seconds: f64) -> Record {
        let row = Record::new("recsplit", operation, items).time(seconds);
        match self {
            Subject::Ours(settings) => {
                row.by(settings.name(), false).param("leaf", settings.leaf).param("bucket", settings.bucket)
            }
            Subject::Consensus(overhead) => row.by("Consensus", false).param("overhead", overhead),
            Subject::Placement(keys) => row.by("placement", false).param("keys_per_seed", keys),
            Subject::Peer(peer) => row.by(peer.name(), true),
        }
    }
}

/// Keys to build and look up, and the resulting rows.
pub struct Work<'a, K> {
    /// Source of the keys.
    pub input: &'a str,
    /// Distinct keys.
    pub keys: &'a [K],
    /// The study that the rows belong to.
    pub study: Option<&'static str>,
    /// Whether it is also built on all threads.
    pub all_threads: bool,
    /// Queries at most in one measurement.
    pub queries: usize,
}

/// Measures construction and queries; verifies that the keys get the numbers from 0, each its own.
pub fn measure<K: Key>(session: &mut Session, subject: Subject, work: Work<'_, K>) -> anyhow::Result<()> {
    let keys = work.keys;
    let n = keys.len();
    let row = |operation: &str, items: usize, seconds: f64, bits: Option<f64>| {
        let mut row = subject.row(operation, items, seconds).param("input", work.input).param("key", K::KIND);
        if let Some(study) = work.study {
            row = row.param("study", study);
        }
        row.bits_per_item = bits;
        row
    };
    let mut function = None;
    for threads in [Threads::One, Threads::All] {
        if threads == Threads::All && (!work.all_threads || session.skips(threads)) {
            continue;
        }
        let drop_last = |function: &mut Option<_>| {
            *function = None;
            Ok(())
        };
        let show = session.progress();
        let seconds = session.time_after(threads, &mut function, drop_last, |function| {
            *function = Some(subject.build(keys, show.clone())?);
            Ok(())
        })?;
        let Some(built) = &function else { anyhow::bail!("nothing was built") };
        let right = is_bijection(session, &**built, keys);
        let mut build = row("build", n, seconds, built.bits_per_key());
        let model = match subject {
            Subject::Ours(settings) => Some(settings.builder().estimate()?),
            Subject::Consensus(overhead) => Some(Consensus::builder().overhead(overhead).estimate()?),
            Subject::Placement(keys) => Some(Placement::builder().keys_per_seed(keys).estimate()?),
            Subject::Peer(_) => None,
        };
        if let (Some(model), Some(lists)) = (model, built.list_bits_per_key()) {
            build = build.param("list_bits", lists).param("model_bits", model.bits_per_key);
            build = build.param("model_nanoseconds", model.nanoseconds_per_key);
        }
        session.add(&Target::Cpu, threads, build, right);
    }
    let Some(function) = function else { anyhow::bail!("nothing was built") };
    let bits = function.bits_per_key();
    if let (Subject::Ours(settings), true, None) = (subject, session.effort > Effort::Quick, work.study) {
        let (seconds, external) = session.made(Threads::All, || {
            Ok(settings.builder().external().build_from(|| Ok(keys.iter().copied().map(Ok)))?)
        })?;
        let right = is_bijection(session, &external, keys);
        session.add(&Target::Cpu, Threads::All, row("build from disk", n, seconds, bits), right);
    }

    let asked = &keys[..n.min(work.queries)];
    let mut numbers = vec![0; asked.len()];
    let seconds = session.time(Threads::One, &mut numbers, |numbers| {
        function.each(asked, numbers);
        Ok(())
    })?;
    let query = |operation: &str, seconds| row(operation, asked.len(), seconds, bits).param("keys", n);
    // The check of the build asked for all keys together where it could: here are the answers one by one.
    let (limit, each) = function.numbers(n);
    session.add(&Target::Cpu, Threads::One, query("query", seconds), are_spread(&numbers, limit, each));

    let one_by_one = numbers.clone();
    let seconds = session.time(Threads::One, &mut numbers, |numbers| {
        function.chain(asked, numbers);
        Ok(())
    })?;
    session.add(&Target::Cpu, Threads::One, query("query chain", seconds), numbers == one_by_one);

    numbers.fill(u64::MAX);
    if function.batch(asked, &mut numbers) {
        let seconds = session.time(Threads::One, &mut numbers, |numbers| {
            function.batch(asked, numbers);
            Ok(())
        })?;
        session.add(&Target::Cpu, Threads::One, query("query batch", seconds), numbers == one_by_one);
    }
    Ok(())
}

/// Whether the keys have the numbers that the function promises; as a rule, each its own below their count.
fn is_bijection<K: Key>(session: &Session, function: &dyn Function<K>, keys: &[K]) -> bool {
    const CHUNK: usize = 1 << 14;
    let mut numbers = vec![u64::MAX; keys.len()];
    session.pool(Threads::All).install(|| {
        numbers.par_chunks_mut(CHUNK).zip(keys.par_chunks(CHUNK)).for_each(|(numbers, keys)| {
            if !function.batch(keys, numbers) {
                function.each(keys, numbers);
            }
        });
    });
    let (limit, each) = function.numbers(keys.len());
    are_spread(&numbers, limit, each)
}

/// Whether the numbers are below `limit`, and at most `each` of them equal.
fn are_spread(numbers: &[u64], limit: usize, each: u8) -> bool {
    let mut seen = vec![0_u8; limit];
    numbers.iter().all(|&number| match seen.get_mut(number as usize) {
        Some(seen) if *seen < each => {
            *seen += 1;
            true
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use warpset_mphf::Method;

    use super::*;
    use bench_frame::suite::Step;

    #[test]
    fn numbers_must_be_distinct_and_small() {
        assert!(are_spread(&[2, 0, 1], 3, 1) && are_spread(&[], 0, 1) && are_spread(&[99], 100, 1));
        assert!(!are_spread(&[0, 1, 1], 3, 1) && !are_spread(&[0, 3], 3, 1) && !are_spread(&[u64::MAX], 64, 1));
        assert!(are_spread(&[0, 1, 1], 2, 2) && !are_spread(&[1, 1, 1], 2, 2));
    }

    #[test]
    fn every_peer_and_method_numbers_both_kinds_of_keys() {
        let methods = [Method::BruteForce, Method::Rotation, Method::Grouped];
        let ours = methods.map(|method| Subject::Ours(Settings::new(5, 50, method)));
        let ours = ours.into_iter().chain(super::super::variants::settings().map(Subject::Ours));
        let ours = ours.chain([Subject::Consensus(0.1), Subject::Placement(4.5)]);
        let step = |subject| {
            Step::new("both kinds of keys", move |session| {
                let integers: Vec<u64> = (0..3000).map(|i| i * i).collect();
                let strings: Vec<String> = integers.iter().map(|i| format!("key {i}")).collect();
                let strings: Vec<&[u8]> = strings.iter().map(String::as_bytes).collect();
                let work = Work { input: "test", keys: &integers, study: None, all_threads: true, queries: 1000 };
                measure(session, subject, work)?;
                let work = Work { input: "test", keys: &strings, study: None, all_threads: true, queries: 1000 };
                measure(session, subject, work)
            })
        };
        let rows = Session::rows_of(ours.chain(Peer::all().into_iter().map(Subject::Peer)).map(step).collect());
        assert!(rows.iter().all(|row| row.checked || row.structure == "machine"));
        assert!(rows.iter().any(|row| row.operation == "query batch" && row.implementation().is_none()));
        // Peers that are as small: they take long to compile.
        let is_compared = |row: &Record| row.operation == "build" && row.peer_ratio.is_some();
        assert_eq!(rows.iter().any(is_compared), cfg!(feature = "peers"));
    }
}
