//! What there is beside the minimal function (sections 6.5.1 and 7.1.4 of the thesis): the 64-bit finaliser, functions
//! that are not minimal, functions that give several keys the same number, and filters.

use warpset_benches::keys::KeySpace;
use warpset_recsplit::{Method, Remix};

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::measure::{Subject, Work, measure};
use super::{SEED, Settings, queries};

/// The study's name in its rows.
pub const VARIANTS: &str = "variants";
/// The shapes that are varied: fast, small, smaller.
const SHAPES: [(u32, u32); 3] = [(5, 5), (8, 100), (16, 2000)];
/// Bits of the fingerprints of filters.
const WIDTHS: [u32; 2] = [8, 16];

/// One step for functions, one for filters.
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("recsplit: finalisers, load factors, several keys per value", functions),
        Step::new("recsplit: static filters", filters),
    ]
}

/// Every variant, after what it is compared with.
pub fn settings() -> impl Iterator<Item = Settings> {
    let grouped = SHAPES.map(|(leaf, bucket)| Settings::new(leaf, bucket, Method::Grouped));
    // There are no vectors with the 64-bit finaliser.
    let remixes = [(5, 5), (8, 100), (11, 7)].into_iter().flat_map(|(leaf, bucket)| {
        let original = Settings::new(leaf, bucket, Method::BruteForce).sequential();
        [original, Settings { remix: Remix::Bits64, ..original }]
    });
    // Leaves have whole numbers of positions: nearer to 1 the small ones would stay as they are.
    let loads = grouped
        .into_iter()
        .flat_map(|settings| [1.0, 0.9, 0.8].map(|load_factor| Settings { load_factor, ..settings }));
    let shared =
        [4, 8, 16].into_iter().map(|k| Settings { keys_per_value: Some(k), ..Settings::new(k, 2000, Method::Grouped) });
    remixes.chain(loads).chain(shared)
}

fn functions(session: &mut Session) -> anyhow::Result<()> {
    // Seconds that a build may take.
    let (sizes, limit): (&[usize], f64) = match session.effort {
        Effort::Quick => (&[10_000, 100_000], 0.05),
        _ => (&[100_000, 1_000_000], 2.0),
    };
    for settings in settings() {
        let Some(n) = settings.affordable(sizes, limit)? else { continue };
        let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
        let queries = queries(session.effort);
        let work = Work { input: "generated", keys: &keys, study: Some(VARIANTS), all_threads: false, queries };
        measure(session, Subject::Ours(settings), work)?;
    }
    Ok(())
}

fn filters(session: &mut Session) -> anyhow::Result<()> {
    let n = if session.effort == Effort::Quick { 100_000 } else { 1_000_000 };
    let (keys, others) = (KeySpace::new(SEED).stream(0).u64_keys(n), KeySpace::new(SEED).stream(2).u64_keys(n));
    for (leaf, bucket) in SHAPES {
        for width in WIDTHS {
            filter(session, Settings::new(leaf, bucket, Method::Grouped), width, &keys, &others)?;
        }
    }
    Ok(())
}

/// Builds a filter of `keys` and asks it for `others`, which are no members.
fn filter(session: &mut Session, settings: Settings, width: u32, keys: &[u64], others: &[u64]) -> anyhow::Result<()> {
    let mut filter = None;
    let build = session.time(Threads::One, &mut filter, |filter| {
        *filter = Some(settings.filter_builder(width).build_from(keys)?);
        Ok(())
    })?;
    let Some(filter) = filter else { anyhow::bail!("nothing was built") };
    let members = filter.count_contained_bulk(keys) == keys.len();
    let asked = &others[..others.len().min(queries(session.effort))];
    let mut answers = vec![false; asked.len()];
    let mut batch = answers.clone();
    let one_by_one = session.time(Threads::One, &mut answers, |answers| {
        answers.iter_mut().zip(asked).for_each(|(answer, key)| *answer = filter.contains(key));
        Ok(())
    })?;
    let many = session.time(Threads::One, &mut batch, |answers| Ok(filter.contains_bulk_into(asked, answers)?))?;
    let passed = answers.iter().filter(|&&answer| answer).count() as f64;
    let expected = asked.len() as f64 / f64::from(width).exp2();
    // Six standard deviations.
    let right = members && batch == answers && (passed - expected).abs() < 6.0 * expected.sqrt() + 6.0;
    for (operation, items, seconds) in [
        ("filter build", keys.len(), build),
        ("filter query", asked.len(), one_by_one),
        ("filter query batch", asked.len(), many),
    ] {
        let mut row = Record::new("recsplit", operation, items)
            .time(seconds)
            .by(format!("{}, {width}-bit fingerprints", settings.name()), false)
            .param("leaf", settings.leaf)
            .param("bucket", settings.bucket)
            .param("input", "generated")
            .param("key", "u64")
            .param("study", VARIANTS)
            .param("keys", keys.len());
        row.fpr = Some(passed / asked.len() as f64);
        row.bits_per_item = Some(filter.bits_per_key());
        session.add(&Target::Cpu, Threads::One, row, right);
    }
    Ok(())
}
