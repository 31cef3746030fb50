//! Counting in device memory: packed bases in, a filter with counters out, and nothing of it on the host in between.
//!
//! One kernel turns packed bases into the fingerprints of their canonical k-mers; they are sorted, and runs of equal
//! ones are counted. Input that is larger than the device's memory goes in several batches, each of which is sorted and
//! counted on its own; then its runs are merged into those before it. In the end the runs are laid out as a filter,
//! with the same bytes as on the host.
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
//! assert!(filter.to_host()? == *table.filter());
//! assert_eq!(distinct, table.distinct());
//! # Ok::<(), warpset_kmers::Error>(())
//! ```

mod packed;
#[cfg(test)]
mod tests;
mod upload;

use warpset_core::hash::permute::spread_of;
use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::kmers::letters::{
    BLOCK, CLASSES, CLASSES_SHARED_BYTES, TILE_WORDS, kmers_classes, kmers_fingerprints, kmers_frequent,
};
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, merge_pairs_async};
use warpset_primitives::reduce::{Sum, reduce_by_key_async, run_length_encode_async};
use warpset_primitives::select::select_async;
use warpset_primitives::sort::{By, sort_keys_in_place_async};
use warpset_quotient::gpu::RankSelectQuotientFilter;

pub use packed::Packed;

use crate::count::builder_for;
use crate::table::key_bits;
use crate::{Error, K};

/// Bytes of device memory per position of a batch, at most: its fingerprints, their runs and lengths, the runs before,
/// and what merging them takes.
const BYTES_PER_POSITION: usize = 72;
/// Positions of a batch, at most.
const MOST_POSITIONS: usize = 1 << 31;
/// Resident blocks per multiprocessor that walk their input by grid stride.
const RESIDENT: u32 = 8;

/// Fingerprints in ascending order with their copies.
struct Runs {
    fingerprints: DeviceVec<u64>,
    copies: DeviceVec<u64>,
    len: usize,
}

/// Counts k-mers on a device.
pub struct Counter {
    k: K,
    stream: Stream,
    runs: Option<Runs>,
}

impl Counter {
    /// A count of k-mers of `k` bases.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver gives no stream.
    pub fn new(device: &Device, k: K) -> Result<Counter, Error> {
        Ok(Counter { k, stream: device.new_stream()?, runs: None })
    }

    /// Words of packed bases that [`add`](Counter::add) should be given at a time, at most, so that the device's memory
    /// suffices for what becomes of them.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver does not tell how much memory is free.
    pub fn most_words(&self) -> Result<usize, Error> {
        let positions = self.stream.device().memory_info()?.free / BYTES_PER_POSITION;
        Ok(positions.min(MOST_POSITIONS).div_ceil(32))
    }

    /// A grid for that many items, no larger than fits on the device several times.
    fn grid(&self, items: usize, block_items: usize) -> LaunchConfig {
        let resident = (self.stream.device().properties().multiprocessors * RESIDENT) as usize;
        LaunchConfig::new(items.div_ceil(block_items).clamp(1, resident) as u32, BLOCK)
    }

    /// Counts the k-mers of packed bases as well, and waits.
    ///
    /// # Errors
    /// [`Error::Device`] and [`Error::Primitives`], most likely because the device's memory does not suffice.
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

    /// The fingerprints of all k-mers, sorted, and their number; `None` if there are none.
    fn fingerprints(&self, parts: &[Packed]) -> Result<Option<(DeviceVec<u64>, usize)>, Error> {
        let (stream, k, bits) = (&self.stream, self.k.get(), key_bits(self.k));
        let words: usize = parts.iter().map(Packed::words).sum();
        if words == 0 {
            return Ok(None);
        }
        let (bases, breaks) = upload::upload(stream, parts, words)?;
        let (mut out, mut next) = (stream.alloc_uninit::<u64>(32 * words)?, stream.alloc_zeroed::<u64>(1)?);
        let arguments = kmers_fingerprints {
            bases: bases.global(),
            breaks: breaks.global(),
            words,
            k,
            bits,
            spread: spread_of(0),
            out: out.global_mut(),
            next: next.global_mut(),
        };
        // SAFETY: both inputs have a word more than `words`, and the output a place for each position; all is this
        // call's own and freed in the order of the stream; `K` and `key_bits` keep the numbers in range.
        unsafe { arguments.launch(stream, self.grid(words, TILE_WORDS))? };
        drop((bases, breaks));
        let len = self.number(&next)?;
        if len == 0 {
            return Ok(None);
        }
        // SAFETY: nothing else accesses the fingerprints, which are freed in the order of the stream.
        unsafe { sort_keys_in_place_async(stream, out.slice_mut(..len), By::ascending().bits(0..bits))? };
        Ok(Some((out, len)))
    }

    /// A number that the stream has left on the device.
    fn number(&self, at: &DeviceVec<u64>) -> Result<usize, Error> {
        let mut number = [0];
        self.stream.download(at, &mut number)?;
        Ok(number[0] as usize)
    }

