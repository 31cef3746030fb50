//! False-positive rates and sizes in theory.
//!
//! A blocked filter is many small filters with unequal loads: the number of keys in a block is Poisson distributed with
//! mean `keys / blocks`, and the rate is the mean over that distribution (Putze, Sanders, Singler, section 3). Within a
//! sector of `S` bits the expected rate of `c` further bits is `E[(X/S)^c]`, `X` the number of set bits; its variance
//! counts, since `c` bits read one `X`.

use std::sync::OnceLock;

use warpset_core::bloom::{blocked, rao, split_block};

use crate::Error;

/// Returns an error unless `fpr` is strictly between 0 and 1.
pub(crate) fn check_fpr(fpr: f64) -> Result<(), Error> {
    if fpr > 0.0 && fpr < 1.0 { Ok(()) } else { Err(Error::InvalidFpr { fpr }) }
}

/// Returns the rate of a classic Bloom filter with `bits` bits, `hashes` distinct bits per key and `keys` keys.
pub fn classic_fpr(bits: f64, hashes: u32, keys: f64) -> f64 {
    classic_fill(bits, hashes, keys).powi(hashes as i32)
}

/// Returns the fraction of set bits of a classic Bloom filter with `bits` bits, `hashes` distinct bits per key and
/// `keys` keys.
pub fn classic_fill(bits: f64, hashes: u32, keys: f64) -> f64 {
    -(keys * (-(hashes as f64) / bits).ln_1p()).exp_m1()
}

/// Calls `f(load, probability)` for each load of a block that matters, when `mean` keys per block are expected.
fn poisson(mean: f64, mut f: impl FnMut(u32, f64)) {
    let spread = 12.0 * mean.sqrt() + 40.0;
    let (first, last) = ((mean - spread).max(0.0) as u32, (mean + spread).ceil() as u32);
    // The logarithm of the first probability by Stirling's series; the rest by the recurrence.
    let ln_factorial = |n: f64| {
        if n < 1.0 {
            0.0
        } else {
            n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + 1.0 / (12.0 * n) - 1.0 / (360.0 * n * n * n)
        }
    };
    if mean <= 0.0 {
        return f(0, 1.0);
    }
    let mut ln_p = first as f64 * mean.ln() - mean - ln_factorial(first as f64);
    for load in first..=last {
        f(load, ln_p.exp());
        ln_p += mean.ln() - ((load + 1) as f64).ln();
    }
}

/// The shape of a split-block filter: 256 bits in eight words, one bit per key in each.
pub(crate) const SPLIT_BLOCK: blocked::BlockShape = blocked::BlockShape::of::<256, 32, 8>();
const _: () = assert!(SPLIT_BLOCK.words() as usize == split_block::WORDS_PER_BLOCK);

/// Returns the rate of a split-block filter in theory.
pub fn split_block_fpr(blocks: u64, keys: u64) -> f64 {
    blocked_fpr(blocks, SPLIT_BLOCK, keys)
}

/// The highest rate at which a filter before some other work, such as a join or a read, is called worthwhile: it then
/// spares three quarters of that work for keys that are not there, which a lookup of a few nanoseconds buys back even
/// where half of the keys are.
pub const WORTHWHILE_FPR: f64 = 0.25;

/// Returns the most different keys for which a split-block filter of `bytes` bytes is worth building: those at which it
/// reaches [`WORTHWHILE_FPR`], at 4.4 bits per key. O(1) after the first call.
///
/// ```
/// use warpset_bloom::rates;
///
/// assert!((220_000..250_000).contains(&rates::worthwhile_keys(1 << 17)));
/// assert_eq!(rates::worthwhile_keys(31), 0); // less than a block
/// ```
pub fn worthwhile_keys(bytes: u64) -> u64 {
    static MEAN: OnceLock<f64> = OnceLock::new();
    let mean = *MEAN.get_or_init(|| blocked_mean_at_fpr(SPLIT_BLOCK, WORTHWHILE_FPR));
    let blocks = (bytes / split_block::BLOCK_BYTES as u64).min(split_block::MAX_BLOCKS);
    (blocks as f64 * mean) as u64
}

