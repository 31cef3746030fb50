//! On the CPU, with the standard library's hash tables beside, which are those of the crate `hashbrown`.

use std::collections::HashMap;

use bench_frame::input::keys::KeySpace;
use warpset::prelude::Filter;
use warpset::static_sets::{StaticKey, StaticMap, StaticSet};

use super::{ABSENT, PRESENT, SEED, queries, row};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

type Table<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Name of the peer.
const PEER: &str = "std HashMap (hashbrown), foldhash";

/// Returns numbers of keys.
pub fn sizes(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Quick => &[1_000_000],
        Effort::Standard => &[1_000_000, 10_000_000],
        Effort::Full => &[1_000_000, 10_000_000, 100_000_000],
    }
}

/// Makes the step of one size.
pub fn step(n: usize) -> Step {
    Step::new(format!("static: exact sets on the CPU, {n} keys"), move |session| {
        let stream = |number| KeySpace::new(SEED).stream(number);
        let asked = queries(session.effort, n);
        let (keys, absent) = (stream(PRESENT).u64_keys(n), stream(ABSENT).u64_keys(asked));
        measure(session, "u64", &keys, &shuffled(&keys, asked), &absent)?;
        let (keys, absent) = (stream(PRESENT).u32_keys(n), stream(ABSENT).u32_keys(asked));
        measure(session, "u32", &keys, &shuffled(&keys, asked), &absent)
    })
}

/// Returns keys of the set in an order independent of their places in it.
fn shuffled<K: Copy>(keys: &[K], asked: usize) -> Vec<K> {
    let places = KeySpace::new(SEED).stream(2).u64_keys(asked);
    places.iter().map(|&place| keys[((u128::from(place) * keys.len() as u128) >> 64) as usize]).collect()
}

fn measure<K: StaticKey>(
    session: &mut Session,
    kind: &str,
    keys: &[K],
    present: &[K],
    absent: &[K],
) -> anyhow::Result<()> {
    let n = keys.len();
    let ours = |operation: &str, items: usize, seconds: f64, bits: f64| {
        let mut row = row(operation, items, n, kind, seconds).by("exact set", false);
        row.bits_per_item = Some(bits);
        row
    };
    for &threads in session.threads(true) {
        let (seconds, set) = session.made(threads, || Ok(StaticSet::<K>::builder().build_from(keys)?))?;
        let bits = set.bits_per_key();
        let right = set.len() == n as u64 && set.count_contained_bulk(keys)? == n;
        session.add(&Target::Cpu, threads, ours("build", n, seconds, bits), right);
        for (operation, asked, all) in [("contains hit", present, true), ("contains miss", absent, false)] {
            let mut answers = vec![false; asked.len()];
            let seconds = session.time(threads, &mut answers, |answers| Ok(set.contains_bulk_into(asked, answers)?))?;
            let right = answers.iter().all(|&answer| answer == all);
            session.add(&Target::Cpu, threads, ours(operation, asked.len(), seconds, bits), right);
            if threads == Threads::One {
                let seconds = session.time(threads, &mut answers, |answers| {
                    answers.iter_mut().zip(asked).for_each(|(answer, &key)| *answer = set.contains(key));
                    Ok(())
                })?;
                let right = answers.iter().all(|&answer| answer == all);
                let row = ours(&format!("{operation}, one by one"), asked.len(), seconds, bits);
                session.add(&Target::Cpu, threads, row, right);
            }
        }
        drop(set);
        let values: Vec<u64> = (0..n as u64).collect();
        let (seconds, map) = session.made(threads, || Ok(StaticMap::<K, u64>::builder().build_from(keys, &values)?))?;
        let of_map = |operation: &str, items: usize, seconds: f64| {
            let row = ours(operation, items, seconds, map.bits_per_key());
            row.by("exact map", false).param("value", "u64")
        };
        session.add(&Target::Cpu, threads, of_map("build map", n, seconds), map.len() == n as u64);
        let mut found = vec![0; present.len()];
        let seconds =
            session.time(threads, &mut found, |found| Ok(map.get_bulk_into(present, found).map(|_| ())?))?;
        let right = present.iter().zip(&found).all(|(&key, &value)| keys[value as usize] == key);
        session.add(&Target::Cpu, threads, of_map("get hit", present.len(), seconds), right);
    }
    peers(session, kind, keys, present, absent)
}

/// Measures the standard library's tables, which one thread fills and looks up key by key.
fn peers<K: StaticKey>(
    session: &mut Session,
    kind: &str,
    keys: &[K],
    present: &[K],
    absent: &[K],
) -> anyhow::Result<()> {
    let n = keys.len();
    fn filled<K: StaticKey, V: Copy>(keys: &[K], value: impl Fn(usize) -> V) -> Table<K, V> {
        let mut table = Table::with_capacity_and_hasher(keys.len(), Default::default());
        table.extend(keys.iter().enumerate().map(|(i, &key)| (key, value(i))));
        table
    }
    let bits = |table_bytes: usize| {
        // Seven of eight buckets are used at most; their number is a power of two, and each has a byte besides.
        let buckets = (n * 8 / 7 + 1).next_power_of_two();
        8.0 * (buckets * (table_bytes + 1)) as f64 / n as f64
    };
    let theirs = |operation: &str, items: usize, seconds: f64, bytes: usize| -> Record {
        let mut row = row(operation, items, n, kind, seconds).by(PEER, true);
        row.bits_per_item = Some(bits(bytes));
        row
    };
    let one = Threads::One;
    let (seconds, table) = session.made(one, || Ok(filled(keys, |_| ())))?;
    let bytes = size_of::<K>();
    session.add(&Target::Cpu, one, theirs("build", n, seconds, bytes), table.len() == n);
    for (operation, asked, all) in [("contains hit", present, true), ("contains miss", absent, false)] {
        let mut answers = vec![false; asked.len()];
        let seconds = session.time(one, &mut answers, |answers| {
            answers.iter_mut().zip(asked).for_each(|(answer, key)| *answer = table.contains_key(key));
            Ok(())
        })?;
        let right = answers.iter().all(|&answer| answer == all);
        // It has no batches: one by one is all that it does.
        for operation in [operation.to_owned(), format!("{operation}, one by one")] {
            session.add(&Target::Cpu, one, theirs(&operation, asked.len(), seconds, bytes), right);
        }
    }
    drop(table);
    let (seconds, table) = session.made(one, || Ok(filled(keys, |i| i as u64)))?;
    let bytes = size_of::<(K, u64)>();
    session.add(&Target::Cpu, one, theirs("build map", n, seconds, bytes).param("value", "u64"), table.len() == n);
    let mut found = vec![0; present.len()];
    let seconds = session.time(one, &mut found, |found| {
        found.iter_mut().zip(present).for_each(|(value, key)| *value = table.get(key).copied().unwrap_or(u64::MAX));
        Ok(())
    })?;
    let right = present.iter().zip(&found).all(|(&key, &value)| keys[value as usize] == key);
    session.add(&Target::Cpu, one, theirs("get hit", present.len(), seconds, bytes).param("value", "u64"), right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_peer_and_right_answers() {
        let rows = Session::rows_of(vec![step(20_000)]);
        assert!(rows.iter().filter(|row| row.structure == "static").all(|row| row.checked));
        let one = |row: &&Record| row.number("threads") == Some(1.0) && row.implementation().is_none();
        let ours: Vec<&Record> = rows.iter().filter(|row| row.structure == "static").filter(one).collect();
        assert_eq!(ours.len(), 2 * 7);
        assert!(ours.iter().all(|row| row.peer_ratio.is_some() && row.bits_per_item.is_some()));
    }
}
