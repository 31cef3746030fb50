//! Predicted cost of a code: bits and time per key.
//!
//! Let `s` be the probability that a task, entered with some seed, is solved together with all tasks after it. Each of
//! its `2^b` values solves it with probability `p`, and then the rest with `s'`: `s = 1 - (1 - p s')^(2^b)`, with `s =
//! 1` after the last task. The search enters a task until this happens, `1 / s` times on average, so all of its work
//! follows from shares and entropies. `docs/consensus.md` compares this with measurements.

use super::budget::{Entropies, PARTS, leaf_cost, leaf_share, split_cost, split_share};
use super::{CodeParameters, ROOT_BITS, SLACKS};
use crate::Estimate;
use crate::elias_fano::log_stride;
use warpset_core::consensus::tree::depth;

/// The least overhead that builders accept.
pub(super) const LEAST_OVERHEAD: f64 = 0.001;
/// The largest overhead that builders accept.
pub(super) const MOST_OVERHEAD: f64 = 1.0;
/// Average number of solutions among the numbers at the beginning of a bucket: `e^-40` of all buckets have none.
const SOLUTIONS: f64 = 40.0;
/// Nanoseconds per key outside of the search, and per unit of cost.
const SORT: f64 = 36.0;
const UNIT: f64 = 1.25;
/// Cost on an H100, in nanoseconds of the search on one core: per key of many buckets, and for a bucket with a warp of
/// its own.
const DEVICE_KEY: f64 = 0.14;
const DEVICE_SHARE: f64 = 0.0134;
const DEVICE_BUCKET: f64 = 45.0;

/// Tasks of one size on one level of a bucket.
struct Same {
    count: u32,
    keys: u32,
    entropy: f64,
    share: f64,
    cost: f64,
}

/// Lists the tasks of a bucket of `keys` keys, in order except for the two sizes of a level.
fn tasks(entropies: &Entropies, keys: u32, slack: u32) -> Vec<Same> {
    let depth = depth(keys);
    let mut tasks = Vec::new();
    for level in 0..=depth {
        let smaller = keys >> level;
        let larger = keys - (smaller << level);
        for (count, keys) in [((1 << level) - larger, smaller), (larger, smaller + 1)] {
            if count == 0 || keys < 2 {
                continue;
            }
            let (entropy, share, cost) = if level == depth {
                (entropies.of_all(keys), leaf_share(entropies, keys, slack), leaf_cost(keys))
            } else {
                (entropies.of_split(keys), split_share(entropies, keys, slack), split_cost(keys))
            };
            tasks.push(Same { count, keys, entropy, share: f64::from(share) / PARTS, cost });
        }
    }
    tasks
}

/// Enters all tasks from the last one on, with the probabilities to go on to the end. Calls `visit` with each task and
/// its probability.
fn survive(tasks: &[Same], mut visit: impl FnMut(&Same, f64)) -> f64 {
    let mut after = 1.0_f64;
    for task in tasks.iter().rev() {
        for _ in 0..task.count {
            after = -((-(-task.entropy).exp2() * after).ln_1p() * task.share.exp2()).exp_m1();
            visit(task, after);
        }
    }
    after
}

/// Costs that follow from the expected number of keys in a bucket alone.
pub(super) struct Costs {
    bucket_size: u32,
    entropies: Entropies,
    /// Numbers of keys in buckets, and the share of all buckets with each; Poisson-distributed.
    sizes: Vec<(u32, f64)>,
}

impl Costs {
    pub(super) fn new(bucket_size: u32) -> Self {
        let mean = f64::from(bucket_size);
        let most = (mean + 4.5 * mean.sqrt()) as u32 + 4;
        let least = (mean - 4.5 * mean.sqrt()).max(0.0) as u32;
        let (mut log_share, mut sizes) = (-mean, Vec::new());
        for keys in 0..=most {
            if keys > 0 {
                log_share += (mean / f64::from(keys)).ln();
            }
            if keys >= least {
                sizes.push((keys, log_share.exp()));
            }
        }
        Self { bucket_size, entropies: Entropies::new(most + 1), sizes }
    }

    /// Returns the keys of an average bucket.
    fn keys(&self) -> u32 {
        self.bucket_size.max(2)
    }

    /// Returns the code with this overhead.
    pub(super) fn code(&self, overhead: f64) -> CodeParameters {
        let keys = self.keys();
        let spare = |slack| -> f64 {
            let spare = |task: &Same| f64::from(task.count) * (task.share - task.entropy);
            tasks(&self.entropies, keys, slack).iter().map(spare).sum()
        };
        // Finds the largest slack with no more overhead.
        let (mut low, mut high) = (*SLACKS.start(), *SLACKS.end());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if spare(middle) <= overhead * f64::from(keys) { low = middle } else { high = middle - 1 }
        }
        let survival = survive(&tasks(&self.entropies, keys, low), |_, _| ());
        let root_bits = ((SOLUTIONS / survival).log2().ceil() as u32).clamp(*ROOT_BITS.start(), *ROOT_BITS.end());
        CodeParameters { slack: low, root_bits }
    }

    /// Returns the bits per key of large functions.
    pub(super) fn bits_per_key(&self, code: CodeParameters) -> f64 {
        let codes: Vec<(f64, f64, f64)> = self
            .sizes
            .iter()
            .map(|&(size, share)| {
                let tasks = tasks(&self.entropies, size, code.slack);
                let own: f64 = tasks.iter().map(|task| f64::from(task.count) * task.share).sum();
                // Half a bit is lost at the end, on average.
                (share, f64::from(size), if size > 1 { own - 0.5 + f64::from(code.root_bits) } else { 0.0 })
            })
            .collect();
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            codes.iter().map(|&(share, keys, bits)| share * of(keys, bits)).sum()
        };
        let (all, keys, bits) = (sum(&|_, _| 1.0), sum(&|keys, _| keys), sum(&|_, bits| bits));
        // Lengths of codes follow from numbers of keys. They are further from a line if leaves of some buckets are half
        // as large as those of others.
        let (mean, mean_bits) = (keys / all, bits / all);
        let slope = sum(&|keys, bits| (keys - mean) * (bits - mean_bits)) / sum(&|keys, _| (keys - mean).powi(2));
        let off = sum(&|keys, bits| (bits - mean_bits - slope * (keys - mean)).powi(2)) / all;
        let above_line = off.sqrt().max(1.5);
        let above_least = (4.5 * mean.sqrt()).min(mean).max(1.0);
        let lists = 4.0 + above_least.log2() + above_line.log2() + 32.0 / f64::from(1 << log_stride(self.bucket_size));
        (bits + all * lists) / keys
    }

    /// Predicts the cost of functions of this code.
    pub(super) fn estimate(&self, code: CodeParameters) -> Estimate {
        let (mut time, mut hashes, keys) = (0.0, 0.0, self.keys());
        survive(&tasks(&self.entropies, keys, code.slack), |task, survival| {
            time += task.cost / survival;
            // A visit ends with the first solution, if there is one.
            hashes += f64::from(task.keys) * task.entropy.exp2().min(task.share.exp2()) / survival;
        });
        let mean = f64::from(keys);
        let search = UNIT * time;
        Estimate {
            bits_per_key: self.bits_per_key(code),
            hashes_per_key: hashes / mean,
            nanoseconds_per_key: search / mean + SORT,
            device_nanoseconds_per_key: DEVICE_KEY + DEVICE_SHARE * search / mean,
            device_nanoseconds: DEVICE_BUCKET * search,
            brute_force_share: 0.0,
        }
    }
}
