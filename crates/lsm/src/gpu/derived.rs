//! What makes lookups in a level fast and follows from its keys: a filter, and an index of where keys lie. Built when a tree
//! has been asked for enough keys, never saved, and shared by all that share the level.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use warpset_core::lsm::filter_words;
use warpset_core::lsm::index::bucket_count;
use warpset_core::scan::Max;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::lsm::derive::{BLOCK, lsm_derive, lsm_index_head};
use warpset_kernels::lsm::levels::INDEX_HEAD;
use warpset_primitives::scan::inclusive_in_place_async;
use warpset_simt::LaunchConfig;

use super::elements::{DeviceElements, upload_table};
use super::kernels::{self, Kernels};
use super::{DeviceKey, DeviceValue, Ordered};
use crate::Error;

/// A level of fewer elements is searched by halving.
const LEAST: usize = 256;
/// Building takes about as long as asking for one key per 32 elements saves.
const ELEMENTS_PER_QUERY: u64 = 32;

/// Filter and index of a level.
pub(crate) struct Derived {
    pub(super) filter: DeviceVec<u64>,
    pub(super) index: DeviceVec<u64>,
}

impl Derived {
    /// Queues the building for these keys, which ascend, and are at least one and fewer than 2^32.
    fn new<K: DeviceKey>(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        let n = keys.len();
        let words = filter_words(n as u64);
        let entries = bucket_count(n as u64) as usize + 1;
        let mut filter = stream.alloc_zeroed(words as usize)?;
        let mut index = stream.alloc_zeroed::<u64>(INDEX_HEAD + entries.div_ceil(2))?;
        // SAFETY: both are new and long enough for what the kernels write: the head, then one entry of 32 bits per bucket and
        // one more; what the second launch reads, the first has written.
        unsafe {
            lsm_index_head { keys: keys.global(), n, index: index.global_mut() }
                .launch(stream, LaunchConfig::new(1, 1))?;
            let kernel = lsm_derive {
                keys: keys.global(),
                n,
                filter: filter.global_mut(),
                filter_words: words,
                index: index.global(),
                entries: index.global_mut().cast::<u32>().at(2 * INDEX_HEAD),
            };
            kernel.launch(stream, LaunchConfig::covering(n, BLOCK))?;
            let mut all = index.as_mut_slice().cast::<u32>()?;
            inclusive_in_place_async::<Max<u32>>(stream, all.slice_mut(2 * INDEX_HEAD..2 * INDEX_HEAD + entries))?;
        }
        Ok(Derived { filter, index })
    }

    pub(super) fn follows(&self, stream: &Stream) -> bool {
        self.filter.follows(stream) && self.index.follows(stream)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.filter.byte_len() + self.index.byte_len()
    }
}

/// How keys are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookupMethod {
    /// By filters and indexes once they have been built, which [`Ordered::prepare`] does, and calls that wait do once the tree
    /// has been asked for enough keys; by halving before that.
    #[default]
    Auto,
    /// By halving each level, as the paper does (section IV-B).
    Halving,
}

impl<K: DeviceKey, V: DeviceValue, F> Ordered<K, V, F> {
    /// Builds what makes lookups, counts and ranges fast for the levels that do not have it: 1.5 bytes per element for a filter
    /// and half a byte for an index. Waits. Answers do not change.
    ///
    /// Calls that wait do this by themselves once the tree has been asked for one key per 32 elements; those that are queued
    /// use what is there.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn prepare(&self) -> Result<(), Error> {
        if self.prepared.get().is_some() {
            return Ok(());
        }
        let table = self.waiting(|stream| {
            for (_, elements) in &self.levels {
                if elements.lacks_derived() {
                    let derived = Derived::new(stream, elements.keys())?;
                    stream.synchronize()?; // others may use it from now on
                    let _ = elements.derived.set(derived); // or another thread was faster
                }
            }
            upload_table(stream, &self.levels)
        })?;
        let _ = self.prepared.set(Arc::new(table));
        Ok(())
    }

    /// Notes that the tree is asked for `queries` keys by a call that waits, and prepares it if that pays. Loads `kernels`, which
    /// the call launches next, meanwhile.
    pub(super) fn prepare_for(&self, queries: usize, mut kernels: Kernels) -> Result<(), Error> {
        let asked = self.asked.fetch_add(queries as u64, Ordering::Relaxed) + queries as u64;
        let missing: usize = self.levels.iter().filter(|(_, l)| l.lacks_derived()).map(|(_, l)| l.len).sum();
        let pays = self.prepared.get().is_none() && asked.saturating_mul(ELEMENTS_PER_QUERY) >= missing as u64;
        if pays && missing > 0 {
            kernels.extend(kernels::of_preparation::<K>());
        }
        self.device.with_kernels(&kernels, || match if pays { self.prepare() } else { Ok(()) } {
            // Answers do not need it.
            Err(Error::Gpu(error)) if error.is_out_of_memory() => Ok(()),
            done => done,
        })
    }

    /// The table of the levels, with filters and indexes if they have been built and the method uses them.
    pub(super) fn table(&self, method: LookupMethod) -> &DeviceVec<u64> {
        match (method, self.prepared.get()) {
            (LookupMethod::Auto, Some(prepared)) => prepared,
            _ => &self.table,
        }
    }
}

impl<K: DeviceKey, V: DeviceValue> DeviceElements<K, V> {
    /// Whether there could be a filter and an index, and there is none.
    fn lacks_derived(&self) -> bool {
        self.len >= LEAST && self.len < u32::MAX as usize && self.derived.get().is_none()
    }
}
