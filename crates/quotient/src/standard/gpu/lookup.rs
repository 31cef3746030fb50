//! Lookups in standard quotient filters.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_gpu::batch::Answers;
use warpset_gpu::{GpuError, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::batch::results;
use warpset_kernels::quotient::windows::fields;
use warpset_kernels::quotient::{lookup as sorted, standard as kernels};
use warpset_primitives::sort;
use warpset_simt::{Global, KernelInfo};

use super::{Filter, crossover};
use crate::gpu::LookupMethod;
use crate::gpu::fingerprints::{Fingerprints, grid, parameters};
use crate::{Error, Layout};

impl Filter {
    /// Queues the lookup of `n` keys.
    ///
    /// # Safety
    /// As for [`DeviceSlotKind::look_up`](crate::gpu::DeviceSlotKind::contains).
    pub(super) unsafe fn look_up_keys(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let (method, falls_back) = match method {
            LookupMethod::Automatic => (crossover::lookup_method(n, &self.layout, self.load_factor()), true),
            other => (other, false),
        };
        // SAFETY: the caller's promise is the same.
        unsafe { self.look_up_by(stream, keys, n, answers, method, falls_back) }
    }

    /// By one of the two methods; with `falls_back`, unsorted where there is no memory for sorting.
    ///
    /// # Safety
    /// As for [`look_up_keys`](Self::look_up_keys).
    pub(crate) unsafe fn look_up_by(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        method: LookupMethod,
        falls_back: bool,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        if method == LookupMethod::Sorted && n < 1 << 32 {
            // SAFETY: the caller's promise is the same.
            match unsafe { self.look_up_sorted(stream, keys, n, answers) } {
                // Nothing has been counted yet, and bits that were cleared are written below.
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) if falls_back => {}
                done => return done,
            }
        }
        let KeySlice { keys, kind, spread } = keys;
        let Answers { words: out, form } = answers;
        let words: Global<u64> = self.words.global();
        let (grid, slots, parameters) = (grid(n), self.layout.slots(), parameters(&self.layout));
        let remainder_bits = self.layout.remainder_bits();
        macro_rules! launch {
            ($kernel:ident $(, $fields:expr)?) => {
                kernels::$kernel { words, slots, parameters, $(fields: $fields,)? keys, kind, spread, n, form, out }
                    .launch(stream, grid)
            };
        }
        // SAFETY: the filter is sound; the caller answers for the rest.
        unsafe {
            match self.layout.container() {
                Container::Packed if remainder_bits % 2 == 1 => {
                    launch!(quotient_standard_contains_paired, fields(remainder_bits))?
                }
                Container::Packed => launch!(quotient_standard_contains_packed, fields(remainder_bits))?,
                Container::Bytes if bytes_of_slot(remainder_bits) == 1 => launch!(quotient_standard_contains_bytes)?,
                Container::Bytes => launch!(quotient_standard_contains_wide)?,
            }
        }
        Ok(())
    }

    /// [`LookupMethod::Sorted`].
    ///
    /// # Safety
    /// As for [`look_up_keys`](Self::look_up_keys), with fewer than 2^32 keys.
    unsafe fn look_up_sorted(&self, stream: &Stream, keys: KeySlice, n: usize, answers: Answers) -> Result<(), Error> {
        let Answers { words: out, form } = answers;
        let layout = &self.layout;
        let (words, slots, parameters) = (self.words.global(), layout.slots(), parameters(layout));
        let KeySlice { keys, kind, spread } = keys;
        let by = sort::By::ascending().bits(0..layout.fingerprint_bits());
        let mut places = stream.alloc_uninit::<u32>(n)?;
        if form == results::BITS {
            let bits = results::words(form, n);
            // SAFETY: as many words as the caller says there are.
            unsafe { sorted::quotient_lookup_clear { out, words: bits }.launch(stream, grid(bits))? };
        }
        macro_rules! run {
            ($items:ident, $wide:literal) => {
                // SAFETY: the vectors have a place per key, and are freed in the order of the stream; the filter is sound; the
                // caller answers for the rest.
                unsafe {
                    let (items, places_out) = ($items.global_mut(), places.global_mut());
                    sorted::quotient_lookup_hash { keys, kind, spread, n, parameters, out: items, places: places_out }
                        .launch(stream, grid(n))?;
                    if form == results::COUNT {
                        sort::sort_keys_in_place_async(stream, $items.as_mut_slice(), by)?;
                    } else {
                        sort::sort_pairs_in_place_async(stream, $items.as_mut_slice(), places.as_mut_slice(), by)?;
                    }
                    let items = KeySlice::new($items.global(), kind, spread).keys;
                    let (wide, places) = ($wide, places.global());
                    match layout.container() {
                        Container::Packed => {
                            let fields = fields(layout.remainder_bits());
                            sorted::quotient_lookup_sorted_packed { words, slots, parameters, fields, fingerprints: items, wide, places, n, form, out }.launch(stream, grid(n))?;
                        }
                        Container::Bytes => {
                            sorted::quotient_lookup_sorted_bytes { words, slots, parameters, fingerprints: items, wide, places, n, form, out }.launch(stream, grid(n))?;
                        }
                    }
                }
            };
        }
        stream.device().with_kernels(&sorted_kernels(layout, n, form), || {
            match &mut Fingerprints::alloc(layout, stream, n)? {
                Fingerprints::Narrow(items) => run!(items, 0),
                Fingerprints::Wide(items) => run!(items, 1),
            }
            Ok(())
        })
    }
}

/// The kernels of a sorted lookup of `n` keys.
fn sorted_kernels(layout: &Layout, n: usize, form: u32) -> Vec<&'static KernelInfo> {
    let mut all = match (layout.fingerprint_bits() <= 32, form == results::COUNT) {
        (true, true) => sort::kernels_for_keys::<u32>(n),
        (false, true) => sort::kernels_for_keys::<u64>(n),
        (true, false) => sort::kernels_for_pairs::<u32, u32>(n),
        (false, false) => sort::kernels_for_pairs::<u64, u32>(n),
    };
    all.push(match layout.fingerprint_bits() <= 32 {
        true => sorted::quotient_lookup_hash::<u32>::INFO,
        false => sorted::quotient_lookup_hash::<u64>::INFO,
    });
    all.push(match layout.container() {
        Container::Packed => sorted::quotient_lookup_sorted_packed::INFO,
        Container::Bytes => sorted::quotient_lookup_sorted_bytes::INFO,
    });
    all
}
