//! Batches inserted into filters on a device, and removed, by every method: over the load and over their size.

use papers_quotient::PaperSlots;
use warpset::gpu::{Device, DeviceVec};
use warpset::quotient::gpu::{QuotientFilter, UpdateMethod};
use warpset::quotient::{Builder, Container, Duplicates, Layout, QuotientFilter as HostFilter, RankSelect, Standard};

use super::device::{is_wanted, kind_name, push, upload, wall, wanted};
use super::figures::{rest, spread};
use super::subject::{Change, layout};
use super::{BATCH, COMMON_LOAD, INSERTED, Point, Size, keys};
use bench_frame::clock::Effort;
use bench_frame::suite::Session;

/// Returns the methods with the names of their rows, the default first. `paper` is the name of the paper's method.
const fn methods(paper: &str) -> [(&str, Option<UpdateMethod>); 4] {
    [
        ("automatic", Some(UpdateMethod::Auto)),
        (paper, None),
        ("in place", Some(UpdateMethod::InPlace)),
        ("rebuild", Some(UpdateMethod::Rebuild)),
    ]
}

/// Measures batches of one size over the load.
pub fn over_load(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let point = Point { study: "update over fill", size, load };
        let n = size.batch();
        both(session, device, point, n)?;
        // Slots of whole bytes by what callers get that do not ask for a method.
        measure::<Standard>(
            session,
            device,
            point,
            layout(size, Container::Bytes, Duplicates::Dropped)?,
            n,
            &methods("superclusters")[..1],
        )?;
    }
    Ok(())
}

/// Measures batches of all sizes at the common load; in full runs also at a lower and a higher one.
pub fn by_batch(session: &mut Session, device: &Device, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let batches = size.batches(&[100, 1000, 10_000, 50_000, 100_000, 200_000, 400_000, 1_000_000]);
    for &n in &batches {
        let point = Point { study: "insert over batch", size, load: COMMON_LOAD };
        both(session, device, point, n)?;
    }
    if session.effort == Effort::Full {
        for load in [0.5, 0.9] {
            for &n in &batches {
                let point = Point { study: "update over batch and load", size, load };
                both(session, device, point, n)?;
            }
        }
    }
    Ok(())
}

/// Measures packed slots and those of the rank-and-select quotient filter, by every method.
fn both(session: &mut Session, device: &Device, point: Point, n: usize) -> anyhow::Result<()> {
    let layout = layout(point.size, Container::Packed, Duplicates::Dropped)?;
    measure::<Standard>(session, device, point, layout, n, &methods("superclusters"))?;
    measure::<RankSelect>(session, device, point, layout, n, &methods("regions"))
}

/// A batch, what it does, and what the filter then is.
struct Batch<S> {
    change: Change,
    keys: DeviceVec<u32>,
    wanted: Option<HostFilter<S>>,
}

fn measure<S: PaperSlots>(
    session: &mut Session,
    device: &Device,
    point: Point,
    layout: Layout,
    n: usize,
    methods: &[(&str, Option<UpdateMethod>)],
) -> anyhow::Result<()> {
    let (size, host) = (point.size, keys(INSERTED, point.size.keys(point.load)));
    let builder = Builder::<S>::with_layout(layout);
    let inserted = device.from_slice(&host)?;
    let (new, old) = (upload(device, BATCH, n)?, device.from_slice(&spread(&host, n))?);
    let room = host.len() + n <= size.keys(super::MAX_LOAD);
    let grown = || Ok(builder.clone().build_from(&[&host[..], &new.to_vec()?].concat())?);
    let more = if room { wanted(size, grown)? } else { None };
    let less = wanted(size, || rest(&builder.clone().build()?, &host, &old.to_vec()?))?;
    let batches = [
        Batch { change: Change::Insert, keys: new, wanted: more },
        Batch { change: Change::Remove, keys: old, wanted: less },
    ];
    let build = || builder.clone().on(device).build_from_device(inserted.as_slice());
    for batch in batches.iter().filter(|batch| room || batch.change == Change::Remove) {
        for &(name, method) in methods {
            let mut filter = build()?;
            let again = |filter: &mut QuotientFilter<S>| {
                *filter = build()?;
                Ok(())
            };
            let seconds = wall(session, device, &mut filter, again, |filter| {
                let keys = batch.keys.as_slice();
                match (batch.change, method) {
                    (Change::Insert, Some(method)) => filter.insert_device_with(keys, method)?,
                    (Change::Remove, Some(method)) => filter.remove_device_with(keys, method)?,
                    (Change::Insert, None) => papers_quotient::insert_device(filter, keys)?,
                    (Change::Remove, None) => papers_quotient::remove_device(filter, keys)?,
                };
                Ok(())
            })?;
            let right = match batch.change {
                Change::Insert => is_wanted(&filter, batch.wanted.as_ref(), &[&inserted, &batch.keys], &[])?,
                Change::Remove => is_wanted(&filter, batch.wanted.as_ref(), &[], &[&batch.keys])?,
            };
            let row = point.row(batch.change.name(), batch.keys.len(), seconds);
            push(session, device, row.by(format!("{}, {name}", kind_name::<S>(&layout)), false), right);
        }
    }
    Ok(())
}
