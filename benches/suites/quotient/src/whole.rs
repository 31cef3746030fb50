//! Operations on whole filters, on the CPU: merging, resizing, listing the fingerprints, counting what two have in
//! common.

use warpset::quotient::{Builder, Container, Duplicates, QuotientFilter, RankSelect, SlotKind, Standard};

use super::subject::{Kind, container_name, layout, qfilter_sorted};
use super::{COMMON_LOAD, INSERTED, Point, Size, keys};
use bench_frame::suite::{Session, Step, Target, Threads};

/// The study, as its rows name it.
pub const WHOLE: &str = "whole filters";

/// Makes the step.
pub fn step(size: Size) -> Step {
    Step::new(format!("quotient: merging and resizing, {}", size.name()), move |session| {
        let items = ours::<Standard>(session, size, Container::Packed, container_name(Container::Packed))?;
        ours::<Standard>(session, size, Container::Bytes, container_name(Container::Bytes))?;
        ours::<RankSelect>(session, size, Container::Packed, "rank-select")?;
        peer(session, size, items)
    })
}

/// Measures one kind of slots; returns the number of items.
fn ours<S: SlotKind>(session: &mut Session, size: Size, container: Container, name: &str) -> anyhow::Result<usize> {
    let all = keys(INSERTED, size.keys(COMMON_LOAD));
    let (low, high) = all.split_at(all.len() / 2);
    let layout = layout(size, container, Duplicates::Dropped)?;
    let build = |keys: &[u32]| Builder::<S>::with_layout(layout).build_from(keys);
    let (whole, low, high) =
        session.pool(Threads::All).install(|| anyhow::Ok((build(&all)?, build(low)?, build(high)?)))?;
    // An eighth of the slots, and remainders longer by as much: the same fingerprints.
    let small = build(&all[..size.keys(COMMON_LOAD / 16.0)])?.resized(size.quotient_bits - 3)?;
    let doubled = whole.resized(size.quotient_bits + 1)?;
    let items = whole.len() as usize;
    let in_common = low.intersection_count(&high)? as usize;
    let point = Point { study: WHOLE, size, load: COMMON_LOAD };

    type Filter<S> = QuotientFilter<S>;
    type Change<'a, S> = (&'a str, &'a Filter<S>, &'a Filter<S>, &'a ChangeOf<'a, S>);
    type ChangeOf<'a, S> = dyn Fn(&mut Filter<S>) -> anyhow::Result<()> + Sync + 'a;
    let changes: [Change<'_, S>; 4] = [
        ("merge", &low, &whole, &|filter| Ok(filter.merge(&high)?)),
        // All of the small one is in the large one, so nothing may change.
        ("merge of an eighth", &whole, &whole, &|filter| Ok(filter.merge(&small)?)),
        ("double", &whole, &doubled, &|filter| Ok(filter.double()?)),
        ("halve", &doubled, &whole, &|filter| Ok(filter.halve()?)),
    ];
    for &threads in session.threads(true) {
        let push = |session: &mut Session, operation: &str, seconds: f64, right: bool| {
            let row = point.row(operation, items, seconds).by(name, false);
            session.add(&Target::Cpu, threads, row, right);
        };
        for (operation, before, after, change) in changes {
            let mut filter = before.clone();
            let seconds = session.time_change(threads, before, &mut filter, change)?;
            push(session, operation, seconds, filter == *after && filter.fingerprints().eq(after.fingerprints()));
        }
        let (seconds, common) = session.made(threads, || Ok(low.intersection_count(&high)? as usize))?;
        push(session, "intersection count", seconds, common == in_common);
        if threads == Threads::One {
            let mut once: Vec<u64> = all.iter().filter_map(|key| layout.fingerprint(*key)).collect();
            once.sort_unstable();
            once.dedup();
            let (seconds, sum) = list(session, || whole.fingerprints())?;
            push(session, "list", seconds, once.into_iter().fold(0, u64::wrapping_add) == sum);
        }
    }
    Ok(items)
}

/// Measures the seconds to list fingerprints on one thread; returns their sum too.
fn list<I: Iterator<Item = u64>>(session: &Session, fingerprints: impl Fn() -> I + Sync) -> anyhow::Result<(f64, u64)> {
    let (seconds, sum) = session.made(Threads::One, || Ok(fingerprints().fold(0, u64::wrapping_add)))?;
    Ok((seconds, sum))
}

/// Measures the peer. `items` are those of our filter of the same keys, so that the rows are of one size: a peer's
/// fingerprints differ, and a few more or fewer of them are equal.
fn peer(session: &mut Session, size: Size, items: usize) -> anyhow::Result<()> {
    let all = keys(INSERTED, size.keys(COMMON_LOAD));
    let (low, high) = all.split_at(all.len() / 2);
    let fill = |keys: &[u32]| qfilter_sorted(size, keys);
    let (whole, low, high) = (fill(&all)?, fill(low)?, fill(high)?);
    let push = |session: &mut Session, operation: &str, seconds: f64, right: bool| {
        let point = Point { study: WHOLE, size, load: COMMON_LOAD };
        session.add(
            &Target::Cpu,
            Threads::One,
            point.row(operation, items, seconds).by(Kind::Qfilter.name(), true),
            right,
        );
    };
    let mut filter = low.clone();
    let seconds = session.time_change(Threads::One, &low, &mut filter, |filter| Ok(filter.merge(false, &high)?))?;
    push(session, "merge", seconds, filter.fingerprints().eq(whole.fingerprints()));
    let (seconds, sum) = list(session, || whole.fingerprints())?;
    push(session, "list", seconds, whole.fingerprints().fold(0, u64::wrapping_add) == sum);
    Ok(())
}
