//! From keys to hashes in device memory, and from these to filters, attempt by attempt as on the host.

use std::cell::RefCell;

use warpset_gpu::batch::{Chunk, Reply, Staging};
use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::fuse::keys::{BLOCK, fuse_hash, fuse_unhash};
use warpset_primitives::select::unique_async;
use warpset_primitives::sort::{By, sort_keys_in_place_async};
use warpset_simt::GlobalMut;

use super::{BinaryFuse, DeviceKeys, DeviceWidth, HASHING, graph, shards, word_count};
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
        Staging::new(stream.device(), HASHING).run(self.0, Reply::None, work, |_, _| {})
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

/// The words of different keys.
struct Distinct {
    words: DeviceVec<u64>,
    count: usize,
}

/// Returns a filter of the keys of a source.
pub(super) fn build<F: DeviceWidth>(
    device: &Device,
    settings: &Settings,
    source: &impl Source,
) -> Result<BinaryFuse<F>, Error> {
    let stream = device.new_stream()?;
    let distinct: RefCell<Option<Distinct>> = RefCell::new(None);
    let built = attempts(
        settings,
        source.count() as u64,
        |layout, are_distinct| {
            let words = attempt::<F>(&stream, layout, source, &distinct, are_distinct)?;
            Ok(BinaryFuse::from_parts(device, *layout, words))
        },
        || Ok(distinct.borrow().as_ref().map_or(0, |distinct| distinct.count as u64)),
    );
    // Borrowed keys are read until then.
    stream.synchronize()?;
    built
}

/// Returns the words of a filter under this layout; if keys are equal, `distinct` gets the different ones.
fn attempt<F: DeviceWidth>(
    stream: &Stream,
    layout: &Layout,
    source: &impl Source,
    distinct: &RefCell<Option<Distinct>>,
    are_distinct: bool,
) -> Result<DeviceVec<u64>, Failure> {
    let mut words = stream.alloc_zeroed(word_count(layout)?)?;
    if layout.keys == 0 {
        return Ok(words);
    }
    let n = layout.keys as usize;
    let mut hashes = stream.alloc_uninit(n)?;
    match &*distinct.borrow() {
        Some(Distinct { words, .. }) => DeviceSource(words.slice(..n)).hash(stream, layout.seed, &mut hashes)?,
        None => source.hash(stream, layout.seed, &mut hashes)?,
    }
    let is_built = match layout.form() {
        Form::OneGraph => graph::build::<F>(stream, layout, &mut hashes, &mut words)?,
        Form::Sharded => shards::build::<F>(stream, layout, &mut hashes, &mut words)?,
    };
    if is_built {
        return Ok(words);
    }
    drop(words);
    if are_distinct {
        return Err(Failure::Unlucky);
    }
    let different = without_repetitions(stream, layout, hashes)?;
    if different.count == n {
        return Err(Failure::Unlucky);
    }
    *distinct.borrow_mut() = Some(different);
    Err(Failure::Duplicates)
}

/// Queues a sort of hashes by these bits.
pub(super) fn sort(stream: &Stream, hashes: &mut DeviceVec<u64>, by: By) -> Result<(), Error> {
    // SAFETY: the hashes are this build's own, used in the order of the stream alone.
    unsafe { Ok(sort_keys_in_place_async(stream, hashes, by)?) }
}

/// Returns the words of the different keys among these.
fn without_repetitions(stream: &Stream, layout: &Layout, mut hashes: DeviceVec<u64>) -> Result<Distinct, Error> {
    sort(stream, &mut hashes, By::ascending())?;
    let mut words = stream.alloc_uninit::<u64>(hashes.len())?;
    let mut count = stream.alloc_zeroed::<u64>(1)?;
    // SAFETY: all is this build's own, used in the order of the stream alone; there is a place for each hash.
    unsafe { unique_async(stream, hashes.as_slice(), words.as_mut_slice(), count.as_mut_slice())? };
    let count = stream.download_first(&count)? as usize;
    // SAFETY: as above; that many were written.
    unsafe { fuse_unhash { hashes: words.global_mut(), n: count, seed: layout.seed }.launch(stream, grid(count))? };
    Ok(Distinct { words, count })
}
