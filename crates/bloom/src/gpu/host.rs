//! Operations on host slices: staged, chunked, waited for.

use warpset_base::filter::same_length;
use warpset_gpu::batch::Reply;

use super::{Bloom, DeviceLayout, DeviceOneBlock};
use crate::{Error, Insert, Key, TestAndInsert};

/// Keys that are gathered from an iterator before they are inserted.
const GATHERED: usize = 1 << 20;

/// Keys that are no integers are hashed on the host: 8 bytes per key cross the bus instead of the whole key. If memory
/// runs out, the filter is unchanged.
impl<L: DeviceOneBlock> Insert for Bloom<L> {
    type Inserted = ();

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::NONE,
            |chunk| {
                // SAFETY: insertions of several chunks are atomic, and the filter is borrowed until `run` has waited.
                // The bus is slower than direct insertion, so nothing is grouped.
                unsafe { self.insert_direct(chunk.stream, chunk.keys, chunk.range.len()) }
            },
            |_, _| {},
        )
    }
    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<L: DeviceOneBlock> TestAndInsert for Bloom<L> {
    /// Inserts all keys and reports which were new. If memory runs out, the filter is unchanged; on any error `new` has
    /// unspecified values.
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        self.test_and_insert_host_keys(keys, new)
    }
}

impl<L: DeviceLayout> Bloom<L>
where
    Bloom<L>: Insert<Error = Error>,
{
    /// Inserts the keys of an iterator, a million at a time. (`Extend` cannot report a failing device.)
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
            self.insert_bulk(&gathered)?;
        }
    }
}
