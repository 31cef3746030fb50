//! Insertion of keys on the device, with and without waiting, and of keys on the host.

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;

use super::super::{DeviceKeys, DeviceLayout, RaoBloom};
use super::{BATCH, RaoInsertion};
use crate::{Error, Insert, Key};

/// Name of insertions in errors.
pub(super) const INSERTION: &str = "an insertion into a Bloom filter";

/// Device memory for the host keys of a batch.
pub(super) struct HostKeys {
    keys: DeviceVec<u64>,
    string_hashes: DeviceVec<u32>,
}

impl HostKeys {
    pub(super) fn new(filter: &RaoBloom, stream: &Stream, batch: usize) -> Result<HostKeys, Error> {
        let strings = if filter.layout.hashing().string_hash().is_some() { batch } else { 0 };
        Ok(HostKeys { keys: stream.alloc_uninit(batch)?, string_hashes: stream.alloc_uninit(strings)? })
    }

    /// Brings keys, at most a batch, with their string hashes if the layout wants them; waits for the copies, and not
    /// for the stream.
    ///
    /// # Safety
    /// - Work that was queued on this memory, its allocation included, has been waited for.
    /// - It stays allocated until `stream` has passed this work.
    pub(super) unsafe fn bring<K: Key>(
        &mut self,
        filter: &RaoBloom,
        stream: &Stream,
        keys: &[K],
    ) -> Result<(KeySlice, Option<DeviceSlice<'_, u32>>), Error> {
        let staging = filter.staging();
        let gathered = staging.gather(keys, &mut self.keys)?;
        if filter.layout.hashing().string_hash().is_none() {
            return Ok((gathered, None));
        }
        // SAFETY: there is a word per key; the keys have been waited for; the rest is this function's contract.
        unsafe { staging.gather_string_hashes(stream, keys, gathered, &mut self.string_hashes)? };
        Ok((gathered, Some(self.string_hashes.slice(..keys.len()))))
    }
}

impl RaoBloom {
    /// Queues the insertion of all of `keys`, or of none: if a bucket overflows, the insertion is undone on the device.
    ///
    /// [`RaoInsertion::finish`] tells which. There is no other attempt with another first-level hash, not even if the
    /// filter was empty: the host would have to decide that, which [`RaoBloom::insert_device`] does.
    ///
    /// Takes memory for a copy of the filter and for 12 bytes per key of a batch, freed in the order of the stream.
    ///
    /// ```
    /// use warpset_bloom::RaoBloom;
    /// use warpset_bloom::gpu::{self, DeviceFilter};
    /// use warpset_gpu::Device;
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let mut filter: gpu::RaoBloom = RaoBloom::builder(1000).on(&device).build()?;
    /// let (stream, keys) = (device.new_stream()?, device.from_slice(&[2u64, 3, 5, 7])?);
    /// let mut count = device.alloc_zeroed::<u64>(1)?;
    /// // SAFETY: nothing else uses filter, keys or count until the stream has been waited for.
    /// let insertion = unsafe {
    ///     let insertion = filter.insert_async(&stream, keys.as_slice())?;
    ///     filter.count_contained_async(&stream, keys.as_slice(), count.as_mut_slice())?;
    ///     insertion
    /// };
    /// insertion.finish()?; // waits; an error if a bucket has overflowed
    /// assert_eq!(count.to_vec()?, [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If work could not be queued, for example because memory ran out, the filter is unchanged.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter and `keys` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the filter.
    pub unsafe fn insert_async<K: DeviceKeys>(&mut self, stream: &Stream, keys: K) -> Result<RaoInsertion, Error> {
        if keys.count() == 0 {
            return RaoInsertion::nothing(self, stream);
        }
        self.expect_here(INSERTION, [stream.device(), keys.device()])?;
        let mut scratch = self.scratch(stream, keys.count())?;
        // SAFETY: this function's contract; the scratch is freed in the order of the stream.
        unsafe { self.undoable(stream, |filter| filter.insert_batches(&mut scratch, keys)) }
    }

    /// Inserts all keys of a slice on the device, by the two-level build, and waits. If a bucket of a filter that was
    /// empty overflows, the build starts again with another first-level hash, at most 16 times, as in `insert_bulk`. On
    /// an error the filter is unchanged.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`], [`Error::Gpu`].
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        self.expect_here(INSERTION, [keys.device()])?;
        let stream = self.synchronised_stream()?;
        let mut scratch = self.scratch(&stream, keys.count())?;
        self.all_or_nothing(&stream, |filter, empty| {
            filter.attempt(&stream, empty, |filter| {
                // SAFETY: keys and filter are borrowed until `all_or_nothing` has waited.
                unsafe { filter.insert_batches(&mut scratch, keys) }
            })
        })
    }
}

impl Insert for RaoBloom {
    type Inserted = ();

    /// Inserts all keys; those of the next batch travel while the kernels work on the one before. Keys that are no
    /// integers are hashed on the host: 8 bytes per key cross the bus instead of the whole key.
    ///
    /// A bucket can overflow: the result equals that of [`cpu::RaoBloom`](crate::cpu::RaoBloom), restarts and errors
    /// included. If memory runs out, the filter is unchanged.
    ///
    /// # Errors
    /// [`Error::BucketOverflow`], [`Error::Gpu`].
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let stream = self.synchronised_stream()?;
        let mut batch = self.batch_of(keys.len());
        if self.layout.choices() == 1 {
            batch = batch.min(BATCH);
        }
        let mut scratch = self.scratch(&stream, batch)?;
        let mut staged = vec![HostKeys::new(self, &stream, batch)?];
        if keys.len() > batch {
            staged.push(HostKeys::new(self, &stream, batch)?);
        }
        let used = staged.iter().map(|_| self.device.new_event()).collect::<Result<Vec<_>, _>>()?;
        stream.synchronize()?; // the memory has been allocated, before other streams fill it
        self.all_or_nothing(&stream, |filter, empty| {
            filter.attempt(&stream, empty, |filter| {
                for (i, keys) in keys.chunks(batch).enumerate() {
                    let (host_keys, used) = (&mut staged[i % 2], &used[i % 2]);
                    used.synchronize()?;
                    // SAFETY: the last batch in this memory has been waited for; the memory is allocated until
                    // `all_or_nothing` has waited, because the filter is borrowed.
                    unsafe {
                        let (slice, strings) = host_keys.bring(filter, &stream, keys)?;
                        let strings = strings.map(|hashes| hashes.global());
                        filter.insert_batch(&mut scratch, slice, strings, keys.len(), None)?;
                    }
                    stream.record(used)?;
                }
                Ok(())
            })
        })
    }
    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}
