//! Standard quotient filters in device memory: the same words as on the host, built and queried by kernels.
//!
//! Changes of a filter write it anew: fingerprints are extracted, put together with those of the batch, and laid out by
//! one scan (see `warpset_kernels::quotient_standard`). Methods on host slices bring keys to the device as they are,
//! where they are integers or hashes, and else as hashes; those that end in `_device` take keys that are there, and those
//! in `_async` also a stream, and wait for nothing.

use std::fmt;

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::keys::{self as kinds, KeySlice};
use warpset_kernels::quotient_standard::{self as kernels, BLOCK, Parameters, SHARED_BYTES, TILE};
use warpset_kernels::results;
use warpset_primitives::{select, sort};
use warpset_simt::{Global, GlobalMut};

use crate::key::Seed;
use crate::key::sealed::Raw;
use crate::words::Words;
use crate::{Error, Hashed, Key, Layout, StandardQuotientFilter as HostFilter};

/// Keys that a query on a host slice takes at a time.
const CHUNK: usize = 1 << 24;

/// A key of fixed size that device memory can hold and kernels can hash: integers of 32 and 64 bits, and [`Hashed`].
/// Sealed, as [`Key`] is.
pub trait DeviceKey: Key + Pod {
    /// How kernels call it.
    #[doc(hidden)]
    const KIND: u32;
}

macro_rules! device_keys {
    ($($key:ty: $kind:ident;)*) => {$(
        impl DeviceKey for $key {
            const KIND: u32 = kinds::$kind;
        }
    )*};
}
device_keys! {
    u32: MIX_U32;
    i32: MIX_U32;
    u64: MIX_U64;
    i64: MIX_U64;
    Hashed: HASH;
}

/// [`StandardQuotientFilter`](crate::StandardQuotientFilter) in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_quotient::{Builder, gpu};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = Builder::with_capacity(100);
/// let mut filter = gpu::StandardQuotientFilter::build_from(&device, builder.layout()?, &[2u64, 3, 5, 7])?;
/// filter.insert_bulk(&[11u64])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 11])?, [true, true]);
///
/// let on_host = filter.to_host()?; // the same bytes as if it had been built there
/// assert!(on_host == builder.build_from(&[2u64, 3, 5, 7, 11])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StandardQuotientFilter {
    layout: Layout,
    device: Device,
    words: DeviceVec<u64>,
    items: u64,
}

/// Fingerprints on a device, as wide as they need to be.
enum Fingerprints {
    Narrow(DeviceVec<u32>),
    Wide(DeviceVec<u64>),
}

/// Runs the body with the vector of fingerprints, whichever it is, and the kernels for it.
macro_rules! with_width {
    ($fingerprints:expr, |$items:ident, $hash:ident, $build:ident, $extract:ident| $body:expr) => {
        match $fingerprints {
            Fingerprints::Narrow($items) => {
                #[allow(unused_imports)]
                use kernels::{
                    quotient_standard_build_u32 as $build, quotient_standard_extract_u32 as $extract,
                    quotient_standard_fingerprints_u32 as $hash,
                };
                $body
            }
            Fingerprints::Wide($items) => {
                #[allow(unused_imports)]
                use kernels::{
                    quotient_standard_build_u64 as $build, quotient_standard_extract_u64 as $extract,
                    quotient_standard_fingerprints_u64 as $hash,
                };
                $body
            }
        }
    };
}

