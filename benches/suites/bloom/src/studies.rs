//! The measurements of figures and tables: false-positive rates, bits per key, first-level hashes.

use bench_frame::input::keys::KeySpace;
use warpset::bloom::{
    BlockedBloom, Builder, Error, FirstLevel, Insert, Layout, RaoBloom, RaoLayout, SplitBlockBloom, StringHash,
};
use warpset_core::bloom::rao::BucketShape;

use super::peers::Peer;
use super::subject::{Keys, Subject};
use super::variant::{self, Variant};
use super::{ABSENT, INSERTED, SEED, plausible};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_frame::table::percent;
use bench_record::Record;

/// Makes the studies; they are of the filters themselves, not of a backend, so the CPU makes them.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    let steps = [
        Step::new("bloom: bits per key by false-positive rate", bits_per_key),
        Step::new("bloom: false-positive rate over bits per key", fpr_over_bits),
        Step::new("bloom: false-positive rate over keys (Rao's Figure 1)", fpr_over_n),
        Step::new("bloom: first-level hashes (Rao's Table 1)", first_level_hashes),
    ];
    steps.map(Step::except_quick).into()
}

/// Computes the builders' bits per key for ten million keys, by theory.
fn bits_per_key(session: &mut Session) -> anyhow::Result<()> {
    const KEYS: u64 = 10_000_000;
    let mut push = |name: String, fpr: f64, words: u64, hashes: u32| {
        let mut row = Record::new("bloom", "memory", KEYS as usize).by(name, false).param("study", "memory");
        row = row.param("rate", fpr).param("hashes", hashes);
        row.bits_per_item = Some(32.0 * words as f64 / KEYS as f64);
        session.push_on(&Target::Cpu, row, Threads::One);
    };
    for fpr in [0.05, 0.01, 0.001, 0.0001] {
        let layout = SplitBlockBloom::builder(KEYS).fpr(fpr).layout()?;
        push(Variant::SplitBlock.name(), fpr, layout.words(), layout.hashes());
        for (block, word) in [(64, 64), (128, 64), (256, 32), (512, 64), (1024, 64)] {
            let layout = BlockedBloom::builder(KEYS).fpr(fpr).block_bits(block).word_bits(word).layout()?;
            push(Variant::Blocked(block, word, 0).name(), fpr, layout.words(), layout.hashes());
        }
        for choices in [1, 2] {
            let layout = RaoBloom::builder(KEYS).fpr(fpr).choices(choices).layout()?;
            push(Variant::Rao(choices).name(), fpr, layout.words(), layout.hashes());
        }
    }
    let rate = |row: &Record| percent(row.number("rate").unwrap_or_default());
    let cell = |row: &Record| {
        let (bits, hashes) = (row.bits_per_item.unwrap_or_default(), row.number("hashes").unwrap_or_default());
        format!("{bits:.1} (k = {hashes})")
    };
    session.show("memory", "Bits per key that the builders take, by rate", |row| row.structure == "bloom", rate, cell);
    Ok(())
}

/// Returns keys that were never inserted, enough of them to measure a rate.
fn absent(effort: Effort) -> Vec<u64> {
    KeySpace::new(SEED).stream(ABSENT).u64_keys(1 << if effort == Effort::Quick { 20 } else { 23 })
}

/// Adds the share of `absent` keys that `filter`, of `n` keys, claims to contain.
fn push(
    session: &mut Session,
    study: &str,
    (name, peer): (String, bool),
    filter: &dyn Subject,
    n: usize,
    absent: &[u64],
) -> anyhow::Result<()> {
    let mut answers = vec![false; absent.len()];
    session.pool(Threads::All).install(|| filter.contains(Keys::U64(absent), &mut answers))?;
    let positives = answers.iter().filter(|answer| **answer).count();
    let theory = filter.theory(n);
    let mut row = Record::new("bloom", "false positives", n).by(name, peer);
    row = row.param("study", study).param("filter_bytes", filter.bytes());
    if let Some(theory) = theory {
        row = row.param("theory", theory);
    }
    if let Some(hashes) = filter.hashes() {
        row = row.param("hashes", hashes);
    }
    row.bits_per_item = Some(filter.bytes() as f64 * 8.0 / n as f64);
    row.fpr = Some(positives as f64 / absent.len() as f64);
    let right = theory.is_none_or(|rate| plausible(positives, rate * absent.len() as f64));
    session.add(&Target::Cpu, Threads::All, row, right);
    Ok(())
}

