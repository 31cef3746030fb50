//! Batches inserted into filters on a device, and removed, by every method: over the load and over their size.

use warpset::gpu::{Device, DeviceVec};
use warpset::quotient::gpu::{StandardQuotientFilter, UpdateMethod};
use warpset::quotient::{Container, Duplicates, StandardBuilder, StandardQuotientFilter as HostFilter};

use super::super::clock::Effort;
use super::super::suite::Session;
use super::device::{is_wanted, push, upload, wall, wanted};
use super::figures::{rest, spread};
use super::subject::{Change, container_name, layout};
use super::{BATCH, COMMON_LOAD, INSERTED, Point, Size, keys};

/// The methods, by the names of their rows: what callers get that do not ask for one, then each.
const METHODS: [(&str, UpdateMethod); 4] = [
    ("automatic", UpdateMethod::Automatic),
    ("superclusters", UpdateMethod::Superclusters),
    ("in place", UpdateMethod::InPlace),
    ("rebuild", UpdateMethod::Rebuild),
];

/// Batches of one size over the load.
pub fn over_load(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let point = Point { study: "update over fill", size, load };
        let n = size.batch();
        measure(session, device, point, Container::Packed, n, &METHODS)?;
        // Slots of whole bytes by what callers get that do not ask for a method.
        measure(session, device, point, Container::Bytes, n, &METHODS[..1])?;
    }
    Ok(())
}

/// Batches of all sizes at the common load; in full runs at a lower and a higher one too.
pub fn by_batch(session: &mut Session, device: &Device, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let batches = size.batches(&[100, 1000, 10_000, 50_000, 100_000, 200_000, 400_000, 1_000_000]);
    for &n in &batches {
        let point = Point { study: "insert over batch", size, load: COMMON_LOAD };
        measure(session, device, point, Container::Packed, n, &METHODS)?;
    }
    if session.effort == Effort::Full {
        for load in [0.5, 0.9] {
            for &n in &batches {
                let point = Point { study: "update over batch and load", size, load };
                measure(session, device, point, Container::Packed, n, &METHODS)?;
            }
        }
    }
    Ok(())
}

/// A batch, what it does, and what the filter then is.
struct Batch {
    change: Change,
    keys: DeviceVec<u32>,
    wanted: Option<HostFilter>,
}

fn measure(
    session: &mut Session,
    device: &Device,
    point: Point,
    container: Container,
    n: usize,
    methods: &[(&str, UpdateMethod)],
) -> anyhow::Result<()> {
    let (size, host) = (point.size, keys(INSERTED, point.size.keys(point.load)));
    let layout = layout(size, container, Duplicates::Dropped)?;
    let inserted = device.from_slice(&host)?;
    let (new, old) = (upload(device, BATCH, n)?, device.from_slice(&spread(&host, n))?);
    let room = host.len() + n <= size.keys(super::MAX_LOAD);
    let grown = || Ok(StandardBuilder::with_layout(layout).build_from(&[&host[..], &new.to_vec()?].concat())?);
    let more = if room { wanted(size, grown)? } else { None };
    let less = wanted(size, || rest(&StandardBuilder::with_layout(layout).build()?, &host, &old.to_vec()?))?;
    let batches = [
        Batch { change: Change::Insert, keys: new, wanted: more },
        Batch { change: Change::Remove, keys: old, wanted: less },
    ];
    let build = || StandardBuilder::with_layout(layout).on(device).build_from_device(inserted.as_slice());
    for batch in batches.iter().filter(|batch| room || batch.change == Change::Remove) {
        for &(name, method) in methods {
            let mut filter = build()?;
            let again = |filter: &mut StandardQuotientFilter| {
                *filter = build()?;
                Ok(())
            };
            let seconds = wall(session, device, &mut filter, again, |filter| {
                match batch.change {
                    Change::Insert => filter.insert_device_with(batch.keys.as_slice(), method)?,
                    Change::Remove => filter.remove_device_with(batch.keys.as_slice(), method)?,
                };
                Ok(())
            })?;
            let right = match batch.change {
                Change::Insert => is_wanted(&filter, batch.wanted.as_ref(), &[&inserted, &batch.keys], &[])?,
                Change::Remove => is_wanted(&filter, batch.wanted.as_ref(), &[], &[&batch.keys])?,
            };
            let row = point.row(batch.change.name(), batch.keys.len(), seconds);
            push(session, device, row.by(format!("{}, {name}", container_name(container)), false), right);
        }
    }
    Ok(())
}
