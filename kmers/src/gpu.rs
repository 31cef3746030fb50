//! Counting in device memory: packed bases in, a filter with counters out, and no intermediate results on the host.
//!
//! One kernel turns packed bases into the fingerprints of their canonical k-mers. These are sorted, and runs of equal
//! ones are counted. Input that exceeds the memory of the device is processed in batches: each batch is sorted and
//! counted, and its runs are merged with those before. At the end the runs are laid out as a filter with the same bytes
//! as on the host; those of more than 32 bases are copied to the host, and become a table there.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_kmers::gpu::{Counter, Packed};
//! use warpset_kmers::{K, Settings, count_bytes};
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let mut packed = Packed::new();
//! packed.push(b"ACGTTGCAACGT");
//! let mut counter = Counter::new(&device, K::new(4)?)?;
//! counter.add(&[packed])?;
//! let (filter, distinct) = counter.finish(1)?;
//!
//! let table = count_bytes(b">a\nACGTTGCAACGT\n", &Settings::new(4)?)?;
//! assert!(table.filter() == Some(&filter.to_host()?));
//! assert_eq!(distinct, table.distinct());
//! # Ok::<(), warpset_kmers::Error>(())
//! ```

mod packed;
#[cfg(test)]
mod tests;
mod upload;

use bytemuck::Pod;
use warpset_base::words::zeroed_vec;
use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::kmers::letters::{
    BLOCK, CLASSES, CLASSES_SHARED_BYTES, PADDING, TILE_WORDS, kmers_classes, kmers_fingerprints, kmers_frequent,
};
use warpset_kernels::simt::EntryOf;
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, merge_pairs_async};
use warpset_primitives::reduce::{ByKeyKernels, EncodeKernels, Sum, reduce_by_key_async, run_length_encode_async};
use warpset_primitives::select::{Item, select_async};
use warpset_primitives::sort::{By, SortKey, sort_keys_in_place_async};
use warpset_quotient::gpu::RankSelectQuotientFilter;

pub use packed::Packed;

use crate::count::builder_for;
use crate::long::Long;
use crate::table::key_bits;
use crate::word::Word;
use crate::{Error, K, Table};

/// Largest number of items of device memory per position of a batch: its fingerprints, their runs and counts, earlier
/// runs, and memory for merging.
const ITEMS_PER_POSITION: usize = 9;
/// Largest number of positions per batch.
const MOST_POSITIONS: usize = 1 << 31;
/// Resident blocks per multiprocessor in grid-stride launches.
const RESIDENT: u32 = 8;

/// Numbers that hold a k-mer in device memory. Sealed.
pub trait OnDevice: Word + SortKey + EncodeKernels + Item + EntryOf<kmers_fingerprints<Self>> {}
impl OnDevice for u64 {}
impl OnDevice for u128 {}

/// Ascending fingerprints with their numbers of copies.
struct Runs<W> {
    fingerprints: DeviceVec<W>,
    copies: DeviceVec<u64>,
    len: usize,
}

/// Counter of k-mers of up to 32 bases on a device. Counters of longer ones, in `u128`, are made and finished by
/// [`count_files`](crate::count_files) and its like alone.
pub struct Counter<W = u64> {
    k: K,
    stream: Stream,
    runs: Option<Runs<W>>,
}

