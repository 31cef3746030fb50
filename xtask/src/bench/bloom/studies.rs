//! The measurements behind the figures: false-positive rates, first-level hashes.

use warpset::bloom::{Builder, Error, FirstLevel, RaoBloom, RaoLayout};
use warpset_benches::keys::KeySpace;
use warpset_core::bloom::rao::BucketShape;
use warpset_core::hash::string::StringHash;

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::super::table::{percent, pivot};
use super::generated::{ABSENT, INSERTED, SEED};
use super::peers::Peer;
use super::screen::plausible;
use super::subject::{Keys, Subject};
use super::variant::{self, Variant};

/// The studies; they are of the filters themselves, not of a backend, so the CPU makes them.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    vec![
        Step::new("bloom: false-positive rate over bits a key", fpr_over_bits),
        Step::new("bloom: false-positive rate over keys (Rao's Figure 1)", fpr_over_n),
        Step::new("bloom: first-level hashes (Rao's Table 1)", first_level_hashes),
    ]
}

/// Keys that were never inserted, as many as a rate needs to show.
fn absent(effort: Effort) -> Vec<u64> {
    KeySpace::new(SEED).stream(ABSENT).u64_keys(1 << if effort == Effort::Quick { 20 } else { 23 })
}

/// The share of `absent` keys that `filter` claims to contain, and whether theory agrees.
fn false_positives(
    session: &Session,
    filter: &dyn Subject,
    absent: &[u64],
    n: usize,
) -> anyhow::Result<(f64, Option<f64>, bool)> {
    let mut answers = vec![false; absent.len()];
    session.pool(Threads::All).install(|| filter.contains(Keys::U64(absent), &mut answers))?;
    let positives = answers.iter().filter(|answer| **answer).count();
    let theory = filter.theory(n);
    let right = theory.is_none_or(|rate| plausible(positives, rate * absent.len() as f64));
    Ok((positives as f64 / absent.len() as f64, theory, right))
}

fn fpr_over_bits(session: &mut Session) -> anyhow::Result<()> {
    let n = 1 << if session.effort == Effort::Quick { 18 } else { 21 };
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let absent = absent(session.effort);
    for bits in (6..=24).step_by(2) {
        let bytes = n * bits / 8;
        // Blocked filters with the bits a key that are best for the memory, as a builder would choose.
        let best = ((bits as f64 * std::f64::consts::LN_2).round() as u32).clamp(1, 16);
        let ours = [Variant::SplitBlock, Variant::Blocked(64, 64, best.min(6)), Variant::Blocked(256, 64, best)];
        let more =
            [Variant::Blocked(512, 64, best), Variant::Blocked(1024, 64, best), Variant::Rao(1), Variant::Rao(2)];
        for variant in ours.into_iter().chain(more) {
            let mut filter = variant.of_size_and_hashes(bytes, best)?;
            session.pool(Threads::All).install(|| filter.fill(Keys::U64(&keys)))?;
            let (fpr, theory, right) = false_positives(session, &*filter, &absent, n)?;
            let row = Record::new("bloom", "false positives", n).param("variant", variant.name());
            push(session, row, &*filter, "fpr over bits", (fpr, theory, right));
        }
        for peer in [Peer::Fastbloom, Peer::Parquet] {
            let mut filter = peer.build(bytes, n, false);
            session.pool(Threads::One).install(|| filter.insert(Keys::U64(&keys)))?;
            let measured = false_positives(session, &*filter, &absent, n)?;
            let row = Record::new("bloom", "false positives", n).param("implementation", peer.name());
            push(session, row, &*filter, "fpr over bits", measured);
        }
    }
    let rows = session.study("fpr over bits");
    let title = "False-positive rate by bits a key (each as its builder would be set for them)";
    let bits = |row: &Record| row.bits_per_item.map_or_else(String::new, |bits| format!("{bits:.0}"));
    let text = pivot(title, &rows, name, bits, |row| row.fpr.map_or_else(String::new, percent));
    session.print(&text);
    Ok(())
}

/// Variant or peer.
fn name(row: &Record) -> String {
    row.text("variant").or(row.implementation()).unwrap_or_default().to_owned()
}

