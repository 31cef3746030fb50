//! Lookups of numbers and values.

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_base::words::in_huge_pages;
use warpset_gpu::batch::{Answers, DeviceKey, Hashing, Staging, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::static_set::lookup::{BLOCK, NOTHING, NUMBERS, Plan, static_set_lookup};
use warpset_simt::{Global, GlobalMut};

use super::element::DeviceMapValue;
use super::{DeviceStaticKey, StaticMap};
use crate::{Bitmap, Error, StaticKey, Value};

/// Least size of a set, in L2 caches, whose buckets are evicted first. Below, cached buckets are worth more than the
/// pilots that they evict.
const CACHES: u64 = 4;

/// Output of a lookup besides answers.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Nothing,
    /// The number of each key.
    Numbers(GlobalMut<u64>),
    /// The value of each key, in this form of the kernel.
    Values(u32, GlobalMut<u64>),
}

impl<K: StaticKey, V: Value> StaticMap<K, V> {
    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, all of them of the shards here; answers and output have `n` places.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses
    ///   the answers.
    pub(super) unsafe fn queue(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        wanted: Wanted,
    ) -> Result<(), Error> {
        let (pilots, buckets, values) = self.sections();
        let (wanted, out) = match wanted {
            Wanted::Nothing => (NOTHING, answers.words),
            Wanted::Numbers(out) => (NUMBERS, out),
            Wanted::Values(form, out) => (form, out),
        };
        let kernel = static_set_lookup {
            pilots: self.of_whole(pilots),
            keys: self.of_whole(buckets),
            values: self.of_whole(values),
            plan: Plan {
                spread: self.layout.spread(),
                shape: self.layout.shape(),
                slots: K::SLOTS as u32,
                exceeds_cache: (8 * self.words.len() as u64 > CACHES * self.device.properties().l2_bytes as u64).into(),
            },
            queries: keys.keys,
            kind: keys.kind,
            n,
            form: answers.form,
            answers: answers.words,
            wanted,
            out,
        };
        let blocks = n.div_ceil(BLOCK as usize) as u32;
        // SAFETY: the words are those of the shards of all keys; the rest is this function's contract.
        unsafe { kernel.launch(stream, LaunchConfig::new(blocks, BLOCK))? };
        Ok(())
    }

    /// Returns the items of all shards for kernels. Only those of the shards here, `here`, may be read.
    fn of_whole<T: Pod>(&self, here: DeviceSlice<'_, T>) -> Global<T> {
        let of_shard = here.len() / (self.shards.end - self.shards.start) as usize;
        let before = self.shards.start as usize * of_shard;
        let all = self.layout.shape().shards() as usize * of_shard;
        Global::from_raw_parts(here.global().as_ptr().wrapping_sub(before), all)
    }

