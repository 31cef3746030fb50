//! Bits of each task.
//!
//! A splitting of `m` keys into `k` and `m - k`, by a threshold of `k / m`, succeeds with probability `C(m, k) (k/m)^k
//! ((m-k)/m)^(m-k)`, and a leaf with `m! / m^m`. With `F(m) = log2(m^m / m!)` a splitting has the entropy `F(m) - F(k)
//! - F(m - k)` and a leaf `F(m)`. The sum telescopes: a bucket of `s` keys has `F(s)` whatever its tree, which is
//! 1.4427 bits per key, less half of `log2(2 pi s)`.
//!
//! A task's share is its entropy plus some *slack*: with a slack of `e` bits the search has to find about `1 / (1.39
//! e)` solutions of the task before it. If each visit of a task takes `c` nanoseconds, the sum of all `c / e` is least
//! for a given sum of all `e` if `e` is proportional to the root of `c`.
//!
//! All operations here have one correct result on all machines, since lookups depend on it.

use warpset_core::consensus::tree::{FRACTION, LEAF, Row, depth};

/// The most slack of one task, in parts of a bit; more hardly makes the search faster.
const MOST_SLACK: f64 = 3.0 * PARTS;
/// Parts of a bit.
pub(super) const PARTS: f64 = (1 << FRACTION) as f64;
/// Unit of the slack in headers: parts of a bit, for a task of weight 1.
pub(super) const SLACK_UNIT: f64 = 1.0 / 65536.0;

/// Cost of a visit of a leaf by number of keys, proportional to the time with AVX-512. Its root is the weight of the
/// task's slack.
const LEAF_COST: [f64; LEAF as usize + 1] = [0.0, 2.0, 8.0, 9.0, 10.0, 14.0];
/// Cost of a visit of a splitting: a constant, and a factor of the root of its number of keys cubed.
const SPLIT_COST: [f64; 2] = [16.0, 0.06];

/// Values of `F` up to some number of keys.
#[derive(Clone, Debug)]
pub(crate) struct Entropies(Vec<f64>);

impl Entropies {
    pub(crate) fn new(largest: u32) -> Self {
        let mut entropies = Vec::with_capacity(largest as usize + 1);
        entropies.push(0.0);
        // Logarithms of `keys` and of its factorial.
        let (mut log, mut factorial) = (0.0, 0.0);
        for keys in 1..=largest {
            let keys = f64::from(keys);
            entropies.push(keys * log - factorial);
            // log2((keys + 1) / keys) = 2 / ln(2) * artanh(z)
            let z = 1.0 / (2.0 * keys + 1.0);
            let (square, mut power, mut sum) = (z * z, z, 0.0);
            for odd in [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0, 21.0, 23.0, 25.0] {
                sum += power / odd;
                power *= square;
            }
            log += 2.0 * std::f64::consts::LOG2_E * sum;
            factorial += log;
        }
        Self(entropies)
    }

    /// Returns the entropy of a splitting.
    pub(crate) fn of_split(&self, keys: u32) -> f64 {
        let left = keys / 2;
        self.0[keys as usize] - self.0[left as usize] - self.0[(keys - left) as usize]
    }

    /// Returns the entropy of a leaf, or of all tasks of a bucket.
    pub(crate) fn of_all(&self, keys: u32) -> f64 {
        self.0[keys as usize]
    }
}

/// Returns the cost of a visit of a splitting.
pub(super) fn split_cost(keys: u32) -> f64 {
    let keys = f64::from(keys);
    SPLIT_COST[0] + SPLIT_COST[1] * keys * keys.sqrt()
}

/// Returns the cost of a visit of a leaf.
pub(super) fn leaf_cost(keys: u32) -> f64 {
    LEAF_COST[keys as usize]
}

/// Returns the share of a task with this entropy and this cost, in parts of a bit.
fn share(entropy: f64, cost: f64, slack: u32) -> u32 {
    (entropy * PARTS + (f64::from(slack) * SLACK_UNIT * PARTS * cost.sqrt()).min(MOST_SLACK)) as u32
}

