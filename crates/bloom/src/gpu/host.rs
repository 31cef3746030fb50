//! Operations on host slices: staged, chunked, waited for.

use warpset_base::filter::same_length;
use warpset_gpu::batch::Reply;

use super::{Bloom, DeviceLayout, DeviceOneBlock};
use crate::{Error, Filter, Insert, Key};

/// Keys that `any_contained_bulk` asks first.
const FIRST_STEP: usize = 1 << 16;
/// Keys that are gathered from an iterator before they are inserted.
const GATHERED: usize = 1 << 20;

impl<L: DeviceLayout> Bloom<L> {
    /// Whether at least one of the keys may be in the filter. Stops early: asks 65,536 keys, then twice as many, and so
    /// on.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn any_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        let (mut rest, mut step) = (keys, FIRST_STEP);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(rest.len()));
            if self.count_contained_bulk(now)? > 0 {
                return Ok(true);
            }
            (rest, step) = (later, step.saturating_mul(2));
        }
        Ok(false)
    }
}

/// Keys of any kind; those that are no integers are hashed on the host, because 8 bytes per key then cross the bus
/// instead of the whole key.
impl<L: DeviceOneBlock> Bloom<L> {
    /// Inserts all keys.
    ///
    /// On an error for want of memory the filter is as it was.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::None,
            |chunk| {
                // SAFETY: insertions of several chunks are atomic, and the filter is borrowed until `run` has waited.
                // The bus is slower than direct insertion, so nothing is grouped.
                unsafe { self.insert_direct(chunk.stream, chunk.keys, chunk.range.len()) }
            },
            |_, _| {},
        )
    }

    /// Inserts all keys and says which were new; the rule is that of
    /// [`cpu::Bloom::test_and_insert_bulk`](crate::cpu::Bloom::test_and_insert_bulk), with the same answers.
    ///
    /// On an error for want of memory the filter is as it was.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// [`Bloom::test_and_insert_bulk`] into a slice of the same length, which holds nothing of use after an error.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        self.test_and_insert_host_keys(keys, new)
    }
}

impl<L: DeviceLayout> Bloom<L>
where
    Bloom<L>: Insert<Error = Error>,
{
    /// Inserts the keys of an iterator, a million at a time. (`Extend` would have no way to tell of a failing device.)
    ///
    /// On an error the keys of earlier portions are in the filter. Only the first portion can restart Rao's filter.
    ///
    /// # Errors
    /// The errors of `insert_bulk`.
    pub fn insert_iter<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        let mut keys = keys.into_iter();
        let mut gathered = Vec::with_capacity(keys.size_hint().0.min(GATHERED));
        loop {
            gathered.clear();
            gathered.extend(keys.by_ref().take(GATHERED));
            if gathered.is_empty() {
                return Ok(());
            }
            Insert::insert_bulk(self, &gathered)?;
        }
    }
}
