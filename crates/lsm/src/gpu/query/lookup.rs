//! Queues of lookups: choice of the method, and launches of each.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, GpuError, Stream};
use warpset_kernels::lsm::flipped::{self, lsm_descends, lsm_lookup_flipped};
use warpset_kernels::lsm::lookup::{self, lsm_lookup, lsm_lookup_sorted, lsm_places, lsm_scatter};
use warpset_kernels::lsm::visibility;
use warpset_primitives::Error::TooLong;
use warpset_primitives::sort::{By, sort_pairs_async};
use warpset_simt::{Global, GlobalMut, LaunchConfig};

use crate::Error;
use crate::gpu::device_run::publish_with;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};

/// Fewest queries and elements for which `LookupMethod::Auto` sorts: faster from there on for both present and absent
/// keys.
const MANY_QUERIES: usize = 1 << 22;
const MANY_ELEMENTS: u64 = 1 << 26;
/// Highest bits that queries are sorted by: two passes of the sort.
const SORTED_BITS: u32 = 16;
/// Elements per sorted query above which queries search for elements, and below which elements search for queries.
const SCATTERED_ELEMENTS: u64 = 2;
/// Fewest ascending queries for which `LookupMethod::Auto` flips the lookup; filters are as fast for fewer.
pub(in crate::gpu) const FLIPPED_FROM: usize = if cfg!(test) { 1 << 12 } else { 1 << 22 };
/// Largest number of elements of a level per query for which elements search for queries.
const FLIPPED_ELEMENTS: u32 = 2;
/// Bytes of answers that are scattered together.
const WINDOW_BYTES: usize = if cfg!(test) { 1 << 13 } else { 16 << 20 };

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Queues a lookup.
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`]; `found` has a bit per key, and `out_values` is valid for a value of
    /// `value_words` words per key.
    pub(in crate::gpu) unsafe fn queue_lookup(
        &self,
        stream: &Stream,
        method: LookupMethod,
        keys: DeviceSlice<'_, K::Stored>,
        out_values: GlobalMut<u32>,
        value_words: u32,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = keys.len();
        if n == 0 {
            return Ok(());
        }
        let filtered = match &self.levels[..] {
            levels @ [_] if method == LookupMethod::Filtered => Some(publish_with(stream, levels, true)?),
            _ => None,
        };
        let table = filtered.as_ref().unwrap_or_else(|| self.table(method)).global();
        let levels = self.levels.len() as u32;
        let sight = self.sight();
        let (visible, known) = match method {
            LookupMethod::Halving => (table, visibility::UNKNOWN),
            _ => (sight.visible, sight.known),
        };
        let is_known = known != visibility::UNKNOWN && n <= u32::MAX as usize;
        let asked = Query { keys, table, levels, visible, known };
        if is_known && method == LookupMethod::Flipped {
            // SAFETY: the contract of this function.
            return unsafe { self.queue_flipped(stream, asked, out_values, value_words, found) };
        }
        let sorts = match method {
            LookupMethod::Auto => levels > 1 && n >= MANY_QUERIES && self.resident_len() >= MANY_ELEMENTS,
            LookupMethod::Sorted => true,
            LookupMethod::Filtered | LookupMethod::Halving | LookupMethod::Flipped => false,
        };
        if is_known && sorts && self.indexed.get().is_some() {
            // SAFETY: the contract of this function.
            let queued = unsafe { self.queue_sorted(stream, asked, out_values, value_words, found.reborrow()) };
            match queued {
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) if method == LookupMethod::Auto => {}
                queued => return queued,
            }
        }
        let (queries, found) = (keys.global(), found.global_mut());
        let kernel = lsm_lookup { table, levels, visible, known, queries, n, out_values, value_words, found };
        // SAFETY: the table is of these levels; the rest is the contract of this function.
        unsafe { kernel.launch(stream, LaunchConfig::new(lookup_blocks(n)?, lookup::BLOCK))? };
        Ok(())
    }

    /// Queues a lookup of queries that are sorted by their highest bits first.
    ///
    /// # Safety
    /// The contract of [`Dictionary::queue_lookup`]; the visibility of the elements is known, and there are 1 to 2^32 -
    /// 1 queries.
    unsafe fn queue_sorted(
        &self,
        stream: &Stream,
        asked: Query<'_, K::Stored>,
        out_values: GlobalMut<u32>,
        value_words: u32,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = asked.keys.len();
        let mut sorted = stream.alloc_uninit::<K::Stored>(n)?;
        let mut numbers = stream.alloc_uninit::<u32>(n)?;
        let mut places = stream.alloc_uninit::<u32>(n)?;
        stream.fill_bytes(found.reborrow(), 0)?;
        let key_bits = 8 * size_of::<K>() as u32;
        let by = By::ascending().bits(key_bits - SORTED_BITS..key_bits);
        // SAFETY: scratch is new, long enough and freed in stream order; the table is of these levels; the rest is the
        // contract of this function.
        unsafe {
            lsm_places { out: numbers.global_mut(), n }.launch(stream, LaunchConfig::covering(n, lookup::BLOCK))?;
            sort_pairs_async(stream, asked.keys, numbers.as_slice(), &mut sorted, &mut places, by)?;
            let places = places.global();
            if (n as u64).saturating_mul(SCATTERED_ELEMENTS) < self.resident_len() {
                let Query { table, levels, visible, known, .. } = asked;
                let (queries, found) = (sorted.global(), found.global_mut().cast());
                #[rustfmt::skip]
                let kernel = lsm_lookup_sorted {
                    table, levels, visible, known, queries, places, n, out_values, value_words, found,
                };
                kernel.launch(stream, LaunchConfig::new(lookup_blocks(n)?, lookup::BLOCK))?;
                return Ok(());
            }
            let mut values = stream.alloc_uninit::<u32>(n * value_words as usize)?;
            let mut bits = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
            let asked = Query { keys: sorted.as_slice(), ..asked };
            self.queue_flipped(stream, asked, values.global_mut(), value_words, bits.as_mut_slice())?;
            let window = if value_words == 0 { n } else { WINDOW_BYTES / (4 * value_words as usize) };
            let tiles = n.div_ceil(lookup::BLOCK as usize * lookup::SCATTERED);
            let (values, found, out_found) = (values.global(), bits.global().cast(), found.global_mut().cast());
            lsm_scatter { places, values, value_words, found, n, window, out_values, out_found }
                .launch(stream, LaunchConfig::new((n.div_ceil(window) * tiles) as u32, lookup::BLOCK))?;
        }
        Ok(())
    }

    /// Queues a lookup of nearly sorted queries.
    ///
    /// # Safety
    /// The contract of [`Dictionary::queue_sorted`].
    unsafe fn queue_flipped(
        &self,
        stream: &Stream,
        asked: Query<'_, K::Stored>,
        out_values: GlobalMut<u32>,
        value_words: u32,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let Query { keys, table, levels, visible, known } = asked;
        let (queries, n) = (keys.global(), keys.len());
        let all = (known == visibility::ALL).into();
        let most = FLIPPED_ELEMENTS;
        let found = found.global_mut().cast();
        let kernel =
            lsm_lookup_flipped { table, levels, visible, all, most, queries, n, out_values, value_words, found };
        let config = LaunchConfig::new(n.div_ceil(flipped::TILE as usize) as u32, flipped::BLOCK);
        // SAFETY: the table is of these levels, which have fewer than 2^32 elements, since their visibility is known;
        // the rest is the contract of this function.
        unsafe { kernel.launch(stream, config.shared(flipped::shared_bytes::<K::Stored>(value_words)))? };
        Ok(())
    }

    /// Chooses the method for a lookup by a call that waits, and builds its data. Queries that ascend need none.
    pub(in crate::gpu) fn method_for(
        &self,
        n: usize,
        ascend: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<LookupMethod, Error> {
        let flips = n >= FLIPPED_FROM && ascend()?;
        self.prepare_for(n)?;
        Ok(if flips && self.sight().is_known() { LookupMethod::Flipped } else { LookupMethod::Auto })
    }

    /// Builds the data that a method needs, for a call that waits, and returns the method to use.
    pub(in crate::gpu) fn prepare_method(
        &self,
        method: LookupMethod,
        n: usize,
        ascend: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<LookupMethod, Error> {
        match method {
            LookupMethod::Auto => return self.method_for(n, ascend),
            LookupMethod::Filtered => self.prepare_levels(true).and_then(|()| self.prepare_lookups())?,
            LookupMethod::Sorted | LookupMethod::Flipped => self.prepare_lookups()?,
            LookupMethod::Halving => {}
        }
        Ok(method)
    }

    /// Whether queries on the device ascend. Waits.
    pub(in crate::gpu) fn ascend(&self, keys: DeviceSlice<'_, K::Stored>) -> Result<bool, Error> {
        self.device.expect_same(keys.device(), "a lookup in a dictionary")?;
        self.waiting(|stream| {
            let mut descends = stream.alloc_zeroed::<u32>(1)?;
            let (queries, n) = (keys.global(), keys.len());
            // SAFETY: there is one word; queries are borrowed until the stream has been waited for.
            unsafe {
                lsm_descends { queries, n, descends: descends.global_mut() }
                    .launch(stream, LaunchConfig::covering(n.div_ceil(8), flipped::BLOCK))?;
            }
            let mut found = [0];
            stream.download(&descends, &mut found)?;
            Ok(found[0] == 0)
        })
    }
}

/// Queries, and the tree to search.
#[derive(Clone, Copy)]
struct Query<'a, K> {
    keys: DeviceSlice<'a, K>,
    table: Global<u64>,
    levels: u32,
    visible: Global<u64>,
    known: u32,
}

/// Returns the blocks for `n` queries, one thread per query.
fn lookup_blocks(n: usize) -> Result<u32, Error> {
    let max = i32::MAX as usize * lookup::BLOCK as usize;
    if n > max {
        return Err(TooLong { len: n, max }.into());
    }
    Ok(n.div_ceil(lookup::BLOCK as usize) as u32)
}
