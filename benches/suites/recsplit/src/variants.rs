//! Variants of the minimal function (sections 6.5.1 and 7.1.4 of the thesis): the 64-bit finaliser, functions that are
//! not minimal, functions that give several keys one number.

use bench_frame::input::keys::KeySpace;
use warpset_mphf::{Method, Remix};

use super::measure::{Subject, Work, measure};
use super::{SEED, Settings, queries};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step};

/// The study's name in its rows.
pub const VARIANTS: &str = "variants";
/// The shapes that are varied: fast, small, smaller.
pub const SHAPES: [(u32, u32); 3] = [(5, 5), (8, 100), (16, 2000)];

/// Makes one step.
pub fn steps() -> Vec<Step> {
    vec![Step::new("recsplit: finalisers, load factors, several keys per value", functions).except_quick()]
}

/// Returns every variant, after the one that it is compared with.
pub fn settings() -> impl Iterator<Item = Settings> {
    let grouped = SHAPES.map(|(leaf, bucket)| Settings::new(leaf, bucket, Method::Grouped));
    // There are no vectors with the 64-bit finaliser.
    let remixes = [(5, 5), (8, 100), (11, 7)].into_iter().flat_map(|(leaf, bucket)| {
        let original = Settings::new(leaf, bucket, Method::BruteForce).sequential();
        [original, Settings { remix: Remix::Bits64, ..original }]
    });
    // Leaves have whole numbers of positions: load factors nearer to 1 would not change small leaves.
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
