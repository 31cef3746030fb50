//! Ranges in chunks, for results that do not fit in device memory or are larger than the caller wants at a time.

use std::fmt;
use std::ops::{Range, RangeBounds, RangeInclusive};

use warpset_base::words::OutOfMemory;
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, Stream};

use crate::error::one_per_key;
use crate::gpu::query::upload_ends;
use crate::gpu::{DeviceKey, DeviceRanges, DeviceValue, Dictionary, StoredKey};
use crate::query::range::ends;
use crate::{Error, OrderedKey, Ranges};

/// Largest number of ranges per chunk: their counts take memory, too.
const MOST_RANGES: usize = 1 << 22;
/// Number of parts of one cut of a range.
const CUTS: u128 = 64;
/// Smallest chunk for host memory; chunks that do not fit are halved down to this number of elements.
const LEAST: u64 = 1 << 10;

/// Returns memory for `len` elements of ranges.
pub(in crate::gpu) fn room_for<K: StoredKey, V: DeviceValue>(
    stream: &Stream,
    elements: usize,
) -> Result<(DeviceVec<K>, DeviceVec<V::Stored>), Error> {
    let values = if V::WORDS == 0 { 0 } else { elements };
    let room = stream.alloc_uninit(elements).and_then(|keys| Ok((keys, stream.alloc_uninit(values)?)));
    room.map_err(|error| match error {
        GpuError::OutOfMemory { free, .. } => {
            let elements = elements as u64;
            Error::RangesTooLarge {
                elements,
                bytes: elements.saturating_mul(element_bytes::<K, V>()),
                free: free as u64,
            }
        }
        other => other.into(),
    })
}

/// Returns the bytes of device memory that an element takes.
pub(in crate::gpu) fn element_bytes<K, V: DeviceValue>() -> u64 {
    // Values in rows need memory for their addresses until they have been copied.
    let carried = if V::IN_ROWS { 4 * V::WORDS as usize } else { 0 };
    (size_of::<K>() + size_of::<V>() + carried) as u64
}

/// Some of the elements of several ranges of keys, in device memory: an item of [`RangeChunks`].
pub struct RangeChunk<K: DeviceKey, V: DeviceValue> {
    /// Ranges of the chunk: several whole ones, or one. A single range may be incomplete; then the next chunks continue
    /// it with larger keys.
    pub ranges: Range<usize>,
    /// Elements; offsets are relative to the chunk.
    pub elements: DeviceRanges<K, V>,
}

/// Elements of several ranges of keys, in chunks of limited size: the result of [`Dictionary::range_chunks_device`].
/// Ends after an error.
pub struct RangeChunks<'a, K: DeviceKey, V: DeviceValue, P> {
    of: &'a Dictionary<K, V, P>,
    lows: DeviceSlice<'a, K::Stored>,
    highs: DeviceSlice<'a, K::Stored>,
    /// Number of elements of each range.
    counts: Vec<u64>,
    /// Largest number of elements per chunk.
    most: u64,
    /// First range that is not finished.
    next: usize,
    /// Remaining parts of that range, if it has more elements than a chunk.
    parts: Parts<K::Stored>,
}

/// Elements of one range of keys, ascending, in chunks of limited size, each in device memory of its own: the result of
/// [`Dictionary::range_cursor`]. Ends after an error.
pub struct RangeCursor<'a, K: DeviceKey, V: DeviceValue, P> {
    of: &'a Dictionary<K, V, P>,
    /// Largest number of elements per chunk.
    most: u64,
    parts: Parts<K::Stored>,
}

/// Remaining parts of a range; the part with the least keys is last.
type Parts<K> = Vec<SubRange<K>>;

/// Part of a range of keys, with its number of elements.
#[derive(Clone, Copy)]
struct SubRange<K> {
    low: K,
    high: K,
    count: u64,
}

