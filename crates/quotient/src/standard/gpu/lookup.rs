//! Lookups in standard quotient filters.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_gpu::batch::Answers;
use warpset_gpu::{GpuError, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::lookup::{quotient_lookup_sorted_bytes, quotient_lookup_sorted_packed};
use warpset_kernels::quotient::standard as kernels;
use warpset_kernels::quotient::windows::fields;
use warpset_simt::Global;

use super::{Filter, crossover};
use crate::Error;
use crate::gpu::LookupMethod;
use crate::gpu::fingerprints::{grid, parameters};
use crate::gpu::sorted::{SortedKeys, with_sorted};

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
        let kernel = match layout.container() {
            Container::Packed => quotient_lookup_sorted_packed::INFO,
            Container::Bytes => quotient_lookup_sorted_bytes::INFO,
        };
        // SAFETY: the filter is sound, and sorted fingerprints are those of its layout; the caller answers for the rest.
        unsafe {
            with_sorted(layout, stream, keys, n, answers, kernel, |sorted| {
                let SortedKeys { fingerprints, wide, places } = sorted;
                match layout.container() {
                    Container::Packed => {
                        let fields = fields(layout.remainder_bits());
                        quotient_lookup_sorted_packed {
                            words,
                            slots,
                            parameters,
                            fields,
                            fingerprints,
                            wide,
                            places,
                            n,
                            form,
                            out,
                        }
                        .launch(stream, grid(n))?;
                    }
                    Container::Bytes => {
                        quotient_lookup_sorted_bytes {
                            words,
                            slots,
                            parameters,
                            fingerprints,
                            wide,
                            places,
                            n,
                            form,
                            out,
                        }
                        .launch(stream, grid(n))?;
                    }
                }
                Ok(())
            })
        }
    }
}
