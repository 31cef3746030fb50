//! From keys to hashes in device memory, and from these to filters, attempt by attempt as on the host.

use std::cell::RefCell;
use std::ops::Range;

use bytemuck::Pod;
use warpset_base::words::OutOfMemory;
use warpset_gpu::batch::{Chunk, Reply, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::fuse::keys::{BLOCK, fuse_hash, fuse_unhash};
use warpset_kernels::fuse::values::{fuse_conflicts, fuse_contents, fuse_pack};
use warpset_primitives::select::{unique_async, unique_by_key_async};
use warpset_primitives::sort::{By, sort_keys_in_place_async, sort_pairs_in_place_async};
use warpset_simt::{Global, GlobalMut};

use super::function::words_of;
use super::{DeviceKeys, DeviceWidth, HASHING, graph, shards};
use crate::build::{Failure, Settings, attempts};
use crate::{Error, Form, Key, Layout};

/// Keys from anywhere.
pub(super) trait Source {
    fn count(&self) -> usize;

    /// Writes the hashes of all keys under a seed to `out`, which has a place for each and which no other stream uses,
    /// in the order of `stream`.
    fn hash(&self, stream: &Stream, seed: u64, out: &mut DeviceVec<u64>) -> Result<(), Error>;
}

/// Keys in host memory.
pub(super) struct HostSource<'k, K>(pub &'k [K]);
/// Keys in device memory.
pub(super) struct DeviceSource<K>(pub K);

/// Graphs that a device builds.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Layout of the whole, with the number of keys of these graphs.
    pub layout: Layout,
    pub graphs: Range<u64>,
}

impl Share {
    /// Returns the number of graphs.
    pub(super) fn count(&self) -> u64 {
        self.graphs.end - self.graphs.start
    }

    fn slots(&self) -> u64 {
        self.count() * self.layout.graph_slots()
    }

    /// Returns the number of words of the slots.
    fn slot_words(&self) -> usize {
        (self.count() * self.layout.shard_words()) as usize
    }

    /// Returns the number of words: the slots, then one byte per shard.
    fn words(&self) -> Result<usize, OutOfMemory> {
        let seeds = self.count().min(self.layout.shards).div_ceil(8);
        let words = self.count().saturating_mul(self.layout.shard_words()).saturating_add(seeds);
        usize::try_from(words).map_err(|_| OutOfMemory { bytes: words.saturating_mul(8) })
    }
}

/// Launches one thread per item.
pub(super) fn grid(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Queues the hashes of `n > 0` keys.
///
/// # Safety
/// - `keys` are valid for `n` reads and `out` for `n` writes until `stream` has passed this work; nothing writes the
///   keys, and nothing else accesses `out`.
unsafe fn hash(stream: &Stream, keys: KeySlice, n: usize, seed: u64, out: GlobalMut<u64>) -> Result<(), Error> {
    let KeySlice { keys, kind, .. } = keys;
    // SAFETY: the contract of this function.
    unsafe { fuse_hash { keys, kind, n, seed, out }.launch(stream, grid(n))? };
    Ok(())
}

impl<K: Key> Source for HostSource<'_, K> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn hash(&self, stream: &Stream, seed: u64, out: &mut DeviceVec<u64>) -> Result<(), Error> {
        stream.synchronize()?; // other streams write the vector
        let to = out.global_mut();
        let work = |chunk: &Chunk<'_>| {
            // SAFETY: each chunk has places of its own, one per key; `run` waits for all.
            unsafe { hash(chunk.stream, chunk.keys, chunk.range.len(), seed, to.at(chunk.range.start)) }
        };
        Staging::new(stream.device(), HASHING).run(self.0, Reply::NONE, work, |_, _| {})
    }
}

impl<K: DeviceKeys> Source for DeviceSource<K> {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn hash(&self, stream: &Stream, seed: u64, out: &mut DeviceVec<u64>) -> Result<(), Error> {
        let to = out.global_mut();
        // SAFETY: there is a place for each key; the keys are borrowed until `build` has waited for the stream; scratch
        // is freed in its order.
        unsafe {
            self.0.for_each_chunk(&HASHING, stream, |first, hashed, n| hash(stream, hashed.keys, n, seed, to.at(first)))
        }
    }
}

/// Values of all keys of a build, `width` bytes each, in device memory that outlives the build.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub values: Global<u64>,
    pub width: u32,
}

impl Values {
    /// Returns values of this type.
    pub(super) fn of<V: Pod>(values: DeviceSlice<'_, V>) -> Values {
        // The length is rounded up, since values may share a word.
        let words = words_of::<V>(values.len());
        Values { values: Global::from_raw_parts(values.global().as_ptr().cast(), words), width: size_of::<V>() as u32 }
    }
}

/// The words of different keys, and their values if there are any.
pub(super) struct Distinct {
    pub words: DeviceVec<u64>,
    pub values: Option<DeviceVec<u64>>,
    pub count: usize,
}

