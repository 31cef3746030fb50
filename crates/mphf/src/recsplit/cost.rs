//! Predicted cost of a shape: bits and time per key, from the probabilities of section 4.3.1, and the choice of a shape
//! for a target of space.
//!
//! Section 7.1.1 of the thesis names fitting the fanouts to rotation as future work. With rotation of groups a node of
//! m keys takes `expected / radix^(groups-1)` evaluations of the hash function per key instead of `expected`. So
//! splittings cost little at any fanout with a rotation, and the leaves decide. `docs/recsplit.md` compares this model
//! with measurements.

use super::KindOptions;
use crate::Estimate;
use crate::elias_fano::log_stride;
use warpset_core::recsplit::{Method, Node, TreeShape};

/// The most trials of a splitting that gains nothing from groups.
const VECTORS_TRIED: f64 = 100.0;
/// Lanes of the vectors in the model.
const LANES: f64 = 16.0;
// The following constants were fitted to the measured times of 37 shapes (least squares of relative errors), and
// reproduce them within 20 %. `docs/log/recsplit.md` describes the method, and how to repeat it.

/// Nanoseconds for the trial hashes of one key in all lanes, and their use.
const HASH: f64 = 2.6;
/// [`HASH`] in a splitting in more than two parts by brute force: counts of many children take two words.
const HASH_MULTIWAY: f64 = 4.6;
/// Nanoseconds for matching the rotations of one trial without collisions, for 2 to 6 groups.
const FIT: [f64; 7] = [0.0, 0.0, 23.0, 29.0, 56.0, 120.0, 520.0];
/// Nanoseconds for comparing the counts of one combination of rotations in all lanes.
const COMBINATION: f64 = 1.85;
/// Nanoseconds per node, and per key of a splitting that moves to its child.
const NODE: f64 = 15.5;
const MOVE: f64 = 4.5;
/// Nanoseconds per key outside of trees, and per bucket.
const SORT: f64 = 13.5;
const BUCKET: f64 = 22.0;

/// Nanoseconds per key on an H200, and per nanosecond of a core: within 30 % of eight measured shapes from leaf 5 to 23
/// with rotation of groups, 0.295 to 15.1 ns.
const DEVICE_KEY: f64 = 0.1;
const DEVICE_SHARE: f64 = 0.0042;
/// Bits, hashes and time of a whole subtree.
#[derive(Clone, Copy, Default)]
struct Sums {
    bits: f64,
    hashes: f64,
    brute_force: f64,
    time: f64,
    nodes: f64,
}

impl Estimate {
    /// Predicts the cost of functions of a shape and an expected bucket size.
    pub fn of(shape: &TreeShape, bucket_size: u32) -> Self {
        Self::from_subtrees(&subtrees(shape, bucket_size), bucket_size)
    }

    /// Computes [`Estimate::of`] from the subtrees of that bucket size or of a larger one.
    fn from_subtrees(sums: &[Sums], bucket_size: u32) -> Self {
        let mean = f64::from(bucket_size);
        let spread = mean.sqrt();
        // Bucket sizes follow a Poisson distribution.
        let (mut total, mut weights, mut weighed_keys) = (Sums::default(), 0.0, 0.0);
        let mut log_weight = -mean;
        for (keys, sum) in sums.iter().enumerate().take(largest(bucket_size) + 1) {
            if keys > 0 {
                log_weight += (mean / keys as f64).ln();
            }
            let weight = log_weight.exp();
            weights += weight;
            weighed_keys += weight * keys as f64;
            total.bits += weight * sum.bits;
            total.hashes += weight * sum.hashes;
            total.brute_force += weight * sum.brute_force;
            total.nodes += weight * sum.nodes;
            total.time += weight * sum.time;
        }
        let per_key = 1.0 / weighed_keys;
        // Two Elias-Fano lists: of keys above the least of a bucket, and of bits above the line, as measured; and two
        // numbers of 16 bits per stride.
        let above_least = (4.5 * spread).min(mean).max(1.0);
        let above_line = (3.6 * (total.nodes / weights).sqrt() - 2.0).max(1.5);
        let jumps = 32.0 / f64::from(1 << log_stride(bucket_size));
        let lists = 4.0 + above_least.log2() + above_line.log2() + jumps;
        let time = total.time * per_key + SORT + BUCKET / mean;
        Self {
            device_nanoseconds_per_key: DEVICE_KEY + DEVICE_SHARE * time,
            device_nanoseconds: 0.0,
            bits_per_key: total.bits * per_key + lists / mean,
            hashes_per_key: total.hashes * per_key,
            brute_force_share: total.brute_force / total.hashes.max(1.0),
            nanoseconds_per_key: time,
        }
    }
}