/// Ranges, in chunks where necessary.
impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Returns the keys of each range that have a value, with their values, in one piece of host memory. Works in
    /// chunks if the device lacks memory for all of them.
    ///
    /// # Errors
    /// [`Error::Gpu`]; [`Error::OutOfMemory`] if the host has not enough memory.
    pub fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        match self.range_at_once(ranges) {
            Err(error) if is_device_full(&error) => self.range_in_pieces(ranges),
            done => done,
        }
    }

    /// Iterates over the elements from each of `lows` to the same element of `highs`, in chunks of at most `most`
    /// elements (0 counts as 1), each in device memory of its own. Counts all of them first, and waits.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_lsm::Lsm;
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let keys: Vec<u32> = (0..1000).collect();
    /// let lsm = Lsm::<u32, u32>::builder().on(&device).build_from(&keys, &keys)?;
    /// let (lows, highs) = (device.from_slice(&[10, 500])?, device.from_slice(&[19, 999])?);
    /// let mut found = Vec::new();
    /// for piece in lsm.range_chunks_device(lows.as_slice(), highs.as_slice(), 300)? {
    ///     let piece = piece?;
    ///     assert!(piece.elements.keys.len() <= 300);
    ///     found.extend(piece.elements.keys.to_vec()?);
    /// }
    /// assert!(found.into_iter().eq((10..20).chain(500..1000)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`]; memory of another device is refused. An item is
    /// [`Error::RangesTooLarge`] if there is no memory for the chunk.
    pub fn range_chunks_device<'a>(
        &'a self,
        lows: DeviceSlice<'a, K::Stored>,
        highs: DeviceSlice<'a, K::Stored>,
        most: usize,
    ) -> Result<RangeChunks<'a, K, V, P>, Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        let mut counts = vec![0; lows.len()];
        for (first, counts) in (0..lows.len()).step_by(MOST_RANGES).zip(counts.chunks_mut(MOST_RANGES)) {
            let mut on_device = self.device().alloc_uninit(counts.len())?;
            let ranges = first..first + counts.len();
            self.count_range_device(lows.slice(ranges.clone()), highs.slice(ranges), on_device.as_mut_slice())?;
            on_device.copy_to_slice(counts)?;
        }
        Ok(RangeChunks { of: self, lows, highs, counts, most: (most as u64).max(1), next: 0, parts: Vec::new() })
    }

    /// Returns a cursor over the elements of one range, ascending, in chunks of at most `most` elements (0 counts as
    /// 1), each in device memory of its own. A range of any length thus needs bounded memory. Counts the range first,
    /// and waits. The offsets of a chunk are 0 and its length.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_lsm::Lsm;
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let keys: Vec<u32> = (0..1000).collect();
    /// let lsm = Lsm::<u32, u32>::builder().on(&device).build_from(&keys, &keys)?;
    /// let cursor = lsm.range_cursor(100..900, 256)?;
    /// assert_eq!(cursor.remaining(), 800);
    /// let mut next = 100;
    /// for piece in cursor {
    ///     let keys = piece?.keys.to_vec()?; // or kernels of one's own on the memory that it has
    ///     assert!(keys.len() <= 256 && keys[0] == next);
    ///     next += keys.len() as u32;
    /// }
    /// assert_eq!(next, 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Gpu`]. An item is [`Error::RangesTooLarge`] if there is no memory for the chunk.
    pub fn range_cursor<R: RangeBounds<K>>(&self, range: R, most: usize) -> Result<RangeCursor<'_, K, V, P>, Error> {
        let mut parts = Vec::new();
        if let Some((low, high)) = ends(&range) {
            let count = self.count_range_bulk(&[low..=high])?[0];
            if count > 0 {
                parts.push(SubRange { low: low.to_stored(), high: high.to_stored(), count });
            }
        }
        Ok(RangeCursor { of: self, most: (most as u64).max(1), parts })
    }

    fn range_in_pieces<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        let mut all = Ranges { offsets: vec![0], keys: Vec::new(), values: Vec::new() };
        let mut most = (self.device().memory_info()?.free as u64 / (2 * element_bytes::<K, V>())).max(LEAST);
        let mut total = 0;
        for ranges in ranges.chunks(MOST_RANGES) {
            let [lows, highs] = self.waiting(|stream| upload_ends(stream, ranges))?;
            let mut pieces = self.range_chunks_device(lows.as_slice(), highs.as_slice(), most as usize)?;
            for count in &pieces.counts {
                total += count;
                all.offsets.push(total);
            }
            reserve(&mut all.keys, total)?;
            reserve(&mut all.values, total)?;
            while pieces.next < pieces.counts.len() {
                match pieces.next_piece() {
                    Ok(RangeChunk { elements, .. }) => {
                        let before = all.keys.len();
                        all.keys.resize(before + elements.keys.len(), K::zeroed());
                        all.values.resize(all.keys.len(), V::NONE);
                        let (keys, values) = (&mut all.keys[before..], V::stored_mut(&mut all.values[before..]));
                        self.waiting(|stream| {
                            K::download(stream, elements.keys.as_slice(), keys)?;
                            Ok(stream.download(&elements.values, values)?)
                        })?;
                    }
                    Err(error) if is_device_full(&error) && pieces.most > LEAST => pieces.most /= 2,
                    Err(error) => return Err(error),
                }
            }
            most = pieces.most;
        }
        Ok(all)
    }
}