/// Whether a split-block filter of `bytes` bytes is worth building for `keys` different keys: whether there are any,
/// and no more than [`worthwhile_keys`]. A filter that holds more answers "yes" to most questions, and asking it is
/// wasted.
///
/// ```
/// use warpset_bloom::rates;
///
/// assert!(rates::worth_building(1_000_000, 1 << 20));
/// assert!(!rates::worth_building(10_000_000, 1 << 20));
/// assert!(!rates::worth_building(0, 1 << 20)); // nothing is in it: no need to ask
/// ```
pub fn worth_building(keys: u64, bytes: u64) -> bool {
    (1..=worthwhile_keys(bytes)).contains(&keys)
}

/// Returns the rate of a blocked filter in theory.
pub fn blocked_fpr(blocks: u64, shape: blocked::BlockShape, keys: u64) -> f64 {
    blocked_fpr_at(shape, keys as f64 / blocks as f64)
}

/// Returns the rate of a blocked filter with a mean of `mean` keys per block.
pub fn blocked_fpr_at(shape: blocked::BlockShape, mean: f64) -> f64 {
    // Beyond this load every bit is set.
    if mean > 64.0 * shape.block_bits() as f64 {
        return 1.0;
    }
    let most = shape.hashes_in_sector(0);
    let least = shape.hashes_in_sector(shape.sectors() - 1);
    let with_most = (0..shape.sectors()).filter(|&s| shape.hashes_in_sector(s) == most).count() as i32;
    let with_least = shape.sectors() as i32 - with_most;
    let sector = shape.sector_bits();
    let (mut high, mut low) = (Occupancy::new(sector, most), Occupancy::new(sector, least));
    let mut rate = 0.0;
    poisson(mean, |load, probability| {
        let mut all = high.hit(load).powi(with_most);
        if with_least > 0 {
            all *= low.hit(load).powi(with_least);
        }
        rate += probability * all;
    });
    rate.min(1.0)
}

/// `E[(X/S)^c]` after `load` keys threw `c` bits each at a sector of `S` bits.
struct Occupancy {
    bits: f64,
    hashes: u32,
    /// Probability of each number of set bits, for three and more hashes (then `S` is a word); advanced load by load.
    distribution: Vec<f64>,
    load: u32,
}

impl Occupancy {
    fn new(sector_bits: u32, hashes: u32) -> Occupancy {
        let mut distribution = Vec::new();
        if hashes > 2 {
            distribution = vec![0.0; sector_bits as usize + 1];
            distribution[0] = 1.0;
        }
        Occupancy { bits: sector_bits as f64, hashes, distribution, load: 0 }
    }

    fn hit(&mut self, load: u32) -> f64 {
        let s = self.bits;
        if self.hashes <= 2 {
            let throws = load as f64 * self.hashes as f64;
            let one_missed = (throws * (-1.0 / s).ln_1p()).exp();
            if self.hashes == 1 {
                return 1.0 - one_missed;
            }
            // Two bits: they coincide with probability 1/S, else inclusion and exclusion over two cells.
            let two_missed = if s > 2.0 { (throws * (-2.0 / s).ln_1p()).exp() } else { (throws == 0.0) as u8 as f64 };
            let one = 1.0 - one_missed;
            let both = 1.0 - 2.0 * one_missed + two_missed;
            return one / s + both.max(0.0) * (1.0 - 1.0 / s);
        }
        for _ in self.load * self.hashes..load * self.hashes {
            for set in (1..self.distribution.len()).rev() {
                self.distribution[set] = self.distribution[set] * (set as f64 / s)
                    + self.distribution[set - 1] * (1.0 - (set as f64 - 1.0) / s);
            }
            self.distribution[0] = 0.0;
        }
        self.load = load;
        self.distribution.iter().enumerate().map(|(set, p)| p * (set as f64 / s).powi(self.hashes as i32)).sum()
    }
}