impl Fingerprints {
    fn alloc(layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            Fingerprints::Narrow(stream.alloc_uninit(len)?)
        } else {
            Fingerprints::Wide(stream.alloc_uninit(len)?)
        })
    }

    fn len(&self) -> usize {
        with_width!(self, |items, _h, _b, _e| items.len())
    }

    /// Queues an ascending sort.
    fn sort(&mut self, layout: &Layout, stream: &Stream) -> Result<(), Error> {
        let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
        // SAFETY: the vector is this call's to change, and freed in the order of the stream.
        with_width!(self, |items, _h, _b, _e| unsafe { sort::sort_keys_in_place(stream, items.as_mut_slice(), by) })?;
        Ok(())
    }

    /// Queues a copy of these and others into one vector.
    fn joined(&self, other: &Fingerprints, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        let (a, b) = (self.len(), other.len());
        let mut all = Fingerprints::alloc(layout, stream, a + b)?;
        match (&mut all, self, other) {
            (Fingerprints::Narrow(all), Fingerprints::Narrow(first), Fingerprints::Narrow(second)) => {
                stream.copy(all.slice_mut(..a), first)?;
                stream.copy(all.slice_mut(a..), second)?;
            }
            (Fingerprints::Wide(all), Fingerprints::Wide(first), Fingerprints::Wide(second)) => {
                stream.copy(all.slice_mut(..a), first)?;
                stream.copy(all.slice_mut(a..), second)?;
            }
            _ => unreachable!("both are as wide as the layout says"),
        }
        Ok(all)
    }
}

fn parameters(layout: &Layout) -> u32 {
    Parameters::new(layout.split, layout.container, layout.keeps_duplicates()).0
}