/// Reserves memory for `len` items in all.
fn reserve<T>(items: &mut Vec<T>, len: u64) -> Result<(), OutOfMemory> {
    let more = (len as usize).saturating_sub(items.len());
    items.try_reserve_exact(more).map_err(|_| OutOfMemory { bytes: len.saturating_mul(size_of::<T>() as u64) })
}

fn is_device_full(error: &Error) -> bool {
    match error {
        Error::RangesTooLarge { .. } => true,
        Error::Gpu(error) => error.is_out_of_memory(),
        _ => false,
    }
}

impl<K: DeviceKey, V: DeviceValue, P> RangeChunks<'_, K, V, P> {
    /// Returns the number of elements of each range.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the next chunk, which exists. An error changes nothing.
    fn next_piece(&mut self) -> Result<RangeChunk<K, V>, Error> {
        if self.parts.is_empty() {
            if self.counts[self.next] <= self.most {
                return self.whole_ranges();
            }
            self.parts = vec![self.whole_range()?];
        }
        self.part_of_range()
    }

    /// Takes the next ranges that fit in a chunk.
    fn whole_ranges(&mut self) -> Result<RangeChunk<K, V>, Error> {
        let mut sum = 0;
        let fit = self.counts[self.next..].iter().take(MOST_RANGES).take_while(|&&count| {
            sum += count;
            sum <= self.most
        });
        let ranges = self.next..self.next + fit.count();
        let elements = self.of.range_device(self.lows.slice(ranges.clone()), self.highs.slice(ranges.clone()))?;
        self.next = ranges.end;
        Ok(RangeChunk { ranges, elements })
    }

    /// Returns the next range.
    fn whole_range(&self) -> Result<SubRange<K::Stored>, Error> {
        let end = |ends: &DeviceSlice<'_, K::Stored>| -> Result<K::Stored, Error> {
            let mut key = [K::Stored::MIN];
            ends.slice(self.next..self.next + 1).copy_to_slice(&mut key)?;
            Ok(key[0])
        };
        Ok(SubRange { low: end(&self.lows)?, high: end(&self.highs)?, count: self.counts[self.next] })
    }

    /// Takes the next parts of the next range that fit in a chunk.
    fn part_of_range(&mut self) -> Result<RangeChunk<K, V>, Error> {
        let elements = self.of.next_parts(&mut self.parts, self.most)?;
        let ranges = self.next..self.next + 1;
        if self.parts.is_empty() {
            self.next += 1;
        }
        Ok(RangeChunk { ranges, elements })
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Takes the next parts of a range that fit in a chunk, at least one, and returns their elements. An error changes
    /// nothing.
    fn next_parts(&self, parts: &mut Parts<K::Stored>, most: u64) -> Result<DeviceRanges<K, V>, Error> {
        while let Some(part) = parts.last().filter(|part| part.count > most) {
            let cut = self.cut(part)?;
            parts.pop();
            parts.extend(cut.into_iter().rev());
        }
        let mut sum = 0;
        let fit = parts.iter().rev().take_while(|part| {
            sum += part.count;
            sum <= most
        });
        let (lows, highs): (Vec<K::Stored>, Vec<K::Stored>) = fit.map(|part| (part.low, part.high)).unzip();
        let device = self.device();
        let (on_device_lows, on_device_highs) = (device.from_slice(&lows)?, device.from_slice(&highs)?);
        let mut elements = self.range_device(on_device_lows.as_slice(), on_device_highs.as_slice())?;
        elements.offsets = device.from_slice(&[0, elements.keys.len() as u64])?;
        parts.truncate(parts.len() - lows.len());
        Ok(elements)
    }

    /// Cuts a part, which has at least two keys, into parts of equal numbers of possible keys, and returns those with
    /// elements.
    fn cut(&self, part: &SubRange<K::Stored>) -> Result<Vec<SubRange<K::Stored>>, Error> {
        let (low, high) = (part.low.to_u128(), part.high.to_u128());
        let step = (high - low) / CUTS + 1;
        let begins = std::iter::successors(Some(low), |begin| begin.checked_add(step).filter(|begin| *begin <= high));
        let ranges: Vec<RangeInclusive<K>> =
            begins.map(|begin| K::from_u128(begin)..=K::from_u128(begin.saturating_add(step - 1).min(high))).collect();
        let counts = self.count_range_bulk(&ranges)?;
        let parts = ranges.iter().zip(counts).filter(|&(_, count)| count > 0);
        Ok(parts
            .map(|(range, count)| SubRange { low: range.start().to_stored(), high: range.end().to_stored(), count })
            .collect())
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Iterator for RangeChunks<'_, K, V, P> {
    type Item = Result<RangeChunk<K, V>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.counts.len() {
            return None;
        }
        let piece = self.next_piece();
        if piece.is_err() {
            self.next = self.counts.len();
        }
        Some(piece)
    }
}

