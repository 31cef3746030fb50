//! Fingerprints on a device, in as many bits as they need: made from keys, sorted, merged, selected.

use warpset_gpu::batch::{Answers, Reply, Staging};
use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::build::{KEYS, quotient_fingerprints};
use warpset_kernels::quotient::extract::quotient_equals;
use warpset_kernels::quotient::layout::BLOCK;
use warpset_kernels::quotient::memory::Parameters;
use warpset_primitives::{KeyMask, merge, select, sort};
use warpset_simt::GlobalMut;

use super::{DeviceKeys, exact, hashing};
use crate::{Error, Key, Layout};

pub use super::fingerprint_word::FingerprintWord;

/// Fingerprints on a device: in 32 bits where they fit.
pub enum Fingerprints {
    /// Up to 32 bits.
    Narrow(DeviceVec<u32>),
    /// More than 32 bits.
    Wide(DeviceVec<u64>),
}

/// What becomes of keys of an exact filter that have no fingerprint.
#[derive(Clone, Copy)]
pub(super) enum Misfits {
    /// One of them is an error.
    Refused,
    /// They are left out.
    Dropped,
    /// Their fingerprints are any, and their copies, a word for each key that nothing else accesses, become none.
    Zeroed(GlobalMut<u64>),
}

/// Runs the body with the vector of fingerprints, whichever it is: of `u32` or of `u64`.
macro_rules! with_width {
    ($fingerprints:expr, |$items:ident| $body:expr) => {
        match $fingerprints {
            Fingerprints::Narrow($items) => $body,
            Fingerprints::Wide($items) => $body,
        }
    };
}
pub(crate) use with_width;

