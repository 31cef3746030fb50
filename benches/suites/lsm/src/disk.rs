//! Comparison with a database, for dictionaries that must be on disk. `redb` is a B-tree with copy-on-write pages in
//! one file; here it writes without waiting for the disk (`Durability::None`), one transaction per batch, and the file
//! stays in the system's cache. Ours is in memory.

use std::collections::BTreeMap;

use anyhow::Context;
use bench_frame::input::keys::KeySpace;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use tempfile::NamedTempFile;
use warpset::lsm::Lsm;

use super::{INSERTED, SEED, Shape};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("elements");
/// Keys that are looked up, and ranges that are listed, of this many keys each.
const QUERIES: usize = 1 << 16;
const LENGTH: u64 = 100;

pub fn step(effort: Effort) -> Step {
    let shape = match effort {
        Effort::Quick => Shape { log2_n: 17, log2_batch: 14 },
        _ => Shape { log2_n: 20, log2_batch: 16 },
    };
    Step::new(format!("lsm: {} beside a database", shape.name()), move |session| measure(session, shape))
}

/// A database in a file that goes with it.
struct Disk {
    database: Database,
    _file: NamedTempFile,
}

impl Disk {
    fn new() -> anyhow::Result<Disk> {
        let file = NamedTempFile::new().context("no temporary file for a database")?;
        Ok(Disk { database: Database::create(file.path())?, _file: file })
    }

    fn insert(&self, keys: &[u64], values: &[u64]) -> anyhow::Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::None)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in keys.iter().zip(values) {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, keys: &[u64]) -> anyhow::Result<Vec<Option<u64>>> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        keys.iter().map(|key| Ok(table.get(key)?.map(|value| value.value()))).collect()
    }

    /// Returns the keys and values of all ranges, end to end.
    fn range(&self, ranges: &[std::ops::RangeInclusive<u64>]) -> anyhow::Result<(Vec<u64>, Vec<u64>)> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut found = (Vec::new(), Vec::new());
        for range in ranges {
            for pair in table.range(range.clone())? {
                let (key, value) = pair?;
                found.0.push(key.value());
                found.1.push(value.value());
            }
        }
        Ok(found)
    }
}

fn measure(session: &mut Session, shape: Shape) -> anyhow::Result<()> {
    let n = shape.len();
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let values: Vec<u64> = keys.iter().map(|key| !key).collect();
    let asked: Vec<u64> =
        (0..QUERIES).map(|i| keys[i.wrapping_mul(0x9e37_79b9) % n].wrapping_add(i as u64 % 2)).collect();
    let width = u64::MAX / n as u64 * LENGTH;
    let ranges: Vec<_> = asked[..QUERIES / 64].iter().map(|&low| low..=low.saturating_add(width)).collect();
    let model: BTreeMap<u64, u64> = keys.iter().copied().zip(values.iter().copied()).collect();
    let expected: Vec<Option<u64>> = asked.iter().map(|key| model.get(key).copied()).collect();
    let batches = || keys.chunks(shape.batch()).zip(values.chunks(shape.batch()));
    let row = |operation: &str, n: usize, name: &str, peer: bool, seconds: f64| {
        let row = Record::new("lsm", operation, n).by(name, peer).param("key", "u64").param("value", "u64");
        let row = row.param("elements", shape.len()).param("batch", shape.batch()).param("beside", "redb");
        row.time(seconds)
    };

    let mut disk = Disk::new()?;
    let inserting = session.time_after(
        Threads::One,
        &mut disk,
        |disk| {
            *disk = Disk::new()?;
            Ok(())
        },
        |disk| batches().try_for_each(|(keys, values)| disk.insert(keys, values)),
    )?;
    let (getting, found) = session.made(Threads::One, || disk.get(&asked))?;
    let (listing, listed) = session.made(Threads::One, || disk.range(&ranges))?;
    let model_pairs = ranges.iter().flat_map(|range| model.range(range.clone()));
    let right = found == expected && listed.0.iter().zip(&listed.1).eq(model_pairs);
    for (operation, items, seconds) in
        [("insert batches", n, inserting), ("get", QUERIES, getting), ("range", ranges.len(), listing)]
    {
        session.add(&Target::Cpu, Threads::One, row(operation, items, "redb", true, seconds), right);
    }

    let empty = Lsm::<u64, u64>::builder().batch_size(shape.batch() as u64).build()?;
    let mut lsm = empty.clone();
    let inserting = session.time_change(Threads::One, &empty, &mut lsm, |lsm| {
        batches().try_for_each(|(keys, values)| Ok(lsm.insert_bulk(keys, values)?))
    })?;
    let (getting, found) = session.made(Threads::One, || Ok(lsm.get_bulk(&asked)))?;
    let (ours_listing, ours) = session.made(Threads::One, || Ok(lsm.range_bulk(&ranges)?))?;
    let right = found == expected && (ours.keys, ours.values) == listed;
    for (operation, items, seconds) in
        [("insert batches", n, inserting), ("get", QUERIES, getting), ("range", ranges.len(), ours_listing)]
    {
        session.add(&Target::Cpu, Threads::One, row(operation, items, "lsm", false, seconds), right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_answer_as_the_model() {
        let run = Step::new("disk", |session: &mut Session| measure(session, Shape { log2_n: 12, log2_batch: 9 }));
        let rows = Session::rows_of(vec![run]);
        let ours: Vec<&Record> = rows.iter().filter(|row| row.text("variant") == Some("lsm")).collect();
        assert!(ours.len() == 3 && ours.iter().all(|row| row.checked && row.peer.as_deref() == Some("redb")));
    }
}
