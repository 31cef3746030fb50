//! Fingerprints on a device, in as many bits as they need: made from keys, sorted, merged, selected.

use warpset_gpu::batch::{Answers, Reply, Staging};
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::fingerprints::{KEYS, quotient_equals, quotient_fingerprints};
use warpset_primitives::{KeyMask, merge, select, sort};
use warpset_simt::{EntryOf, GlobalMut};

use super::launch::{grid, hashing, parameters};
use super::{DeviceKeys, exact};
use crate::{Error, Key, Layout};

/// Fingerprints on a device: in 32 bits where they fit.
pub enum Fingerprints {
    /// Up to 32 bits.
    Narrow(DeviceVec<u32>),
    /// More than 32 bits.
    Wide(DeviceVec<u64>),
}

/// Treatment of keys of an exact filter that have no fingerprint.
#[derive(Clone, Copy)]
pub(crate) enum TooWide {
    /// Such a key is an error.
    Refused,
    /// Such keys are left out.
    Dropped,
    /// Such keys get any fingerprint, and no copies. The word of copies per key is accessed by nothing else.
    Zeroed(GlobalMut<u64>),
}

/// Runs the body with the vector of fingerprints: of `u32` or of `u64`.
macro_rules! with_width {
    ($fingerprints:expr, |$items:ident| $body:expr) => {
        match $fingerprints {
            Fingerprints::Narrow($items) => $body,
            Fingerprints::Wide($items) => $body,
        }
    };
}
pub(crate) use with_width;

/// Runs the body with two or more vectors, which have the same width.
macro_rules! with_widths {
    (($($fingerprints:expr),*), |$($items:ident),*| $body:expr) => {
        match ($($fingerprints),*) {
            ($(Fingerprints::Narrow($items)),*) => $body,
            ($(Fingerprints::Wide($items)),*) => $body,
            _ => unreachable!("all are as wide as one layout says"),
        }
    };
}
pub(crate) use with_widths;