/// Returns the keys in the largest bucket with a relevant probability.
fn largest(bucket_size: u32) -> usize {
    let mean = f64::from(bucket_size);
    (mean + 4.0 * mean.sqrt()) as usize + 4
}

/// Computes the costs of the trees of buckets, by number of keys, up to the largest.
fn subtrees(shape: &TreeShape, bucket_size: u32) -> Vec<Sums> {
    let largest = largest(bucket_size);
    let mut table: Vec<Node> = Vec::with_capacity(largest + 1);
    let mut sums: Vec<Sums> = Vec::with_capacity(largest + 1);
    for keys in 0..=largest as u32 {
        let node = shape.node(keys, &table);
        table.push(node);
        let sum = subtree(shape, keys, &node, &sums);
        sums.push(sum);
    }
    sums
}

/// Computes the costs of a node and its whole subtree.
fn subtree(shape: &TreeShape, keys: u32, node: &Node, sums: &[Sums]) -> Sums {
    if node.nodes == 0 {
        return Sums::default();
    }
    let expected = shape.expected_candidates(keys);
    let groups = usize::from(node.groups);
    let trials = expected / f64::from(node.candidates);
    // A Golomb-Rice code of a geometric distribution; plus the measured loss of groups by clustered successes.
    let below = (1.0 - 1.0 / expected).powf((1_u64 << node.golomb) as f64);
    let loss = match groups {
        _ if node.fanout > 0 => 0.0,
        1 => 0.0,
        2 => (1.3 / trials).min(1.0),
        _ => (25.0 / trials).min(1.0),
    };
    let bits = f64::from(node.golomb) + 1.0 / (1.0 - below) + loss;
    let vectors = trials / LANES + 0.5 + 0.5 * (-trials / LANES).exp();
    let hash = if node.fanout > 2 && groups == 1 { HASH_MULTIWAY } else { HASH };
    let mut time = NODE + vectors * hash * f64::from(keys);
    if groups > 1 && node.fanout == 0 {
        // Trials in which no group collides with itself, for groups of equal size.
        let size = f64::from(keys) / groups as f64;
        let free = (0..keys).map(|i| 1.0 - (f64::from(i) % size).floor() / f64::from(keys)).product::<f64>();
        time += trials * free * FIT[groups];
    } else if groups > 1 {
        time += vectors * f64::from(node.candidates) * COMBINATION;
    }
    let hashes = trials.max(1.0) * f64::from(keys);
    let unpacked = node.fanout > 2 && groups == 1 && shape.method() == Method::Grouped && trials > VECTORS_TRIED;
    let brute_force = if unpacked { hashes } else { 0.0 };
    let mut sum = Sums { bits, hashes, brute_force, time, nodes: 1.0 };
    if node.fanout > 0 {
        let (unit, full) = (u32::from(node.unit), u32::from(node.fanout) - 1);
        sum.time += MOVE * f64::from(keys);
        let mut add = |child: &Sums, times: f64| {
            sum.bits += child.bits * times;
            sum.hashes += child.hashes * times;
            sum.brute_force += child.brute_force * times;
            sum.nodes += child.nodes * times;
            sum.time += child.time * times;
        };
        add(&sums[unit as usize], f64::from(full));
        add(&sums[(keys - full * unit) as usize], 1.0);
    }
    sum
}