    /// Queues answers for keys on the device, and the output; `devices` are those of the arguments besides keys and
    /// stream.
    ///
    /// # Safety
    /// - All keys are of the shards here; answers and output have a place per key.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses
    ///   the answers.
    pub(super) unsafe fn look_up_async<Q: DeviceKey>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, Q>,
        devices: &[&Device],
        answers: Answers,
        wanted: Wanted,
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let lent = devices.iter().copied().chain([stream.device(), keys.device()]);
        self.device.expect_all_here(lent, "a lookup in a static set")?;
        let slice = Hashing::seeded(self.seed()).key_slice(Q::CLASS, keys.global());
        // SAFETY: this function's contract.
        unsafe { self.queue(stream, slice, keys.len(), answers, wanted) }
    }

    /// Looks up the number of each key, below [`slots`](Self::slots). Bit `i % 64` of word `i / 64` of `found` says
    /// whether key `i` has a number; place `i` of `numbers` gets it, or zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; memory of another device.
    pub fn number_device(
        &self,
        keys: DeviceSlice<'_, K>,
        numbers: DeviceSliceMut<'_, u64>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error>
    where
        K: DeviceStaticKey,
    {
        // SAFETY: `waiting` waits for the stream while set, keys and answers are borrowed.
        self.device.waiting(|stream| unsafe { self.number_async(stream, keys, numbers, found) })
    }

    /// Queues [`number_device`](Self::number_device).
    ///
    /// # Errors
    /// The errors of [`number_device`](Self::number_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the set, `keys`, `numbers` and `found` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the answers.
    pub unsafe fn number_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut numbers: DeviceSliceMut<'_, u64>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error>
    where
        K: DeviceStaticKey,
    {
        expect_room(keys.len(), numbers.len())?;
        let out = Wanted::Numbers(numbers.global_mut());
        let there = [numbers.device(), found.device()];
        let answers = Answers::bits(found, keys.len())?;
        // SAFETY: `found` and `numbers` have a place per key; the rest is this function's contract.
        unsafe { self.look_up_async(stream, keys, &there, answers, out) }
    }

    /// Returns the number of each key of the host, if it is in the set: below [`slots`](Self::slots).
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn number_bulk(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error>
    where
        K: DeviceStaticKey,
    {
        let mut numbers = in_huge_pages(vec![0; keys.len()]);
        let found = self.number_bulk_into(keys, &mut numbers)?;
        Ok(found.iter().zip(numbers).map(|(found, number)| found.then_some(number)).collect())
    }

    /// Writes the numbers of [`number_bulk`](Self::number_bulk) to a slice of equal length, and returns which keys have
    /// one; the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn number_bulk_into(&self, keys: &[K], numbers: &mut [u64]) -> Result<Bitmap, Error>
    where
        K: DeviceStaticKey,
    {
        same_length(keys.len(), numbers.len())?;
        self.in_chunks(keys, numbers, |numbers, _| Wanted::Numbers(numbers))
    }

    /// Looks up keys of the host chunk by chunk: one item per key, and one bit. `wanted` makes the lookup's destination
    /// of memory for the items of a number of keys.
    fn in_chunks<T: Pod + Send + Sync>(
        &self,
        keys: &[K],
        out: &mut [T],
        wanted: impl Fn(GlobalMut<T>, usize) -> Wanted,
    ) -> Result<Bitmap, Error>
    where
        K: DeviceStaticKey,
    {
        // Work that the caller queued on other streams runs first.
        self.device.synchronize()?;
        let staging = Staging::new(&self.device, Hashing::seeded(self.seed())).chunk_keys(self.chunk_keys);
        let mut found = vec![0; keys.len().div_ceil(64)];
        staging.answer(keys, out, &mut found, |chunk, found, out| {
            let n = chunk.range.len();
            // SAFETY: a chunk has places for its answers; the map is borrowed until `answer` has waited.
            unsafe { self.queue(chunk.stream, chunk.keys, n, found, wanted(out, n)) }
        })?;
        Ok(Bitmap::from_words(found, keys.len()))
    }
}

/// Returns a lookup's destination: the values of `n` keys, from `out` on.
fn wanted_values<V: DeviceMapValue>(out: GlobalMut<V>, n: usize) -> Wanted {
    // The length is rounded up, since two values may share a word.
    Wanted::Values(V::WANTED, GlobalMut::from_raw_parts(out.as_ptr().cast(), (n * size_of::<V>()).div_ceil(8)))
}

impl<K: DeviceStaticKey, V: DeviceMapValue> StaticMap<K, V> {
    /// Looks up the value of each key. Bit `i % 64` of word `i / 64` of `found` says whether key `i` has a value; place
    /// `i` of `values` gets it, or zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; memory of another device.
    pub fn get_device(
        &self,
        keys: DeviceSlice<'_, K>,
        values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while map, keys and answers are borrowed.
        self.device.waiting(|stream| unsafe { self.get_async(stream, keys, values, found) })
    }

    /// Queues [`get_device`](Self::get_device).
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the map, `keys`, `values` and `found` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the answers.
    pub unsafe fn get_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        expect_room(keys.len(), values.len())?;
        let out = wanted_values(values.global_mut(), values.len());
        let there = [values.device(), found.device()];
        let answers = Answers::bits(found, keys.len())?;
        // SAFETY: `found` and `values` have a place per key; the rest is this function's contract.
        unsafe { self.look_up_async(stream, keys, &there, answers, out) }
    }

    /// Returns the value of each key of the host, if it is in the map.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        let mut values = in_huge_pages(vec![V::zeroed(); keys.len()]);
        let found = self.get_bulk_into(keys, &mut values)?;
        Ok(found.options(&values))
    }

    /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have one;
    /// the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        same_length(keys.len(), values.len())?;
        self.in_chunks(keys, values, wanted_values)
    }
}
