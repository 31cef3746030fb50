//! The measurements behind the thesis's figures: construction, space and queries over the leaf size (figures 6.20 to 6.27,
//! table 6.1).

use warpset_benches::keys::KeySpace;
use warpset_recsplit::Method;

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step};
use super::super::table::pivot;
use super::generated::SEED;
use super::measure::{Subject, Work, measure};
use super::ours::Settings;

/// The study's name in its rows.
pub const LEAF_SIZES: &str = "leaf sizes";
/// The bucket sizes of the thesis.
pub const BUCKETS: [u32; 4] = [5, 50, 500, 2000];

/// One step a bucket size.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if !setup.cpu() {
        return Vec::new();
    }
    BUCKETS
        .into_iter()
        .map(|bucket| {
            Step::new(format!("recsplit: all leaf sizes at bucket {bucket} (figures 6.20 to 6.27)"), move |session| {
                leaf_sizes(session, bucket)
            })
        })
        .collect()
}

/// How many keys, so that one thread builds in a time that fits: beyond the fewest keys a short time; for the fewest a
/// longer one, unless the run is quick, so that the slow methods reach far enough to be compared.
fn keys(settings: Settings, effort: Effort) -> anyhow::Result<Option<usize>> {
    let (sizes, short, long): (&[usize], f64, f64) = match effort {
        Effort::Quick => (&[10_000, 100_000], 0.03, 0.03),
        Effort::Standard if settings.method == Method::Grouped => (&[10_000, 100_000], 1.0, 1.0),
        Effort::Standard => (&[10_000, 100_000], 0.1, 2.0),
        Effort::Full => (&[10_000, 100_000, 1_000_000], 4.0, 20.0),
    };
    let most = settings.affordable(sizes, short)?;
    Ok(match most {
        Some(n) => Some(n),
        None => settings.affordable(&sizes[..1], long)?,
    })
}

fn leaf_sizes(session: &mut Session, bucket: u32) -> anyhow::Result<()> {
    let quick = session.effort == Effort::Quick;
    let leaves: &[u32] = match session.effort {
        Effort::Quick => &[5, 8, 11, 14, 17],
        Effort::Standard => &[3, 5, 7, 8, 9, 11, 12, 14, 16, 17, 20, 23],
        Effort::Full => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24],
    };
    for &leaf in leaves {
        let by_method = |method| Settings::new(leaf, bucket, method);
        let original = by_method(Method::BruteForce).sequential();
        let rotation = by_method(Method::Rotation).sequential();
        let vectors = [Method::BruteForce, Method::Rotation, Method::Grouped].map(by_method);
        for settings in [original, rotation].into_iter().chain(vectors) {
            // What does not fit in the time is no point of the figure.
            let Some(n) = keys(settings, session.effort)? else { continue };
            let keys = KeySpace::new(SEED).stream(1).u64_keys(n);
            let queries = if quick { 1 << 14 } else { 1 << 18 };
            let all_threads = session.effort == Effort::Full && settings.simd != original.simd;
            let study = Some(LEAF_SIZES);
            let work = Work { input: "generated", keys: &keys, study, all_threads, queries };
            measure(session, Subject::Ours(settings), work)?;
        }
    }
    let rows: Vec<&Record> = session
        .study(LEAF_SIZES)
        .into_iter()
        .filter(|row| {
            row.operation == "build"
                && row.number("threads") == Some(1.0)
                && row.number("bucket") == Some(bucket.into())
        })
        .collect();
    let leaf = |row: &Record| format!("leaf {}", row.number("leaf").unwrap_or_default());
    let variant = |row: &Record| row.text("variant").unwrap_or_default().to_owned();
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, |rate| format!("{:.0}", 1e9 / rate));
    let title = format!("Nanoseconds to build each key, one thread, bucket size {bucket} (empty: too slow)");
    let text = pivot(&title, &rows, variant, leaf, cell);
    session.print(&text);
    Ok(())
}