impl KindOptions {
    /// Sets leaf size, fanouts and method and returns the bucket size, or the fewest reachable bits per key.
    pub(super) fn choose_for_space(&mut self, bits_per_key: f64, time: impl Fn(&Estimate) -> f64) -> Result<u32, f64> {
        /// Fanouts that are best for some target, or nearly.
        const FANOUTS: [(u32, u32); 10] =
            [(3, 2), (4, 1), (4, 2), (4, 3), (4, 4), (5, 1), (5, 3), (5, 4), (6, 3), (6, 4)];
        const BUCKETS: [u32; 10] = [5, 7, 10, 20, 50, 100, 200, 500, 2000, 5000];
        // Time and settings.
        let mut fastest: Option<(f64, [u32; 4])> = None;
        let mut least = f64::INFINITY;
        for leaf in 5..=24 {
            for (first, second) in FANOUTS {
                let Some(shape) = TreeShape::new(leaf, first, second, Method::Grouped) else { continue };
                let subtrees = subtrees(&shape, BUCKETS[BUCKETS.len() - 1]);
                for bucket in BUCKETS {
                    let estimate = Estimate::from_subtrees(&subtrees, bucket);
                    least = least.min(estimate.bits_per_key);
                    let time = time(&estimate);
                    if estimate.bits_per_key <= bits_per_key && fastest.is_none_or(|(fastest, _)| time < fastest) {
                        fastest = Some((time, [leaf, first, second, bucket]));
                    }
                }
            }
        }
        let (_, [leaf, first, second, bucket]) = fastest.ok_or(least)?;
        (self.leaf_size, self.fanouts, self.method) = (leaf, Some((first, second)), Method::Grouped);
        Ok(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, RecSplit};

    #[test]
    fn predicted_space_is_what_is_built() {
        let keys: Vec<u64> = (0..100_000).collect();
        for (leaf, first, second, bucket) in
            [(5, 6, 4, 5), (8, 6, 4, 100), (8, 4, 3, 2000), (12, 6, 4, 500), (15, 4, 4, 2000)]
        {
            for method in [Method::Rotation, Method::Grouped] {
                if method == Method::Rotation && leaf > 8 {
                    continue;
                }
                let builder = RecSplit::builder()
                    .leaf_size(leaf)
                    .fanouts(first.min(4), second.min(3))
                    .bucket_size(bucket)
                    .method(method);
                let predicted = builder.estimate().unwrap().bits_per_key;
                let built = builder.build_from(&keys).unwrap().bits_per_key();
                let tolerance = if bucket < 100 { 0.06 } else { 0.03 };
                assert!((predicted - built).abs() < tolerance, "leaf {leaf}, bucket {bucket}: {predicted} for {built}");
            }
        }
    }

    #[test]
    #[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
    fn predicted_times_are_those_measured() {
        use Method::{Grouped, Rotation};
        // On one core of the host of an H200 (`docs/performance/recsplit.md`).
        for (method, leaf, bucket, measured) in [
            (Rotation, 5, 5, 42.0),
            (Rotation, 8, 100, 144.0),
            (Rotation, 8, 2000, 195.0),
            (Rotation, 11, 7, 142.0),
            (Rotation, 12, 9, 381.0),
            (Rotation, 14, 50, 2588.0),
            (Rotation, 14, 2000, 12_140.0),
            (Rotation, 16, 2000, 186_000.0),
            (Grouped, 5, 5, 37.0),
            (Grouped, 8, 100, 101.0),
            (Grouped, 8, 2000, 129.0),
            (Grouped, 12, 9, 71.0),
            (Grouped, 14, 50, 310.0),
            (Grouped, 16, 2000, 306.0),
            (Grouped, 17, 2000, 558.0),
            (Grouped, 20, 2000, 617.0),
        ] {
            let builder = RecSplit::builder().method(method).leaf_size(leaf).bucket_size(bucket);
            let predicted = builder.estimate().unwrap().nanoseconds_per_key;
            let ratio = predicted / measured;
            assert!((0.8..1.25).contains(&ratio), "{method:?} {leaf} {bucket}: {predicted} for {measured}");
        }
    }

    #[test]
    #[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
    fn predicted_times_on_devices_are_those_measured() {
        // On one H200 (`docs/performance/recsplit.md`).
        for (leaf, (first, second), bucket, measured) in [
            (5, (4, 4), 5, 0.295),
            (8, (6, 4), 100, 0.424),
            (8, (6, 4), 2000, 0.544),
            (16, (4, 4), 2000, 1.23),
            (16, (6, 4), 2000, 1.41),
            (20, (6, 4), 2000, 3.20),
            (21, (6, 4), 5000, 5.12),
            (23, (6, 4), 2000, 15.1),
        ] {
            let builder = RecSplit::builder().leaf_size(leaf).fanouts(first, second).bucket_size(bucket);
            let predicted = builder.estimate().unwrap().device_nanoseconds_per_key;
            let ratio = predicted / measured;
            assert!((0.7..1.4).contains(&ratio), "{leaf} {bucket}: {predicted} for {measured}");
        }
        let estimate = RecSplit::builder().leaf_size(8).bucket_size(100).estimate().unwrap();
        assert!(!estimate.device_pays(10_000, 1) && estimate.device_pays(100_000, 1));
        assert!(!estimate.device_pays(100_000, 16) && estimate.device_pays(10_000_000, 16));
    }

    #[test]
    #[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
    fn brute_force_is_told() {
        let share = |builder: Builder| builder.leaf_size(16).bucket_size(2000).estimate().unwrap().brute_force_share;
        assert_eq!(share(RecSplit::builder()), 0.0);
        assert!(share(RecSplit::builder().fanouts(7, 5)) > 0.9);
        for bits in [1.54, 1.6, 1.8] {
            assert_eq!(RecSplit::builder().for_space(bits).estimate().unwrap().brute_force_share, 0.0);
        }
    }

    #[test]
    #[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
    fn a_target_of_space_is_met() {
        let keys: Vec<u64> = (0..200_000).collect();
        for target in [3.0, 2.4, 1.9, 1.7, 1.62] {
            let function = RecSplit::builder().for_space(target).build_from(&keys).unwrap();
            // Small buckets are estimated less accurately.
            let tolerance = if target > 2.0 { 0.06 } else { 0.02 };
            assert!(function.bits_per_key() < target + tolerance, "{} for {target}", function.bits_per_key());
        }
    }

    #[test]
    #[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
    fn nothing_that_is_as_small_is_much_faster() {
        let chosen = [3.0, 2.2, 1.9, 1.7, 1.58].map(|target| {
            let estimate = RecSplit::builder().for_space(target).estimate().unwrap();
            assert!(estimate.bits_per_key <= target, "{} for {target}", estimate.bits_per_key);
            (target, estimate.nanoseconds_per_key)
        });
        for leaf in [3, 5, 6, 8, 12, 16, 19] {
            for (first, second) in (2..=7).flat_map(|first| (1..=4).map(move |second| (first, second))) {
                let shape = TreeShape::new(leaf, first, second, Method::Grouped).unwrap();
                let subtrees = subtrees(&shape, 1000);
                for bucket in [3, 5, 9, 15, 30, 70, 150, 1000] {
                    let Estimate { bits_per_key, nanoseconds_per_key, .. } = Estimate::from_subtrees(&subtrees, bucket);
                    for (target, time) in chosen {
                        assert!(
                            bits_per_key > target || nanoseconds_per_key > 0.93 * time,
                            "{time} ns for {target}, but leaf {leaf}, fanouts {first} and {second}, bucket {bucket} take \
                             {nanoseconds_per_key}"
                        );
                    }
                }
            }
        }
    }
}
