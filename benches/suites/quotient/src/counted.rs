//! Multisets: counters beside a slot per copy, and beside the other crate's, over how skewed the keys are.

use std::collections::HashMap;

use rayon::prelude::*;
use warpset::prelude::Count;
use warpset::quotient::{Builder, Duplicates, QuotientFilter, RankSelect, SlotKind, Standard};

use super::subject::{Kind, qfilter_for};
use super::{ABSENT, INSERTED, MAX_LOAD, Point, Size, keys};
use bench_frame::input::keys::zipf_rank;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// The study, as its rows name it.
pub const COUNTED: &str = "multisets";

/// The share of slots that the copies would take, one each.
const LOAD: f64 = 0.7;

/// Distribution of keys.
#[derive(Clone, Copy)]
pub enum Skew {
    /// Four times on average, all alike.
    Even,
    /// The i-th most frequent `1 / i` as often as the first (Zipf, exponent 1).
    Zipf,
    /// Likewise `i` to the power of -1.5, so that two of five are the first key.
    SteepZipf,
}

impl Skew {
    /// Returns the name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Skew::SteepZipf => "Zipf 1.5",
            Skew::Even => "four copies",
            Skew::Zipf => "Zipf 1.0",
        }
    }

    /// Returns `n` keys with repetitions, in random order, drawn from `different` ones.
    pub fn keys(self, different: usize, n: usize) -> Vec<u32> {
        let different = keys(INSERTED, different);
        let random = keys(ABSENT, n);
        let place = |random: u32| {
            let share = (f64::from(random) + 0.5) / 2f64.powi(32);
            let place = match self {
                Skew::Even => share * different.len() as f64,
                Skew::Zipf => return zipf_rank(different.len(), u64::from(random) << 32 | 1 << 31),
                // The sum up to x is about 2 - 2 / sqrt(x).
                Skew::SteepZipf => (1.0 - share * (1.0 - (different.len() as f64).powf(-0.5))).powi(-2) - 1.0,
            };
            (place as usize).min(different.len() - 1)
        };
        random.into_par_iter().map(|random| different[place(random)]).collect()
    }
}

/// Makes the step.
pub fn step(size: Size) -> Step {
    Step::new(format!("quotient: multisets, {}", size.name()), move |session| {
        for skew in [Skew::Even, Skew::Zipf] {
            let n = size.keys(LOAD);
            let all = skew.keys(n / 4, n);
            let mut counts: HashMap<u32, u64> = HashMap::new();
            all.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
            let study = Study { size, skew, all, counts };
            study.ours::<RankSelect>(session, Duplicates::Counted, "rank-select, counted")?;
            study.ours::<RankSelect>(session, Duplicates::Kept, "rank-select, kept")?;
            study.ours::<Standard>(session, Duplicates::Kept, "packed, kept")?;
            study.peer(session)?;
        }
        let wanted = |row: &Record| row.number("threads") == Some(1.0);
        let skew = |row: &Record| row.text("skew").unwrap_or_default().to_owned();
        let cell = |row: &Record| row.items_per_second.map_or_else(String::new, bench_frame::table::rate);
        session.show(COUNTED, "Multisets, keys per second by skew, one thread", wanted, skew, cell);
        Ok(())
    })
}

struct Study {
    size: Size,
    skew: Skew,
    all: Vec<u32>,
    counts: HashMap<u32, u64>,
}

impl Study {
    fn push(
        &self,
        session: &mut Session,
        threads: Threads,
        (operation, n, seconds): (&str, usize, f64),
        (name, is_peer, bytes): (&str, bool, u64),
        right: bool,
    ) {
        let point = Point { study: COUNTED, size: self.size, load: LOAD };
        let mut row = point.row(operation, n, seconds).by(name.to_owned(), is_peer).param("skew", self.skew.name());
        row.bits_per_item = Some(8.0 * bytes as f64 / self.all.len() as f64);
        session.add(&Target::Cpu, threads, row, right);
    }