fn fpr_over_bits(session: &mut Session) -> anyhow::Result<()> {
    const STUDY: &str = "fpr over bits";
    let n = 1 << if session.effort == Effort::Quick { 18 } else { 21 };
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let absent = absent(session.effort);
    for bits in (6..=24).step_by(2) {
        let bytes = n * bits / 8;
        // Blocked filters with the bits per key that are best for the memory, as a builder would choose.
        let best = ((bits as f64 * std::f64::consts::LN_2).round() as u32).clamp(1, 16);
        let blocked = [(64, best.min(6)), (256, best), (512, best), (1024, best)];
        let ours = blocked.map(|(block, hashes)| Variant::Blocked(block, 64, hashes));
        for variant in [Variant::SplitBlock].into_iter().chain(ours).chain([Variant::Rao(1), Variant::Rao(2)]) {
            let mut filter = variant.of_size_and_hashes(bytes, best)?;
            session.pool(Threads::All).install(|| filter.fill(Keys::U64(&keys)))?;
            push(session, STUDY, (variant.name(), false), &*filter, n, &absent)?;
        }
        for peer in Peer::ALL.iter().filter(|peer| **peer != Peer::FastbloomFoldhash) {
            let mut filter = peer.build(bytes, n, false);
            session.pool(Threads::One).install(|| filter.insert(Keys::U64(&keys)))?;
            push(session, STUDY, (peer.name(), true), &*filter, n, &absent)?;
        }
    }
    let title = "False-positive rate by bits per key (each as its builder would be set for them)";
    let bits = |row: &Record| row.bits_per_item.map_or_else(String::new, |bits| format!("{bits:.0}"));
    session.show(STUDY, title, |_| true, bits, |row| row.fpr.map_or_else(String::new, percent));
    Ok(())
}

fn fpr_over_n(session: &mut Session) -> anyhow::Result<()> {
    let absent = absent(session.effort);
    for log_bytes in [16, 18, 20, 22] {
        let bytes = 1usize << log_bytes;
        let mut filter = Builder::with_layout(variant::rao(bytes, 1, 7)?).build()?;
        // From 64 bits per key down to 4, one filter that fills up.
        let mut n = 0;
        for step in 0..=8 {
            let next = (bytes as f64 * 8.0 / 64.0 * 2f64.powf(f64::from(step) / 2.0)) as usize;
            // `extend` continues where `insert_bulk` would report a bucket beyond the paper's capacity.
            let stream = KeySpace::new(SEED).stream(INSERTED);
            filter.extend((n..next).map(|i| stream.key(i as u64)));
            n = next;
            push(session, "fpr over n", (Variant::Rao(1).name(), false), &filter, n, &absent)?;
        }
    }
    Ok(())
}

const LOADS: [f64; 4] = [0.80, 0.85, 0.90, 0.95];
const BUCKETS: usize = 48;
/// Bytes of the strings of Table 1.
const STRING: usize = 41;

