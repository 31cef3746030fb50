//! Merging, intersection, folding, clearing and counting: kernels on words, whatever the layout.

use warpset_gpu::batch::expect_room;
use warpset_gpu::{DeviceSliceMut, Stream};
use warpset_kernels::bloom::words as kernels;

use super::{Bloom, DeviceLayout};
use crate::Error;

/// Name, in errors, of operations on two filters.
const MERGING: &str = "merging Bloom filters";

impl<L: DeviceLayout> Bloom<L> {
    /// Queues what brings the counts up to date with the words.
    pub(super) fn count_bucket_ones(&mut self, stream: &Stream) -> Result<(), Error> {
        let (units, unit) = (self.bucket_ones.len(), self.layout.words_per_block() as u32);
        if units > 0 {
            let config = self.covering(units * 32);
            // SAFETY: there are `units` buckets of `unit` words; the filter is borrowed mutably, and its owner waits.
            unsafe {
                let (words, ones) = (self.words.global(), self.bucket_ones.global_mut());
                kernels::words_unit_ones { words, unit, ones, units }.launch(stream, config)?;
            }
        }
        Ok(())
    }

    /// Removes all keys and keeps the memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.words.fill_bytes(0)?;
        self.bucket_ones.fill_bytes(0)?;
        Ok(())
    }

    /// Queues [`Bloom::clear`].
    ///
    /// # Errors
    /// [`Error::Gpu`].
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter stays allocated, and nothing else accesses it.
    pub unsafe fn clear_async(&mut self, stream: &Stream) -> Result<(), Error> {
        stream.fill_bytes(&mut self.words, 0)?;
        stream.fill_bytes(&mut self.bucket_ones, 0)?;
        Ok(())
    }

    /// Adds all keys of `other`, a filter with the same parameters on the same device; see
    /// [`cpu::Bloom::merge`](crate::cpu::Bloom::merge).
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`].
    pub fn merge(&mut self, other: &Bloom<L>) -> Result<(), Error> {
        let stream = self.synchronised_stream()?;
        // SAFETY: both filters are borrowed until the stream has been waited for.
        unsafe { self.merge_async(&stream, other)? };
        Ok(stream.synchronize()?)
    }

    /// Queues [`Bloom::merge`].
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - both filters stay allocated;
    /// - nothing else accesses this one, and nothing writes the other.
    pub unsafe fn merge_async(&mut self, stream: &Stream, other: &Bloom<L>) -> Result<(), Error> {
        self.check_compatible(other)?;
        self.expect_here(MERGING, [stream.device()])?;
        let (n, config) = (self.words.len(), self.covering(self.words.len()));
        // SAFETY: equal layouts have equal lengths; the rest is this function's contract.
        unsafe {
            kernels::words_or { words: self.words.global_mut(), other: other.words.global(), n }
                .launch(stream, config)?
        };
        self.count_bucket_ones(stream)
    }

    /// Keeps the bits that are set in `other` too, a filter with the same parameters on the same device; see
    /// [`cpu::Bloom::intersect`](crate::cpu::Bloom::intersect).
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::NoIntersection`]; [`Error::Gpu`].
    pub fn intersect(&mut self, other: &Bloom<L>) -> Result<(), Error> {
        let stream = self.synchronised_stream()?;
        // SAFETY: both filters are borrowed until the stream has been waited for.
        unsafe { self.intersect_async(&stream, other)? };
        Ok(stream.synchronize()?)
    }

    /// Queues [`Bloom::intersect`].
    ///
    /// # Errors
    /// The errors of [`Bloom::intersect`].
    ///
    /// # Safety
    /// That of [`Bloom::merge_async`].
    pub unsafe fn intersect_async(&mut self, stream: &Stream, other: &Bloom<L>) -> Result<(), Error> {
        self.check_compatible(other)?;
        self.expect_here(MERGING, [stream.device()])?;
        self.layout.check_intersection()?;
        let (n, config) = (self.words.len(), self.covering(self.words.len()));
        // SAFETY: equal layouts have equal lengths; the rest is this function's contract.
        unsafe {
            kernels::words_and { words: self.words.global_mut(), other: other.words.global(), n }
                .launch(stream, config)?
        };
        self.count_bucket_ones(stream)
    }

    /// Whether `merge` and `intersect` would accept `other`; the error names the first difference.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`].
    pub fn check_compatible(&self, other: &Bloom<L>) -> Result<(), Error> {
        self.expect_here(MERGING, [&other.device])?;
        match self.layout.difference(&other.layout) {
            None => Ok(()),
            Some((field, left, right)) => Err(Error::Incompatible { field, left, right }),
        }
    }

    /// Divides the number of blocks, a multiple of `factor`, by `factor`; see
    /// [`cpu::Bloom::fold`](crate::cpu::Bloom::fold).
    ///
    /// If there is no memory for the folded filter beside this one, this one is unchanged.
    ///
    /// # Errors
    /// [`Error::CannotFold`], [`Error::Gpu`].
    pub fn fold(&mut self, factor: u64) -> Result<(), Error> {
        let folded = self.folded(factor)?;
        *self = folded;
        Ok(())
    }

    /// Returns the folded filter; this one is unchanged.
    pub(super) fn folded(&self, factor: u64) -> Result<Bloom<L>, Error> {
        let stream = self.synchronised_stream()?;
        // SAFETY: this filter is borrowed, and the other not handed out, until the stream has been waited for.
        let folded = unsafe { self.folded_async(&stream, factor)? };
        stream.synchronize()?;
        Ok(folded)
    }

    /// Queues the construction of a new filter, folded by `factor`; this one is unchanged. Memory comes from the
    /// stream's pool.
    ///
    /// # Errors
    /// [`Error::CannotFold`], [`Error::Gpu`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - both filters stay allocated;
    /// - nothing writes this one, and only later work on `stream` accesses the new one.
    pub unsafe fn folded_async(&self, stream: &Stream, factor: u64) -> Result<Bloom<L>, Error> {
        self.expect_here("folding a Bloom filter", [stream.device()])?;
        let layout = self.layout.folded(factor)?;
        let ones = if L::COUNTS_ONES { layout.blocks() as usize } else { 0 };
        let mut folded = Bloom {
            layout,
            device: self.device.clone(),
            words: stream.alloc_uninit(layout.words() as usize)?,
            whole: layout,
            before: 0,
            bucket_ones: stream.alloc_uninit(ones)?,
            grouping: self.grouping,
            chunk_keys: self.chunk_keys,
        };
        // Part `part` of new block `new` is old block `new * block_step + part * part_step`.
        let block_step = if layout.blocks() > 1 { self.layout.folded_from(1, 0, factor) } else { 1 };
        let part_step = if factor > 1 { self.layout.folded_from(0, 1, factor) } else { 1 };
        let (n, unit) = (folded.words.len(), layout.words_per_block() as u32);
        // SAFETY: lengths are those of the two layouts; the rest is this function's contract.
        unsafe {
            let (from, to) = (self.words.global(), folded.words.global_mut());
            let config = self.covering(n);
            kernels::words_fold { words: from, unit, unit_step: block_step, part_step, parts: factor, folded: to, n }
                .launch(stream, config)?;
        }
        folded.count_bucket_ones(stream)?;
        Ok(folded)
    }

    /// Counts the set bits. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_ones(&self) -> Result<u64, Error> {
        let stream = self.synchronised_stream()?;
        let mut total = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the filter is borrowed until the stream has been waited for.
        unsafe { self.count_ones_async(&stream, total.as_mut_slice())? };
        let mut ones = [0];
        stream.download(&total, &mut ones)?;
        Ok(ones[0])
    }

    /// Queues the count of set bits: adds their number to the first word of `count`. Divided by
    /// `8 * memory_bytes` it is the fill ratio.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `count` is empty; [`Error::Gpu`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter and `count` stay allocated;
    /// - nothing writes the filter, and nothing but other such counts accesses `count`.
    pub unsafe fn count_ones_async(&self, stream: &Stream, mut count: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        expect_room(1, count.len())?;
        self.expect_here("counting in a Bloom filter", [stream.device(), count.device()])?;
        let (n, config) = (self.words.len(), self.covering(self.words.len()));
        // SAFETY: there is a word; the rest is this function's contract.
        unsafe {
            kernels::words_count_ones { words: self.words.global(), n, total: count.global_mut() }
                .launch(stream, config)?
        };
        Ok(())
    }

    /// Returns the fraction of set bits; about half at the intended number of keys.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn fill_ratio(&self) -> Result<f64, Error> {
        Ok(self.count_ones()? as f64 / self.layout.settable_bits() as f64)
    }

    /// Estimates the number of different keys in the filter from the number of set bits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn estimated_len(&self) -> Result<f64, Error> {
        Ok(self.layout.cardinality(self.count_ones()?))
    }

    /// Returns the rate of false positives in theory with `keys` different keys.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.expected_fpr(keys)
    }

    /// Returns the fraction of bits that theory expects to be set with `keys` different keys in the filter.
    pub fn predicted_fill(&self, keys: u64) -> f64 {
        self.layout.predicted_fill(keys)
    }
}
