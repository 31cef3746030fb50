//! The slots of a key: one in each of three or four neighbouring segments.
//!
//! ```text
//!  segment   s        s + 1      s + 2
//!          |  *     |      *   | *        |      * = the slots of one key, three-wise
//!            first    + L ^ a    + 2L ^ b        L = slots of a segment, a power of two
//! ```
//!
//! The first slot comes from the high bits of the hash, so keys sorted by their hashes have neighbouring slots; the
//! offsets `a` and `b`, which flip bits within their segments, come from the low ones.

/// Bits of an offset: segments have at most 2^18 slots.
pub const MAX_SEGMENT_BITS: u32 = 18;
/// 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A graph of slots in segments of `2^segment_bits`; a key's first slot is one of the first `starts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Graph {
    /// Number of slots that can be the first of a key: a whole number of segments.
    pub starts: u32,
    /// Base-2 logarithm of the slots of a segment, at most [`MAX_SEGMENT_BITS`].
    pub segment_bits: u32,
}

const _: () = assert!(size_of::<Graph>() == 8);

impl Graph {
    /// Returns the number of slots in a segment.
    #[inline(always)]
    pub const fn segment(self) -> u32 {
        1 << self.segment_bits
    }

    /// Returns the number of slots in all segments, given `arity` slots per key; 0 if there is no first slot.
    pub const fn slots(self, arity: u32) -> u64 {
        if self.starts == 0 {
            return 0;
        }
        self.starts as u64 + ((arity as u64 - 1) << self.segment_bits)
    }

    /// Returns the first slot of a key with this hash.
    #[inline(always)]
    pub const fn first(self, hash: u64) -> u32 {
        ((hash as u128 * self.starts as u128) >> 64) as u32
    }

    /// Returns slot `j` of a key with this hash, of `ARITY`, with first slot `first`.
    #[inline(always)]
    pub const fn position<const ARITY: usize>(self, first: u32, hash: u64, j: usize) -> u32 {
        if j == 0 {
            return first;
        }
        let offset = match ARITY - 1 - j {
            0 => hash as u32,
            1 => (hash >> 18) as u32,
            _ => (hash.wrapping_mul(GOLDEN) >> 46) as u32,
        };
        first.wrapping_add((j as u32) << self.segment_bits) ^ (offset & (self.segment() - 1))
    }

    /// Returns the slots of a key with this hash, three or four, which ascend, below [`Graph::slots`], which is below
    /// 2^32.
    #[inline(always)]
    pub const fn positions<const ARITY: usize>(self, hash: u64) -> [u32; ARITY] {
        let first = self.first(hash);
        let mut positions = [first; ARITY];
        let mut j = 1;
        while j < ARITY {
            positions[j] = self.position::<ARITY>(first, hash, j);
            j += 1;
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;

    fn lie_in_their_segments<const ARITY: usize>(graph: Graph) {
        for hash in (0..5000).map(|i| mix(i, 3)).chain([0, u64::MAX, 1 << 63]) {
            let positions = graph.positions::<ARITY>(hash);
            let segment = positions[0] >> graph.segment_bits;
            for (j, position) in positions.into_iter().enumerate() {
                assert_eq!(position >> graph.segment_bits, segment + j as u32, "{graph:?} {hash:x}");
                assert!(u64::from(position) < graph.slots(ARITY as u32));
            }
        }
    }

    #[test]
    fn one_slot_per_segment() {
        for segment_bits in [0, 1, 2, 9, MAX_SEGMENT_BITS] {
            for segments in [1, 2, 7, 1000] {
                let graph = Graph { starts: segments << segment_bits, segment_bits };
                lie_in_their_segments::<3>(graph);
                lie_in_their_segments::<4>(graph);
            }
        }
    }

    #[test]
    fn the_published_arithmetic() {
        let graph = Graph { starts: 7 << 13, segment_bits: 13 };
        for hash in (0..5000).map(|i| mix(i, 9)) {
            let high = ((u128::from(hash) * u128::from(graph.starts)) >> 64) as u32;
            let second = (high + 8192) ^ ((hash >> 18) as u32 & 8191);
            let third = (high + 2 * 8192) ^ (hash as u32 & 8191);
            assert_eq!(graph.positions::<3>(hash), [high, second, third]);
        }
    }
}
