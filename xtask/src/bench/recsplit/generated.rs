//! Generated keys: every method at every shape, each with as many keys as its time allows, and the peers with as many.

use warpset_benches::keys::KeySpace;
use warpset_recsplit::Method;

use super::super::clock::Effort;
use super::super::suite::{Session, Setup, Step};
use super::measure::{Subject, Work, measure};
use super::ours::{Settings, sizes};
use super::peers::Peer;

/// Leaf and bucket sizes: those of the thesis's tables and of published measurements.
const SHAPES: [(u32, u32); 8] = [(5, 5), (8, 100), (8, 2000), (11, 7), (12, 9), (14, 50), (14, 2000), (16, 2000)];

/// Seed of all generated keys.
pub const SEED: u64 = 0x2026;

/// Seconds that one thread may take for one construction.
pub fn limit(effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 0.2,
        Effort::Standard => 4.0,
        Effort::Full => 20.0,
    }
}

/// Queries in one measurement.
pub fn queries(effort: Effort) -> usize {
    if effort == Effort::Quick { 1 << 17 } else { 1 << 20 }
}

/// One step a shape, one a peer.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    let effort = setup.effort;
    let mut steps: Vec<Step> = SHAPES
        .into_iter()
        .map(|(leaf, bucket)| {
            Step::new(format!("recsplit: leaf {leaf}, bucket {bucket}, generated keys"), move |session| {
                shape(session, leaf, bucket)
            })
        })
        .collect();
    for peer in Peer::ALL {
        steps.push(Step::new(format!("recsplit: peer {}, generated keys", peer.name()), move |session| {
            for &n in
                sizes(effort).iter().filter(|n| **n as f64 * peer.nanoseconds_per_key() * 1e-9 < 5.0 * limit(effort))
            {
                run(session, Subject::Peer(peer), n)?;
            }
            Ok(())
        }));
    }
    steps
}

fn shape(session: &mut Session, leaf: u32, bucket: u32) -> anyhow::Result<()> {
    for method in [Method::BruteForce, Method::Rotation, Method::Grouped] {
        let settings = Settings::new(leaf, bucket, method);
        match settings.affordable(sizes(session.effort), limit(session.effort))? {
            Some(n) => run(session, Subject::Ours(settings), n)?,
            None => {
                let estimate = settings.seconds_per_key()? * 1e6;
                let name = settings.name();
                session.print(&format!(
                    "left out: leaf {leaf}, bucket {bucket}, {name}: about {estimate:.0} microseconds a key"
                ));
            }
        }
    }
    Ok(())
}

fn run(session: &mut Session, subject: Subject, n: usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let queries = queries(session.effort);
    measure(session, subject, Work { input: "generated", keys: &keys, study: None, all_threads: true, queries })
}
