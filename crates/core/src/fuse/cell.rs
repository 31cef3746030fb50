//! State of a slot's remaining keys while a device peels a graph: their number, and the sum of their indices. One
//! addition changes both, so one atomic operation per slot suffices; in a slot with one key the sum is its index.
//!
//! ```text
//! in a shard    bit 31 … 22  keys      21 … 0  sum of numbers below 2^14
//! in one graph  bit 63 … 48  keys      47 … 0  sum of numbers below 2^32
//! ```
//!
//! If a count reaches its limit, the graph is abandoned, so sums do not run over; only equal keys come near the limits.

/// The most keys of a slot in a shard.
pub const MOST_IN_SHARD: u32 = (1 << 8) - 1;
/// The most keys of a slot in one graph.
pub const MOST_IN_GRAPH: u32 = (1 << 15) - 1;
const SHARD_SHIFT: u32 = 22;
const GRAPH_SHIFT: u32 = 48;

/// Returns the cell of one key with this index, below 2^14, of a shard.
#[inline(always)]
pub const fn in_shard(number: u32) -> u32 {
    1 << SHARD_SHIFT | number
}

/// Returns the keys of a slot in a shard, and the sum of their numbers.
#[inline(always)]
pub const fn split_in_shard(cell: u32) -> (u32, u32) {
    (cell >> SHARD_SHIFT, cell & ((1 << SHARD_SHIFT) - 1))
}

/// Returns the cell of one key with this index of one graph.
#[inline(always)]
pub const fn in_graph(number: u32) -> u64 {
    1 << GRAPH_SHIFT | number as u64
}

/// Returns the keys of a slot in one graph, and the low half of the sum of their numbers.
#[inline(always)]
pub const fn split_in_graph(cell: u64) -> (u32, u32) {
    ((cell >> GRAPH_SHIFT) as u32, cell as u32)
}

const _: () = assert!((MOST_IN_SHARD as u64 + 1) * (super::SHARD_SLOTS as u64 - 1) < 1 << SHARD_SHIFT);
const _: () = assert!((MOST_IN_GRAPH as u64 + 1) * (u32::MAX as u64) < 1 << GRAPH_SHIFT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_key_has_its_number() {
        for number in [0, 1, super::super::SHARD_SLOTS - 1] {
            let others: u32 = (0..MOST_IN_SHARD - 1).map(|_| in_shard(super::super::SHARD_SLOTS - 1)).sum();
            assert_eq!(split_in_shard((in_shard(number) + others) - others), (1, number));
            assert_eq!(split_in_shard(in_shard(number) + others).0, MOST_IN_SHARD);
        }
        let others: u64 = (0..MOST_IN_GRAPH - 1).map(|_| in_graph(u32::MAX)).sum();
        assert_eq!(split_in_graph(in_graph(u32::MAX) + others - others), (1, u32::MAX));
        assert_eq!(split_in_graph(in_graph(7) + others).0, MOST_IN_GRAPH);
    }
}