impl Fingerprints {
    /// Allocates `len` fingerprints of any content.
    ///
    /// # Errors
    /// [`Error::Gpu`] if device memory runs out or the device fails.
    pub fn alloc(layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            Fingerprints::Narrow(stream.alloc_uninit(len)?)
        } else {
            Fingerprints::Wide(stream.alloc_uninit(len)?)
        })
    }

    /// Allocates `len` fingerprints as wide as these.
    fn alloc_like(&self, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(match self {
            Fingerprints::Narrow(_) => Fingerprints::Narrow(stream.alloc_uninit(len)?),
            Fingerprints::Wide(_) => Fingerprints::Wide(stream.alloc_uninit(len)?),
        })
    }

    /// Copies fingerprints to the device.
    pub(crate) fn from_host(layout: &Layout, stream: &Stream, fingerprints: &[u64]) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            let narrow: Vec<u32> = fingerprints.iter().map(|&fingerprint| fingerprint as u32).collect();
            Fingerprints::Narrow(stream.from_slice(&narrow)?)
        } else {
            Fingerprints::Wide(stream.from_slice(fingerprints)?)
        })
    }

    /// Hashes keys of the host: kernels hash one chunk of keys while the next is copied. Waits. Keys of an exact filter
    /// are [`words`](exact::words).
    pub(super) fn of_host_keys<K: Key>(layout: &Layout, stream: &Stream, keys: &[K]) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, keys.len())?;
        stream.synchronize()?; // other streams write the vector
        let staging = Staging::new(stream.device(), hashing(layout));
        with_width!(&mut all, |all| {
            let to = all.global_mut();
            staging.run(
                keys,
                Reply::NONE,
                |chunk| {
                    let (keys, n) = (exact::keys_for(layout, chunk.keys), chunk.range.len());
                    // SAFETY: each chunk has places of its own, as many as keys; `run` waits for all.
                    unsafe { hash(chunk.stream, layout, keys, n, to.at(chunk.range.start)) }
                },
                |_, _| {},
            )
        })?;
        Ok(all)
    }

    /// Queues the hashing of keys on the device; for an exact filter, waits for the check of the keys.
    ///
    /// # Errors
    /// [`Error::KeyTooWide`] if a key has too many bits and such keys are refused.
    ///
    /// # Safety
    /// - Until `stream` has passed this work the keys stay allocated, and nothing writes them.
    /// - The contract of [`TooWide`] holds.
    pub(super) unsafe fn of_device_keys<K: DeviceKeys>(
        layout: &Layout,
        stream: &Stream,
        keys: K,
        too_wide: TooWide,
    ) -> Result<Fingerprints, Error> {
        let all = Fingerprints::alloc(layout, stream, keys.count())?;
        // SAFETY: the contract is the same.
        unsafe { all.hashed(layout, stream, keys, too_wide) }
    }

    /// Queues [`Fingerprints::of_device_keys`] in words of 64 bits.
    ///
    /// # Errors
    /// The errors of [`Fingerprints::of_device_keys`].
    ///
    /// # Safety
    /// The contract of [`Fingerprints::of_device_keys`].
    pub(crate) unsafe fn wide_of_device_keys<K: DeviceKeys>(
        layout: &Layout,
        stream: &Stream,
        keys: K,
        too_wide: TooWide,
    ) -> Result<DeviceVec<u64>, Error> {
        let all = Fingerprints::Wide(stream.alloc_uninit(keys.count())?);
        // SAFETY: the contract is the same.
        Ok(unsafe { all.hashed(layout, stream, keys, too_wide)? }.into_wide())
    }

    /// Queues the hashing of keys on the device to these places, one per key.
    ///
    /// # Safety
    /// The contract of [`Fingerprints::of_device_keys`].
    unsafe fn hashed<K: DeviceKeys>(
        self,
        layout: &Layout,
        stream: &Stream,
        keys: K,
        too_wide: TooWide,
    ) -> Result<Fingerprints, Error> {
        let (mut all, n) = (self, keys.count());
        let mut fits = stream.alloc_zeroed::<u64>(if layout.exact { 1 + n.div_ceil(64) } else { 0 })?;
        // SAFETY: there is a place for each key; scratch is freed in the order of the stream; the rest is the contract
        // of this function.
        unsafe {
            keys.for_each_chunk(&hashing(layout), stream, |first, hashed, n| {
                let keys = exact::keys_for(layout, hashed.keys);
                with_width!(&mut all, |all| hash(stream, layout, keys, n, all.global_mut().at(first)))?;
                match too_wide {
                    _ if !layout.exact => Ok(()),
                    TooWide::Refused => exact::fits(layout, stream, keys, n, Answers::count(fits.as_mut_slice())?),
                    TooWide::Dropped => {
                        let bits = Answers::bits_at(fits.global_mut().at(1 + first / 64));
                        exact::fits(layout, stream, keys, n, bits)
                    }
                    TooWide::Zeroed(copies) => exact::clear(layout, stream, keys, n, copies.at(first)),
                }
            })?;
        }
        match too_wide {
            TooWide::Refused if layout.exact && n > 0 => {
                let mut count = [0];
                stream.download(fits.slice(..1), &mut count)?;
                if count[0] < n as u64 {
                    return Err(Error::KeyTooWide { bits: layout.fingerprint_bits() });
                }
            }
            TooWide::Dropped if layout.exact && n > 0 => return all.selected(stream, fits.slice(1..)),
            _ => {}
        }
        Ok(all)
    }

    /// Returns the fingerprints, which have 64 bits.
    pub(crate) fn into_wide(self) -> DeviceVec<u64> {
        match self {
            Fingerprints::Wide(items) => items,
            Fingerprints::Narrow(_) => unreachable!("asked for in words of 64 bits"),
        }
    }

    /// Queues the hashing of `n > 0` keys in the form of kernels.
    ///
    /// # Safety
    /// Until `stream` has passed this work the keys stay allocated, and nothing writes them.
    pub(super) unsafe fn of_kernel_keys(
        layout: &Layout,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
    ) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, n)?;
        // SAFETY: there is a place for each key; the rest is the contract of this function.
        with_width!(&mut all, |all| unsafe { hash(stream, layout, keys, n, all.global_mut()) })?;
        Ok(all)
    }

    /// Returns 4 or 8.
    pub(crate) fn bytes_per_item(&self) -> usize {
        if matches!(self, Fingerprints::Narrow(_)) { 4 } else { 8 }
    }

    #[expect(clippy::len_without_is_empty, reason = "not for other crates")]
    /// Returns the number of fingerprints.
    pub fn len(&self) -> usize {
        with_width!(self, |items| items.len())
    }

    /// Queues an ascending sort.
    ///
    /// # Errors
    /// [`Error::Gpu`] if device memory runs out or the device fails.
    pub fn sorted(mut self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        if self.len() > 0 {
            let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
            // SAFETY: the vector is this call's to change, and freed in the order of the stream.
            with_width!(&mut self, |items| unsafe {
                sort::sort_keys_in_place_async(stream, items.as_mut_slice(), by)
            })?;
        }
        Ok(self)
    }

    /// Queues a merge of these and others, both ascending.
    pub(super) fn merged(&self, other: &Fingerprints, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, self.len() + other.len())?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, other, &mut all), |a, b, all| unsafe {
            merge::merge_keys_async(stream, a.as_slice(), b.as_slice(), KeyMask::all(), all.as_mut_slice())?;
        });
        Ok(all)
    }

    /// Drops repetitions of ascending fingerprints. Waits for the number of the rest.
    ///
    /// # Errors
    /// [`Error::Gpu`] if device memory runs out or the device fails.
    pub fn unique(&self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        let mut kept = Fingerprints::alloc(layout, stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::unique_async(stream, items.as_slice(), kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.truncated(stream, &count)
    }

    /// Selects the fingerprints whose bit is set. Waits for their number.
    pub(super) fn selected(&self, stream: &Stream, bits: DeviceSlice<'_, u64>) -> Result<Fingerprints, Error> {
        let mut kept = self.alloc_like(stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::select_async(stream, items.as_slice(), bits, kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.truncated(stream, &count)
    }

    /// Queues the copy of the fingerprints, among the first `n > 0`, whose bit is set to the start of `to`, and of
    /// their number to the first word of `count`. `to` has `n` places.
    ///
    /// # Errors
    /// [`Error::Gpu`] if device memory runs out or the device fails.
    pub fn keep(
        &self,
        stream: &Stream,
        n: usize,
        bits: &DeviceVec<u64>,
        to: &mut Fingerprints,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let bits = bits.slice(..n.div_ceil(64));
        // SAFETY: there is a bit per item; the vectors are apart, and freed in the order of the stream.
        with_widths!((self, to), |items, to| unsafe {
            select::select_async(stream, items.slice(..n), bits, to.slice_mut(..n), count)?;
        });
        Ok(())
    }

    /// Truncates to the length in `count`.
    fn truncated(self, stream: &Stream, count: &DeviceVec<u64>) -> Result<Fingerprints, Error> {
        let mut len = [0];
        stream.download(count, &mut len)?;
        let len = len[0] as usize;
        if len == self.len() { Ok(self) } else { self.first(stream, len) }
    }

    /// Queues a copy of the first `len`.
    pub(crate) fn first(&self, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        let mut all = self.alloc_like(stream, len)?;
        with_widths!((self, &mut all), |items, all| stream.copy(all, items.slice(..len))?);
        Ok(all)
    }

    /// Queues the comparison with `others`: which of these have an equal there, one for one, or have none. Both ascend,
    /// and `answers` is valid for these.
    pub(super) fn compare(
        &self,
        stream: &Stream,
        others: &Fingerprints,
        equal: bool,
        answers: Answers,
    ) -> Result<(), Error> {
        let (n, m) = (self.len(), others.len());
        if n > 0 {
            let Answers { words: out, form } = answers;
            // SAFETY: both are ascending; answers have room, and everything is freed in the order of the stream.
            with_widths!((self, others), |ours, theirs| unsafe {
                let (a, b) = (ours.global(), theirs.global());
                quotient_equals { a, a_len: n, b, b_len: m, equal: equal as u32, form, out }.launch(stream, grid(n))?;
            });
        }
        Ok(())
    }
}

/// Queues the hashing of `n > 0` keys.
///
/// # Safety
/// Until `stream` has passed this work:
/// - the keys stay allocated, and nothing writes them;
/// - `to` is valid for `n` fingerprints of this layout, and nothing else accesses it.
unsafe fn hash<F: EntryOf<quotient_fingerprints<F>>>(
    stream: &Stream,
    layout: &Layout,
    keys: KeySlice,
    n: usize,
    to: GlobalMut<F>,
) -> Result<(), Error> {
    let KeySlice { keys, kind, spread, .. } = keys;
    // SAFETY: the contract is the same.
    unsafe {
        quotient_fingerprints { keys, kind, spread, n, parameters: parameters(layout), out: to }
            .launch(stream, grid(n.div_ceil(KEYS)))?
    };
    Ok(())
}
