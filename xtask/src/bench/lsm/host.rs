//! On the CPU, with the standard library's maps beside.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use warpset::lsm::{CleanupPolicy, Dictionary, Lsm, Ranges, SortedArray};
use warpset_benches::keys::KeySpace;

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::{INSERTED, OTHERS, SEED, Shape};

/// Queries that are asked at once.
const QUERIES: usize = 1 << 20;
/// Expected lengths of ranges, as in the paper.
const LENGTHS: [u64; 2] = [8, 1024];

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
        bench.maps(session)
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
        // In no order that has to do with the order of insertion.
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

    /// Ranges that hold `length` keys in the mean.
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
        self.queries(session, threads, "lsm", &lsm)?;
        if threads == Threads::One {
            self.one_by_one(session, &lsm)?;
        }

        let mut cleaned = lsm.clone();
        let seconds = session.time_change(threads, &lsm, &mut cleaned, |lsm| Ok(lsm.cleanup()?))?;
        let right = cleaned.resident_len() == n as u64 && self.answers_right(&cleaned)?;
        session.add(&Target::Cpu, threads, self.row("cleanup", n, "lsm", false).time(seconds), right);

        let mut sum = 0u64;
        let seconds = session.time(threads, &mut sum, |sum| {
            *sum = lsm.iter().fold(0, |sum, (_, value)| sum + u64::from(value));
            Ok(())
        })?;
        let right = sum == self.values.iter().map(|&value| u64::from(value)).sum::<u64>();
        session.add(&Target::Cpu, threads, self.row("iterate", n, "lsm", false).time(seconds), right);

        let mut array = SortedArray::builder().build()?;
        let seconds = session.time(threads, &mut array, |array| {
            *array = SortedArray::builder().build_from(&self.keys, &self.values)?;
            Ok(())
        })?;
        let right = self.answers_right(&array)?;
        session.add(&Target::Cpu, threads, self.row("build", n, "sorted array", false).time(seconds), right);
        self.scan(session, threads, &array)?;
        self.queries(session, threads, "sorted array", &array)
    }

    fn answers_right(&self, of: &impl Dictionary<u32, u32>) -> anyhow::Result<bool> {
        let found = of.get_bulk(&self.present)?;
        let right = found.iter().zip(&self.present).all(|(value, key)| *value == Some(!key));
        Ok(right && !of.contains_bulk(&self.absent)?.contains(&true))
    }

    fn queries(
        &self,
        session: &mut Session,
        threads: Threads,
        name: &str,
        of: &(impl Dictionary<u32, u32> + Sync),
    ) -> anyhow::Result<()> {
        for (operation, keys, hit) in [("get, present", &self.present, true), ("get, absent", &self.absent, false)] {
            let mut values = Vec::new();
            let seconds = session.time(threads, &mut values, |values| {
                *values = of.get_bulk(keys)?;
                Ok(())
            })?;
            let right = values.iter().zip(keys).all(|(value, key)| *value == hit.then_some(!key));
            session.add(&Target::Cpu, threads, self.row(operation, keys.len(), name, false).time(seconds), right);
        }
        for length in LENGTHS {
            let ranges = self.ranges(length);
            let mut counts = Vec::new();
            let seconds = session.time(threads, &mut counts, |counts| {
                *counts = of.count_range_bulk(&ranges)?;
                Ok(())
            })?;
            let mut found = Ranges::default();
            let listing = session.time(threads, &mut found, |found| {
                *found = of.range_bulk(&ranges)?;
                Ok(())
            })?;
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

    /// Short ranges that are asked one after the other, as a program asks that cannot wait for a batch.
    fn one_by_one(&self, session: &mut Session, lsm: &Lsm<u32, u32>) -> anyhow::Result<()> {
        let ranges = self.ranges(LENGTHS[0]);
        let (mut counted, mut sum) = (0, 0);
        let counting = session.time(Threads::One, &mut counted, |counted| {
            *counted = ranges.iter().map(|range| lsm.count_range(range.clone())).sum::<u64>();
            Ok(())
        })?;
        let listing = session.time(Threads::One, &mut sum, |sum| {
            let values = ranges.iter().flat_map(|range| lsm.range(range.clone()));
            *sum = values.fold(0u64, |sum, (_, value)| sum + u64::from(value));
            Ok(())
        })?;
        let all = lsm.range_bulk(&ranges)?;
        let right =
            counted == all.keys.len() as u64 && sum == all.values.iter().map(|&value| u64::from(value)).sum::<u64>();
        for (operation, seconds) in [("count, one by one", counting), ("range, one by one", listing)] {
            let row = self.row(operation, ranges.len(), "lsm", false).param("length", LENGTHS[0]).time(seconds);
            session.add(&Target::Cpu, Threads::One, row, right);
        }
        Ok(())
    }

    /// A sorted array by ranges that follow each other: all of it is copied once.
    fn scan(&self, session: &mut Session, threads: Threads, array: &SortedArray<u32, u32>) -> anyhow::Result<()> {
        let step = (SCANNED << 32) / self.keys.len() as u64;
        let ranges: Vec<_> = (0..1u64 << 32)
            .step_by(step as usize)
            .map(|low| low as u32..=(low + step - 1).min(u64::from(u32::MAX)) as u32)
            .collect();
        let mut found = Ranges::default();
        let seconds = session.time(threads, &mut found, |found| {
            *found = array.range_bulk(&ranges)?;
            Ok(())
        })?;
        let right = found.keys.len() == self.keys.len() && found.keys.windows(2).all(|two| two[0] < two[1]);
        let bytes = 2 * 8 * self.keys.len();
        let limit = session.copy_limit(threads, 8 * self.keys.len());
        let row = self.row("scan", self.keys.len(), "sorted array", false).time(seconds).bytes(bytes, Some(limit));
        session.add(&Target::Cpu, threads, row, right);
        Ok(())
    }

    /// The standard library's maps, key by key on one thread.
    fn maps(&self, session: &mut Session) -> anyhow::Result<()> {
        let n = self.shape.len();
        let mut tree = BTreeMap::new();
        let seconds = session.time(Threads::One, &mut tree, |tree| {
            *tree = BTreeMap::new();
            self.keys.iter().zip(&self.values).for_each(|(&key, &value)| {
                tree.insert(key, value);
            });
            Ok(())
        })?;
        let mut hashed = Hashed::default();
        let hashing = session.time(Threads::One, &mut hashed, |hashed| {
            *hashed = Hashed::default();
            hashed.extend(self.keys.iter().copied().zip(self.values.iter().copied()));
            Ok(())
        })?;
        let right = tree.len() == n && hashed.len() == n;
        for (name, seconds) in [("BTreeMap", seconds), ("HashMap", hashing)] {
            let row = self.row("insert batches", n, name, true).time(seconds);
            session.add(&Target::Cpu, Threads::One, row, right);
        }
        for (operation, keys, hit) in [("get, present", &self.present, true), ("get, absent", &self.absent, false)] {
            let mut found = [0usize; 2];
            let seconds = session.time(Threads::One, &mut found, |found| {
                found[0] = keys.iter().filter(|key| tree.get(key) == Some(&!**key)).count();
                Ok(())
            })?;
            let hashing = session.time(Threads::One, &mut found, |found| {
                found[1] = keys.iter().filter(|key| hashed.get(key) == Some(&!**key)).count();
                Ok(())
            })?;
            let right = found == if hit { [keys.len(); 2] } else { [0; 2] };
            for (name, seconds) in [("BTreeMap", seconds), ("HashMap", hashing)] {
                let row = self.row(operation, keys.len(), name, true).time(seconds);
                session.add(&Target::Cpu, Threads::One, row, right);
            }
        }
        for length in LENGTHS {
            let ranges = self.ranges(length);
            let mut counts = Vec::new();
            let seconds = session.time(Threads::One, &mut counts, |counts: &mut Vec<usize>| {
                *counts = ranges.iter().map(|range| tree.range(range.clone()).count()).collect();
                Ok(())
            })?;
            let mut found = Vec::new();
            let listing = session.time(Threads::One, &mut found, |found: &mut Vec<(u32, u32)>| {
                found.clear();
                let pairs = ranges.iter().flat_map(|range| tree.range(range.clone()));
                found.extend(pairs.map(|(&key, &value)| (key, value)));
                Ok(())
            })?;
            let right = counts.iter().sum::<usize>() == found.len();
            let mut rows = vec![("count", seconds), ("range", listing)];
            if length == LENGTHS[0] {
                let mut sum = 0u64;
                let summing = session.time(Threads::One, &mut sum, |sum| {
                    let values = ranges.iter().flat_map(|range| tree.range(range.clone()));
                    *sum = values.fold(0, |sum, (_, &value)| sum + u64::from(value));
                    Ok(())
                })?;
                rows.extend([("count, one by one", seconds), ("range, one by one", summing)]);
            }
            for (operation, seconds) in rows {
                let row = self.row(operation, ranges.len(), "BTreeMap", true).param("length", length).time(seconds);
                session.add(&Target::Cpu, Threads::One, row, right);
            }
        }
        Ok(())
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
            "count, one by one",
            "range, one by one",
        ] {
            let compared = |row: &&Record| row.operation == operation && row.peer_ratio.is_some();
            assert!(rows.iter().any(|row| compared(&row)), "{operation}");
        }
    }
}
