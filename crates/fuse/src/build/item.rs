//! Keys on their way to slots, alone or with values, and slots on their way to words.

use std::ops::BitXorAssign;

use bytemuck::{Pod, Zeroable};
use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_core::bits::lowest;
use warpset_core::bits::write_field;
use warpset_core::fuse::hash::fingerprint;

use crate::Layout;
use crate::width::Slot;

/// The hash of a key, alone for a filter, or with the key's value. Items with equal hashes are neighbours in a sort.
pub(crate) trait Item: Pod + Default + Ord + BitXorAssign + Send + Sync {
    /// Returns the hash, or the word, of the key.
    fn hash(self) -> u64;

    /// Returns the item with another hash.
    fn with_hash(self, hash: u64) -> Self;

    /// Returns the content of the key's slots, which has `value_bits` of a value. `within` is the key's hash in its
    /// graph. Bits of a content that a slot does not have are arbitrary.
    fn content<F: Slot>(self, within: u64, value_bits: u32) -> F;

    /// Returns the values of two items if they differ.
    fn different_values(self, other: Self) -> Option<[u64; 2]>;
}

impl Item for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        self
    }

    #[inline(always)]
    fn with_hash(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn content<F: Slot>(self, within: u64, _: u32) -> F {
        F::of(fingerprint(within))
    }

    fn different_values(self, _: u64) -> Option<[u64; 2]> {
        None
    }
}

/// A key's hash and its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    pub hash: u64,
    pub value: u64,
}

impl BitXorAssign for Entry {
    #[inline(always)]
    fn bitxor_assign(&mut self, other: Entry) {
        self.hash ^= other.hash;
        self.value ^= other.value;
    }
}

impl Item for Entry {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.hash
    }

    #[inline(always)]
    fn with_hash(self, hash: u64) -> Entry {
        Entry { hash, ..self }
    }

    #[inline(always)]
    fn content<F: Slot>(self, _: u64, value_bits: u32) -> F {
        F::low(content(self.hash, self.value, value_bits))
    }

    fn different_values(self, other: Entry) -> Option<[u64; 2]> {
        (self.value != other.value).then_some([self.value, other.value])
    }
}

/// Returns the content of a key with a value: the value in the lowest bits, the fingerprint of its hash above.
#[inline(always)]
pub(crate) fn content(hash: u64, value: u64, value_bits: u32) -> u64 {
    value | u64::from(fingerprint(hash)).unbounded_shl(value_bits)
}

/// Slots that a thread packs at a time: whole words, whatever their bits.
const PACKED: usize = 1 << 12;

/// Lets `assign` fill the slots of one graph, which are zero, and puts their low bits into `words`. `scratch` is for
/// slots of other widths than that of `F`.
pub(super) fn in_slots<F: Slot>(
    layout: &Layout,
    words: &mut [u64],
    scratch: &mut Vec<F>,
    assign: impl FnOnce(&mut [F]),
) -> Result<(), OutOfMemory> {
    let (bits, slots) = (layout.bits, layout.graph_slots() as usize);
    if bits == F::SLOT_BITS {
        assign(&mut bytemuck::cast_slice_mut(words)[..slots]);
        return Ok(());
    }
    if scratch.len() < slots {
        *scratch = zeroed_vec(slots as u64)?;
    } else {
        scratch[..slots].fill(F::zeroed());
    }
    assign(&mut scratch[..slots]);
    let parts = scratch[..slots].chunks(PACKED).zip(words.chunks_mut(PACKED / 64 * bits as usize));
    parallel::for_each(parts, |(slots, words)| {
        for (&slot, at) in slots.iter().zip((0..).step_by(bits as usize)) {
            write_field(words, at, bits, slot.into() & lowest(bits));
        }
    });
    Ok(())
}
