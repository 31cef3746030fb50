//! Fingerprints and values, joined to pairs and apart, and the stored pairs of given fingerprints.

use warpset_core::bits::lowest;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::quotient::rank_select::maplet::{
    quotient_maplet_find, quotient_maplet_join, quotient_maplet_list, quotient_maplet_list_counted,
    quotient_maplet_split,
};
use warpset_primitives::merge::Pairs;
use warpset_primitives::reduce::Sum;
use warpset_primitives::scan;
use warpset_simt::GlobalMut;

use super::{Maplet, MapletLayout};
use crate::Error;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::{grid, parameters};

/// Fingerprints without values, ascending, and their values.
pub(super) struct Apart {
    pub(super) fingerprints: DeviceVec<u64>,
    pub(super) values: DeviceVec<u64>,
}

impl Apart {
    pub(super) fn uninit(stream: &Stream, len: usize) -> Result<Apart, Error> {
        Ok(Apart { fingerprints: stream.alloc_uninit(len)?, values: stream.alloc_uninit(len)? })
    }

    pub(super) fn as_pairs(&self) -> Pairs<'_, u64, u64> {
        Pairs::new(self.fingerprints.as_slice(), self.values.as_slice())
    }
}

/// Stored values of a batch's fingerprints.
pub(super) struct Found {
    /// First bit of the value of each fingerprint in the words.
    pub(super) places: DeviceVec<u64>,
    /// Bit per fingerprint without a value.
    pub(super) absent: DeviceVec<u64>,
    pub(super) absent_count: usize,
    /// Number of fingerprints with several values.
    pub(super) several_count: usize,
}

/// Stored pairs of ascending fingerprints.
pub(super) struct Stored {
    /// Place of the first pair of each fingerprint.
    pub(super) places: DeviceVec<u64>,
    pub(super) pairs: DeviceVec<u64>,
    pub(super) copies: DeviceVec<u64>,
}

impl Maplet {
    /// Finds the values of `n > 0` fingerprints in a maplet without counters. Waits.
    pub(super) fn find(&self, stream: &Stream, fingerprints: DeviceSlice<'_, u64>) -> Result<Found, Error> {
        let (layout, n) = (self.layout.pairs(), fingerprints.len());
        let mut places = stream.alloc_uninit::<u64>(n)?;
        let mut absent = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let (mut counted, mut counts) = (stream.alloc_zeroed::<u64>(2)?, [0; 2]);
        let kernel = quotient_maplet_find {
            words: self.pairs.words.global(),
            blocks: layout.blocks,
            parameters: parameters(&layout),
            value_bits: self.layout.value_bits,
            fields: warpset_core::quotient::rank_select::fields(layout.remainder_bits()),
            fingerprints: fingerprints.global(),
            n,
            places: places.global_mut(),
            absent: absent.global_mut(),
            counted: counted.global_mut(),
        };
        // SAFETY: the filter is sound and borrowed; the vectors have the lengths that the kernel asks for.
        unsafe { kernel.launch(stream, grid(n))? };
        stream.download(&counted, &mut counts)?;
        Ok(Found { places, absent, absent_count: counts[0] as usize, several_count: counts[1] as usize })
    }

    /// Lists the stored pairs, without the bits that are not in `kept`, of `n > 0` fingerprints without values; equal
    /// ones once if `different` is set. Waits.
    pub(super) fn stored(
        &self,
        stream: &Stream,
        fingerprints: DeviceSlice<'_, u64>,
        different: bool,
        kept: u64,
    ) -> Result<Stored, Error> {
        let n = fingerprints.len();
        let mut counts = stream.alloc_uninit::<u64>(n)?;
        let mut places = stream.alloc_uninit::<u64>(n)?;
        // SAFETY: the vectors have the lengths that the kernel asks for, are apart, and freed in the order of the
        // stream; nothing is listed.
        unsafe {
            let counted = counts.global_mut();
            self.list(stream, fingerprints, different, None, [counted; 3])?;
            scan::exclusive_async::<Sum<u64>>(stream, counts.as_slice(), places.as_mut_slice())?;
        }
        let (mut last, mut before) = ([0], [0]);
        stream.download(counts.slice(n - 1..), &mut last)?;
        stream.download(places.slice(n - 1..), &mut before)?;
        let total = (before[0] + last[0]) as usize;
        let (mut pairs, mut copies) = (stream.alloc_uninit::<u64>(total)?, stream.alloc_uninit::<u64>(total)?);
        if total > 0 {
            let to = [places.global_mut(), pairs.global_mut(), copies.global_mut()];
            // SAFETY: there is a place for each pair that was counted.
            unsafe { self.list(stream, fingerprints, different, Some(kept), to)? };
        }
        Ok(Stored { places, pairs, copies })
    }

