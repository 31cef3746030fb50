//! Queries of a static function in device memory by one thread: for the kernels here, and for kernels of other crates
//! (feature `filters`), like [`bloom::device_query`](crate::bloom::device_query) for Bloom filters.

use warpset_core::bits::{ReadWords, read_field};
use warpset_core::fuse::Graph;
use warpset_core::fuse::hash::{mix, shard_of, within_shard};
use warpset_core::fuse::value::value_in;
use warpset_simt::Global;

/// Static function without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FunctionQuery {
    /// Number of graphs in sequence; 0 if there is one graph without shards.
    pub shards: u64,
    /// Seed of the hashes.
    pub seed: u64,
    /// Index of the word that begins with a byte per shard.
    pub shard_seeds: u64,
    /// Slots of one graph. A graph without slots has no keys.
    pub graph: Graph,
    /// Slots of a key: 3 or 4.
    pub arity: u32,
    /// Bits of a slot.
    pub bits: u32,
    /// Bits of a value: at most `bits`, and at least `bits - 32`.
    pub value_bits: u32,
}

/// Words with slots.
#[cfg(feature = "bodies")]
struct Words(Global<u64>);

#[cfg(feature = "bodies")]
impl ReadWords for Words {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        // SAFETY: `sum_at` alone makes and reads this, for fields that it knows to be in the words.
        unsafe { self.0.read_nc(index as usize) }
    }
}

/// Returns the exclusive or of a key's slots of `bits` bits.
///
/// # Safety
/// `words` holds the graph's slots from slot `first` on, which nothing writes while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sum_at<const ARITY: usize>(words: Global<u64>, bits: u32, first: u64, graph: Graph, hash: u64) -> u64 {
    let words = Words(words);
    let positions = graph.positions::<ARITY>(hash);
    positions
        .map(|at| read_field(&words, (first + at as u64) * bits as u64, bits))
        .into_iter()
        .fold(0, |sum, at| sum ^ at)
}

impl FunctionQuery {
    /// Returns the value of a key: of an integer by its value in 64 bits, with the sign of a signed one extended, of
    /// another key by its hash. Keys that the function does not have get any value, or none.
    ///
    /// # Safety
    /// `words` are those of the function, not written while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn get(self, words: Global<u64>, key: u64) -> Option<u64> {
        // SAFETY: the bytes of the shards follow the slots, in the words.
        unsafe { self.get_with(words, words.at(self.shard_seeds as usize).cast(), key) }
    }

    /// Returns the value like [`FunctionQuery::get`], with the bytes of the shards elsewhere.
    ///
    /// # Safety
    /// `words` are the slots and `shard_seeds` a byte per shard, not written while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub(super) unsafe fn get_with(self, words: Global<u64>, shard_seeds: Global<u8>, key: u64) -> Option<u64> {
        let FunctionQuery { shards, seed, graph, arity, bits, value_bits, .. } = self;
        if graph.starts == 0 {
            return None;
        }
        let hash = mix(key, seed);
        let (mut within, mut first) = (hash, 0);
        // SAFETY: a shard's number is below `shards`, and its graph's slots are among the words.
        let sum = unsafe {
            if shards > 0 {
                let shard = shard_of(hash, shards);
                within = within_shard(hash, shard_seeds.read_nc(shard as usize));
                first = shard * graph.slots(arity);
            }
            if arity == 3 {
                sum_at::<3>(words, bits, first, graph, within)
            } else {
                sum_at::<4>(words, bits, first, graph, within)
            }
        };
        value_in(sum, hash, bits, value_bits)
    }
}