    /// The runs of sorted fingerprints.
    fn counted(&self, (sorted, len): (DeviceVec<u64>, usize)) -> Result<Runs, Error> {
        let stream = &self.stream;
        let (mut fingerprints, mut copies) = (stream.alloc_uninit(len)?, stream.alloc_uninit(len)?);
        let mut runs = stream.alloc_uninit(1)?;
        let sorted = sorted.slice(..len);
        // SAFETY: everything is this call's own, and freed in the order of the stream.
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

    /// The runs of both.
    fn merged(&self, a: Runs, b: Runs) -> Result<Runs, Error> {
        let stream = &self.stream;
        let (a, b) = (self.shrunk(a)?, self.shrunk(b)?);
        let both = a.len + b.len;
        let (mut keys, mut values) = (stream.alloc_uninit(both)?, stream.alloc_uninit(both)?);
        // SAFETY: everything is this call's own, and freed in the order of the stream.
        unsafe {
            merge_pairs_async(
                stream,
                Pairs::<u64, u64>::new(&a.fingerprints, &a.copies),
                Pairs::new(&b.fingerprints, &b.copies),
                KeyMask::all(),
                &mut keys,
                &mut values,
            )?
        };
        drop((a, b));
        let (mut fingerprints, mut copies) = (stream.alloc_uninit(both)?, stream.alloc_uninit(both)?);
        let mut runs = stream.alloc_uninit(1)?;
        // SAFETY: as above.
        unsafe {
            reduce_by_key_async::<Sum<u64>, u64>(
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

    /// The runs in no more memory than they need.
    fn shrunk(&self, runs: Runs) -> Result<Runs, Error> {
        let Runs { fingerprints, copies, len } = runs;
        let cut = |from: DeviceVec<u64>| -> Result<DeviceVec<u64>, Error> {
            if from.len() == len {
                return Ok(from);
            }
            let mut to = self.stream.alloc_uninit(len)?;
            self.stream.copy(&mut to, from.slice(..len))?;
            Ok(to)
        };
        Ok(Runs { fingerprints: cut(fingerprints)?, copies: cut(copies)?, len })
    }

    /// The runs of at least `least` copies.
    fn frequent(&self, runs: Runs, least: u64) -> Result<Runs, Error> {
        if least <= 1 {
            return Ok(runs);
        }
        let (stream, len) = (&self.stream, runs.len);
        let mut bitmap = stream.alloc_uninit::<u64>(len.div_ceil(64))?;
        let (copies, bits) = (runs.copies.global(), bitmap.global_mut().cast());
        // SAFETY: the bitmap has a bit for each run, in whole words; all is freed in the order of the stream.
        unsafe {
            kmers_frequent { copies, n: len, least, bitmap: bits }.launch(stream, self.grid(len, BLOCK as usize))?
        };
        let mut kept = 0;
        let mut cut = |from: &DeviceVec<u64>| -> Result<DeviceVec<u64>, Error> {
            let (mut to, mut count) = (stream.alloc_uninit(len)?, stream.alloc_uninit(1)?);
            let items = from.slice(..len);
            // SAFETY: everything is this call's own, and freed in the order of the stream.
            unsafe { select_async(stream, items, bitmap.as_slice(), to.as_mut_slice(), count.as_mut_slice())? };
            kept = self.number(&count)?;
            Ok(to)
        };
        let (fingerprints, copies) = (cut(&runs.fingerprints)?, cut(&runs.copies)?);
        Ok(Runs { fingerprints, copies, len: kept })
    }

    /// How many runs there are of each class of counts.
    fn classes(&self, runs: &Runs) -> Result<[u64; CLASSES], Error> {
        let mut classes = self.stream.alloc_zeroed::<u64>(CLASSES)?;
        let config = self.grid(runs.len, BLOCK as usize).shared(CLASSES_SHARED_BYTES);
        let (copies, n) = (runs.copies.global(), runs.len);
        // SAFETY: there are at least `n` copies, and a word for each class; both are freed in the order of the stream.
        unsafe { kmers_classes { copies, n, classes: classes.global_mut() }.launch(&self.stream, config)? };
        let mut counts = [0; CLASSES];
        self.stream.download(&classes, &mut counts)?;
        Ok(counts)
    }

    /// The filter of all k-mers of which there are at least `least` copies, as small as can be, and how many different
    /// ones it has.
    ///
    /// # Errors
    /// [`Error::NoKmers`], [`Error::TooManyKmers`]; [`Error::Device`], [`Error::Primitives`] and [`Error::Filter`] if
    /// the device's memory does not suffice.
    pub fn finish(mut self, least: u64) -> Result<(RankSelectQuotientFilter, u64), Error> {
        let runs = self.runs.take().ok_or(Error::NoKmers { k: self.k.get() })?;
        let runs = self.frequent(runs, least)?;
        let builder = builder_for(self.k, &self.classes(&runs)?)?;
        let (fingerprints, copies) = (runs.fingerprints.slice(..runs.len), runs.copies.slice(..runs.len));
        let filter = builder.on(self.stream.device()).build_from_fingerprint_counts_device(fingerprints, copies)?;
        Ok((filter, runs.len as u64))
    }
}
