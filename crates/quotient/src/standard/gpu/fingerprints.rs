//! Fingerprints on a device, in as many bits as they need.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::build::{BLOCK, KEYS, quotient_fingerprints};
use warpset_kernels::quotient::memory::Parameters;
use warpset_primitives::{KeyMask, merge, select, sort};

use crate::{Error, Layout};

/// Fingerprints on a device, as wide as they need to be.
pub(super) enum Fingerprints {
    Narrow(DeviceVec<u32>),
    Wide(DeviceVec<u64>),
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
pub(super) use with_width;

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
pub(super) use with_widths;

impl Fingerprints {
    pub(super) fn alloc(layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            Fingerprints::Narrow(stream.alloc_uninit(len)?)
        } else {
            Fingerprints::Wide(stream.alloc_uninit(len)?)
        })
    }

    /// Brings fingerprints to the device, and queues their sort.
    pub(super) fn sorted_from(layout: &Layout, stream: &Stream, fingerprints: &[u64]) -> Result<Fingerprints, Error> {
        let mut all = if layout.fingerprint_bits() <= 32 {
            let narrow: Vec<u32> = fingerprints.iter().map(|&fingerprint| fingerprint as u32).collect();
            Fingerprints::Narrow(stream.from_slice(&narrow)?)
        } else {
            Fingerprints::Wide(stream.from_slice(fingerprints)?)
        };
        all.sort(layout, stream)?;
        Ok(all)
    }

    pub(super) fn len(&self) -> usize {
        with_width!(self, |items| items.len())
    }

    /// Queues an ascending sort.
    pub(super) fn sort(&mut self, layout: &Layout, stream: &Stream) -> Result<(), Error> {
        let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
        // SAFETY: the vector is this call's to change, and freed in the order of the stream.
        with_width!(self, |items| unsafe { sort::sort_keys_in_place_async(stream, items.as_mut_slice(), by) })?;
        Ok(())
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
    pub(super) fn unique(&self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        let mut kept = Fingerprints::alloc(layout, stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::unique_async(stream, items.as_slice(), kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.cut(layout, stream, &count)
    }

    /// Those whose bit is set. Waits for their number.
    pub(super) fn selected(
        &self,
        layout: &Layout,
        stream: &Stream,
        bits: &DeviceVec<u64>,
    ) -> Result<Fingerprints, Error> {
        let mut kept = Fingerprints::alloc(layout, stream, self.len())?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the vectors are apart, and freed in the order of the stream.
        with_widths!((self, &mut kept), |items, kept| unsafe {
            select::select_async(stream, items.as_slice(), bits.as_slice(), kept.as_mut_slice(), count.as_mut_slice())?;
        });
        kept.cut(layout, stream, &count)
    }

    /// The first `count` of these.
    fn cut(self, layout: &Layout, stream: &Stream, count: &DeviceVec<u64>) -> Result<Fingerprints, Error> {
        let mut len = [0];
        stream.download(count, &mut len)?;
        let len = len[0] as usize;
        if len == self.len() { Ok(self) } else { self.first(layout, stream, len) }
    }

    /// Queues a copy.
    pub(super) fn copied(&self, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
        self.first(layout, stream, self.len())
    }

    fn first(&self, layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, len)?;
        with_widths!((self, &mut all), |items, all| stream.copy(all, items.slice(..len))?);
        Ok(all)
    }
}

/// What kernels get to know of a layout.
pub(super) fn parameters(layout: &Layout) -> u32 {
    Parameters::new(layout.split, layout.container, layout.keeps_duplicates()).0
}

/// One thread each.
pub(super) fn grid(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// Queues the hashing of `n` keys.
///
/// # Safety
/// The keys stay allocated and unwritten until `stream` has passed.
pub(super) unsafe fn fingerprints_of(
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
        with_width!(&mut fingerprints, |items| unsafe {
            quotient_fingerprints { keys, kind, spread, n, parameters, out: items.global_mut() }
                .launch(stream, grid(n.div_ceil(KEYS)))
        })?;
    }
    Ok(fingerprints)
}

/// Queues the hashing and sorting of `n` keys.
///
/// # Safety
/// The keys stay allocated and unwritten until `stream` has passed.
pub(super) unsafe fn sorted_fingerprints(
    stream: &Stream,
    layout: &Layout,
    keys: KeySlice,
    n: usize,
) -> Result<Fingerprints, Error> {
    // SAFETY: the caller's promise is the same.
    let mut fingerprints = unsafe { fingerprints_of(stream, layout, keys, n)? };
    if n > 0 {
        fingerprints.sort(layout, stream)?;
    }
    Ok(fingerprints)
}
