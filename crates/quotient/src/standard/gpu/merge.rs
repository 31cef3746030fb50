//! Filters taken apart, put together with others, counted against others, and written anew in another form.

use warpset_core::hash;
use warpset_core::quotient::slots::Container;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::results;
use warpset_kernels::quotient::extract::{
    self as kernels, BLOCK, SHARED_BYTES, TILE_BLOCKS, quotient_equals, quotient_extract,
};
use warpset_primitives::LookBack;

use super::StandardQuotientFilter;
use super::build::lay_out;
use super::fingerprints::{Fingerprints, grid, parameters, with_width, with_widths};
use super::width::Width;
use crate::{Error, Hashed, Layout, rates};

/// Extraction (algorithm 8).
impl StandardQuotientFilter {
    /// The stored fingerprints in ascending order, brought to the host.
    pub fn fingerprints(&self) -> Result<Vec<u64>, Error> {
        Ok(self.fingerprints_device()?.to_vec()?)
    }

    /// The stored fingerprints in ascending order, in device memory.
    pub fn fingerprints_device(&self) -> Result<DeviceVec<u64>, Error> {
        let stream = self.ready_stream()?;
        let mut all = stream.alloc_uninit(self.items as usize)?;
        self.extract_into(&stream, 0, &mut all)?;
        stream.synchronize()?;
        Ok(all)
    }

    /// Queues the extraction of all fingerprints, in ascending order.
    pub(super) fn extract(&self, stream: &Stream) -> Result<Fingerprints, Error> {
        self.extract_for(&self.layout, stream, 0)
    }

    /// The same as fingerprints of a layout, `dropped` bits shorter.
    fn extract_for(&self, layout: &Layout, stream: &Stream, dropped: u32) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, self.items as usize)?;
        with_width!(&mut all, |all| self.extract_into(stream, dropped, all))?;
        Ok(all)
    }

    /// The same into a vector with a place an item.
    fn extract_into<F: Width>(&self, stream: &Stream, dropped: u32, all: &mut DeviceVec<F>) -> Result<(), Error> {
        if self.items == 0 {
            return Ok(());
        }
        let tiles = self.layout.blocks.div_ceil(TILE_BLOCKS) as usize;
        let mut scratch = LookBack::new(stream, kernels::look_back_words(tiles))?;
        let (look_back, ticket) = (scratch.words(), scratch.ticket());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (words, slots, parameters) = (self.words.global(), self.layout.slots(), parameters(&self.layout));
        // SAFETY: the filter is sound and borrowed; there is a place an item, in a vector that is the caller's alone;
        // scratch is zero, this call's own, and freed in the order of the stream.
        unsafe {
            let (out, n) = (all.global_mut(), self.items);
            quotient_extract { words, slots, parameters, dropped, look_back, ticket, out, n }.launch(stream, config)?;
        }
        Ok(())
    }

    /// A stream behind everything that was queued on the device.
    fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }
}

/// Several filters.
impl StandardQuotientFilter {
    /// Writes the filter anew with these ascending fingerprints besides its own.
    pub(super) fn add(&mut self, stream: &Stream, batch: &Fingerprints) -> Result<u64, Error> {
        let before = self.items;
        let all = self.extract(stream)?.merged(batch, &self.layout, stream)?;
        *self = lay_out(&self.device, stream, self.layout, &all)?;
        Ok(self.items - before)
    }

    /// Adds all fingerprints of another filter on the same device: as a set, or with all repetitions if this one keeps
    /// duplicates.
    ///
    /// The other may have any number of slots, container and load limit; its fingerprints must have at least as many
    /// bits, and lose those that are too many.
    pub fn merge(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let dropped = self.bits_to_drop(other)?;
        let stream = self.ready_stream()?;
        let theirs = other.extract_for(&self.layout, &stream, dropped)?;
        self.add(&stream, &theirs)?;
        Ok(())
    }

    /// Removes the fingerprints of another filter on the same device: each cancels one copy of its like.
    pub fn subtract(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let dropped = self.bits_to_drop(other)?;
        let stream = self.ready_stream()?;
        let theirs = other.extract_for(&self.layout, &stream, dropped)?;
        let ours = self.extract(&stream)?;
        let mut bits = stream.alloc_uninit::<u64>(results::words(results::BITS, ours.len()))?;
        equals(&stream, &ours, &theirs, false, results::BITS, &mut bits)?;
        let rest = ours.selected(&self.layout, &stream, &bits)?;
        *self = lay_out(&self.device, &stream, self.layout, &rest)?;
        Ok(())
    }

    /// How many fingerprints are in both filters; in multisets, with the smaller of the two multiplicities.
    ///
    /// A filter whose fingerprints have more bits loses those that are too many.
    pub fn intersection_count(&self, other: &StandardQuotientFilter) -> Result<u64, Error> {
        Ok(self.counts(other)?.0)
    }