/// Measures the paper's geometry (sections 5.1 and 5.2): 48 buckets of 40,949 bits, 7 hashes, strings of 41 bytes.
/// First whole buckets, restarted by another mix of the same hash, as our builder does; then batches of 256 keys per
/// bucket, restarted with other strings, since most of these functions have no seed (`docs/bloom.md` says why the paper
/// counts these).
fn first_level_hashes(session: &mut Session) -> anyhow::Result<()> {
    let Some(shape) = BucketShape::new(1280, 7) else { anyhow::bail!("the paper's bucket is not allowed") };
    let trials = if session.effort == Effort::Quick { 3 } else { 9 };
    let name = |first_level| match first_level {
        FirstLevel::String(function) => function.name(),
        FirstLevel::Mixed => "mixed (ours)",
    };
    let all: Vec<FirstLevel> = StringHash::ALL.into_iter().map(FirstLevel::String).chain([FirstLevel::Mixed]).collect();
    // Two choices converge at once with any decent hash: the paper's best one and ours suffice.
    let of_two = [FirstLevel::String(StringHash::Bkdr), FirstLevel::Mixed];
    for (choices, functions) in [(1, &all[..]), (2, &of_two[..])] {
        for &first_level in functions {
            for load in LOADS {
                let layout = RaoLayout::new(BUCKETS as u64, shape, choices, first_level, 0)?;
                let n = (BUCKETS as f64 * f64::from(layout.bucket_capacity()) * load) as usize;
                let mut restarts = Vec::new();
                for trial in 0..trials {
                    let strings = KeySpace::new(SEED + trial).stream(INSERTED).strings(n, STRING);
                    let mut filter: RaoBloom = Builder::with_layout(layout).build()?;
                    restarts.push(match filter.insert_bulk(&strings.slices()) {
                        Ok(()) => Some(filter.layout().attempt()),
                        Err(Error::BucketOverflow { .. }) => None,
                        Err(error) => return Err(error.into()),
                    });
                }
                push_restarts(session, "whole buckets", name(first_level), choices, load, n, restarts);
            }
        }
    }
    let (trials, most) = if session.effort == Effort::Quick { (1, 20) } else { (5, 200) };
    for function in StringHash::ALL {
        for load in LOADS {
            let n = (BUCKETS as f64 * 256.0 * load) as usize;
            let restarts = (0..trials).map(|trial| (0..most).find(|&restart| fits(function, n, trial << 8 | restart)));
            let restarts = restarts.map(|restarts| restarts.map(|restarts| restarts as u32)).collect();
            push_restarts(session, "batches", function.name(), 1, load, n, restarts);
        }
    }
    for of in ["whole buckets", "batches"] {
        let load = |row: &Record| format!("{:.0} %", 100.0 * row.number("load").unwrap_or_default());
        let iterations = |row: &Record| row.number("iterations").map_or("++".into(), |n| format!("{n:.0}"));
        let title = format!("Rao's Table 1, {of}: restarts until no bucket overflows, by load (++: given up)");
        session.show("first-level hash", &title, |row| row.text("of") == Some(of), load, iterations);
    }
    Ok(())
}

/// Whether `n` strings fit in buckets of 256.
fn fits(function: StringHash, n: usize, draw: u64) -> bool {
    let strings = KeySpace::new(SEED ^ draw << 32).stream(INSERTED).strings(n, STRING);
    let mut loads = [0; BUCKETS];
    strings.slices().into_iter().all(|string| {
        let load = &mut loads[function.hash_bytes(string) as usize % BUCKETS];
        *load += 1;
        *load <= 256
    })
}

/// Adds the median of the trials; trials that were given up count as infinite.
fn push_restarts(
    session: &mut Session,
    of: &str,
    hash: &str,
    choices: u32,
    load: f64,
    n: usize,
    mut restarts: Vec<Option<u32>>,
) {
    restarts.sort_by_key(|restarts| restarts.unwrap_or(u32::MAX));
    let name = format!("{hash}{}", if choices == 2 { ", two choices" } else { "" });
    let mut row = Record::new("bloom", "first-level hash", n).by(name, false).param("study", "first-level hash");
    row = row.param("of", of).param("hash", hash).param("load", load).param("choices", choices);
    row = row.param("key_bytes", STRING).param("buckets", BUCKETS);
    if let Some(median) = restarts[restarts.len() / 2] {
        row = row.param("iterations", median);
    }
    session.push_on(&Target::Cpu, row, Threads::All);
}
