//! Real keys: the distinct 31-mers of each genome, the words, or what the user brought.

use indicatif::HumanCount;
use warpset_mphf::Method;

use super::function::Key;
use super::measure::{Subject, Work, measure};
use super::peers::Peer;
use super::{Settings, queries};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};

/// Fast to ask, fast to build, in between, small.
const SHAPES: [(u32, u32); 4] = [(5, 5), (8, 100), (12, 1000), (16, 2000)];

/// Makes the steps: the genomes, then the words.
pub fn steps(setup: &Setup, asked: &[Settings]) -> Vec<Step> {
    let (asked, own_keys) = (asked.to_vec(), setup.own_keys);
    let usual = SHAPES.map(|(leaf, bucket)| Settings::new(leaf, bucket, Method::Grouped)).into();
    let shapes: Vec<Settings> = if asked.is_empty() { usual } else { asked };
    let for_genomes = shapes.clone();
    vec![
        Step::new("recsplit: k-mers of genomes", move |session| {
            let input = session.input();
            // One genome says as much as several of its kind.
            let count = if session.effort == Effort::Full { input.genomes.len() } else { 1 };
            input
                .genomes
                .iter()
                .take(count)
                .try_for_each(|genome| run(session, &genome.name, &genome.distinct, &for_genomes))
        }),
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
            run(session, if own_keys { "your keys" } else { "words" }, &keys, &shapes)
        }),
    ]
}

fn run<K: Key>(session: &mut Session, input: &str, keys: &[K], shapes: &[Settings]) -> anyhow::Result<()> {
    // Millions of keys take seconds with everything: a quick run shows the middle and the fastest peers.
    let short = session.effort == Effort::Quick && keys.len() > 1_000_000;
    let queries = queries(session.effort);
    let work = |keys| Work { input, keys, study: None, all_threads: true, queries };
    for settings in if short && shapes.len() > 1 { &shapes[1..2] } else { shapes } {
        measure(session, Subject::Ours(*settings), work(keys))?;
    }
    for peer in Peer::all() {
        if !short || peer.is_among_the_fastest() {
            measure(session, Subject::Peer(peer), work(keys))?;
        }
    }
    Ok(())
}
