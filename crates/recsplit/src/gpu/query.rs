//! Lookups in functions, from host memory and from device memory.

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_gpu::batch::{DeviceKeys128, Staging, copy_many, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::lookup::{NUMBERS_64, VALUES_32, VALUES_64, recsplit_lookup};
use warpset_simt::{Global, GlobalMut};

use super::tables::{hashing, one_thread_each};
use super::{Number, RecSplit};
use crate::{Error, Key};

/// What the operations here are called in errors.
const LOOKUP: &str = "a lookup in a function";

/// What is looked up, and where it goes.
#[derive(Clone, Copy)]
struct Answers {
    form: u32,
    /// Of values; of numbers anything.
    table: Global<u64>,
    /// One place per key.
    out: GlobalMut<u64>,
    /// Bytes of a place.
    bytes: usize,
}

impl Answers {
    /// The same for the keys from `first` on.
    fn from(self, first: usize) -> Self {
        // Parts begin at multiples of 64 keys, so that places of four bytes are whole words too.
        Self { out: self.out.at(first * self.bytes / 8), ..self }
    }
}

/// Any memory as words, whose length is rounded up.
fn words_of<T>(items: Global<T>) -> Global<u64> {
    Global::from_raw_parts(items.as_ptr().cast(), (items.len() * size_of::<T>()).div_ceil(8))
}

fn words_of_mut<T>(items: GlobalMut<T>) -> GlobalMut<u64> {
    GlobalMut::from_raw_parts(items.as_ptr().cast(), (items.len() * size_of::<T>()).div_ceil(8))
}

/// Lookups of keys in host memory: staged through pinned memory in chunks, so that keys of any number work, and one chunk travels while
/// kernels work on another.
impl RecSplit {
    /// The number of each key, below [`RecSplit::values`]; 0 if there are no keys in the function. Keys of any kind; those that are no
    /// integers are hashed on the host.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Error> {
        let mut numbers = vec![0; keys.len()];
        self.get_bulk_into(keys, &mut numbers)?;
        Ok(numbers)
    }

    /// [`RecSplit::get_bulk`] into a slice of the same length, of `u64` or of `u32`, which is half of the way back.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a function of more than 2^32 values; [`Error::Gpu`].
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<(), Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.values())?;
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on other streams comes first.
        self.device().synchronize()?;
        let staging = Staging::new(self.device(), hashing(&self.parameters)).chunk_keys(self.chunk_keys);
        staging.run(
            keys,
            N::REPLY,
            |chunk| {
                let answers =
                    Answers { form: N::FORM, table: chunk.replies.into(), out: chunk.replies, bytes: size_of::<N>() };
                // SAFETY: a chunk has room for its replies; the function is borrowed until `run` has waited.
                unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), answers) }
            },
            |range, words| copy_many(&mut numbers[range.clone()], &N::of_words(words)[..range.len()]),
        )
    }
}

/// Lookups of keys in device memory.
impl RecSplit {
    /// The number of each key, below [`RecSplit::values`]: place `i` of `numbers`, which are `u64` or `u32`, becomes that of key `i`; 0 if
    /// there are no keys in the function.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places than keys; [`Error::NumbersTooLarge`] for `u32` and a function of more than
    /// 2^32 values; memory of another device.
    pub fn get_device<K: DeviceKeys128, N: Number>(
        &self,
        keys: K,
        numbers: DeviceSliceMut<'_, N>,
    ) -> Result<(), Error> {
        // SAFETY: function, keys and numbers are borrowed until the stream has been waited for.
        self.device().waiting(|stream| unsafe { self.get_async(stream, keys, numbers) })
    }