    /// How many fingerprints are in at least one of the filters; in multisets, with the larger of the two
    /// multiplicities.
    pub fn union_count(&self, other: &StandardQuotientFilter) -> Result<u64, Error> {
        let (common, ours, theirs) = self.counts(other)?;
        Ok(ours + theirs - common)
    }

    /// How many fingerprints are in both filters, in this one and in the other.
    fn counts(&self, other: &StandardQuotientFilter) -> Result<(u64, u64, u64), Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.counts(self);
        }
        let dropped = self.bits_to_drop(other)?;
        let stream = self.ready_stream()?;
        let ours = self.extract(&stream)?;
        let mut theirs = other.extract_for(&self.layout, &stream, dropped)?;
        if dropped > 0 && !self.layout.keeps_duplicates() {
            // Different fingerprints can become equal when they lose bits.
            theirs = theirs.unique(&self.layout, &stream)?;
        }
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        equals(&stream, &ours, &theirs, true, results::COUNT, &mut count)?;
        let mut common = [0];
        stream.download(&count, &mut common)?;
        Ok((common[0], ours.len() as u64, theirs.len() as u64))
    }

    /// How many low bits the other's fingerprints have too many.
    fn bits_to_drop(&self, other: &StandardQuotientFilter) -> Result<u32, Error> {
        self.device.expect_same(&other.device, "an operation on two quotient filters")?;
        self.layout.bits_to_drop(&other.layout)
    }
}

/// Another form.
impl StandardQuotientFilter {
    /// The same fingerprints with quotients of another width: a quotient bit more is a remainder bit less, so that the
    /// rate of false positives stays, and twice as many keys fit.
    pub fn resized(&self, quotient_bits: u32) -> Result<StandardQuotientFilter, Error> {
        self.rewritten(self.layout.with_quotient_bits(quotient_bits)?)
    }

    /// Makes room for twice as many keys: moves one bit from the remainders to the quotients.
    pub fn double(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() + 1)?;
        Ok(())
    }

    /// Halves the number of slots: moves one bit from the quotients to the remainders.
    pub fn halve(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() - 1)?;
        Ok(())
    }

    /// The same fingerprints in another container.
    pub fn with_container(&self, container: Container) -> Result<StandardQuotientFilter, Error> {
        self.rewritten(Layout { container, ..self.layout })
    }

    /// The same fingerprints, of as many bits, in another layout.
    fn rewritten(&self, layout: Layout) -> Result<StandardQuotientFilter, Error> {
        let stream = self.ready_stream()?;
        let all = self.extract(&stream)?;
        lay_out(&self.device, &stream, layout, &all)
    }
}

/// Rates.
impl StandardQuotientFilter {
    /// Bits of memory a stored fingerprint.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.items as f64
    }

    /// How many different fingerprints are stored.
    pub fn distinct(&self) -> Result<u64, Error> {
        if !self.layout.keeps_duplicates() || self.items == 0 {
            return Ok(self.items);
        }
        let stream = self.ready_stream()?;
        Ok(self.extract(&stream)?.unique(&self.layout, &stream)?.len() as u64)
    }

    /// The rate of false positives of the filter as it is: the share of all fingerprints that are stored. Exact, if the
    /// hashes of the keys asked for are uniform.
    pub fn fpr(&self) -> Result<f64, Error> {
        Ok(rates::of_distinct(self.distinct()?, self.layout.fingerprint_bits()))
    }

    /// The rate of false positives to expect, were `keys` different keys in the filter.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        rates::expected(keys, self.layout.fingerprint_bits())
    }

    /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain: the same hashes as
    /// on the host.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        const CHUNK: u64 = 1 << 22;
        let spread = hash::spread_seed(seed);
        let mut hits = 0;
        let mut done = 0;
        while done < samples {
            let n = CHUNK.min(samples - done);
            let hashes: Vec<Hashed> = (done..done + n).map(|i| Hashed(hash::mix_spread(i, spread))).collect();
            hits += self.count_contained_bulk(&hashes)?;
            done += n;
        }
        Ok(hits as f64 / samples.max(1) as f64)
    }
}

/// Queues which of `ours` have an equal in `theirs`, one for one, or which have none.
fn equals(
    stream: &Stream,
    ours: &Fingerprints,
    theirs: &Fingerprints,
    equal: bool,
    form: u32,
    out: &mut DeviceVec<u64>,
) -> Result<(), Error> {
    let (n, m) = (ours.len(), theirs.len());
    if n > 0 {
        // SAFETY: both are ascending; results have room, and everything is freed in the order of the stream.
        with_widths!((ours, theirs), |ours, theirs| unsafe {
            let out = out.global_mut();
            let (a, b) = (ours.global(), theirs.global());
            quotient_equals { a, a_len: n, b, b_len: m, equal: equal as u32, form, out }.launch(stream, grid(n))?;
        });
    }
    Ok(())
}