/// One thread each.
fn grid(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Keys brought to a device.
struct Uploaded {
    words: DeviceVec<u64>,
    kind: u32,
    n: usize,
}

impl Uploaded {
    fn new<K: Key>(stream: &Stream, layout: &Layout, keys: &[K]) -> Result<Uploaded, Error> {
        let n = keys.len();
        let (words, kind) = match K::raw(keys) {
            Raw::U32(keys) => {
                let mut words = stream.alloc_uninit::<u64>(n.div_ceil(2))?;
                stream.upload(words.as_mut_slice().cast::<u32>()?.slice_mut(..n), keys)?;
                (words, kinds::MIX_U32)
            }
            Raw::U64(keys) => (stream.from_slice(keys)?, kinds::MIX_U64),
            Raw::Hashes(hashes) => (stream.from_slice(hashes)?, kinds::HASH),
            Raw::Other => {
                use rayon::prelude::*;
                let seed = Seed::new(layout.seed);
                let hashes: Vec<u64> = keys.par_iter().with_min_len(1 << 10).map(|key| key.hash(seed)).collect();
                (stream.from_slice(&hashes)?, kinds::HASH)
            }
        };
        Ok(Uploaded { words, kind, n })
    }

    fn keys(&self, layout: &Layout) -> KeySlice {
        KeySlice::new(self.words.global(), self.kind, Seed::new(layout.seed).spread())
    }
}

fn key_slice<K: DeviceKey>(layout: &Layout, keys: DeviceSlice<'_, K>) -> KeySlice {
    KeySlice::new(keys.global(), K::KIND, Seed::new(layout.seed).spread())
}

/// Queues the hashing and sorting of `n` keys.
///
/// # Safety
/// The keys stay allocated and unwritten until `stream` has passed.
unsafe fn sorted_fingerprints(
    stream: &Stream,
    layout: &Layout,
    keys: KeySlice,
    n: usize,
) -> Result<Fingerprints, Error> {
    let mut fingerprints = Fingerprints::alloc(layout, stream, n)?;
    if n > 0 {
        let KeySlice { keys, kind, spread } = keys;
        let parameters = parameters(layout);
        // SAFETY: there is a word a key; the vector is freed in the order of the stream.
        with_width!(&mut fingerprints, |items, hash, _b, _e| unsafe {
            hash::launch(stream, grid(n), keys, kind, spread, n, parameters, items.global_mut())
        })?;
        fingerprints.sort(layout, stream)?;
    }
    Ok(fingerprints)
}

impl StandardQuotientFilter {
    /// An empty filter with these parameters.
    pub fn with_layout(device: &Device, layout: Layout) -> Result<StandardQuotientFilter, Error> {
        let too_large = |_| Error::OutOfMemory { bytes: layout.words().saturating_mul(8) };
        let words = device.alloc_zeroed(usize::try_from(layout.words()).map_err(too_large)?)?;
        Ok(StandardQuotientFilter { layout, device: device.clone(), words, items: 0 })
    }

    /// A copy of a filter in host memory.
    pub fn from_host(device: &Device, filter: &HostFilter) -> Result<StandardQuotientFilter, Error> {
        let mut copy = StandardQuotientFilter::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        copy.items = filter.len();
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    pub fn to_host(&self) -> Result<HostFilter, Error> {
        let mut words = Words::zeroed(self.layout.words())?;
        self.words.copy_to_slice(words.as_mut_slice())?;
        Ok(HostFilter::from_parts(self.layout, words, self.items))
    }

    /// A filter of these keys, built at once: hashed, sorted, laid out.
    pub fn build_from<K: Key>(device: &Device, layout: Layout, keys: &[K]) -> Result<StandardQuotientFilter, Error> {
        let stream = device.new_stream()?;
        let uploaded = Uploaded::new(&stream, &layout, keys)?;
        // SAFETY: the keys live until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, uploaded.keys(&layout), uploaded.n)? };
        lay_out(device, &stream, layout, &sorted)
    }

    /// [`StandardQuotientFilter::build_from`] for keys on the device.
    pub fn build_from_device<K: DeviceKey>(
        device: &Device,
        layout: Layout,
        keys: DeviceSlice<'_, K>,
    ) -> Result<StandardQuotientFilter, Error> {
        let stream = device.new_stream()?;
        device.synchronize()?;
        // SAFETY: the keys are borrowed until the layout has been waited for.
        let sorted = unsafe { sorted_fingerprints(&stream, &layout, key_slice(&layout, keys), keys.len())? };
        lay_out(device, &stream, layout, &sorted)
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// How many fingerprints are stored, repetitions included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Fingerprints stored, as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.items as f64 / self.layout.quotients() as f64
    }

    /// Bytes of device memory that the slots take.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.words.fill_bytes(0)?;
        self.items = 0;
        Ok(())
    }

    /// Inserts all keys; says how many fingerprints are stored more than before.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
        // SAFETY: the keys live until the layout has been waited for.
        unsafe { self.insert(&stream, uploaded.keys(&self.layout), uploaded.n) }
    }

    /// [`StandardQuotientFilter::insert_bulk`] for keys on the device.
    pub fn insert_bulk_device<K: DeviceKey>(&mut self, keys: DeviceSlice<'_, K>) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        // SAFETY: the keys are borrowed until the layout has been waited for.
        unsafe { self.insert(&stream, key_slice(&self.layout, keys), keys.len()) }
    }

    /// Merge and rebuild (section IV-E).
    ///
    /// # Safety
    /// The keys stay allocated and unwritten until `stream` has passed.
    unsafe fn insert(&mut self, stream: &Stream, keys: KeySlice, n: usize) -> Result<u64, Error> {
        if n == 0 {
            return Ok(0);
        }
        // SAFETY: the caller's promise is the same.
        let batch = unsafe { sorted_fingerprints(stream, &self.layout, keys, n)? };
        self.add(stream, &batch)
    }

    /// Writes the filter anew with these fingerprints besides its own.
    fn add(&mut self, stream: &Stream, batch: &Fingerprints) -> Result<u64, Error> {
        let before = self.items;
        let mut all = self.extract(stream)?.joined(batch, &self.layout, stream)?;
        all.sort(&self.layout, stream)?;
        *self = lay_out(&self.device, stream, self.layout, &all)?;
        Ok(self.items - before)
    }

    /// Adds all fingerprints of a filter on the same device, of any number of slots, container and load limit; its
    /// fingerprints must have as many bits.
    pub fn merge(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let incompatible = |field, left, right| Err(Error::Incompatible { field, left, right });
        let (ours, theirs) = (&self.layout, &other.layout);
        if ours.seed != theirs.seed {
            return incompatible("seed", ours.seed, theirs.seed);
        }
        if ours.duplicates != theirs.duplicates {
            return incompatible("duplicates kept", ours.keeps_duplicates() as u64, theirs.keeps_duplicates() as u64);
        }
        if ours.fingerprint_bits() != theirs.fingerprint_bits() {
            let bits = |layout: &Layout| layout.fingerprint_bits() as u64;
            return incompatible("fingerprint bits", bits(ours), bits(theirs));
        }
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let theirs = other.extract(&stream)?;
        self.add(&stream, &theirs)?;
        Ok(())
    }

    /// The same fingerprints with quotients of another width: a quotient bit more is a remainder bit less.
    pub fn resized(&self, quotient_bits: u32) -> Result<StandardQuotientFilter, Error> {
        let layout = self.layout.with_quotient_bits(quotient_bits)?;
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let all = self.extract(&stream)?;
        lay_out(&self.device, &stream, layout, &all)
    }

    /// Queues the extraction of all fingerprints, in ascending order.
    fn extract(&self, stream: &Stream) -> Result<Fingerprints, Error> {
        let slots = self.layout.slots() as usize;
        let mut all = Fingerprints::alloc(&self.layout, stream, self.items as usize)?;
        if self.items == 0 {
            return Ok(all);
        }
        let mut sparse = Fingerprints::alloc(&self.layout, stream, slots)?;
        let mut dense = Fingerprints::alloc(&self.layout, stream, slots)?;
        let mut used = stream.alloc_uninit::<u64>(slots / 64)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let (words, bits) = (self.words.global(), used.global_mut().cast());
        let parameters = parameters(&self.layout);
        // SAFETY: the filter is sound and borrowed; the vectors have a place a slot, and are freed in the order of the
        // stream. Selection keeps as many as there are items.
        with_width!(&mut sparse, |sparse, _h, _b, extract| unsafe {
            extract::launch(stream, grid(slots), words, slots as u64, parameters, sparse.global_mut(), bits)
        })?;
        match (&sparse, &mut dense, &mut all) {
            (Fingerprints::Narrow(sparse), Fingerprints::Narrow(dense), Fingerprints::Narrow(all)) => {
                compact(stream, sparse, &used, dense, &mut count, all)?;
            }
            (Fingerprints::Wide(sparse), Fingerprints::Wide(dense), Fingerprints::Wide(all)) => {
                compact(stream, sparse, &used, dense, &mut count, all)?;
            }
            _ => unreachable!("all are as wide as the layout says"),
        }
        Ok(all)
    }

    /// Queues the lookup of `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `keys` and `answers` stay allocated, nobody writes the filter or
    /// the keys, and nobody else touches the answers.
    pub unsafe fn contains_bytes_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let n = keys.len();
        if answers.len() != n {
            return Err(Error::LengthMismatch { keys: n, answers: answers.len() });
        }
        let words = GlobalMut::from_raw_parts(answers.global_mut().as_ptr().cast(), n.div_ceil(8));
        // SAFETY: there is a byte a key; the rest is the caller's promise.
        unsafe { self.contains(stream, key_slice(&self.layout, keys), n, results::BYTES, words) }
    }

    /// Queues the lookup of `keys`: adds how many of them may be in the filter to the first word of `count`.
    ///
    /// # Safety
    /// As for [`StandardQuotientFilter::contains_bytes_async`]; other such counts may run at the same time.
    pub unsafe fn count_contained_async<K: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if count.is_empty() {
            return Err(Error::LengthMismatch { keys: keys.len(), answers: 0 });
        }
        // SAFETY: there is a word; the rest is the caller's promise.
        unsafe { self.contains(stream, key_slice(&self.layout, keys), keys.len(), results::COUNT, count.global_mut()) }
    }

    /// # Safety
    /// `out` has room for `n` results of this form; all stay valid, and filter and keys unwritten, until `stream` has
    /// passed.
    unsafe fn contains(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        form: u32,
        out: GlobalMut<u64>,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let KeySlice { keys, kind, spread } = keys;
        let words: Global<u64> = self.words.global();
        let (slots, parameters) = (self.layout.slots(), parameters(&self.layout));
        // SAFETY: the filter is sound; the caller answers for the rest.
        unsafe {
            kernels::quotient_standard_contains::launch(
                stream,
                grid(n),
                words,
                slots,
                parameters,
                keys,
                kind,
                spread,
                n,
                form,
                out,
            )?;
        }
        Ok(())
    }

    /// One answer a key, in the order of the keys.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let mut answers = Vec::with_capacity(keys.len());
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            let mut out = stream.alloc_uninit::<u64>(results::words(results::BITS, keys.len()))?;
            let slice = uploaded.keys(&self.layout);
            // SAFETY: there is a bit a key; all live until the copy has been waited for.
            unsafe { self.contains(&stream, slice, keys.len(), results::BITS, out.global_mut())? };
            let mut words = vec![0u64; out.len()];
            stream.download(&out, &mut words)?;
            answers.extend((0..keys.len()).map(|i| words[i / 64] >> (i % 64) & 1 != 0));
        }
        Ok(answers)
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            let slice = uploaded.keys(&self.layout);
            // SAFETY: one word counts; all live until the copy below has been waited for, keys being freed in order.
            unsafe { self.contains(&stream, slice, keys.len(), results::COUNT, count.global_mut())? };
        }
        let mut found = [0];
        stream.download(&count, &mut found)?;
        Ok(found[0] as usize)
    }
}

