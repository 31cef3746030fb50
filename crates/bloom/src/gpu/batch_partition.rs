//! Division of a test-and-insert batch into parts, and their memory.

use warpset_core::bloom::TEST_AND_INSERT_BATCH;
use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, GpuError, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::bloom::batch_partition::{self as kernels, MAX_BITS, MAX_CAPACITY, Parts};
use warpset_kernels::bloom::{partition, recent_hashes};
use warpset_simt::{Global, GlobalMut};

use super::Grouping;

/// The fewest keys that are divided: smaller batches are done sooner than the launches that division takes.
const FEWEST: usize = 1 << 21;
/// The most keys that a part has on average.
const KEYS: usize = 4096;
/// Least shared memory of a block if the stretch stays in the filter: with more blocks at a time, their stretches would
/// evict each other from the L2 cache of an H200.
const LEAST_SHARED_BYTES: u32 = 72 << 10;
/// The base-two logarithms of keys per hash that is remembered across tiles, and of the most hashes: 8 MiB of the
/// cache.
const RECENT_SHIFT: u32 = 2;
const MOST_RECENT_BITS: u32 = 20;
/// Threads of a block that empties claims.
const CLEARING_BLOCK: u32 = 256;

/// A claim table on the device.
#[derive(Clone, Copy)]
pub struct ClaimTable {
    /// Its words.
    pub words: GlobalMut<u64>,
    /// The base-two logarithm of their number.
    pub bits: u32,
}

/// The absent keys of a batch, divided into parts.
#[derive(Clone, Copy)]
pub struct PartitionedKeys {
    /// Division of the batch.
    pub parts: Parts,
    /// Keys per part, and whether one overflowed.
    pub counts: Global<u32>,
    /// Hash and index of each key that found room.
    pub keys: Global<u64>,
}

impl PartitionedKeys {
    /// Describes a batch that is not divided.
    pub(super) fn none() -> PartitionedKeys {
        let (counts, keys) = (Global::from_raw_parts(std::ptr::null(), 0), Global::from_raw_parts(std::ptr::null(), 0));
        PartitionedKeys { parts: Parts::UNDIVIDED, counts, keys }
    }
}

/// Returns the launch of the kernels that insert parts into a filter of `blocks` blocks of `block_words` words of 32
/// bits, and the length of a stretch.
pub(super) fn one_block_per_part(parts: Parts, blocks: u64, block_words: u32) -> (LaunchConfig, u32) {
    // The hashes of a part may begin and end within a block.
    let stretch = ((blocks >> parts.bits) + 2).saturating_mul(u64::from(block_words));
    let stretch = if stretch <= kernels::MAX_STRETCH as u64 { stretch as usize } else { 0 };
    let shared = kernels::shared_bytes(stretch).max(if stretch == 0 { LEAST_SHARED_BYTES } else { 0 });
    (LaunchConfig::new(1 << parts.bits, kernels::BLOCK).shared(shared), stretch as u32)
}

/// Chooses the division of a batch of `n` keys; `None`: not divided.
fn parts_of(grouping: Grouping, n: usize) -> Option<Parts> {
    let bits = match grouping {
        Grouping::Never => return None,
        Grouping::Auto if n < FEWEST => return None,
        Grouping::Auto => n.div_ceil(KEYS).next_power_of_two().trailing_zeros(),
        Grouping::Bits(bits) => bits,
    };
    let bits = bits.clamp(1, MAX_BITS);
    let mean = n.div_ceil(1 << bits);
    // With different keys, a part overflows at ten standard deviations; with keys that occur 16 times each, at four.
    let capacity = (mean + mean / 4 + mean / 16).next_multiple_of(32).min(MAX_CAPACITY);
    Some(Parts { bits, capacity: capacity as u32 })
}

/// Device memory for the parts of a batch, allocated and freed in the order of a stream.
pub(super) struct Division {
    parts: Parts,
    /// Recent hashes, and after them the counts of parts; zero at the start of a batch.
    zeroed: DeviceVec<u64>,
    recent_bits: u32,
    keys: DeviceVec<u64>,
}

const _: () = assert!(TEST_AND_INSERT_BATCH < partition::TILE << recent_hashes::TILE_BITS);

