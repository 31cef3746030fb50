//! Building and asking one function: the rows of a construction and of its queries.

use rayon::prelude::*;

use super::super::record::Record;
use super::super::suite::{Session, Target, Threads};
use super::ours::Settings;
use super::peers::{Peer, PeerKey};

/// What every crate takes as a key.
pub trait Key: warpset_recsplit::Key + PeerKey {
    /// What they are, for the rows.
    const KIND: &'static str;
}

impl Key for u64 {
    const KIND: &'static str = "u64";
}

impl Key for &[u8] {
    const KIND: &'static str = "string";
}

/// A finished function, ours or a peer's.
pub trait Function<K>: Send + Sync {
    /// Its size, if it tells.
    fn bits_per_key(&self) -> Option<f64>;
    /// What its numbers are below, and how many of so many keys may have the same.
    fn numbers(&self, keys: usize) -> (usize, u8) {
        (keys, 1)
    }
    /// Asks for the keys one by one.
    fn each(&self, keys: &[K], numbers: &mut [u64]);
    /// Asks for the keys together; false if it cannot.
    fn batch(&self, _keys: &[K], _numbers: &mut [u64]) -> bool {
        false
    }
}

/// Seconds from which a build on one thread shows how far it is.
const LONG: f64 = 1.0;

/// Who builds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// This project.
    Ours(Settings),
    /// Another crate.
    Peer(Peer),
}

impl Subject {
    /// Method or crate.
    pub fn name(self) -> String {
        match self {
            Subject::Ours(settings) => settings.name(),
            Subject::Peer(peer) => peer.name(),
        }
    }

    /// Builds with the threads of the current pool. The progress of a build that takes long is shown: its calls take no time
    /// that would count there.
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
                Ok(Box::new(builder.build(keys)?))
            }
            Subject::Peer(peer) => peer.build(keys),
        }
    }
}

/// What is built, and which rows it gives.
pub struct Work<'a, K> {
    /// Where the keys are from.
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
        let mut row = Record::new("recsplit", operation, items).time(seconds);
        row = match subject {
            Subject::Ours(settings) => {
                row.param("variant", subject.name()).param("leaf", settings.leaf).param("bucket", settings.bucket)
            }
            Subject::Peer(_) => row.param("implementation", subject.name()),
        };
        row = row.param("input", work.input).param("key", K::KIND);
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
        let seconds = session.time(threads, &mut function, drop_last, |function| {
            *function = Some(subject.build(keys, show.clone())?);
            Ok(())
        })?;
        let Some(built) = &function else { anyhow::bail!("nothing was built") };
        let right = is_bijection(session, &**built, keys);
        let mut build = row("build", n, seconds, built.bits_per_key());
        build.checked = session.verify(right, || format!("{} is no bijection of {n} keys", subject.name()));
        session.push_on(&Target::Cpu, build, threads);
    }
    let Some(function) = function else { anyhow::bail!("nothing was built") };

    let asked = &keys[..n.min(work.queries)];
    let bits = function.bits_per_key();
    let mut numbers = vec![0; asked.len()];
    let seconds = session.time(
        Threads::One,
        &mut numbers,
        |_| Ok(()),
        |numbers| {
            function.each(asked, numbers);
            Ok(())
        },
    )?;
    let mut single = row("query", asked.len(), seconds, bits).param("keys", n);
    // The build's check asked all together where it could: here are the answers one by one.
    let (limit, each) = function.numbers(n);
    let distinct = session.verify(are_spread(&numbers, limit, each), || format!("{}: wrong numbers", subject.name()));
    single.checked = distinct;
    session.push_on(&Target::Cpu, single, Threads::One);

    let one_by_one = numbers.clone();
    numbers.fill(u64::MAX);
    if function.batch(asked, &mut numbers) {
        let seconds = session.time(
            Threads::One,
            &mut numbers,
            |_| Ok(()),
            |numbers| {
                function.batch(asked, numbers);
                Ok(())
            },
        )?;
        let mut batch = row("query batch", asked.len(), seconds, bits).param("keys", n);
        batch.checked =
            session.verify(numbers == one_by_one, || format!("{}: batches answer otherwise", subject.name()));
        session.push_on(&Target::Cpu, batch, Threads::One);
    }
    Ok(())
}

/// Whether the keys have the numbers that the function promises; as a rule, each its own below their count.
fn is_bijection<K: Key>(session: &Session, function: &dyn Function<K>, keys: &[K]) -> bool {
    const CHUNK: usize = 1 << 14;
    let mut numbers = vec![u64::MAX; keys.len()];
    session.pool(Threads::All).install(|| {
        numbers.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, numbers)| {
            let keys = &keys[chunk * CHUNK..][..numbers.len()];
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
    use warpset_recsplit::Method;

    use super::super::super::clock::Effort;
    use super::super::super::progress::Progress;
    use super::super::super::suite::Input;
    use super::*;

    #[test]
    fn numbers_must_be_distinct_and_small() {
        assert!(are_spread(&[2, 0, 1], 3, 1) && are_spread(&[], 0, 1) && are_spread(&[99], 100, 1));
        assert!(!are_spread(&[0, 1, 1], 3, 1) && !are_spread(&[0, 3], 3, 1) && !are_spread(&[u64::MAX], 64, 1));
        assert!(are_spread(&[0, 1, 1], 2, 2) && !are_spread(&[1, 1, 1], 2, 2));
    }

    #[test]
    fn every_peer_and_method_numbers_both_kinds_of_keys() {
        let mut session =
            Session::new(Effort::Quick, "a processor".into(), Progress::new(1), Input::default()).unwrap();
        let integers: Vec<u64> = (0..3000).map(|i| i * i).collect();
        let strings: Vec<String> = integers.iter().map(|i| format!("key {i}")).collect();
        let strings: Vec<&[u8]> = strings.iter().map(String::as_bytes).collect();
        let methods = [Method::BruteForce, Method::Rotation, Method::Grouped];
        let ours = methods.map(|method| Subject::Ours(Settings::new(5, 50, method)));
        let ours = ours.into_iter().chain(super::super::variants::settings().map(Subject::Ours));
        for subject in ours.chain(Peer::ALL.map(Subject::Peer)) {
            let work = Work { input: "test", keys: &integers, study: None, all_threads: true, queries: 1000 };
            measure(&mut session, subject, work).unwrap();
            let work = Work { input: "test", keys: &strings, study: None, all_threads: true, queries: 1000 };
            measure(&mut session, subject, work).unwrap();
        }
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        assert!(rows.iter().all(|row| row.checked || row.structure == "machine"));
        assert!(rows.iter().any(|row| row.operation == "query batch" && row.implementation().is_none()));
        assert!(rows.iter().any(|row| row.operation == "build" && row.peer_ratio.is_some()));
    }
}
