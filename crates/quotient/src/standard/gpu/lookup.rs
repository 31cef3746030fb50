//! Lookups in standard quotient filters.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_gpu::GpuError;
use warpset_gpu::batch::Answers;
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::standard::lookup as kernels;
use warpset_kernels::quotient::standard::lookup::{quotient_lookup_sorted_bytes, quotient_lookup_sorted_packed};
use warpset_kernels::quotient::standard::windows::fields;
use warpset_simt::Global;

use super::{Filter, crossover};
use crate::Error;
use crate::gpu::LookupMethod;
use crate::gpu::launch::{grid, parameters};
use crate::gpu::slot_kind::Asked;
use crate::gpu::sorted::{SortedKeys, with_sorted};

impl Filter {
    /// Queues the lookup of `n` keys.
    ///
    /// # Safety
    /// The conditions of [`DeviceSlots::look_up`](crate::gpu::slot_kind::DeviceSlots::look_up).
    pub(super) unsafe fn look_up_keys(
        &self,
        asked: Asked<'_>,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let (method, falls_back) = match method {
            LookupMethod::Auto => (crossover::lookup_method(asked.n, &self.layout, self.load_factor()), true),
            other => (other, false),
        };
        // SAFETY: the contract is the same.
        unsafe { self.look_up_by(asked, answers, method, falls_back) }
    }

    /// Queues the lookup by one of the two methods; with `falls_back`, unsorted if there is no memory for sorting.
    ///
    /// # Safety
    /// The conditions of [`look_up_keys`](Self::look_up_keys).
    pub(crate) unsafe fn look_up_by(
        &self,
        asked: Asked<'_>,
        answers: Answers,
        method: LookupMethod,
        falls_back: bool,
    ) -> Result<(), Error> {
        let Asked { stream, keys: KeySlice { keys, kind, spread, .. }, n } = asked;
        if n == 0 {
            return Ok(());
        }
        if method == LookupMethod::Sorted && n < 1 << 32 {
            // SAFETY: the contract is the same.
            match unsafe { self.look_up_sorted(asked, answers) } {
                // Nothing has been counted yet, and cleared bits are written below.
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) if falls_back => {}
                done => return done,
            }
        }
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
        // SAFETY: the filter is sound; the rest is the contract of this function.
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

    /// Queues the lookup of sorted fingerprints, by [`LookupMethod::Sorted`].
    ///
    /// # Safety
    /// The conditions of [`look_up_keys`](Self::look_up_keys), with fewer than 2^32 keys.
    unsafe fn look_up_sorted(&self, asked: Asked<'_>, answers: Answers) -> Result<(), Error> {
        let (Asked { stream, n, .. }, Answers { words: out, form }) = (asked, answers);
        let layout = &self.layout;
        let (words, slots, parameters) = (self.words.global(), layout.slots(), parameters(layout));
        // SAFETY: the filter is sound, and sorted fingerprints are those of its layout; the rest is the contract of
        // this method.
        unsafe {
            with_sorted(layout, asked, answers, |sorted| {
                let SortedKeys { fingerprints, wide, places } = sorted;
                macro_rules! launch {
                    ($kernel:ident $(, $fields:ident)?) => {
                        $kernel { words, slots, parameters, $($fields,)? fingerprints, wide, places, n, form, out }
                            .launch(stream, grid(n))?
                    };
                }
                let fields = fields(layout.remainder_bits());
                match layout.container() {
                    Container::Packed => launch!(quotient_lookup_sorted_packed, fields),
                    Container::Bytes => launch!(quotient_lookup_sorted_bytes),
                }
                Ok(())
            })
        }
    }
}