/// The same with two, or more, which are of the same width.
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
    pub(crate) fn alloc(layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            Fingerprints::Narrow(stream.alloc_uninit(len)?)
        } else {
            Fingerprints::Wide(stream.alloc_uninit(len)?)
        })
    }

    /// Brings fingerprints to the device.
    pub(crate) fn from_host(layout: &Layout, stream: &Stream, fingerprints: &[u64]) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            let narrow: Vec<u32> = fingerprints.iter().map(|&fingerprint| fingerprint as u32).collect();
            Fingerprints::Narrow(stream.from_slice(&narrow)?)
        } else {
            Fingerprints::Wide(stream.from_slice(fingerprints)?)
        })
    }

    /// The fingerprints of keys on the host: kernels hash one chunk of keys while the next is copied. Waits.
    pub(super) fn of_host_keys<K: Key>(layout: &Layout, stream: &Stream, keys: &[K]) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, keys.len())?;
        stream.synchronize()?; // other streams write the vector
        let staging = Staging::new(stream.device(), hashing(layout));
        with_width!(&mut all, |all| {
            let to = all.global_mut();
            staging.run(
                keys,
                Reply::None,
                |chunk| {
                    let n = chunk.range.len();
                    // SAFETY: each chunk has places of its own, as many as keys; `run` waits for all.
                    unsafe { hash(chunk.stream, layout, chunk.keys, n, to.at(chunk.range.start)) }
                },
                |_, _| {},
            )
        })?;
        Ok(all)
    }

    /// Queues the hashing of keys on the device; of an exact filter, waits for which keys have fingerprints.
    ///
    /// # Errors
    /// [`Error::KeyTooWide`] where misfits are refused, and there are some.
    ///
    /// # Safety
    /// - Until `stream` has passed this work the keys stay allocated, and nothing writes them.
    /// - What [`Misfits`] says.
    pub(super) unsafe fn of_device_keys<K: DeviceKeys>(
        layout: &Layout,
        stream: &Stream,
        keys: K,
        misfits: Misfits,
    ) -> Result<Fingerprints, Error> {
        let (n, hashing) = (keys.count(), hashing(layout));
        let mut all = Fingerprints::alloc(layout, stream, n)?;
        let mut fits = stream.alloc_zeroed::<u64>(if layout.exact { 1 + n.div_ceil(64) } else { 0 })?;
        for first in (0..n).step_by(keys.at_a_time(&hashing)) {
            let part = keys.part(first..n.min(first.saturating_add(keys.at_a_time(&hashing))));
            // SAFETY: there is a place for each key; scratch is freed in the order of the stream; the rest is the caller's
            // promise.
            unsafe {
                let hashed = part.kernel_keys(&hashing, stream)?;
                let (keys, n) = (exact::keys_for(layout, hashed.keys), part.count());
                with_width!(&mut all, |all| hash(stream, layout, keys, n, all.global_mut().at(first)))?;
                match misfits {
                    _ if !layout.exact => {}
                    Misfits::Refused => {
                        exact::fits(layout, stream, keys, n, Answers::count(fits.as_mut_slice(), n)?)?;
                    }
                    Misfits::Dropped => {
                        let bits = Answers::bits_at(fits.global_mut().at(1 + first / 64));
                        exact::fits(layout, stream, keys, n, bits)?;
                    }
                    Misfits::Zeroed(copies) => exact::clear(layout, stream, keys, n, copies.at(first))?,
                }
            }
        }
        match misfits {
            Misfits::Refused if layout.exact && n > 0 => {
                let mut count = [0];
                stream.download(fits.slice(..1), &mut count)?;
                if count[0] < n as u64 {
                    return Err(Error::KeyTooWide { bits: layout.fingerprint_bits() });
                }
            }
            Misfits::Dropped if layout.exact && n > 0 => return all.selected(layout, stream, fits.slice(1..)),
            _ => {}
        }
        Ok(all)
    }

    /// These, which have 64 bits.
    pub(super) fn into_wide(self) -> DeviceVec<u64> {
        match self {
            Fingerprints::Wide(items) => items,
            Fingerprints::Narrow(_) => unreachable!("asked for in words of 64 bits"),
        }
    }

    /// The fingerprints of keys as kernels take them, of which there are `n > 0`.
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
        // SAFETY: there is a place for each key; the rest is the caller's promise.
        with_width!(&mut all, |all| unsafe { hash(stream, layout, keys, n, all.global_mut()) })?;
        Ok(all)
    }

    pub(crate) fn len(&self) -> usize {
        with_width!(self, |items| items.len())
    }

    /// Queues an ascending sort.
    pub(crate) fn sorted(mut self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
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

    /// Each of these, ascending, once. Waits for their number.
    pub(crate) fn unique(&self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        let mut kept = Fingerprints::alloc(layout, stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::unique_async(stream, items.as_slice(), kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.truncated(layout, stream, &count)
    }

    /// Those whose bit is set. Waits for their number.
    pub(super) fn selected(
        &self,
        layout: &Layout,
        stream: &Stream,
        bits: DeviceSlice<'_, u64>,
    ) -> Result<Fingerprints, Error> {
        let mut kept = Fingerprints::alloc(layout, stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::select_async(stream, items.as_slice(), bits, kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.truncated(layout, stream, &count)
    }

    /// The first `count` of these.
    fn truncated(self, layout: &Layout, stream: &Stream, count: &DeviceVec<u64>) -> Result<Fingerprints, Error> {
        let mut len = [0];
        stream.download(count, &mut len)?;
        let len = len[0] as usize;
        if len == self.len() { Ok(self) } else { self.first(layout, stream, len) }
    }

    /// Queues a copy.
    pub(crate) fn copied(&self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        self.first(layout, stream, self.len())
    }

    fn first(&self, layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, len)?;
        with_widths!((self, &mut all), |items, all| stream.copy(all, items.slice(..len))?);
        Ok(all)
    }

    /// Queues which of these have an equal in `others`, one for one, or which have none; both are ascending. `answers` has
    /// room for these.
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

/// What kernels get to know of a layout.
pub(crate) fn parameters(layout: &Layout) -> u32 {
    Parameters::new(layout.split, layout.container, layout.keeps_duplicates()).0
}

/// One thread each.
pub(crate) fn grid(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Queues the hashing of `n > 0` keys.
///
/// # Safety
/// Until `stream` has passed this work:
/// - the keys stay allocated, and nothing writes them;
/// - `to` has room for `n` fingerprints of this layout, and nothing else accesses it.
unsafe fn hash<F: FingerprintWord>(
    stream: &Stream,
    layout: &Layout,
    keys: KeySlice,
    n: usize,
    to: GlobalMut<F>,
) -> Result<(), Error> {
    let KeySlice { keys, kind, spread } = keys;
    // SAFETY: the caller's promise is the same.
    unsafe {
        quotient_fingerprints { keys, kind, spread, n, parameters: parameters(layout), out: to }
            .launch(stream, grid(n.div_ceil(KEYS)))?
    };
    Ok(())
}

/// Those of the first `n` items of a batch whose bit is set go to the start of `others`; waits for their number.
pub(crate) fn compact<W: select::Item>(
    stream: &Stream,
    batch: &DeviceVec<W>,
    left: &DeviceVec<u64>,
    others: &mut DeviceVec<W>,
    count: &mut DeviceVec<u64>,
    n: usize,
) -> Result<usize, Error> {
    // SAFETY: there is a bit per item; all live until the number has been waited for.
    unsafe {
        let left = left.slice(..n.div_ceil(64));
        select::select_async(stream, batch.slice(..n), left, others.slice_mut(..n), count.as_mut_slice())?;
    }
    let mut number = [0];
    stream.download(&*count, &mut number)?;
    Ok(number[0] as usize)
}