    /// Checks every key's count; it may be larger if another key has its fingerprint, at the expected rate.
    fn is_right(&self, asked: &[u32], counts: &[u64]) -> bool {
        let wanted = |key: &u32| self.counts.get(key).copied().unwrap_or(0);
        let pairs = || asked.iter().zip(counts);
        let more = pairs().filter(|(key, count)| **count > wanted(key)).count();
        let rate = self.counts.len() as f64 / 2f64.powi((self.size.quotient_bits + self.size.remainder_bits) as i32);
        pairs().all(|(key, count)| *count >= wanted(key)) && super::as_expected(more, rate * asked.len() as f64)
    }

    fn ours<S: SlotKind>(&self, session: &mut Session, duplicates: Duplicates, name: &str) -> anyhow::Result<()> {
        let builder = Builder::<S>::with_bits(self.size.quotient_bits, self.size.remainder_bits);
        let builder = builder.max_load(MAX_LOAD).duplicates(duplicates);
        let built = session.pool(Threads::All).install(|| builder.build_from(&self.all))?;
        let bytes = built.memory_bytes();
        let asked: Vec<u32> = self.counts.keys().copied().collect();
        let one_by_one = format!("{name}, one by one");
        let is_same = |filter: &QuotientFilter<S>| *filter == built && filter.len() == self.all.len() as u64;

        for &threads in session.threads(true) {
            let (seconds, filter) = session.made(threads, || Ok(builder.build_from(&self.all)?))?;
            let right = is_same(&filter);
            self.push(session, threads, ("build", self.all.len(), seconds), (name, false, bytes), right);
            let mut counts = vec![0; asked.len()];
            let seconds = session.time(threads, &mut counts, |counts| Ok(built.count_bulk_into(&asked, counts)?))?;
            let right = self.is_right(&asked, &counts);
            self.push(session, threads, ("count", asked.len(), seconds), (name, false, bytes), right);
        }

        let empty = builder.build()?;
        let mut filter = empty.clone();
        let seconds = session.time_change(Threads::One, &empty, &mut filter, |filter| {
            for key in &self.all {
                filter.insert(*key)?;
            }
            Ok(())
        })?;
        let right = is_same(&filter);
        self.push(session, Threads::One, ("insert", self.all.len(), seconds), (&one_by_one, false, bytes), right);
        let mut counts = vec![0; asked.len()];
        let seconds = session.time(Threads::One, &mut counts, |counts| {
            asked.iter().zip(counts).for_each(|(key, count)| *count = built.count(*key));
            Ok(())
        })?;
        let right = self.is_right(&asked, &counts);
        self.push(session, Threads::One, ("count", asked.len(), seconds), (&one_by_one, false, bytes), right);
        Ok(())
    }

    fn peer(&self, session: &mut Session) -> anyhow::Result<()> {
        let asked: Vec<u32> = self.counts.keys().copied().collect();
        let empty = qfilter_for(self.size)?;
        let mut filter = empty.clone();
        let seconds = session.time_change(Threads::One, &empty, &mut filter, |filter| {
            for key in &self.all {
                filter.insert_duplicated(key)?;
            }
            Ok(())
        })?;
        let name = Kind::Qfilter.name();
        let bytes = filter.memory_usage() as u64;
        let right = filter.len() == self.all.len() as u64;
        self.push(session, Threads::One, ("insert", self.all.len(), seconds), (&name, true, bytes), right);
        let mut counts = vec![0; asked.len()];
        let seconds = session.time(Threads::One, &mut counts, |counts| {
            asked.iter().zip(counts).for_each(|(key, count)| *count = filter.count(key));
            Ok(())
        })?;
        let right = self.is_right(&asked, &counts);
        self.push(session, Threads::One, ("count", asked.len(), seconds), (&name, true, bytes), right);
        Ok(())
    }
}
