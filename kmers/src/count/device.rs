//! Counting on a GPU: host threads parse and pack, and one thread copies the packed parts to the device.
//!
//! Opening a device takes longer than parsing some hundred megabytes on several threads. So parsing begins at once, and
//! packed parts wait for the device.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use warpset_gpu::{Device, GpuError};
use warpset_primitives::reduce::{ByKeyKernels, Sum};

use crate::feed::{Cursor, Feed, feed};
use crate::gpu::{Counter, OnDevice, Packed};
use crate::pieces::Text;
use crate::{Error, Settings, Table};

/// Words per packed part: 3/4 MiB.
const HANDED: usize = if cfg!(test) { 1 << 4 } else { 1 << 16 };
/// Largest number of waiting parts unless there is a budget: 3 GiB.
const MOST_PARTS: u64 = 1 << 12;

pub(super) fn count(
    texts: &[Text<'_>],
    settings: &Settings,
    open: impl FnOnce() -> Result<Device, GpuError> + Send,
) -> Result<Table, Error> {
    settings.progress.say("reading");
    // One thread that packs, and one that parses files that cannot be cut: a feed for one thread leaves these to it.
    let settings = &Settings { threads: settings.threads.max(2), ..settings.clone() };
    let parts = settings.memory.map_or(MOST_PARTS, |memory| memory / 4 / (12 * HANDED as u64)).clamp(1, MOST_PARTS);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(parts as usize);
        let stopped = &stop;
        let counting = scope.spawn(move || {
            let counted = match settings.k.is_long() {
                true => on_device(settings, open, receiver, stopped, long_table),
                false => on_device(settings, open, receiver, stopped, table),
            };
            stopped.fetch_or(counted.is_err(), Ordering::Relaxed);
            counted
        });
        let packed = feed(texts, settings, |feed, threads| pack_all(feed, threads, sender, stopped));
        stopped.fetch_or(packed.is_err(), Ordering::Relaxed);
        let counted = counting.join().unwrap_or_else(|panic| resume_unwind(panic));
        packed?;
        counted
    })
}

/// Packs all letters on `threads` threads.
fn pack_all(feed: &Feed<'_>, threads: usize, sender: SyncSender<Packed>, stop: &AtomicBool) -> Result<(), Error> {
    thread::scope(|scope| {
        let spawn = |_| scope.spawn(|| pack(feed, &sender, stop));
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })
}

/// Packs letters on one thread. Returns early if the receiver is gone; its error is reported instead.
fn pack(feed: &Feed<'_>, sender: &SyncSender<Packed>, stop: &AtomicBool) -> Result<(), Error> {
    // Memory that grows would be moved again and again, by calls of the system that opening a device waits for.
    let new = || Packed::with_capacity(HANDED + HANDED / 4);
    let (mut packed, mut share, mut more) = (new(), Cursor::default(), true);
    while more && !stop.load(Ordering::Relaxed) {
        more = feed
            .step(&mut share, |letters| packed.push(letters))
            .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        if !packed.is_empty()
            && (packed.words() >= HANDED || !more)
            && sender.send(std::mem::replace(&mut packed, new())).is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Counts packed parts as they arrive.
fn on_device<W: OnDevice>(
    settings: &Settings,
    open: impl FnOnce() -> Result<Device, GpuError>,
    receiver: Receiver<Packed>,
    stop: &AtomicBool,
    finish: impl FnOnce(Counter<W>, &Settings) -> Result<Table, Error>,
) -> Result<Table, Error>
where
    Sum<u64>: ByKeyKernels<W, Value = u64>,
{
    let device = open()?;
    let mut counter = Counter::<W>::of(&device, settings.k)?;
    let (mut parts, mut words) = (Vec::new(), 0);
    let most = counter.most_words()?;
    for packed in receiver {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        words += packed.words();
        parts.push(packed);
        if words >= most {
            counter.add(&parts)?;
            (parts, words) = (Vec::new(), 0);
        }
    }
    // After an error of a parser, that error is reported, and this loop only has to end soon.
    if !stop.load(Ordering::Relaxed) {
        counter.add(&parts)?;
    }
    // Freed while the table is built.
    settings.closing.close(parts);
    settings.progress.say("building the table");
    let table = finish(counter, settings);
    settings.closing.close(device);
    table
}

/// Builds the table of k-mers of up to 32 bases.
fn table(counter: Counter, settings: &Settings) -> Result<Table, Error> {
    let (filter, kmers) = counter.finish(settings.least)?;
    let needed = 8 * filter.layout().words();
    let table = match settings.memory {
        Some(allowed) if needed > allowed => Err(Error::OverBudget { kmers, needed, allowed }),
        _ => Ok(Table::new(settings.k, filter.to_host()?, kmers)),
    };
    settings.closing.close(filter);
    table
}

/// Builds the table of longer k-mers.
fn long_table(counter: Counter<u128>, settings: &Settings) -> Result<Table, Error> {
    counter.table(settings.least, settings.memory)
}