impl<K: DeviceKey, V: DeviceValue, P> std::iter::FusedIterator for RangeChunks<'_, K, V, P> {}

impl<K: DeviceKey, V: DeviceValue, P> RangeCursor<'_, K, V, P> {
    /// Returns the number of remaining elements.
    pub fn remaining(&self) -> u64 {
        self.parts.iter().map(|part| part.count).sum()
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Iterator for RangeCursor<'_, K, V, P> {
    type Item = Result<DeviceRanges<K, V>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.parts.is_empty() {
            return None;
        }
        let piece = self.of.next_parts(&mut self.parts, self.most);
        if piece.is_err() {
            self.parts.clear();
        }
        Some(piece)
    }
}

impl<K: DeviceKey, V: DeviceValue, P> std::iter::FusedIterator for RangeCursor<'_, K, V, P> {}

impl<K: DeviceKey, V: DeviceValue, P> fmt::Debug for RangeCursor<'_, K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RangeCursor { most, .. } = self;
        f.debug_struct("RangeCursor").field("remaining", &self.remaining()).field("most", most).finish_non_exhaustive()
    }
}

impl<K: DeviceKey, V: DeviceValue, P> fmt::Debug for RangeChunks<'_, K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RangeChunks { counts, most, next, .. } = self;
        f.debug_struct("RangeChunks")
            .field("ranges", &counts.len())
            .field("most", most)
            .field("next", next)
            .finish_non_exhaustive()
    }
}
