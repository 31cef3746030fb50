//! On the CPU, with the standard library's maps and a sorted vector beside.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use bench_frame::input::keys::KeySpace;
use warpset::lsm::cpu::Dictionary;
use warpset::lsm::{CleanupPolicy, Lsm, MergePolicy, OrderedMap, Ranges, SortedArray};

use super::{INSERTED, OTHERS, SEED, Shape};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Queries per call.
const QUERIES: usize = 1 << 20;
/// Expected lengths of ranges, as in the paper.
const LENGTHS: [u64; 2] = [8, 1024];

/// Insertions of one key with a count after each.
const INTERLEAVED: usize = 1 << 10;

/// Keys per range where everything is listed.
const SCANNED: u64 = 1 << 12;

/// The fastest hasher that the standard library's map was found to have.
type Hashed = HashMap<u32, u32, foldhash::fast::RandomState>;

pub fn step(shape: Shape, effort: Effort) -> Step {
    Step::new(format!("lsm: {} on cpu", shape.name()), move |session| {
        let bench = Bench::new(shape, effort);
        for &threads in session.threads(true) {
            bench.trees(session, threads)?;
        }
        bench.peers(session)
    })
}

struct Bench {
    shape: Shape,
    keys: Vec<u32>,
    values: Vec<u32>,
    present: Vec<u32>,
    absent: Vec<u32>,
}

