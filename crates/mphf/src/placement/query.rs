//! Lookups of one key or many: those of `warpset_core::placement::lookup`, which devices share.

#[cfg(target_arch = "x86_64")]
mod vectors;

use super::PlacementKind;
use crate::Number;
use crate::batch::BATCH;
use crate::format::{self, Header};
use crate::kind::sealed::HashKind;
#[cfg(target_arch = "x86_64")]
use crate::processor::has_avx512;
use crate::windows::{HostWords, prefetch};
use std::sync::Arc;
use warpset_base::key::{Hash128, Key};
use warpset_core::bits::Portable;
use warpset_core::placement::lookup::{Function, Segment, SegmentPlan};
use warpset_core::placement::{FIELD_BITS, LAYOUTS, rotated_field, share_of};
use warpset_core::recsplit::hash::bucket_of;
use warpset_core::recsplit::lookup::lists::Entry;

/// Words from which a function is larger than a core's caches, so that its seeds are prefetched.
const LARGE: usize = 1 << 17;

const _: () = assert!(FIELD_BITS == 8);

/// A function to look keys up in.
pub(crate) type Lookup<'a> = crate::function::Lookup<'a, PlacementKind>;

/// The segments of a function, at least one.
#[derive(Clone)]
pub struct Tables {
    segments: Arc<[Segment]>,
    /// Buckets per segment.
    buckets: u32,
}

impl Tables {
    pub(super) fn new(header: &Header<PlacementKind>, list_words: &[u64]) -> Self {
        let buckets = header.code.buckets(header.keys, header.layout.buckets);
        let plan = SegmentPlan {
            keys: header.keys,
            codes: format::HEADER_WORDS * 64,
            code_bits: header.code_bits,
            buckets,
            largest: header.largest_bucket,
        };
        let mut entries = header.layout.entries(list_words);
        let (mut before, segments) = (entries.next().unwrap_or_default(), header.layout.buckets.max(1));
        let segment = |_| {
            // Only damaged words have fewer entries.
            let end = entries.next().unwrap_or_default();
            let (keys_before, bits_before) = std::mem::replace(&mut before, end);
            plan.segment(Entry { keys_before, keys: end.0.wrapping_sub(keys_before), bits_before })
        };
        Self { segments: (0..segments).map(segment).collect(), buckets }
    }

    /// Returns the segments.
    #[cfg(feature = "gpu")]
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl<'a> Function for Lookup<'a> {
    type Words = HostWords<'a>;
    type Segment = &'a Segment;

    #[inline(always)]
    fn words(&self) -> HostWords<'a> {
        HostWords(self.words)
    }
    #[inline(always)]
    fn segments(&self) -> u64 {
        self.parameters.header.layout.buckets
    }
    #[inline(always)]
    fn segment(&self, index: u64) -> &'a Segment {
        &self.parameters.tables.segments[index as usize]
    }
    #[inline(always)]
    fn segment_of(&self, hash: Hash128) -> &'a Segment {
        let segments = &*self.parameters.tables.segments;
        let index = bucket_of(hash.high, segments.len() as u64);
        // SAFETY: there is at least one segment, so the index is below their number.
        unsafe { segments.get_unchecked(index as usize) }
    }
}

impl Lookup<'_> {
    /// Returns the number of the key with this hash under the function's seed.
    #[inline(always)]
    pub(super) fn get(self, hash: Hash128) -> u64 {
        self.number(self.segment_of(hash), self.bucket_of(hash), hash.low)
    }

    /// Returns the bucket of a key within its segment: the same product for all segments, so that it need not wait for
    /// the segment.
    #[inline(always)]
    fn bucket_of(self, hash: Hash128) -> u32 {
        share_of(hash.low, self.parameters.tables.buckets)
    }

    /// Returns the number of a key in this bucket of a segment.
    #[inline(always)]
    fn number(self, segment: &Segment, bucket: u32, low: u64) -> u64 {
        let at = segment.code + u64::from(bucket);
        debug_assert!(at < size_of_val(self.words) as u64);
        let at = at as usize ^ if cfg!(target_endian = "little") { 0 } else { 7 };
        // SAFETY: `SegmentPlan::segment` leaves the seeds of all buckets within the words. For a segment of damaged
        // words it gives byte 0; `is_possible` checked that there are as many bytes as buckets in any segment, and
        // without segments there is one bucket and a header.
        match unsafe { *self.words.as_ptr().cast::<u8>().add(at) } {
            0 => bumped(self.words, segment, low),
            seed => {
                // A read of the stack: shifts by a number that has just been read take more operations.
                let (bytes, at) = (low.to_le_bytes(), usize::from(seed) % LAYOUTS as usize);
                let field = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
                segment.number_at(segment.shape.start_of(bucket) + rotated_field(field.into(), seed))
            }
        }
    }

    /// Looks up many keys on the calling thread; the slices have equal lengths.
    pub(super) fn get_many_of<K: Key, N: Number>(self, keys: &[K], numbers: &mut [N]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx512() {
            // SAFETY: the processor has the instructions.
            return unsafe { vectors::get_many_avx512(self, keys, numbers) };
        }
        if self.words.len() > LARGE {
            return self.hash_and_get(keys, numbers);
        }
        let seed = self.parameters.header.seed;
        numbers.iter_mut().zip(keys).for_each(|(number, key)| {
            *number = N::narrow(self.get(PlacementKind::hash(key, seed)));
        });
    }

    /// Looks up at most `BATCH` keys, so that their cache misses overlap.
    pub(super) fn get_batch_of(self, hashes: &[Hash128], numbers: &mut [u64]) {
        let none = Segment::default();
        let mut places = [(&none, 0); BATCH];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = (self.segment_of(*hash), self.bucket_of(*hash));
            prefetch(self.words, (place.0.code + u64::from(place.1)) / 8);
        }
        for ((number, hash), (segment, bucket)) in numbers.iter_mut().zip(hashes).zip(places) {
            *number = self.number(segment, bucket, hash.low);
        }
    }
}

/// Returns the number of a bumped key. A separate function, so that others have no registers to save.
#[cold]
#[inline(never)]
fn bumped(words: &[u64], segment: &Segment, low: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if crate::processor::has_fast_pdep() {
        // SAFETY: the processor has the instructions.
        return unsafe { bumped_pdep(words, segment, low) };
    }
    segment.bumped_number(HostWords(words), low, Portable)
}

/// Runs [`bumped`] with `pdep` for selection.
///
/// # Safety
/// - The processor has BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
unsafe fn bumped_pdep(words: &[u64], segment: &Segment, low: u64) -> u64 {
    // SAFETY: this function's contract.
    segment.bumped_number(HostWords(words), low, unsafe { warpset_base::processor::Pdep::assume() })
}
