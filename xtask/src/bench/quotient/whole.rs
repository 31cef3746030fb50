//! Operations on whole filters, on the CPU: merging, resizing, listing the fingerprints, counting what two have in
//! common.

use warpset::quotient::{Container, Duplicates, StandardBuilder, StandardQuotientFilter};

use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::subject::{self, Kind, layout, qfilter_sorted, threads};
use super::{COMMON_LOAD, INSERTED, Size, keys};

/// The step.
pub fn step(size: Size) -> Step {
    Step::new(format!("quotient: merging and resizing, {}", size.name()), move |session| {
        for container in [Container::Packed, Container::Bytes] {
            ours(session, size, container)?;
        }
        peer(session, size)
    })
}

/// A row of such an operation on so many items.
pub fn row(operation: &str, items: usize, size: Size, load: f64, seconds: f64) -> Record {
    subject::row("whole filters", operation, items, size, load, seconds)
}

fn ours(session: &mut Session, size: Size, container: Container) -> anyhow::Result<()> {
    let all = keys(INSERTED, size.keys(COMMON_LOAD));
    let (low, high) = all.split_at(all.len() / 2);
    let layout = layout(size, container, Duplicates::Dropped)?;
    let build = |keys: &[u32]| StandardBuilder::with_layout(layout).build_from(keys);
    let (whole, low, high) =
        session.pool(Threads::All).install(|| anyhow::Ok((build(&all)?, build(low)?, build(high)?)))?;
    // An eighth of the slots, and remainders longer by as much: the same fingerprints.
    let small = session.pool(Threads::All).install(|| {
        let few = &all[..size.keys(COMMON_LOAD / 16.0)];
        build(few)?.resized(size.quotient_bits - 3)
    })?;
    let doubled = whole.resized(size.quotient_bits + 1)?;
    let items = whole.len() as usize;
    let in_common = low.intersection_count(&high)? as usize;

    for &threads in threads(true) {
        if session.skips(threads) {
            continue;
        }
        let push = |session: &mut Session, operation: &str, n: usize, seconds: f64, right: bool| {
            let mut row = row(operation, n, size, COMMON_LOAD, seconds);
            row = row.param("variant", subject::container_name(container));
            row.checked = session.verify(right, || format!("{operation}: a wrong filter"));
            session.push_on(&Target::Cpu, row, threads);
        };
        let again = |before: &StandardQuotientFilter| {
            let before = before.clone();
            move |filter: &mut StandardQuotientFilter| {
                filter.clone_from(&before);
                Ok(())
            }
        };

        let mut filter = low.clone();
        let seconds = session.time(threads, &mut filter, again(&low), |filter| Ok(filter.merge(&high)?))?;
        push(session, "merge", items, seconds, filter == whole);

        // All of the small one is in the large one, so nothing may change.
        let mut filter = whole.clone();
        let seconds = session.time(threads, &mut filter, again(&whole), |filter| Ok(filter.merge(&small)?))?;
        push(session, "merge of an eighth", items, seconds, filter == whole);

        let mut filter = whole.clone();
        let seconds = session.time(threads, &mut filter, again(&whole), |filter| Ok(filter.double()?))?;
        push(session, "double", items, seconds, filter == doubled && filter.fingerprints().eq(whole.fingerprints()));

        let mut filter = doubled.clone();
        let seconds = session.time(threads, &mut filter, again(&doubled), |filter| Ok(filter.halve()?))?;
        push(session, "halve", items, seconds, filter == whole);

        let mut common = 0;
        let count = |common: &mut usize| {
            *common = low.intersection_count(&high)? as usize;
            Ok(())
        };
        let seconds = session.time(threads, &mut common, |_| Ok(()), count)?;
        push(session, "intersection count", items, seconds, common == in_common);

        if threads == Threads::One {
            let mut sum = 0u64;
            let list = |sum: &mut u64| {
                *sum = whole.fingerprints().fold(0, u64::wrapping_add);
                Ok(())
            };
            let seconds = session.time(threads, &mut sum, |_| Ok(()), list)?;
            let mut once: Vec<u64> = all.iter().map(|key| layout.fingerprint(*key)).collect();
            once.sort_unstable();
            once.dedup();
            push(session, "list", items, seconds, once.into_iter().fold(0, u64::wrapping_add) == sum);
        }
    }
    Ok(())
}

fn peer(session: &mut Session, size: Size) -> anyhow::Result<()> {
    let all = keys(INSERTED, size.keys(COMMON_LOAD));
    let fill = |keys: &[u32]| qfilter_sorted(size, keys);
    let (low, high) = all.split_at(all.len() / 2);
    let (whole, low, high) = (fill(&all)?, fill(low)?, fill(high)?);
    let items = keys_of(session, size)?;
    let push = |session: &mut Session, operation: &str, seconds: f64, right: bool| {
        let mut row = row(operation, items, size, COMMON_LOAD, seconds).param("implementation", Kind::Qfilter.name());
        row.checked = session.verify(right, || format!("{operation}: a wrong peer"));
        session.push_on(&Target::Cpu, row, Threads::One);
    };

    let mut filter = low.clone();
    let seconds = session.time(
        Threads::One,
        &mut filter,
        |filter| {
            filter.clone_from(&low);
            Ok(())
        },
        |filter| Ok(filter.merge(false, &high)?),
    )?;
    push(session, "merge", seconds, filter.fingerprints().eq(whole.fingerprints()));

    let mut sum = 0u64;
    let list = |sum: &mut u64| {
        *sum = whole.fingerprints().fold(0, u64::wrapping_add);
        Ok(())
    };
    let seconds = session.time(Threads::One, &mut sum, |_| Ok(()), list)?;
    push(session, "list", seconds, whole.fingerprints().count() as u64 == whole.len());
    Ok(())
}

/// The items of our filter of the same keys, so that the rows are of one size: a peer's fingerprints are others, and a
/// few more or fewer of them are equal.
fn keys_of(session: &Session, size: Size) -> anyhow::Result<usize> {
    let layout = layout(size, Container::Packed, Duplicates::Dropped)?;
    let keys = keys(INSERTED, size.keys(COMMON_LOAD));
    let filter = session.pool(Threads::All).install(|| StandardBuilder::with_layout(layout).build_from(&keys))?;
    Ok(filter.len() as usize)
}