impl<W: OnDevice> Counter<W>
where
    Sum<u64>: ByKeyKernels<W, Value = u64>,
{
    /// Creates a counter of k-mers that `W` is chosen for.
    pub(crate) fn of(device: &Device, k: K) -> Result<Counter<W>, Error> {
        Ok(Counter { k: k.within::<W>()?, stream: device.new_stream()?, runs: None })
    }

    /// Returns the number of words of packed bases per [`add`](Counter::add) for which the free memory of the device is
    /// sure to suffice.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver does not report its free memory.
    pub fn most_words(&self) -> Result<usize, Error> {
        let positions = self.stream.device().memory_info()?.free / (ITEMS_PER_POSITION * size_of::<W>());
        Ok(positions.min(MOST_POSITIONS).div_ceil(32))
    }

    /// Returns a grid for `items` items with at most `RESIDENT` blocks per multiprocessor.
    fn grid(&self, items: usize, block_items: usize) -> LaunchConfig {
        let resident = (self.stream.device().properties().multiprocessors * RESIDENT) as usize;
        LaunchConfig::new(items.div_ceil(block_items).clamp(1, resident) as u32, BLOCK)
    }

    /// Adds the k-mers of packed bases to the counts, and waits.
    ///
    /// # Errors
    /// [`Error::Device`] and [`Error::Primitives`], in most cases because the memory of the device does not suffice.
    /// The counts of earlier calls may then be lost, since they are freed while batches are merged: make a new counter.
    pub fn add(&mut self, parts: &[Packed]) -> Result<(), Error> {
        if let Some(fingerprints) = self.fingerprints(parts)? {
            let counted = self.counted(fingerprints)?;
            self.runs = Some(match self.runs.take() {
                None => counted,
                Some(before) => self.merged(before, counted)?,
            });
        }
        Ok(())
    }

    /// Returns the sorted fingerprints of all k-mers and their number; `None` if there are none.
    fn fingerprints(&self, parts: &[Packed]) -> Result<Option<(DeviceVec<W>, usize)>, Error> {
        let (stream, k, bits) = (&self.stream, self.k.get(), key_bits(self.k));
        let words: usize = parts.iter().map(Packed::words).sum();
        if words == 0 {
            return Ok(None);
        }
        let (bases, breaks) = upload::upload(stream, parts, words)?;
        let (mut out, mut next) = (stream.alloc_uninit::<W>(32 * words)?, stream.alloc_zeroed::<u64>(1)?);
        let arguments = kmers_fingerprints {
            bases: bases.global(),
            breaks: breaks.global(),
            words,
            k,
            bits,
            out: out.global_mut(),
            next: next.global_mut(),
        };
        // SAFETY: both inputs have `PADDING` words after `words`, and the output has a place for each position. The
        // buffers belong to this call, and are freed in stream order. `of` and `key_bits` keep `k` and `bits` in range.
        unsafe { arguments.launch(stream, self.grid(words, TILE_WORDS))? };
        drop((bases, breaks));
        let len = self.number(&next)?;
        if len == 0 {
            return Ok(None);
        }
        // SAFETY: only this stream accesses the fingerprints, which are freed in its order.
        unsafe { sort_keys_in_place_async(stream, out.slice_mut(..len), By::ascending().bits(0..bits))? };
        Ok(Some((out, len)))
    }

    /// Reads a number from the device.
    fn number(&self, at: &DeviceVec<u64>) -> Result<usize, Error> {
        let mut number = [0];
        self.stream.download(at, &mut number)?;
        Ok(number[0] as usize)
    }

    /// Returns the runs of sorted fingerprints.
    fn counted(&self, (sorted, len): (DeviceVec<W>, usize)) -> Result<Runs<W>, Error> {
        let stream = &self.stream;
        let (mut fingerprints, mut copies) = (stream.alloc_uninit(len)?, stream.alloc_uninit(len)?);
        let mut runs = stream.alloc_uninit(1)?;
        let sorted = sorted.slice(..len);
        // SAFETY: the buffers belong to this call, and are freed in stream order; outputs have `len` items.
        unsafe {
            run_length_encode_async(
                stream,
                sorted,
                fingerprints.as_mut_slice(),
                copies.as_mut_slice(),
                runs.as_mut_slice(),
            )?
        };
        let len = self.number(&runs)?;
        Ok(Runs { fingerprints, copies, len })
    }

    /// Merges the runs of two batches.
    fn merged(&self, a: Runs<W>, b: Runs<W>) -> Result<Runs<W>, Error> {
        let stream = &self.stream;
        let (a, b) = (self.shrunk(a)?, self.shrunk(b)?);
        let both = a.len + b.len;
        let (mut keys, mut values) = (stream.alloc_uninit(both)?, stream.alloc_uninit(both)?);
        // SAFETY: the buffers belong to this call, and are freed in stream order; outputs have the length of both
        // inputs.
        unsafe {
            merge_pairs_async(
                stream,
                Pairs::<W, u64>::new(&a.fingerprints, &a.copies),
                Pairs::new(&b.fingerprints, &b.copies),
                KeyMask::all(),
                &mut keys,
                &mut values,
            )?
        };
        drop((a, b));
        let (mut fingerprints, mut copies) = (stream.alloc_uninit(both)?, stream.alloc_uninit(both)?);
        let mut runs = stream.alloc_uninit(1)?;
        // SAFETY: the buffers belong to this call, and are freed in stream order; outputs have the length of the
        // inputs.
        unsafe {
            reduce_by_key_async::<Sum<u64>, W>(
                stream,
                keys.as_slice(),
                values.as_slice(),
                fingerprints.as_mut_slice(),
                copies.as_mut_slice(),
                runs.as_mut_slice(),
            )?
        };
        let len = self.number(&runs)?;
        Ok(Runs { fingerprints, copies, len })
    }

    /// Copies the runs into buffers of exactly their length.
    fn shrunk(&self, runs: Runs<W>) -> Result<Runs<W>, Error> {
        let Runs { fingerprints, copies, len } = runs;
        Ok(Runs { fingerprints: self.cut(fingerprints, len)?, copies: self.cut(copies, len)?, len })
    }

    /// Copies the first `len` items into a buffer of that length.
    fn cut<T: Pod>(&self, from: DeviceVec<T>, len: usize) -> Result<DeviceVec<T>, Error> {
        if from.len() == len {
            return Ok(from);
        }
        let mut to = self.stream.alloc_uninit(len)?;
        self.stream.copy(&mut to, from.slice(..len))?;
        Ok(to)
    }

    /// Selects the runs of at least `least` copies.
    fn frequent(&self, runs: Runs<W>, least: u64) -> Result<Runs<W>, Error> {
        if least <= 1 {
            return Ok(runs);
        }
        let (stream, len) = (&self.stream, runs.len);
        let mut bitmap = stream.alloc_uninit::<u64>(len.div_ceil(64))?;
        let (copies, bits) = (runs.copies.global(), bitmap.global_mut().cast());
        // SAFETY: the bitmap has a bit per run, in whole words of 64; all buffers are freed in stream order.
        unsafe {
            kmers_frequent { copies, n: len, least, bitmap: bits }.launch(stream, self.grid(len, BLOCK as usize))?
        };
        let (fingerprints, kept) = self.selected(&runs.fingerprints, &bitmap, len)?;
        let (copies, _) = self.selected(&runs.copies, &bitmap, len)?;
        Ok(Runs { fingerprints, copies, len: kept })
    }

    /// Returns those of the first `len` items that have a bit, and their number.
    fn selected<T: Item + Pod>(
        &self,
        from: &DeviceVec<T>,
        bitmap: &DeviceVec<u64>,
        len: usize,
    ) -> Result<(DeviceVec<T>, usize), Error> {
        let stream = &self.stream;
        let (mut to, mut count) = (stream.alloc_uninit(len)?, stream.alloc_uninit(1)?);
        let items = from.slice(..len);
        // SAFETY: the buffers belong to this call, and are freed in stream order; `to` has the length of the input.
        unsafe { select_async(stream, items, bitmap.as_slice(), to.as_mut_slice(), count.as_mut_slice())? };
        Ok((to, self.number(&count)?))
    }

    /// Counts the runs of each class of counts.
    fn classes(&self, runs: &Runs<W>) -> Result<[u64; CLASSES], Error> {
        let mut classes = self.stream.alloc_zeroed::<u64>(CLASSES)?;
        let config = self.grid(runs.len, BLOCK as usize).shared(CLASSES_SHARED_BYTES);
        let (copies, n) = (runs.copies.global(), runs.len);
        // SAFETY: `copies` has at least `n` items, and `classes` a word per class; both are freed in stream order.
        unsafe { kmers_classes { copies, n, classes: classes.global_mut() }.launch(&self.stream, config)? };
        let mut counts = [0; CLASSES];
        self.stream.download(&classes, &mut counts)?;
        Ok(counts)
    }

    /// Returns the runs of at least `least` copies, of all k-mers that were added.
    fn all_runs(&mut self, least: u64) -> Result<Runs<W>, Error> {
        let runs = self.runs.take().ok_or(Error::NoKmers { k: self.k.get() })?;
        self.frequent(runs, least)
    }
}