/// Hashes of all keys on their way to slots, in any order, and their contents if these are not fingerprints.
pub(super) struct Items {
    pub hashes: DeviceVec<u64>,
    pub contents: Option<DeviceVec<u32>>,
}

impl Items {
    /// Queues a sort by these bits of the hashes.
    pub(super) fn sort(&mut self, stream: &Stream, by: By) -> Result<(), Error> {
        // SAFETY: the items are this build's own, used in the order of the stream alone.
        unsafe {
            match &mut self.contents {
                None => sort_keys_in_place_async(stream, &mut self.hashes, by)?,
                Some(contents) => sort_pairs_in_place_async(stream, &mut self.hashes, contents, by)?,
            }
        }
        Ok(())
    }

    /// Returns the contents for kernels, and whether there are any.
    pub(super) fn contents(&self) -> (Global<u32>, u32) {
        match &self.contents {
            None => (self.hashes.global().cast(), 0),
            Some(contents) => (contents.global(), 1),
        }
    }
}

/// Returns layout and words of the structure of a source's keys: of their values if there are any, else of
/// fingerprints of type `F`.
pub(super) fn build<F: DeviceWidth>(
    device: &Device,
    settings: &Settings,
    source: &impl Source,
    values: Option<Values>,
) -> Result<(Layout, DeviceVec<u64>), Error> {
    let stream = device.new_stream()?;
    let distinct: RefCell<Option<Distinct>> = RefCell::new(None);
    let built = attempts(
        settings,
        source.count() as u64,
        |layout, are_distinct| {
            let share = Share { layout: *layout, graphs: 0..layout.graphs() };
            Ok((*layout, attempt::<F>(&stream, &share, source, values, &distinct, are_distinct)?))
        },
        || Ok(distinct.borrow().as_ref().map_or(0, |distinct| distinct.count as u64)),
    );
    // Borrowed keys are read until then.
    stream.synchronize()?;
    built
}

/// Returns the words of these graphs; if keys are equal, `distinct` gets the different ones.
pub(super) fn attempt<F: DeviceWidth>(
    stream: &Stream,
    share: &Share,
    source: &impl Source,
    values: Option<Values>,
    distinct: &RefCell<Option<Distinct>>,
    are_distinct: bool,
) -> Result<DeviceVec<u64>, Failure> {
    let (layout, mut words) = (&share.layout, stream.alloc_zeroed(share.words()?)?);
    if layout.keys == 0 {
        return Ok(words);
    }
    let n = layout.keys as usize;
    let hash = || {
        let mut hashes = stream.alloc_uninit(n)?;
        match &*distinct.borrow() {
            Some(Distinct { words, .. }) => DeviceSource(words.slice(..n)).hash(stream, layout.seed, &mut hashes)?,
            None => source.hash(stream, layout.seed, &mut hashes)?,
        }
        Ok::<_, Error>(hashes)
    };
    let mut left = None;
    let is_built = match values {
        None => {
            let items = left.insert(Items { hashes: hash()?, contents: None });
            fill::<F>(stream, share, items, words.global_mut().cast(), &mut words)?
        }
        Some(given) => {
            let borrowed = distinct.borrow();
            let of_distinct = borrowed.as_ref().and_then(|distinct| distinct.values.as_ref());
            let values = of_distinct.map_or(given, |values| Values { values: values.global(), width: 8 });
            fill_values(stream, share, &hash, values, &mut words)?
        }
    };
    if is_built {
        return Ok(words);
    }
    drop(words);
    if are_distinct {
        return Err(Failure::Unlucky);
    }
    let hashes = match left {
        Some(items) => items.hashes,
        None => hash()?,
    };
    let different = without_repetitions(stream, layout, hashes, values)?;
    if different.count == n {
        return Err(Failure::Unlucky);
    }
    *distinct.borrow_mut() = Some(different);
    Err(Failure::Duplicates)
}

/// Builds all graphs in `slots`, which are zero, and writes the seeds of shards to the end of `words`; whether that was
/// possible. Waits.
fn fill<F: DeviceWidth>(
    stream: &Stream,
    share: &Share,
    items: &mut Items,
    slots: GlobalMut<F>,
    words: &mut DeviceVec<u64>,
) -> Result<bool, Error> {
    match share.layout.form() {
        Form::OneGraph => graph::build::<F>(stream, &share.layout, items, slots),
        Form::Sharded => {
            let seeds = words.global_mut().at(share.slot_words()).cast();
            shards::build::<F>(stream, share, items, slots, seeds)
        }
    }
}