impl Division {
    /// Allocates memory for batches of `n` keys; none if these are not divided, or if memory runs out and `grouping`
    /// does not require it.
    pub(super) fn new(stream: &Stream, grouping: Grouping, n: usize) -> Result<Option<Division>, GpuError> {
        let Some(parts) = parts_of(grouping, n) else { return Ok(None) };
        let words = (2 * parts.capacity as usize) << parts.bits;
        let recent_bits = n.next_power_of_two().trailing_zeros().saturating_sub(RECENT_SHIFT);
        let recent_bits = recent_bits.clamp(recent_hashes::MIN_BITS, MOST_RECENT_BITS);
        match stream.alloc_uninit(words) {
            Ok(keys) => {
                let zeroed = stream.alloc_uninit((1 << recent_bits) + parts.counts().div_ceil(2))?;
                Ok(Some(Division { parts, zeroed, recent_bits, keys }))
            }
            Err(error) if grouping == Grouping::Auto && error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Queues the division of a batch of `n` keys, at most the number that the memory was allocated for. Of a lookup's
    /// `answers` remain the marks of absent keys, without some that an equal key precedes. If a part overflows, `table`
    /// is emptied.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys, of a kind that can be grouped; `answers` are bytes or bits, and the lookup of
    ///   the keys is queued.
    /// - Until the stream has passed this work and what uses the result, all stay allocated; nothing writes the keys,
    ///   and nothing else accesses the rest.
    pub(super) unsafe fn divide(
        &mut self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        table: ClaimTable,
    ) -> Result<PartitionedKeys, GpuError> {
        let (parts, KeySlice { keys, kind, spread, .. }) = (self.parts, keys);
        let Answers { words: out, form } = answers;
        stream.fill_bytes(self.zeroed.as_mut_slice(), 0)?;
        let tiles = n.div_ceil(partition::TILE) as u32;
        let config = LaunchConfig::new(tiles, partition::BLOCK).shared(partition::GROUP_SHARED_BYTES);
        let clearing = LaunchConfig::new(stream.device().properties().multiprocessors * 8, CLEARING_BLOCK);
        let (recent_bits, grouped) = (self.recent_bits, self.keys.global_mut());
        let recent = self.zeroed.slice_mut(..1 << recent_bits).global_mut();
        let counts = self.zeroed.slice_mut(1 << recent_bits..).global_mut().cast();
        // SAFETY: there is room for the parts, whose counts are zero; the rest is this function's contract.
        unsafe {
            partition::partition_absent {
                keys,
                kind,
                spread,
                n,
                form,
                out,
                parts,
                counts,
                grouped,
                recent,
                recent_bits,
            }
            .launch(stream, config)?;
            partition::partition_clear_claims { table: table.words, n: 1 << table.bits, parts, counts: counts.into() }
                .launch(stream, clearing)?;
        }
        Ok(PartitionedKeys { parts, counts: counts.into(), keys: grouped.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_and_insert::claim_words;
    use super::*;
    use warpset_gpu::Device;
    use warpset_kernels::bloom::claims;

    /// Divides hashes that the filter does not hold; returns the number of keys in all parts, and whether one
    /// overflowed.
    fn counted(hashes: &[u64]) -> (usize, bool) {
        let device = Device::emulator(Default::default());
        let stream = device.new_stream().unwrap();
        let n = hashes.len();
        let keys = device.from_slice(hashes).unwrap();
        let mut answers = device.from_slice(&vec![0u8; n.next_multiple_of(8)]).unwrap();
        let mut division = Division::new(&stream, Grouping::Bits(3), n).unwrap().unwrap();
        let mut table = claim_words(&stream, n).unwrap();
        let table = ClaimTable { words: table.global_mut(), bits: claims::table_bits(n) };
        let keys = KeySlice::hashes(keys.global());
        let to = Answers::bytes(answers.as_mut_slice(), n).unwrap();
        // SAFETY: everything is allocated until the stream has been waited for; the lookup's answers are complete.
        unsafe { division.divide(&stream, keys, n, to, table).unwrap() };
        stream.synchronize().unwrap();
        let zeroed = division.zeroed.to_vec().unwrap();
        let counts = zeroed[1 << division.recent_bits..].iter().flat_map(|word| [*word as u32, (word >> 32) as u32]);
        let counts: Vec<u32> = counts.take(division.parts.counts()).collect();
        let (last, parts) = counts.split_last().unwrap();
        let kept = answers.to_vec().unwrap().iter().filter(|&&mark| mark != 0).count();
        let all = parts.iter().map(|&count| count as usize).sum();
        assert_eq!(kept, all, "marks are of the keys that were counted");
        (all, *last != 0)
    }

    /// Checks that equal keys are left out: otherwise the first two would overflow their parts.
    #[test]
    fn keys_that_come_often_are_grouped_few_times() {
        let scattered = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = 4 * partition::TILE + 100;
        let (all, overflowed) = counted(&vec![77; n]);
        assert!(all <= 5 && !overflowed, "{all} of one");
        let (all, overflowed) =
            counted(&(0..n).map(|i| scattered(if i % 2 == 0 { i } else { i % 16 })).collect::<Vec<_>>());
        assert!(all <= n / 2 + 2_000 && !overflowed, "{all} with frequent ones");
        let (all, overflowed) = counted(&(0..n).map(scattered).collect::<Vec<_>>());
        assert!(all == n && !overflowed, "{all} of {n} that differ");
    }

    #[test]
    fn parts_have_room_for_keys_that_differ() {
        assert_eq!(parts_of(Grouping::Never, 1 << 24), None);
        assert_eq!(parts_of(Grouping::Auto, FEWEST - 1), None);
        for n in [FEWEST, (1 << 22) + 1, 1 << 23, 1 << 24] {
            let Parts { bits, capacity } = parts_of(Grouping::Auto, n).unwrap();
            let mean = n as f64 / f64::from(1 << bits);
            assert!(mean <= KEYS as f64 && f64::from(capacity) >= mean + 10.0 * mean.sqrt(), "{n}: {bits}, {capacity}");
        }
        assert_eq!(parts_of(Grouping::Bits(1), 1 << 24), Some(Parts { bits: 1, capacity: MAX_CAPACITY as u32 }));
        assert_eq!(parts_of(Grouping::Bits(20), 64), Some(Parts { bits: MAX_BITS, capacity: 32 }));
    }
}
