//! Tags: one byte of each key's hash, in memory beside a set of moderate size; not saved.
//!
//! The tags of a bucket are one or two words. Most lookups of absent keys end there, without the line of the keys,
//! which may be far; lookups of present keys compare one key.

use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_base::{parallel, with_vectors};

use crate::{Layout, StaticKey, Value};

/// Bytes of tags up to which a set has them: beyond, they are as far away as the keys.
const MOST_BYTES: u64 = 1 << 24;
/// Nanoseconds to compute a tag.
const TAG_NS: f64 = 1.0;

/// Returns the tag of a key by its hash. The low bits choose neither shard nor group.
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    hash as u8
}

/// Computes the tags of all slots in the words of a layout; none if the set is large.
pub(crate) fn of<K: StaticKey, V: Value>(layout: &Layout<K, V>, words: &[u64]) -> Result<Vec<u64>, OutOfMemory> {
    if layout.slots() > MOST_BYTES {
        return Ok(Vec::new());
    }
    let mut tags = zeroed_vec(layout.slots() / 8)?;
    let keys = &words[layout.pilot_words() as usize..][..layout.key_words() as usize];
    parallel::answer(bytemuck::cast_slice(keys), bytemuck::cast_slice_mut(&mut tags), (TAG_NS, 1), |keys, tags| {
        of_keys(layout, keys, tags);
    });
    Ok(tags)
}

fn of_keys<K: StaticKey, V: Value>(layout: &Layout<K, V>, keys: &[K], tags: &mut [u8]) {
    with_vectors!(of_each[K: StaticKey, V: Value][K, V](layout: &Layout<K, V>, keys: &[K], tags: &mut [u8]))
}

#[inline(always)]
fn of_each<K: StaticKey, V: Value>(layout: &Layout<K, V>, keys: &[K], tags: &mut [u8]) {
    for (i, tag) in tags.iter_mut().enumerate() {
        *tag = tag_of(layout.hash(keys[i]));
    }
}

/// Returns the slots of a bucket that may hold a key with this hash, one bit per slot.
#[inline(always)]
pub(crate) fn equal<K: StaticKey>(tags: &[u64], bucket: usize, hash: u64) -> u32 {
    let words = K::SLOTS / 8;
    let tags = &tags[bucket * words..][..words];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let high = if words == 2 { tags[1] } else { 0 };
            let equal = _mm_cmpeq_epi8(_mm_set_epi64x(high as i64, tags[0] as i64), _mm_set1_epi8(tag_of(hash) as i8));
            _mm_movemask_epi8(equal) as u32 & ((1 << K::SLOTS) - 1)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let is_equal = |&tag: &u8| u32::from(tag == tag_of(hash));
        bytemuck::cast_slice::<u64, u8>(tags).iter().rev().fold(0, |bits, tag| bits << 1 | is_equal(tag))
    }
}