/// Returns the share of a splitting, in parts of a bit.
pub(crate) fn split_share(entropies: &Entropies, keys: u32, slack: u32) -> u32 {
    if keys < 2 { 0 } else { share(entropies.of_split(keys), split_cost(keys), slack) }
}

/// Returns the share of a leaf, in parts of a bit.
pub(crate) fn leaf_share(entropies: &Entropies, keys: u32, slack: u32) -> u32 {
    if keys < 2 { 0 } else { share(entropies.of_all(keys), leaf_cost(keys), slack) }
}

/// Makes the row of levels with nodes of `keys` keys or one more, with these shares.
fn row(keys: u32, shares: [u32; 2]) -> Row {
    let per_key = shares[1].wrapping_sub(shares[0]);
    let odd = u64::from(keys | 1);
    // Half of all hashes less `k / (2 k + 1)` of them.
    let below = (1_u64 << 31) - ((odd / 2) << 32) / odd;
    Row { per_node: shares[0].wrapping_sub(keys.wrapping_mul(per_key)), per_key, odd: below as u32 }
}

/// Rows of all levels in buckets of up to some number of keys, as words: splittings by number of keys, then leaves.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    words: Vec<[u64; 2]>,
    /// Rows of splittings.
    pub(crate) splits: u32,
}

impl Rows {
    /// Makes the rows for buckets of up to `largest` keys.
    pub(crate) fn new(largest: u32, slack: u32) -> Self {
        let entropies = Entropies::new(largest.max(LEAF) + 1);
        let mut next = split_share(&entropies, 0, slack);
        let splits = (0..=largest).map(|keys| {
            let this = std::mem::replace(&mut next, split_share(&entropies, keys + 1, slack));
            row(keys, [this, next])
        });
        // No node of a level of leaves has more than `LEAF` keys.
        let leaf = |keys: u32| leaf_share(&entropies, keys.min(LEAF), slack);
        let leaves = (0..=LEAF).map(|keys| row(keys, [leaf(keys), leaf(keys + 1)]));
        Self { words: splits.chain(leaves).map(Row::to_words).collect(), splits: largest + 1 }
    }

    /// Returns the words of all rows.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[[u64; 2]] {
        &self.words
    }

    /// Returns the row of a level of leaves or of splittings; the smaller of them have `keys` keys.
    pub(crate) fn of(&self, keys: u32, is_leaf: bool) -> Row {
        let leaves = if is_leaf { self.splits } else { 0 };
        Row::from_words(self.words[(leaves + keys) as usize])
    }

    /// Returns the bits of all tasks of a bucket of `keys` keys, in parts of a bit.
    pub(crate) fn bucket(&self, keys: u32) -> u32 {
        let depth = depth(keys);
        (0..=depth).fold(0_u32, |sum, level| sum.wrapping_add(self.of(keys >> level, level == depth).all(level, keys)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies_are_those_of_the_formula() {
        let entropies = Entropies::new(3000);
        let mut factorial = 0.0;
        for keys in 1..=3000_u32 {
            factorial += f64::from(keys).log2();
            let expected = f64::from(keys) * f64::from(keys).log2() - factorial;
            assert!((entropies.of_all(keys) - expected).abs() < 1e-8 * expected.max(1.0), "{keys}");
        }
        assert!((entropies.of_split(2) - 1.0).abs() < 1e-12);
        assert!((entropies.of_split(4) - (16.0_f64 / 6.0).log2()).abs() < 1e-12);
        assert!((entropies.of_split(3) - (9.0_f64 / 4.0).log2()).abs() < 1e-12);
    }

    #[test]
    fn a_bucket_takes_its_entropy_and_the_slack() {
        let (rows, entropies) = (Rows::new(3000, 0), Entropies::new(3000));
        for keys in [2_u32, 5, 6, 11, 100, 777, 2000, 3000] {
            let (bits, entropy) = (f64::from(rows.bucket(keys)) / PARTS, entropies.of_all(keys));
            // Each of its shares is rounded down by less than a part.
            assert!(bits <= entropy && bits > entropy - f64::from(keys) / PARTS, "{keys}: {bits} for {entropy}");
            assert!(Rows::new(keys, 1000).bucket(keys) > rows.bucket(keys));
        }
    }
}
