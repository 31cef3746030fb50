//! Real keys: the distinct 31-mers of each genome, the words, or what the user brought.

use indicatif::HumanCount;
use warpset_recsplit::Method;

use super::super::clock::Effort;
use super::super::suite::{Session, Setup, Step};
use super::generated::queries;
use super::measure::{Key, Subject, Work, measure};
use super::ours::Settings;
use super::peers::Peer;

/// Fast to ask, fast to build, in between, small.
const SHAPES: [(u32, u32); 4] = [(5, 5), (8, 100), (12, 1000), (16, 2000)];

/// The genomes, then the words.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    let own_keys = setup.own_keys;
    vec![
        Step::new("recsplit: k-mers of genomes", genomes),
        Step::new(if own_keys { "recsplit: your keys" } else { "recsplit: words" }, move |session| {
            let input = session.input();
            let mut keys = input.present.slices();
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() < all {
                let (all, distinct) = (HumanCount(all as u64), HumanCount(keys.len() as u64));
                session.print(&format!("recsplit: {distinct} of {all} keys are distinct"));
            }
            run(session, if own_keys { "your keys" } else { "words" }, &keys)
        }),
    ]
}

fn genomes(session: &mut Session) -> anyhow::Result<()> {
    let input = session.input();
    // One genome says as much as several of its kind.
    let count = if session.effort == Effort::Full { input.genomes.len() } else { 1 };
    for genome in &input.genomes[..count.min(input.genomes.len())] {
        run(session, &genome.name, &genome.distinct)?;
    }
    Ok(())
}

fn run<K: Key>(session: &mut Session, input: &str, keys: &[K]) -> anyhow::Result<()> {
    // Millions of keys take seconds with everything: a quick run shows the middle and the fastest peers.
    let short = session.effort == Effort::Quick && keys.len() > 1_000_000;
    let queries = queries(session.effort);
    let work = |keys| Work { input, keys, study: None, all_threads: true, queries };
    for (leaf, bucket) in if short { &SHAPES[1..2] } else { &SHAPES[..] } {
        let settings = Settings::new(*leaf, *bucket, Method::Grouped);
        measure(session, Subject::Ours(settings), work(keys))?;
    }
    for peer in Peer::ALL {
        if !short || matches!(peer, Peer::PHastR | Peer::PtrHash) {
            measure(session, Subject::Peer(peer), work(keys))?;
        }
    }
    Ok(())
}
