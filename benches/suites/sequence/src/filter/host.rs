//! Filters in host memory: one long sequence in, reads out.

use bench_frame::input::genome::canonical_kmers;
use fastbloom::BloomFilter;
use warpset::bloom::{Filter, Insert, SplitBlockBloom};
use warpset::sequence::SequenceFilter;

use super::{BITS, K, READ, letters, row};
use bench_frame::clock::Effort;
use bench_frame::machine;
use bench_frame::suite::{Session, Step, Target, Threads};

/// Number of lookups.
const ASKED: usize = 1 << 22;

/// Makes one step per size.
pub fn steps(effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        Effort::Quick => &[1 << 21],
        Effort::Standard => &[1 << 20, 1 << 26],
        Effort::Full => &[1 << 20, 1 << 26, 1 << 29],
    };
    let step = |&n: &usize| Step::new(format!("sequence filter: {n} k-mers"), move |session| measure(session, n));
    sizes.iter().map(step).collect()
}

fn measure(session: &mut Session, n: usize) -> anyhow::Result<()> {
    let asked = if session.effort == Effort::Quick { ASKED / 4 } else { ASKED };
    let (own, others) = (letters(n, 1), letters(asked, 2));
    let reads: Vec<&[u8]> = others.chunks(READ).collect();
    let present: Vec<&[u8]> = own[..asked.min(n)].chunks(READ).collect();
    let kmers_of = |reads: &[&[u8]]| reads.iter().map(|read| (read.len() + 1).saturating_sub(K)).sum::<usize>();
    for &threads in session.threads(true) {
        let mut filter = SequenceFilter::builder(n as u64).k(K as u32).bits_per_key(BITS).build()?;
        let clear = |filter: &mut SequenceFilter| {
            filter.clear();
            Ok(())
        };
        let insert = session.time_after(threads, &mut filter, clear, |filter| {
            filter.insert(&own);
            Ok(())
        })?;
        let mut hits = Vec::new();
        let absent = session.time(threads, &mut hits, |hits| {
            *hits = filter.count_bulk(&reads)?;
            Ok(())
        })?;
        let passed: u64 = hits.iter().map(|hits| hits.found).sum();
        let found = session.time(threads, &mut hits, |hits| {
            *hits = filter.count_bulk(&present)?;
            Ok(())
        })?;
        let right = hits.iter().all(|hits| hits.found == hits.kmers) && passed as f64 <= 1e-4 * asked as f64;
        let times = [
            ("insert", n, insert),
            ("contains miss", kmers_of(&reads), absent),
            ("contains hit", kmers_of(&present), found),
        ];
        for (operation, n_of, seconds) in times {
            let mut row = row(operation, n_of, seconds, n).by("from letters", false);
            row.fpr = Some(passed as f64 / kmers_of(&reads) as f64);
            row.bits_per_item = Some(filter.bits_per_key(n as u64));
            session.add(&Target::Cpu, threads, row, right);
        }
        of_kmers(session, threads, &own, &others)?;
    }
    Ok(())
}

/// Measures filters of k-mers that are given as numbers.
fn of_kmers(session: &mut Session, threads: Threads, own: &[u8], others: &[u8]) -> anyhow::Result<()> {
    let (keys, asked): (Vec<u64>, Vec<u64>) = (canonical_kmers(own).collect(), canonical_kmers(others).collect());
    let mut filter = SplitBlockBloom::builder(keys.len() as u64).bits_per_key(BITS).build()?;
    let clear = |filter: &mut SplitBlockBloom| {
        filter.clear()?;
        Ok(())
    };
    let insert = session.time_after(threads, &mut filter, clear, |filter| {
        filter.insert_bulk(&keys)?;
        Ok(())
    })?;
    let mut passed = 0;
    let absent = session.time(threads, &mut passed, |passed| {
        *passed = filter.count_contained_bulk(&asked)?;
        Ok(())
    })?;
    let right = filter.count_contained_bulk(&keys)? == keys.len();
    for (operation, n, seconds) in [("insert", keys.len(), insert), ("contains miss", asked.len(), absent)] {
        let mut row = row(operation, n, seconds, keys.len()).by("split-block Bloom filter of ready k-mers", false);
        row.fpr = Some(passed as f64 / asked.len() as f64);
        row.bits_per_item = Some(filter.bits_per_key(keys.len() as u64));
        session.add(&Target::Cpu, threads, row, right);
    }
    if threads == Threads::All {
        return Ok(());
    }
    let bits = (BITS * keys.len() as f64) as usize;
    let mut peer = BloomFilter::with_num_bits(bits).expected_items(keys.len());
    let insert = session.time_after(
        threads,
        &mut peer,
        |peer| {
            peer.clear();
            Ok(())
        },
        |peer| {
            keys.iter().for_each(|key| _ = peer.insert(key));
            Ok(())
        },
    )?;
    let absent = session.time(threads, &mut passed, |passed| {
        *passed = asked.iter().filter(|key| peer.contains(key)).count();
        Ok(())
    })?;
    let right = keys.iter().all(|key| peer.contains(key));
    for (operation, n, seconds) in [("insert", keys.len(), insert), ("contains miss", asked.len(), absent)] {
        let name = format!("fastbloom {} of ready k-mers", machine::version("fastbloom"));
        let mut row = row(operation, n, seconds, keys.len()).by(name, true);
        row.fpr = Some(passed as f64 / asked.len() as f64);
        row.bits_per_item = Some(BITS);
        session.add(&Target::Cpu, threads, row, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_stand_beside_ready_kmers() {
        let rows = Session::rows_of(vec![Step::new("filters", |session| measure(session, 20_000))]);
        assert!(rows.iter().all(|row| row.checked));
        for operation in ["insert", "contains miss"] {
            let one = rows.iter().filter(|row| row.operation == operation && row.number("threads") == Some(1.0));
            assert_eq!(one.count(), 3, "{operation}");
        }
    }
}