    /// Queues [`RecSplit::get_device`].
    ///
    /// # Errors
    /// As there.
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
        expect_room(keys.count(), keys.count(), numbers.len())?;
        N::check(self.values())?;
        let out = words_of_mut(numbers.global_mut());
        let answers = Answers { form: N::FORM, table: out.into(), out, bytes: size_of::<N>() };
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer(stream, keys, &[numbers.device()], answers) }
    }

    /// The value that `table` has at each key's number: place `i` of `values` becomes that of key `i`. Items have 4 or 8 bytes. The same
    /// as [`RecSplit::get_device`] and reading the table at the numbers, without the numbers in memory between.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_recsplit::RecSplit;
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
    /// [`Error::LengthMismatch`] if there are fewer places than keys; [`Error::TableTooShort`] if the table has fewer items than the
    /// function has values, or none; memory of another device, or at an address that is no multiple of an item's bytes.
    pub fn gather_device<K: DeviceKeys128, T: Pod>(
        &self,
        keys: K,
        table: DeviceSlice<'_, T>,
        values: DeviceSliceMut<'_, T>,
    ) -> Result<(), Error> {
        // SAFETY: all are borrowed until the stream has been waited for.
        self.device().waiting(|stream| unsafe { self.gather_async(stream, keys, table, values) })
    }

    /// Queues [`RecSplit::gather_device`].
    ///
    /// # Errors
    /// As there.
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
        expect_room(keys.count(), keys.count(), values.len())?;
        if keys.count() == 0 {
            return Ok(());
        }
        // A function of no keys answers 0 to all.
        let (needed, found) = (self.values().max(1), table.len() as u64);
        if found < needed {
            return Err(Error::TableTooShort { values: needed, found });
        }
        let devices = [table.device(), values.device()];
        let answers = if size_of::<T>() == 8 {
            let (table, out) = (table.cast::<u64>()?.global(), values.cast::<u64>()?.global_mut());
            Answers { form: VALUES_64, table, out, bytes: 8 }
        } else {
            let (table, mut out) = (table.cast::<u32>()?, values.cast::<u32>()?);
            Answers { form: VALUES_32, table: words_of(table.global()), out: words_of_mut(out.global_mut()), bytes: 4 }
        };
        // SAFETY: there is room, and a value for every number; the rest is the caller's promise.
        unsafe { self.answer(stream, keys, &devices, answers) }
    }

    /// All lookups of keys on the device; `devices` are those of what else takes part.
    ///
    /// # Safety
    /// - As for [`RecSplit::gather_async`]; `answers` has room.
    unsafe fn answer<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        devices: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        for device in devices.iter().copied().chain([stream.device(), keys.device()]) {
            self.device().expect_same(device, LOOKUP)?;
        }
        let at_a_time = keys.at_a_time();
        for first in (0..n).step_by(at_a_time) {
            let part = keys.part(first..n.min(first + at_a_time));
            // SAFETY: scratch is freed in the order of the stream; `first` is a multiple of 64; the rest is the caller's promise.
            unsafe {
                let hashed = part.kernel_keys(self.seed(), stream)?;
                self.queue(stream, hashed.keys, part.count(), answers.from(first))?;
            }
        }
        Ok(())
    }

    /// Queues the numbers of `n` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, and `numbers` for as many.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses the numbers.
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
        let answers = Answers { form: NUMBERS_64, table: numbers.into(), out: numbers, bytes: size_of::<u64>() };
        // SAFETY: the caller's promise.
        unsafe { self.queue(stream, keys, n, answers) }
    }

    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, and `answers` has room for as many; its table has a value for every number, and one at least.
    /// - Until the stream has passed this work, all stay allocated; nothing writes keys and table, and nothing else accesses the answers.
    unsafe fn queue(&self, stream: &Stream, keys: KeySlice, n: usize, answers: Answers) -> Result<(), Error> {
        let Answers { form, table, out, .. } = answers;
        let KeySlice { keys, kind, spread: seed } = keys;
        let (words, rows, function) = (self.words.global(), self.tables.rows(), self.tables.plan);
        // SAFETY: words and rows are the function's own; the rest is the caller's promise.
        unsafe {
            recsplit_lookup { words, rows, function, keys, kind, seed, n, form, table, out }
                .launch(stream, one_thread_each(n))?
        };
        Ok(())
    }
}
