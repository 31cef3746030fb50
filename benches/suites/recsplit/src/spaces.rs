//! All kinds of functions, from the space of the fastest builds to nearly the least: what a bit less costs.

use bench_frame::input::keys::KeySpace;
use warpset_mphf::Method;

use super::measure::{Subject, Work, measure};
use super::{SEED, Settings, queries};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step};
use bench_record::Record;

/// The study's name in its rows.
pub const SPACES: &str = "spaces";
/// Shapes of RecSplit.
const SHAPES: [(u32, u32); 6] = [(8, 100), (8, 2000), (12, 2000), (16, 2000), (18, 2000), (20, 2000)];
/// Overheads of Consensus.
const OVERHEADS: [f64; 10] = [0.4, 0.25, 0.126, 0.085, 0.06, 0.04, 0.025, 0.016, 0.01, 0.005];

/// Keys per seed of placement.
const KEYS_PER_SEED: [f64; 2] = [4.0, 4.5];

/// Makes one step.
pub fn steps() -> Vec<Step> {
    vec![Step::new("recsplit: Consensus and placement beside RecSplit, by space", functions)]
}

fn functions(session: &mut Session) -> anyhow::Result<()> {
    let n = if session.effort == Effort::Quick { 100_000 } else { 1_000_000 };
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let shapes = SHAPES.map(|(leaf, bucket)| Subject::Ours(Settings::new(leaf, bucket, Method::Grouped)));
    for subject in
        shapes.into_iter().chain(OVERHEADS.map(Subject::Consensus)).chain(KEYS_PER_SEED.map(Subject::Placement))
    {
        let queries = queries(session.effort);
        let work = Work { input: "generated", keys: &keys, study: Some(SPACES), all_threads: true, queries };
        measure(session, subject, work)?;
    }
    let wanted = |row: &Record| row.operation == "build" && row.number("threads") == Some(1.0);
    let bits = |row: &Record| format!("{:.4} bits", row.bits_per_item.unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, |rate| format!("{:.0}", 1e9 / rate));
    session.show(SPACES, "Nanoseconds to build each key, one thread, by bits per key", wanted, bits, cell);
    Ok(())
}
