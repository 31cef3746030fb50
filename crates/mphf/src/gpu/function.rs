//! Lookups in functions, from host memory and from device memory.

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_base::words::in_huge_pages;
use warpset_gpu::batch::{DeviceKeys128, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::answers::{NO_NUMBERS, NUMBERS_64, VALUES_32, VALUES_64};
use warpset_simt::{Global, GlobalMut};

use super::{DeviceHashKind, PerfectHash, RecSplit};
use crate::{Error, Key, Number, Space, TreeShape};

/// Destination of keys' numbers, or of a table's values at the numbers.
#[derive(Clone, Copy)]
pub struct Numbers {
    /// Form of the answers in kernels.
    pub(crate) form: u32,
    /// Table of values; any memory if numbers are requested.
    pub(crate) table: Global<u64>,
    /// One place per key.
    pub(crate) out: GlobalMut<u64>,
    /// Bytes of a place; 0 if there are none.
    bytes: usize,
}

impl Numbers {
    /// Requests no numbers.
    pub(super) fn none() -> Self {
        Self::words(NO_NUMBERS, GlobalMut::from_raw_parts(std::ptr::null_mut(), 0), 0)
    }

    /// Requests numbers, one per place of `out`.
    pub(super) fn at<N: Number>(out: GlobalMut<N>) -> Self {
        Self::words(N::FORM, words_of_mut(out), size_of::<N>())
    }

    fn words(form: u32, out: GlobalMut<u64>, bytes: usize) -> Self {
        Self { form, table: out.into(), out, bytes }
    }

    /// Returns the places of the keys from `first` on, a multiple of 64, so that places of four bytes begin at whole
    /// words too.
    pub(super) fn from(self, first: usize) -> Self {
        Self { out: if self.bytes == 0 { self.out } else { self.out.at(first * self.bytes / 8) }, ..self }
    }
}

/// Casts any memory to words, with the length rounded up.
fn words_of<T>(items: Global<T>) -> Global<u64> {
    Global::from_raw_parts(items.as_ptr().cast(), (items.len() * size_of::<T>()).div_ceil(8))
}

fn words_of_mut<T>(items: GlobalMut<T>) -> GlobalMut<u64> {
    GlobalMut::from_raw_parts(items.as_ptr().cast(), (items.len() * size_of::<T>()).div_ceil(8))
}

impl<M: DeviceHashKind> PerfectHash<M> {
    /// Returns the upper bound of all numbers; see [`crate::PerfectHash::values`].
    pub fn values(&self) -> u64 {
        M::values(&self.parameters.header)
    }

    /// Returns the bits of the codes of all buckets and of the lists of bucket positions.
    pub fn space(&self) -> Space {
        self.parameters.space()
    }
}

impl RecSplit {
    /// Returns the shape of the splitting trees.
    pub fn shape(&self) -> TreeShape {
        self.parameters.header.code.shape
    }
}

/// Lookups of keys in host memory: staged through pinned memory in chunks, so any number of keys works, and one chunk
/// is copied while kernels process another.
impl<M: DeviceHashKind> PerfectHash<M> {
    /// Returns the number of each key, below [`values`](Self::values); 0 if there are no keys in the function. Takes
    /// keys of any kind; the host hashes all but integers.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Error> {
        let mut numbers = in_huge_pages(vec![0; keys.len()]);
        self.get_bulk_into(keys, &mut numbers)?;
        Ok(numbers)
    }

    /// Writes the numbers of [`get_bulk`](Self::get_bulk) to a slice of equal length, of `u64` or of `u32`, which
    /// halves the way back.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a function of more than 2^32 values;
    /// [`Error::Gpu`].
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<(), Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.values())?;
        if keys.is_empty() {
            return Ok(());
        }
        self.staging()?.answer(keys, numbers, &mut [], |chunk, _, out| {
            // SAFETY: a chunk has places for its numbers; the function is borrowed until `answer` has waited.
            unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), Numbers::at(out)) }
        })
    }
}

/// Lookups of keys in device memory.
impl<M: DeviceHashKind> PerfectHash<M> {
    /// Writes the number of key `i`, below [`values`](Self::values), to place `i` of `numbers`, which are `u64` or
    /// `u32`; 0 if there are no keys in the function.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places than keys; [`Error::NumbersTooLarge`] for `u32` and a
    /// function of more than 2^32 values; memory of another device.
    pub fn get_device<K: DeviceKeys128, N: Number>(
        &self,
        keys: K,
        numbers: DeviceSliceMut<'_, N>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while function, keys and numbers are borrowed.
        self.device().waiting(|stream| unsafe { self.get_async(stream, keys, numbers) })
    }

