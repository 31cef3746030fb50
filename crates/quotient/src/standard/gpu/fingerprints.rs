//! Fingerprints on a device, in as many bits as they need.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::keys::KeySlice;
use warpset_kernels::quotient_standard::{self as kernels, BLOCK, Parameters};
use warpset_primitives::{select, sort};

use crate::{Error, Layout};

/// Fingerprints on a device, as wide as they need to be.
pub(super) enum Fingerprints {
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
pub(super) use with_width;

impl Fingerprints {
    pub(super) fn alloc(layout: &Layout, stream: &Stream, len: usize) -> Result<Fingerprints, Error> {
        Ok(if layout.fingerprint_bits() <= 32 {
            Fingerprints::Narrow(stream.alloc_uninit(len)?)
        } else {
            Fingerprints::Wide(stream.alloc_uninit(len)?)
        })
    }

    pub(super) fn len(&self) -> usize {
        with_width!(self, |items, _h, _b, _e| items.len())
    }

    /// Queues an ascending sort.
    pub(super) fn sort(&mut self, layout: &Layout, stream: &Stream) -> Result<(), Error> {
        let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
        // SAFETY: the vector is this call's to change, and freed in the order of the stream.
        with_width!(self, |items, _h, _b, _e| unsafe { sort::sort_keys_in_place(stream, items.as_mut_slice(), by) })?;
        Ok(())
    }

    /// Queues a copy of these and others into one vector.
    pub(super) fn joined(&self, other: &Fingerprints, layout: &Layout, stream: &Stream) -> Result<Fingerprints, Error> {
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
        with_width!(&mut fingerprints, |items, hash, _b, _e| unsafe {
            hash::launch(stream, grid(n), keys, kind, spread, n, parameters, items.global_mut())
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

/// Queues a selection of the items whose bit is set, of which there are as many as `all` has places.
pub(super) fn compact<T: select::Item>(
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