/// Returns the fraction of set bits of a blocked filter with a mean of `mean` keys per block.
pub fn blocked_fill(shape: blocked::BlockShape, mean: f64) -> f64 {
    let s = shape.sector_bits() as f64;
    let sectors = shape.sectors();
    (0..sectors)
        .map(|i| {
            let missed_by_one_key = (1.0 - 1.0 / s).powi(shape.hashes_in_sector(i) as i32);
            -(-mean * (1.0 - missed_by_one_key)).exp_m1()
        })
        .sum::<f64>()
        / sectors as f64
}

/// Returns the mean number of keys per block at which a blocked filter has this fraction of bits set; infinite when all
/// are.
pub fn blocked_mean_at_fill(shape: blocked::BlockShape, fill: f64) -> f64 {
    if fill >= 1.0 {
        return f64::INFINITY;
    }
    bisect(shape.block_bits() as f64, |mean| blocked_fill(shape, mean) <= fill)
}

/// Returns the mean number of keys per block at which a blocked filter reaches `fpr`.
pub fn blocked_mean_at_fpr(shape: blocked::BlockShape, fpr: f64) -> f64 {
    bisect(shape.block_bits() as f64, |mean| blocked_fpr_at(shape, mean) <= fpr)
}

/// Returns the largest value up to which `holds` (monotone, true at 0), starting the search at `guess`.
fn bisect(guess: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, guess);
    for _ in 0..16 {
        if !holds(high) {
            break;
        }
        low = high;
        high *= 2.0;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// Hashes per key for a rate, by the paper: `fpr = 1 / 2^k`, rounded up (section 5.2 takes 7 for 6.644).
pub fn rao_hashes(fpr: f64) -> u32 {
    ((-fpr.log2()).ceil() as u32).clamp(1, rao::MAX_HASHES)
}

/// Returns the number of keys that a bucket can hold, `m ln 2 / k` (section 4.2).
pub fn rao_bucket_capacity(shape: rao::BucketShape) -> u32 {
    (shape.bits as f64 * std::f64::consts::LN_2 / shape.hashes as f64) as u32
}

/// Returns the rate per bucket at which a query of `choices` buckets has the rate `fpr`.
pub fn rao_bucket_fpr(fpr: f64, choices: u32) -> f64 {
    // 1 - (1 - fpr)^(1/choices), without cancellation.
    -((-fpr).ln_1p() / choices as f64).exp_m1()
}

/// Returns the rate of a query of `choices` buckets that each answer wrongly with rate `bucket_fpr` (Table 2).
pub fn rao_query_fpr(bucket_fpr: f64, choices: u32) -> f64 {
    -((-bucket_fpr).ln_1p() * choices as f64).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper() {
        // Section 5.2: 5 KB, 1%: m = 40949, k = 7, n = 4054.
        let k = rao_hashes(0.01);
        assert_eq!(k, 7);
        let shape = rao::BucketShape::new(1280, k).unwrap();
        assert_eq!(rao_bucket_capacity(shape), 4054);
    }

    #[test]
    fn poisson_probabilities_sum_to_one_and_have_the_mean() {
        for mean in [0.0, 0.01, 1.0, 16.0, 300.0, 5000.0] {
            let (mut sum, mut first_moment) = (0.0, 0.0);
            poisson(mean, |load, p| {
                sum += p;
                first_moment += load as f64 * p;
            });
            assert!((sum - 1.0).abs() < 1e-6, "{mean}: {sum}");
            assert!((first_moment - mean).abs() < 1e-4 * mean.max(1.0), "{mean}: {first_moment}");
        }
    }

    #[test]
    fn parquet_sizes() {
        // The specification's table: 10.5 bits per key for 1%, 16.9 for 0.1%.
        let fpr = |bits| blocked_fpr_at(blocked::BlockShape::of::<256, 32, 8>(), 256.0 / bits);
        assert!((0.0095..0.0105).contains(&fpr(10.5)), "{}", fpr(10.5));
        assert!((0.00095..0.00105).contains(&fpr(16.9)), "{}", fpr(16.9));
    }

    #[test]
    fn the_occupancy_distribution_agrees_with_the_closed_forms() {
        for hashes in [1, 2] {
            let mut closed = Occupancy::new(64, hashes);
            let mut stepped = Occupancy { distribution: vec![0.0; 65], ..Occupancy::new(64, hashes) };
            stepped.distribution[0] = 1.0;
            for load in [0, 1, 2, 5, 17, 40] {
                for _ in stepped.load * hashes..load * hashes {
                    for set in (1..=64).rev() {
                        stepped.distribution[set] = stepped.distribution[set] * (set as f64 / 64.0)
                            + stepped.distribution[set - 1] * (1.0 - (set as f64 - 1.0) / 64.0);
                    }
                    stepped.distribution[0] = 0.0;
                }
                stepped.load = load;
                let by_steps: f64 = stepped
                    .distribution
                    .iter()
                    .enumerate()
                    .map(|(set, p)| p * (set as f64 / 64.0).powi(hashes as i32))
                    .sum();
                assert!((closed.hit(load) - by_steps).abs() < 1e-9, "{hashes} {load}");
            }
        }
    }

    #[test]
    fn fill_is_as_predicted() {
        let keys: Vec<u64> = (0..20_000).collect();
        let near = |(predicted, found): (f64, f64)| assert!((predicted - found).abs() < 0.005, "{predicted} {found}");
        for bits in [2.0, 10.0, 30.0] {
            let split = crate::SplitBlockBloom::builder(20_000).bits_per_key(bits).build_from(&keys).unwrap();
            near((split.predicted_fill(20_000), split.fill_ratio()));
            near((split.view().predicted_fill(0), 0.0));
            let blocked = crate::BlockedBloom::builder(20_000).bits_per_key(bits).hashes(5).build_from(&keys).unwrap();
            near((blocked.predicted_fill(20_000), blocked.fill_ratio()));
        }
        let rao = crate::RaoBloom::builder(20_000).build_from(&keys).unwrap();
        near((rao.predicted_fill(20_000), rao.fill_ratio()));
    }

    #[test]
    fn filters_are_worth_building_up_to_a_rate() {
        for bytes in [32, 1000, 4096, 1 << 20, 1 << 36, u64::MAX] {
            let blocks = (bytes / 32).min(split_block::MAX_BLOCKS);
            let most = worthwhile_keys(bytes);
            assert!(worth_building(1, bytes) && worth_building(most, bytes) && !worth_building(most + 1, bytes));
            assert!(split_block_fpr(blocks, most) <= WORTHWHILE_FPR, "{bytes}");
            assert!(split_block_fpr(blocks, most + most / 100 + 1) > WORTHWHILE_FPR, "{bytes}");
            assert!(!worth_building(0, bytes) && !worth_building(u64::MAX, bytes));
        }
        assert!(!worth_building(1, 0) && !worth_building(1, 31));
        let bits_per_key = 8.0 * 1024.0 * 1024.0 / worthwhile_keys(1 << 20) as f64;
        assert!((4.0..5.0).contains(&bits_per_key), "{bits_per_key}");
    }

    #[test]
    fn means_invert() {
        for (block, word, k) in [(64, 64, 5), (256, 32, 8), (512, 64, 11), (1024, 32, 3)] {
            let shape = blocked::BlockShape::new(block, word, k).unwrap();
            let mean = blocked_mean_at_fpr(shape, 0.01);
            assert!((blocked_fpr_at(shape, mean) - 0.01).abs() < 1e-6);
            let fill = blocked_fill(shape, mean);
            assert!((blocked_mean_at_fill(shape, fill) - mean).abs() < 1e-6 * mean);
        }
        assert!((rao_query_fpr(rao_bucket_fpr(0.01, 2), 2) - 0.01).abs() < 1e-12);
    }
}