/// Builds the slots of a function in `words`; whether that was possible. Slots of other widths than those of filters
/// are built in 32 bits each, or, if they have more bits, half by half, and packed. Waits.
fn fill_values(
    stream: &Stream,
    share: &Share,
    hash: &dyn Fn() -> Result<DeviceVec<u64>, Error>,
    values: Values,
    words: &mut DeviceVec<u64>,
) -> Result<bool, Error> {
    let layout = &share.layout;
    let items = |shift| {
        let hashes = hash()?;
        let mut contents = stream.alloc_uninit::<u32>(hashes.len())?;
        // SAFETY: there is a place for each key; the rest is the contract of `contents_of`.
        unsafe { contents_of(stream, &hashes, values, layout.value_bits, Some(shift), contents.global_mut())? };
        Ok::<_, Error>(Items { hashes, contents: Some(contents) })
    };
    let out = words.global_mut();
    match layout.bits {
        8 => return fill::<u8>(stream, share, &mut items(0)?, out.cast(), words),
        16 => return fill::<u16>(stream, share, &mut items(0)?, out.cast(), words),
        32 => return fill::<u32>(stream, share, &mut items(0)?, out.cast(), words),
        _ => {}
    }
    let mut halves = Vec::new();
    for shift in (0..layout.bits).step_by(32) {
        let mut half = stream.alloc_zeroed::<u32>(share.slots() as usize)?;
        if !fill::<u32>(stream, share, &mut items(shift)?, half.global_mut(), words)? {
            return Ok(false);
        }
        halves.push(half);
    }
    let (low, high) = (halves[0].global(), halves[halves.len() - 1].global());
    let (slots, bits) = (share.slots(), layout.bits);
    // SAFETY: both have all slots, and `out` the words of their fields; all is this build's own, used in the order of
    // the stream alone.
    unsafe { fuse_pack { low, high, slots, bits, out }.launch(stream, grid(share.slot_words()))? };
    Ok(true)
}

/// Queues the contents of keys with these hashes: 32 bits from `shift` on, or all bits. Waits, and fails if a value has
/// more than `value_bits`.
///
/// # Safety
/// - `values` has a value per hash; `out` has a place per hash, of 4 bytes, or 8 without `shift`. Nothing else uses
///   `out`, and nothing writes the values.
unsafe fn contents_of(
    stream: &Stream,
    hashes: &DeviceVec<u64>,
    Values { values, width }: Values,
    value_bits: u32,
    shift: Option<u32>,
    out: GlobalMut<u32>,
) -> Result<(), Error> {
    let (n, mut most) = (hashes.len(), stream.alloc_zeroed::<u64>(1)?);
    let (hashes, wide) = (hashes.global(), shift.is_none().into());
    let (shift, most_at) = (shift.unwrap_or(0), most.global_mut());
    // SAFETY: this function's contract.
    unsafe {
        fuse_contents { hashes, values, width, n, value_bits, shift, wide, most: most_at, out }
            .launch(stream, grid(n))?;
    }
    match stream.download_first(&most)? {
        0 => Ok(()),
        value => Err(Error::WideValue { value, bits: value_bits }),
    }
}

/// Returns the words of the different keys among these, with the values if there are any.
fn without_repetitions(
    stream: &Stream,
    layout: &Layout,
    mut hashes: DeviceVec<u64>,
    values: Option<Values>,
) -> Result<Distinct, Error> {
    let n = hashes.len();
    let mut words = stream.alloc_uninit::<u64>(n)?;
    let mut count = stream.alloc_zeroed::<u64>(1)?;
    // SAFETY: all is this build's own, used in the order of the stream alone; there is a place for each hash and value.
    let values = unsafe {
        match values {
            None => {
                sort_keys_in_place_async(stream, &mut hashes, By::ascending())?;
                unique_async(stream, hashes.as_slice(), words.as_mut_slice(), count.as_mut_slice())?;
                None
            }
            Some(given) => {
                let (mut all, mut found) = (stream.alloc_uninit::<u64>(n)?, stream.alloc_zeroed::<u64>(1)?);
                // With all 64 bits of a value, no fingerprint is above it.
                contents_of(stream, &hashes, given, u64::BITS, None, all.global_mut().cast())?;
                sort_pairs_in_place_async(stream, &mut hashes, &mut all, By::ascending())?;
                fuse_conflicts { hashes: hashes.global(), values: all.global(), n, found: found.global_mut() }
                    .launch(stream, grid(n))?;
                let at = stream.download_first(&found)? as usize;
                if at > 0 {
                    let mut two = [0; 2];
                    stream.download(all.slice(at - 1..=at), &mut two)?;
                    return Err(Error::TwoValues { first: two[0], second: two[1] });
                }
                let mut values = stream.alloc_uninit::<u64>(n)?;
                let (from, to) = (hashes.as_slice(), words.as_mut_slice());
                unique_by_key_async(stream, from, all.as_slice(), to, values.as_mut_slice(), count.as_mut_slice())?;
                Some(values)
            }
        }
    };
    let count = stream.download_first(&count)? as usize;
    // SAFETY: as above; that many were written.
    unsafe { fuse_unhash { hashes: words.global_mut(), n: count, seed: layout.seed }.launch(stream, grid(count))? };
    Ok(Distinct { words, values, count })
}