/// Queues a selection of the items whose bit is set, of which there are as many as `all` has places.
fn compact<T: select::Item>(
    stream: &Stream,
    sparse: &DeviceVec<T>,
    used: &DeviceVec<u64>,
    dense: &mut DeviceVec<T>,
    count: &mut DeviceVec<u64>,
    all: &mut DeviceVec<T>,
) -> Result<(), Error> {
    // SAFETY: all are the caller's alone, and freed in the order of the stream.
    unsafe { select::select(stream, sparse.as_slice(), used.as_slice(), dense.as_mut_slice(), count.as_mut_slice())? };
    let n = all.len();
    stream.copy(all.as_mut_slice(), dense.slice(..n))?;
    Ok(())
}

/// A filter of ascending fingerprints. Waits, because only the result shows whether they fit.
fn lay_out(
    device: &Device,
    stream: &Stream,
    layout: Layout,
    sorted: &Fingerprints,
) -> Result<StandardQuotientFilter, Error> {
    let n = sorted.len();
    let words =
        usize::try_from(layout.words()).map_err(|_| Error::OutOfMemory { bytes: layout.words().saturating_mul(8) })?;
    let mut words = stream.alloc_zeroed::<u64>(words)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let tiles = n.div_ceil(TILE);
        let look_back_words = kernels::look_back_words(tiles);
        let mut scratch = stream.alloc_zeroed::<u64>(look_back_words + 4)?;
        let look_back = scratch.global_mut();
        let (ticket, out) = (look_back.at(look_back_words).cast(), look_back.at(look_back_words + 2));
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, target) = (parameters(&layout), layout.slots(), words.global_mut());
        // SAFETY: the words are those of the layout, zero, and nobody else's, as is the scratch memory; fingerprints are
        // ascending, and live until the copy has been waited for.
        with_width!(sorted, |items, _h, build, _e| unsafe {
            build::launch(stream, config, items.global(), n, parameters, slots, look_back, ticket, target, out)
        })?;
        stream.download(scratch.slice(look_back_words + 2..), &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    if items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    let usable = layout.slots() - 1;
    if end > usable {
        return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
    }
    Ok(StandardQuotientFilter { layout, device: device.clone(), words, items })
}

impl fmt::Debug for StandardQuotientFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::StandardQuotientFilter")
            .field("layout", &self.layout)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