    /// Queues [`get_device`](Self::get_device).
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the function, `keys` and `numbers` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the numbers.
    pub unsafe fn get_async<K: DeviceKeys128, N: Number>(
        &self,
        stream: &Stream,
        keys: K,
        mut numbers: DeviceSliceMut<'_, N>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), numbers.len())?;
        N::check(self.values())?;
        let out = Numbers::at(numbers.global_mut());
        // SAFETY: `numbers` has a place per key; the rest is this function's contract.
        unsafe { self.look_up(stream, keys, &[numbers.device()], out) }
    }

    /// Writes the item of `table` at the number of key `i` to place `i` of `values`. Items have 4 or 8 bytes. Equals
    /// [`get_device`](Self::get_device) and a gather from the table, without the numbers in memory between.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_mphf::RecSplit;
    ///
    /// let keys = [2u64, 3, 5, 7];
    /// let function = RecSplit::builder().build_from(&keys)?;
    /// let mut squares = [0u32; 4];
    /// for key in keys {
    ///     squares[function.get(key) as usize] = (key * key) as u32;
    /// }
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let (function, table) = (function.to_device(&device)?, device.from_slice(&squares)?);
    /// let asked = device.from_slice(&[7u64, 2])?;
    /// let mut values = device.alloc_uninit::<u32>(2)?;
    /// function.gather_device(asked.as_slice(), table.as_slice(), values.as_mut_slice())?;
    /// assert_eq!(values.to_vec()?, [49, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places than keys; [`Error::TableTooShort`] if the table has fewer
    /// items than the function has values, or none; memory of another device, or at an address that is no multiple of
    /// an item's bytes.
    pub fn gather_device<K: DeviceKeys128, T: Pod>(
        &self,
        keys: K,
        table: DeviceSlice<'_, T>,
        values: DeviceSliceMut<'_, T>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while all are borrowed.
        self.device().waiting(|stream| unsafe { self.gather_async(stream, keys, table, values) })
    }

    /// Queues [`gather_device`](Self::gather_device).
    ///
    /// # Errors
    /// The errors of [`gather_device`](Self::gather_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the function, `keys`, `table` and `values` stay allocated;
    /// - nothing writes the keys and the table, and nothing else accesses the values.
    pub unsafe fn gather_async<K: DeviceKeys128, T: Pod>(
        &self,
        stream: &Stream,
        keys: K,
        table: DeviceSlice<'_, T>,
        values: DeviceSliceMut<'_, T>,
    ) -> Result<(), Error> {
        const { assert!(size_of::<T>() == 4 || size_of::<T>() == 8, "a table's items have 4 or 8 bytes") };
        expect_room(keys.count(), values.len())?;
        if keys.count() == 0 {
            return Ok(());
        }
        // A function of no keys answers 0 to all.
        let (needed, found) = (self.values().max(1), table.len() as u64);
        if found < needed {
            return Err(Error::TableTooShort { values: needed, found });
        }
        let devices = [table.device(), values.device()];
        let numbers = if size_of::<T>() == 8 {
            let (table, out) = (table.cast::<u64>()?.global(), values.cast::<u64>()?.global_mut());
            Numbers { form: VALUES_64, table, out, bytes: 8 }
        } else {
            let (table, mut out) = (table.cast::<u32>()?, values.cast::<u32>()?);
            Numbers { form: VALUES_32, table: words_of(table.global()), out: words_of_mut(out.global_mut()), bytes: 4 }
        };
        // SAFETY: there is a place per key, and a table item per number; the rest is this function's contract.
        unsafe { self.look_up(stream, keys, &devices, numbers) }
    }

    /// Looks up keys on the device; `devices` are those of the other arguments.
    ///
    /// # Safety
    /// The conditions of [`gather_async`](Self::gather_async); `numbers` has a place per key.
    unsafe fn look_up<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        devices: &[&Device],
        numbers: Numbers,
    ) -> Result<(), Error> {
        // SAFETY: there is a place per key from each `first` on; the rest is this function's contract.
        unsafe {
            self.in_parts(stream, keys, devices, |keys, first, n| self.queue(stream, keys, n, numbers.from(first)))
        }
    }

    /// Queues the numbers of `n` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, and `numbers` for `n` words.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses
    ///   the numbers.
    pub(super) unsafe fn queue_numbers(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        numbers: GlobalMut<u64>,
    ) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        // SAFETY: `n > 0`; the rest is this function's contract.
        unsafe { self.queue(stream, keys, n, Numbers::words(NUMBERS_64, numbers, 8)) }
    }

    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, and `numbers` has `n` places; its table has an item per number, and at least
    ///   one.
    /// - Until the stream has passed this work, all stay allocated; nothing writes keys and table, and nothing else
    ///   accesses the numbers.
    unsafe fn queue(&self, stream: &Stream, keys: KeySlice, n: usize, numbers: Numbers) -> Result<(), Error> {
        // SAFETY: the tables were made from these words; the rest is this function's contract.
        unsafe { M::queue_numbers(&self.tables, stream, self.words.global(), keys, n, numbers) }
    }
}