    /// Queues the kernel that counts the pairs of `n > 0` fingerprints or, with bits to keep, lists them.
    ///
    /// # Safety
    /// The contract of [`quotient_maplet_list`] for places, pairs and copies, until `stream` has passed this work.
    unsafe fn list(
        &self,
        stream: &Stream,
        fingerprints: DeviceSlice<'_, u64>,
        different: bool,
        kept: Option<u64>,
        [places, out, copies]: [GlobalMut<u64>; 3],
    ) -> Result<(), Error> {
        let (layout, n) = (self.layout.pairs(), fingerprints.len());
        let (words, blocks, parameters) = (self.pairs.words.global(), layout.blocks, parameters(&layout));
        let (value_bits, different, fingerprints) = (self.layout.value_bits, different as u32, fingerprints.global());
        let (lists, kept) = (kept.is_some() as u32, kept.unwrap_or(0));
        macro_rules! launch {
            ($kernel:ident) => {
                $kernel {
                    words,
                    blocks,
                    parameters,
                    value_bits,
                    different,
                    fingerprints,
                    n,
                    lists,
                    kept,
                    places,
                    out,
                    copies,
                }
                .launch(stream, grid(n))?
            };
        }
        // SAFETY: the filter is sound and borrowed; the rest is the contract of this function.
        unsafe {
            if layout.is_counted() { launch!(quotient_maplet_list_counted) } else { launch!(quotient_maplet_list) }
        }
        Ok(())
    }
}

/// Queues the join of fingerprints and values to pairs. Excess bits of values are dropped; with `too_wide`, one word of
/// all ones, it becomes the first place of a value that has any.
pub(super) fn join(
    layout: &MapletLayout,
    stream: &Stream,
    fingerprints: DeviceSlice<'_, u64>,
    values: DeviceSlice<'_, u64>,
    too_wide: Option<&mut DeviceVec<u64>>,
) -> Result<Fingerprints, Error> {
    let mut pairs = Fingerprints::alloc(&layout.pairs(), stream, fingerprints.len())?;
    join_to(layout, stream, fingerprints, values, too_wide, (&mut pairs, 0))?;
    Ok(pairs)
}

/// Queues [`join`] to these places, `shift` bits further up.
pub(super) fn join_to(
    layout: &MapletLayout,
    stream: &Stream,
    fingerprints: DeviceSlice<'_, u64>,
    values: DeviceSlice<'_, u64>,
    too_wide: Option<&mut DeviceVec<u64>>,
    (pairs, shift): (&mut Fingerprints, u32),
) -> Result<(), Error> {
    let n = fingerprints.len();
    if n > 0 {
        let (fingerprints, values, value_bits) = (fingerprints.global(), values.global(), layout.value_bits);
        let too_wide = too_wide.map(DeviceVec::global_mut);
        // SAFETY: there is a place per pair; new vectors are freed in the order of the stream, and the callers keep the
        // others.
        with_width!(pairs, |pairs| unsafe {
            let out = pairs.global_mut();
            // No value is too wide without a word for its place, so the kernel does not access that of another vector.
            let most = if too_wide.is_some() { lowest(value_bits) } else { u64::MAX };
            let too_wide = too_wide.unwrap_or(out.cast());
            quotient_maplet_join { fingerprints, values, n, value_bits, shift, most, out, too_wide }
                .launch(stream, grid(n))?;
        });
    }
    Ok(())
}

/// Queues the split of the first `n` pairs into fingerprints, `dropped` bits shorter, and values.
pub(super) fn split(
    layout: &MapletLayout,
    stream: &Stream,
    pairs: &Fingerprints,
    n: usize,
    dropped: u32,
) -> Result<Apart, Error> {
    let mut apart = Apart::uninit(stream, n)?;
    if n > 0 {
        let (value_bits, fingerprints, values) =
            (layout.value_bits, apart.fingerprints.global_mut(), apart.values.global_mut());
        // SAFETY: there is a place per pair; all vectors are freed in the order of the stream.
        with_width!(pairs, |pairs| unsafe {
            let pairs = pairs.slice(..n).global();
            quotient_maplet_split { pairs, n, value_bits, dropped, fingerprints, values }.launch(stream, grid(n))?;
        });
    }
    Ok(apart)
}