impl Bench {
    fn new(shape: Shape, effort: Effort) -> Bench {
        let keys = KeySpace::new(SEED).stream(INSERTED).u32_keys(shape.len());
        let queries = QUERIES.min(if effort == Effort::Quick { 1 << 16 } else { QUERIES });
        // In an order independent of the order of insertion.
        let present =
            (0..queries as u64).map(|i| keys[(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as usize % keys.len()]);
        Bench {
            present: present.collect(),
            absent: KeySpace::new(SEED).stream(OTHERS).u32_keys(queries),
            values: keys.iter().map(|key| !key).collect(),
            keys,
            shape,
        }
    }

    fn row(&self, operation: &str, n: usize, by: &str, peer: bool) -> Record {
        Record::new("lsm", operation, n)
            .by(by, peer)
            .param("elements", self.shape.len())
            .param("batch", self.shape.batch())
            .param("key", "u32")
    }

    /// Returns ranges that hold `length` keys on average.
    fn ranges(&self, length: u64) -> Vec<RangeInclusive<u32>> {
        let width = ((length << 32) / self.keys.len() as u64) as u32;
        let count = self.present.len().min((1 << 22) / length as usize);
        self.absent[..count].iter().map(|&low| low..=low.saturating_add(width)).collect()
    }

    fn trees(&self, session: &mut Session, threads: Threads) -> anyhow::Result<()> {
        let n = self.shape.len();
        let builder = Lsm::<u32, u32>::builder().batch_size(self.shape.batch() as u64);
        let mut built = None;
        for (name, policy) in [("lsm", CleanupPolicy::Manual), ("lsm, cleanup by itself", CleanupPolicy::default())] {
            let empty = builder.cleanup(policy).build()?;
            let mut lsm = empty.clone();
            let seconds = session.time_change(threads, &empty, &mut lsm, |lsm| {
                let batches = self.keys.chunks(self.shape.batch()).zip(self.values.chunks(self.shape.batch()));
                for (keys, values) in batches {
                    lsm.insert_bulk(keys, values)?;
                }
                Ok(())
            })?;
            let right = lsm.len() == n as u64 && self.answers_right(&lsm)?;
            session.add(&Target::Cpu, threads, self.row("insert batches", n, name, false).time(seconds), right);
            built.get_or_insert(lsm);
        }
        let Some(lsm) = built else { return Ok(()) };
        self.changed(session, threads, &lsm)?;
        self.queries(session, threads, "lsm", &lsm)?;
        if threads == Threads::One {
            self.gets(session, &lsm)?;
            self.one_by_one(session, &lsm)?;
            self.counts_between_updates(session, &lsm)?;
        }

        let mut cleaned = lsm.clone();
        let seconds = session.time_change(threads, &lsm, &mut cleaned, |lsm| Ok(lsm.cleanup()?))?;
        let right = cleaned.resident_len() == n as u64 && self.answers_right(&cleaned)?;
        session.add(&Target::Cpu, threads, self.row("cleanup", n, "lsm", false).time(seconds), right);

        let (seconds, sum) =
            session.made(threads, || Ok(lsm.iter().fold(0, |sum, (_, value)| sum + u64::from(value))))?;
        let right = sum == self.values.iter().map(|&value| u64::from(value)).sum::<u64>();
        session.add(&Target::Cpu, threads, self.row("iterate", n, "lsm", false).time(seconds), right);

        let (seconds, array) =
            session.made(threads, || Ok(SortedArray::builder().build_from(&self.keys, &self.values)?))?;
        let right = self.answers_right(&array)?;
        session.add(&Target::Cpu, threads, self.row("build", n, "sorted array", false).time(seconds), right);
        self.scan(session, threads, &array)?;
        self.queries(session, threads, "sorted array", &array)
    }

    /// Returns half of the keys, in an order independent of their values, and the same number of others.
    fn changes(&self) -> Changes {
        let half = self.keys.len() / 2;
        let added = KeySpace::new(SEED).stream(OTHERS).u32_keys(half);
        Changes { removed: self.keys[..half].to_vec(), added }
    }

    /// Returns the number of keys after [`CHANGES`].
    fn len_after(&self, added: bool) -> usize {
        self.keys.len() - if added { 0 } else { self.keys.len() / 2 }
    }

    /// Measures removals, and updates that remove and insert.
    fn changed(&self, session: &mut Session, threads: Threads, lsm: &Lsm<u32, u32>) -> anyhow::Result<()> {
        let changes = self.changes();
        let batch = self.shape.batch();
        let values: Vec<u32> = changes.added.iter().map(|key| !key).collect();
        for (operation, added) in CHANGES {
            let mut changed = lsm.clone();
            let seconds = session.time_change(threads, lsm, &mut changed, |lsm| {
                if !added {
                    return Ok(changes.removed.chunks(batch).try_for_each(|keys| lsm.remove_bulk(keys))?);
                }
                let half = batch / 2;
                let insertions = changes.added.chunks(half).zip(values.chunks(half));
                for (removed, (keys, values)) in changes.removed.chunks(half).zip(insertions) {
                    let flags = [vec![true; removed.len()], vec![false; keys.len()]].concat();
                    lsm.update_bulk(&[removed, keys].concat(), &[removed, values].concat(), &flags)?;
                }
                Ok(())
            })?;
            let gone = changed.get_bulk(&changes.removed).iter().all(Option::is_none);
            let there = changed.get_bulk(&changes.added).iter().all(|value| value.is_some() == added);
            let right = gone && there && changed.len() == self.len_after(added) as u64;
            session.add(
                &Target::Cpu,
                threads,
                self.row(operation, changes.items(added), "lsm", false).time(seconds),
                right,
            );
        }
        Ok(())
    }

    fn answers_right(&self, of: &impl OrderedMap<u32, u32>) -> anyhow::Result<bool> {
        let found = of.get_bulk(&self.present)?;
        let right = found.iter().zip(&self.present).all(|(value, key)| *value == Some(!key));
        Ok(right && !of.contains_bulk(&self.absent)?.contains(&true))
    }

    fn queries(
        &self,
        session: &mut Session,
        threads: Threads,
        name: &str,
        of: &Dictionary<u32, u32, impl MergePolicy>,
    ) -> anyhow::Result<()> {
        for (operation, keys, hit) in [("get, present", &self.present, true), ("get, absent", &self.absent, false)] {
            let (seconds, values) = session.made(threads, || Ok(of.get_bulk(keys)))?;
            let right = values.iter().zip(keys).all(|(value, key)| *value == hit.then_some(!key));
            session.add(&Target::Cpu, threads, self.row(operation, keys.len(), name, false).time(seconds), right);
        }
        for length in LENGTHS {
            let ranges = self.ranges(length);
            let (seconds, counts) = session.made(threads, || Ok(of.count_range_bulk(&ranges)))?;
            // Into the memory of an earlier list, as the sorted vector's.
            let mut found = Ranges::default();
            let listing = session.time(threads, &mut found, |found| Ok(of.range_bulk_into(&ranges, found)?))?;
            let right = (0..ranges.len()).all(|i| {
                let (keys, values) = found.get(i);
                let inside = keys.iter().zip(values).all(|(key, value)| ranges[i].contains(key) && *value == !key);
                keys.len() as u64 == counts[i] && inside
            });
            for (operation, seconds) in [("count", seconds), ("range", listing)] {
                let row = self.row(operation, ranges.len(), name, false).param("length", length).time(seconds);
                session.add(&Target::Cpu, threads, row, right);
            }
        }
        Ok(())
    }

    /// Measures lookups one after the other in one, several and many levels.
    fn gets(&self, session: &mut Session, lsm: &Lsm<u32, u32>) -> anyhow::Result<()> {
        let mut cleaned = lsm.clone();
        cleaned.cleanup()?;
        // Batches of different lengths, so that every level is occupied.
        let mut many = Lsm::<u32, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build()?;
        let mut rest = (&self.keys[..], &self.values[..]);
        while !rest.0.is_empty() {
            let (keys, values) = (rest.0.split_at(rest.0.len().div_ceil(2)), rest.1.split_at(rest.1.len().div_ceil(2)));
            many.insert_bulk(keys.0, values.0)?;
            rest = (keys.1, values.1);
        }
        for of in [&cleaned, lsm, &many] {
            let levels = of.level_lens().len();
            for (operation, keys, hits) in
                [("get, present", &self.present, self.present.len()), ("get, absent", &self.absent, 0)]
            {
                let (seconds, found) =
                    session.made(Threads::One, || Ok(keys.iter().filter(|&&key| of.get(key) == Some(!key)).count()))?;
                let row = self.row(&format!("{operation}, one by one"), keys.len(), "lsm", false);
                session.add(&Target::Cpu, Threads::One, row.param("levels", levels).time(seconds), found == hits);
            }
        }
        Ok(())
    }

    /// Measures ranges one after the other, for programs that cannot wait for a batch.
    fn one_by_one(&self, session: &mut Session, lsm: &Lsm<u32, u32>) -> anyhow::Result<()> {
        for length in LENGTHS {
            let ranges = self.ranges(length);
            let (counting, counted) = session
                .made(Threads::One, || Ok(ranges.iter().map(|range| lsm.count_range(range.clone())).sum::<u64>()))?;
            let (listing, sum) = session.made(Threads::One, || {
                let values = ranges.iter().flat_map(|range| lsm.range(range.clone()));
                Ok(values.fold(0u64, |sum, (_, value)| sum + u64::from(value)))
            })?;
            let all = lsm.range_bulk(&ranges)?;
            let right = counted == all.keys.len() as u64
                && sum == all.values.iter().map(|&value| u64::from(value)).sum::<u64>();
            for (operation, seconds) in [("count, one by one", counting), ("range, one by one", listing)] {
                let row = self.row(operation, ranges.len(), "lsm", false).param("length", length).time(seconds);
                session.add(&Target::Cpu, Threads::One, row, right);
            }
        }
        Ok(())
    }

    /// Measures insertions of one key, each followed by a count of a long range.
    fn counts_between_updates(&self, session: &mut Session, lsm: &Lsm<u32, u32>) -> anyhow::Result<()> {
        let (ranges, mut counted) = (self.ranges(LENGTHS[1]), 0);
        let mut changed = lsm.clone();
        let seconds = session.time_change(Threads::One, lsm, &mut changed, |lsm| {
            counted = 0;
            for (range, &key) in ranges.iter().zip(&self.absent).take(INTERLEAVED) {
                lsm.insert(key, !key)?;
                counted += lsm.count_range(range.clone());
            }
            Ok(())
        })?;
        let mut model: BTreeMap<u32, u32> = lsm.iter().collect();
        let mut expected = 0;
        for (range, &key) in ranges.iter().zip(&self.absent).take(INTERLEAVED) {
            model.insert(key, !key);
            expected += model.range(range.clone()).count() as u64;
        }
        let row = self.row("insert one, count", INTERLEAVED.min(ranges.len()), "lsm", false);
        let row = row.param("length", LENGTHS[1]).time(seconds);
        session.add(&Target::Cpu, Threads::One, row, counted == expected);
        Ok(())
    }

    /// Measures a sorted array by consecutive ranges: all of it is copied once.
    fn scan(&self, session: &mut Session, threads: Threads, array: &SortedArray<u32, u32>) -> anyhow::Result<()> {
        let step = (SCANNED << 32) / self.keys.len() as u64;
        let ranges: Vec<_> = (0..1u64 << 32)
            .step_by(step as usize)
            .map(|low| low as u32..=(low + step - 1).min(u64::from(u32::MAX)) as u32)
            .collect();
        let (seconds, found) = session.made(threads, || Ok(array.range_bulk(&ranges)?))?;
        let right = found.keys.len() == self.keys.len() && found.keys.windows(2).all(|two| two[0] < two[1]);
        let bytes = 2 * 8 * self.keys.len();
        let limit = session.copy_limit(threads, 8 * self.keys.len());
        let row = self.row("scan", self.keys.len(), "sorted array", false).time(seconds).bytes(bytes, Some(limit));
        session.add(&Target::Cpu, threads, row, right);
        Ok(())
    }

    /// Measures the standard library's maps and a sorted vector, key by key on one thread.
    fn peers(&self, session: &mut Session) -> anyhow::Result<()> {
        let pairs = || self.keys.iter().copied().zip(self.values.iter().copied());
        let (mut tree, mut hashed, mut sorted) = (BTreeMap::new(), Hashed::default(), Vec::new());
        let seconds = session.time(Threads::One, &mut tree, |tree| {
            *tree = BTreeMap::new();
            tree.extend(pairs());
            Ok(())
        })?;
        self.add_peer(session, "insert batches", "BTreeMap", self.keys.len(), seconds, tree.len() == self.keys.len());
        let seconds = session.time(Threads::One, &mut hashed, |hashed| {
            *hashed = Hashed::default();
            hashed.extend(pairs());
            Ok(())
        })?;
        self.add_peer(session, "insert batches", "HashMap", self.keys.len(), seconds, hashed.len() == tree.len());
        let seconds = session.time(Threads::One, &mut sorted, |sorted| {
            *sorted = pairs().collect();
            sorted.sort_unstable();
            Ok(())
        })?;
        let right = sorted.iter().copied().eq(tree.iter().map(|(&key, &value)| (key, value)));
        self.add_peer(session, "build", "sorted Vec", self.keys.len(), seconds, right);

        let place = |key: u32| sorted.partition_point(|pair| pair.0 < key);
        self.peer_gets(session, "BTreeMap", |key| tree.get(&key).copied())?;
        self.peer_gets(session, "HashMap", |key| hashed.get(&key).copied())?;
        self.peer_gets(session, "sorted Vec", |key| {
            sorted.get(place(key)).filter(|pair| pair.0 == key).map(|pair| pair.1)
        })?;
        self.peer_ranges(session, "BTreeMap", |range| tree.range(range).map(|(&key, &value)| (key, value)))?;
        self.peer_ranges(session, "sorted Vec", |range| {
            let end = sorted.partition_point(|pair| pair.0 <= *range.end());
            sorted[place(*range.start())..end].iter().copied()
        })?;

        let (ranges, mut changed) = (self.ranges(LENGTHS[1]), sorted.clone());
        let mut counted = 0;
        let seconds = session.time_change(Threads::One, &sorted, &mut changed, |sorted| {
            for (range, &key) in ranges.iter().zip(&self.absent).take(INTERLEAVED) {
                let place = |key: u32| move |pair: &(u32, u32)| pair.0 < key;
                sorted.insert(sorted.partition_point(place(key)), (key, !key));
                let end = sorted.partition_point(|pair| pair.0 <= *range.end());
                counted += end - sorted.partition_point(place(*range.start()));
            }
            Ok(())
        })?;
        let row = self.row("insert one, count", INTERLEAVED.min(ranges.len()), "sorted Vec", true);
        let row = row.param("length", LENGTHS[1]).time(seconds);
        session.add(&Target::Cpu, Threads::One, row, counted > 0);

        let changes = self.changes();
        for (operation, added) in CHANGES {
            let mut changed = tree.clone();
            let seconds = session.time_change(Threads::One, &tree, &mut changed, |tree| {
                for (i, &key) in changes.removed.iter().enumerate() {
                    tree.remove(&key);
                    if added {
                        tree.insert(changes.added[i], !changes.added[i]);
                    }
                }
                Ok(())
            })?;
            let right = changed.len() == self.len_after(added);
            self.add_peer(session, operation, "BTreeMap", changes.items(added), seconds, right);
        }
        Ok(())
    }

    fn add_peer(&self, session: &mut Session, operation: &str, name: &str, n: usize, seconds: f64, right: bool) {
        session.add(&Target::Cpu, Threads::One, self.row(operation, n, name, true).time(seconds), right);
    }

    fn peer_gets(
        &self,
        session: &mut Session,
        name: &str,
        get: impl Fn(u32) -> Option<u32> + Sync,
    ) -> anyhow::Result<()> {
        for (operation, keys, hits) in
            [("get, present", &self.present, self.present.len()), ("get, absent", &self.absent, 0)]
        {
            let (seconds, found) =
                session.made(Threads::One, || Ok(keys.iter().filter(|&&key| get(key) == Some(!key)).count()))?;
            for operation in [operation.to_owned(), format!("{operation}, one by one")] {
                self.add_peer(session, &operation, name, keys.len(), seconds, found == hits);
            }
        }
        Ok(())
    }

    fn peer_ranges<I: Iterator<Item = (u32, u32)>>(
        &self,
        session: &mut Session,
        name: &str,
        range: impl Fn(RangeInclusive<u32>) -> I + Sync,
    ) -> anyhow::Result<()> {
        for length in LENGTHS {
            let ranges = self.ranges(length);
            let mut found = Vec::new();
            let count = || Ok(ranges.iter().map(|of| range(of.clone()).count()).collect::<Vec<_>>());
            let (counting, counts) = session.made(Threads::One, count)?;
            let listing = session.time(Threads::One, &mut found, |found: &mut Vec<(u32, u32)>| {
                found.clear();
                found.extend(ranges.iter().flat_map(|of| range(of.clone())));
                Ok(())
            })?;
            let sum = || ranges.iter().flat_map(|of| range(of.clone())).map(|pair| u64::from(pair.1)).sum::<u64>();
            let (summing, _) = session.made(Threads::One, || Ok(sum()))?;
            let one_by_one = [("count, one by one", counting), ("range, one by one", summing)];
            let times = [("count", counting), ("range", listing)].into_iter().chain(one_by_one);
            let right = counts.iter().sum::<usize>() == found.len();
            for (operation, seconds) in times {
                let row = self.row(operation, ranges.len(), name, true).param("length", length).time(seconds);
                session.add(&Target::Cpu, Threads::One, row, right);
            }
        }
        Ok(())
    }
}

/// Removals alone, and removals with the same number of insertions: half of the keys are removed, in batches.
const CHANGES: [(&str, bool); 2] = [("remove batches", false), ("update batches", true)];

/// Keys that [`CHANGES`] remove and insert.
struct Changes {
    removed: Vec<u32>,
    added: Vec<u32>,
}

impl Changes {
    fn items(&self, added: bool) -> usize {
        self.removed.len() + if added { self.added.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_right_and_beside_its_peers() {
        let rows = Session::rows_of(vec![step(Shape { log2_n: 12, log2_batch: 7 }, Effort::Quick)]);
        assert!(rows.iter().all(|row| row.checked || row.structure == "machine"), "{rows:?}");
        for operation in [
            "insert batches",
            "get, present",
            "get, absent",
            "count",
            "range",
            "remove batches",
            "update batches",
            "count, one by one",
            "range, one by one",
            "get, present, one by one",
            "get, absent, one by one",
            "insert one, count",
        ] {
            let compared = |row: &&Record| row.operation == operation && row.peer_ratio.is_some();
            assert!(rows.iter().any(|row| compared(&row)), "{operation}");
        }
    }
}