fn push(
    session: &mut Session,
    mut row: Record,
    filter: &dyn Subject,
    study: &str,
    (fpr, theory, right): (f64, Option<f64>, bool),
) {
    let (bytes, n) = (filter.bytes(), row.n);
    row = row.param("study", study).param("filter_bytes", bytes);
    if let Some(theory) = theory {
        row = row.param("theory", theory);
    }
    if let Some(hashes) = filter.hashes() {
        row = row.param("hashes", hashes);
    }
    row.bits_per_item = Some(bytes as f64 * 8.0 / n as f64);
    row.fpr = Some(fpr);
    row.checked = session
        .verify(right, || format!("{:?}: false-positive rate {fpr:.3e} where theory says {theory:?}", row.params));
    session.push_on(&Target::Cpu, row, Threads::All);
}

fn fpr_over_n(session: &mut Session) -> anyhow::Result<()> {
    let absent = absent(session.effort);
    for log_bytes in [16, 18, 20, 22] {
        let bytes = 1usize << log_bytes;
        let mut filter = Builder::with_layout(variant::rao(bytes, 1, 7)?).build()?;
        // From 64 bits a key down to 4, one filter that fills up.
        let mut n = 0;
        for step in 0..=8 {
            let next = (bytes as f64 * 8.0 / 64.0 * 2f64.powf(f64::from(step) / 2.0)) as usize;
            // `extend` goes on where `insert_bulk` would report a bucket beyond the paper's capacity.
            let stream = KeySpace::new(SEED).stream(INSERTED);
            filter.extend((n..next).map(|i| stream.key(i as u64)));
            n = next;
            let measured = false_positives(session, &filter, &absent, n)?;
            let row = Record::new("bloom", "false positives", n).param("variant", Variant::Rao(1).name());
            push(session, row, &filter, "fpr over n", measured);
        }
    }
    Ok(())
}

/// The paper's geometry (sections 5.1 and 5.2): 48 buckets of 40,949 bits, 7 hashes, strings of 41 bytes.
fn first_level_hashes(session: &mut Session) -> anyhow::Result<()> {
    let Some(shape) = BucketShape::new(1280, 7) else { anyhow::bail!("the paper's bucket is not allowed") };
    let trials = if session.effort == Effort::Quick { 3 } else { 9 };
    for choices in [1, 2] {
        let functions = StringHash::ALL.into_iter().map(FirstLevel::String).chain([FirstLevel::Mixed]);
        for first_level in functions {
            // Two choices converge at once with any decent hash: the paper's best one and ours stand for them.
            if choices == 2 && !matches!(first_level, FirstLevel::Mixed | FirstLevel::String(StringHash::Bkdr)) {
                continue;
            }
            let name = match first_level {
                FirstLevel::String(function) => function.name(),
                FirstLevel::Mixed => "mixed (ours)",
            };
            for load in [0.80, 0.85, 0.90, 0.95] {
                let layout = RaoLayout::new(48, shape, choices, first_level, 0)?;
                let n = (48.0 * f64::from(layout.bucket_capacity()) * load) as usize;
                let mut restarts = Vec::new();
                for trial in 0..trials {
                    let strings = KeySpace::new(SEED + trial).stream(INSERTED).strings(n, 41);
                    let mut filter: RaoBloom = Builder::with_layout(layout).build()?;
                    restarts.push(match filter.insert_bulk(&strings.slices()) {
                        Ok(()) => Some(filter.layout().attempt()),
                        Err(Error::BucketOverflow { .. }) => None,
                        Err(error) => return Err(error.into()),
                    });
                }
                // The median of the trials; those that were given up count as infinitely many.
                restarts.sort_by_key(|restarts| restarts.unwrap_or(u32::MAX));
                let mut row = Record::new("bloom", "first-level hash", n).param("study", "first-level hash");
                row = row.param("hash", name).param("load", load);
                row = row.param("choices", choices).param("key_bytes", 41).param("buckets", 48);
                if let Some(median) = restarts[restarts.len() / 2] {
                    row = row.param("iterations", median);
                }
                session.push_on(&Target::Cpu, row, Threads::All);
            }
        }
    }
    let rows = session.study("first-level hash");
    let title = "Rao's Table 1: restarts until no bucket overflows, by load (++: given up)";
    let line = |row: &Record| {
        let choices = if row.number("choices") == Some(2.0) { ", two choices" } else { "" };
        format!("{}{choices}", row.text("hash").unwrap_or_default())
    };
    let load = |row: &Record| format!("{:.0} %", 100.0 * row.number("load").unwrap_or_default());
    let iterations = |row: &Record| row.number("iterations").map_or("++".into(), |n| format!("{n:.0}"));
    let text = pivot(title, &rows, line, load, iterations);
    session.print(&text);
    Ok(())
}
