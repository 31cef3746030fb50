//! Generated keys: every method at the shapes that are compared, each with as many keys as its time allows, and the
//! peers with as many; then all leaf sizes, for the thesis's figures (6.20 to 6.27, table 6.1).

use bench_frame::input::keys::KeySpace;
use warpset_mphf::Method;

use super::measure::{Subject, Work, measure};
use super::ours::{Settings, sizes};
use super::peers::Peer;
use super::{SEED, queries};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

/// Leaf and bucket sizes: those of the thesis's tables and of published measurements.
const SHAPES: [(u32, u32); 8] = [(5, 5), (8, 100), (8, 2000), (11, 7), (12, 9), (14, 50), (14, 2000), (16, 2000)];
/// The shapes of a quick run, which has the fastest method alone.
const QUICK_SHAPES: [(u32, u32); 3] = [(5, 5), (8, 100), (14, 2000)];
const METHODS: [Method; 3] = [Method::BruteForce, Method::Rotation, Method::Grouped];
/// The study of leaf sizes, as its rows name it.
pub const LEAF_SIZES: &str = "leaf sizes";
/// The bucket sizes of the thesis.
pub const BUCKETS: [u32; 4] = [5, 50, 500, 2000];

/// Keys per seed of placement: its default.
const KEYS_PER_SEED: f64 = 4.5;

/// Returns the most seconds that one thread may take for one construction.
fn limit(effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 0.2,
        Effort::Standard => 4.0,
        Effort::Full => 20.0,
    }
}

/// Makes one step per shape and per peer; then one per bucket size of the thesis.
pub fn steps(setup: &Setup, asked: &[Settings]) -> Vec<Step> {
    let effort = setup.effort;
    let mut steps = Vec::new();
    let mut of_shape = |shape: String, settings: Vec<Settings>| {
        steps.push(Step::new(format!("recsplit: {shape}, generated keys"), move |session| {
            settings.into_iter().try_for_each(|settings| ours(session, settings))
        }));
    };
    if asked.is_empty() {
        let (shapes, methods) = match effort {
            Effort::Quick => (&QUICK_SHAPES[..], &METHODS[2..]),
            _ => (&SHAPES[..], &METHODS[..]),
        };
        for &(leaf, bucket) in shapes {
            let all = methods.iter().map(|&method| Settings::new(leaf, bucket, method));
            of_shape(format!("leaf {leaf}, bucket {bucket}"), all.collect());
        }
    } else {
        of_shape("your shapes".into(), asked.to_vec());
    }
    steps.push(Step::new("recsplit: placement, generated keys", move |session| {
        sizes(effort).iter().try_for_each(|&n| run(session, Subject::Placement(KEYS_PER_SEED), n))
    }));
    for peer in Peer::all() {
        steps.push(Step::new(format!("recsplit: peer {}, generated keys", peer.name()), move |session| {
            let affordable = |n: &&usize| **n as f64 * peer.nanoseconds_per_key() * 1e-9 < 5.0 * limit(effort);
            sizes(effort).iter().filter(affordable).try_for_each(|&n| run(session, Subject::Peer(peer), n))
        }));
    }
    if asked.is_empty() {
        steps.extend(BUCKETS.map(|bucket| {
            let title = format!("recsplit: all leaf sizes at bucket {bucket} (figures 6.20 to 6.27)");
            Step::new(title, move |session| leaf_sizes(session, bucket)).except_quick()
        }));
    }
    steps
}

fn ours(session: &mut Session, settings: Settings) -> anyhow::Result<()> {
    match settings.affordable(sizes(session.effort), limit(session.effort))? {
        Some(n) => run(session, Subject::Ours(settings), n),
        None => {
            let (leaf, bucket, name) = (settings.leaf, settings.bucket, settings.name());
            let estimate = settings.seconds_per_key()? * 1e6;
            session.print(&format!("left out: leaf {leaf}, bucket {bucket}, {name}: about {estimate:.0} us per key"));
            Ok(())
        }
    }
}

fn run(session: &mut Session, subject: Subject, n: usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let queries = queries(session.effort);
    measure(session, subject, Work { input: "generated", keys: &keys, study: None, all_threads: true, queries })
}

/// Chooses the number of keys by the time of one thread: a short time, but a longer one for the fewest keys unless the
/// run is quick, so that the slow methods are compared too.
fn keys(settings: Settings, effort: Effort) -> anyhow::Result<Option<usize>> {
    let (sizes, short, long): (&[usize], f64, f64) = match effort {
        Effort::Quick => (&[10_000, 100_000], 0.03, 0.03),
        Effort::Standard if settings.method == Method::Grouped => (&[10_000, 100_000], 1.0, 1.0),
        Effort::Standard => (&[10_000, 100_000], 0.1, 2.0),
        Effort::Full => (&[10_000, 100_000, 1_000_000], 4.0, 20.0),
    };
    let most = settings.affordable(sizes, short)?;
    if most.is_some() { Ok(most) } else { settings.affordable(&sizes[..1], long) }
}

fn leaf_sizes(session: &mut Session, bucket: u32) -> anyhow::Result<()> {
    let leaves: &[u32] = match session.effort {
        Effort::Quick => &[5, 8, 11, 14, 17],
        Effort::Standard => &[3, 5, 7, 8, 9, 11, 12, 14, 16, 17, 20, 23],
        Effort::Full => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24],
    };
    for &leaf in leaves {
        let vectors = METHODS.map(|method| Settings::new(leaf, bucket, method));
        let sequential = [vectors[0].sequential(), vectors[1].sequential()];
        for settings in sequential.into_iter().chain(vectors) {
            // A build that takes too long is no point of the figure.
            let Some(n) = keys(settings, session.effort)? else { continue };
            let keys = KeySpace::new(SEED).stream(1).u64_keys(n);
            let queries = if session.effort == Effort::Quick { 1 << 14 } else { 1 << 18 };
            let all_threads = session.effort == Effort::Full && !sequential.contains(&settings);
            let work = Work { input: "generated", keys: &keys, study: Some(LEAF_SIZES), all_threads, queries };
            measure(session, Subject::Ours(settings), work)?;
        }
    }
    let wanted = |row: &Record| {
        row.operation == "build" && row.number("threads") == Some(1.0) && row.number("bucket") == Some(bucket.into())
    };
    let leaf = |row: &Record| format!("leaf {}", row.number("leaf").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, |rate| format!("{:.0}", 1e9 / rate));
    let title = format!("Nanoseconds to build each key, one thread, bucket size {bucket} (empty: too slow)");
    session.show(LEAF_SIZES, &title, wanted, leaf, cell);
    Ok(())
}