impl Counter {
    /// Creates a counter of k-mers of up to 32 bases.
    ///
    /// # Errors
    /// [`Error::InvalidK`] for longer ones; [`Error::Device`] if the driver creates no stream.
    pub fn new(device: &Device, k: K) -> Result<Counter, Error> {
        Counter::of(device, k)
    }

    /// Builds the smallest filter of all k-mers with at least `least` copies, and returns it with the number of
    /// different k-mers.
    ///
    /// # Errors
    /// [`Error::NoKmers`], [`Error::TooManyKmers`]; [`Error::Device`], [`Error::Primitives`] and [`Error::Filter`] if
    /// the memory of the device does not suffice.
    pub fn finish(mut self, least: u64) -> Result<(RankSelectQuotientFilter, u64), Error> {
        let runs = self.all_runs(least)?;
        let builder = builder_for(self.k, &self.classes(&runs)?)?;
        let (fingerprints, copies) = (runs.fingerprints.slice(..runs.len), runs.copies.slice(..runs.len));
        let filter = builder.on(self.stream.device()).build_from_fingerprint_counts_device(fingerprints, copies)?;
        Ok((filter, runs.len as u64))
    }
}

impl Counter<u128> {
    /// Builds the table of all k-mers with at least `least` copies in host memory, within `memory` bytes.
    pub(crate) fn table(mut self, least: u64, memory: Option<u64>) -> Result<Table, Error> {
        let Runs { fingerprints, copies: on_device, len } = self.all_runs(least)?;
        let (kmers, needed) = (len as u64, len as u64 * (size_of::<u128>() + size_of::<u64>()) as u64);
        if let Some(allowed) = memory.filter(|&allowed| needed > allowed) {
            return Err(Error::OverBudget { kmers, needed, allowed });
        }
        let mut copies = zeroed_vec::<u64>(kmers).map_err(Error::of_table)?;
        self.stream.download(on_device.slice(..len), &mut copies)?;
        let mut downloaded = Ok(());
        let fill = |to: &mut [u128]| downloaded = self.stream.download(fingerprints.slice(..len), to);
        let table = Long::from_ascending(self.k, kmers, |place| copies[place], fill).map_err(Error::of_table)?;
        downloaded?;
        Ok(table.into())
    }
}
