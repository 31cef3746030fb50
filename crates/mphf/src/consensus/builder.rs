//! Settings of Consensus beyond those of all kinds.

use super::cost::{Costs, LEAST_OVERHEAD, MOST_OVERHEAD};
use super::{CodeParameters, Consensus, ConsensusKind, KindOptions};
use crate::{Builder, Error, Estimate, Simd};

impl Consensus {
    /// Returns the default settings for building a function; [`build_from`](crate::Builder::build_from) takes the keys.
    pub fn builder() -> Builder<ConsensusKind> {
        Builder::new()
    }
}

impl<S> Builder<ConsensusKind, S> {
    /// Sets the bits per key of the search beyond the lower bound of 1.4427, 0.001 to 1. Build time is inversely
    /// proportional to it. The positions of buckets take additional bits. Default: 0.05.
    pub fn overhead(mut self, bits_per_key: f64) -> Self {
        self.options.overhead = bits_per_key;
        self
    }

    /// Sets the vector instructions of the search. All give the same function; [`Simd::Sequential`] is taken for
    /// [`Simd::Portable`]. Default: [`Simd::Auto`].
    pub fn simd(mut self, simd: Simd) -> Self {
        self.options.simd = simd;
        self
    }
}

impl Default for KindOptions {
    fn default() -> Self {
        Self { overhead: 0.05, simd: Simd::Auto }
    }
}

impl KindOptions {
    /// Returns the code for these options and this expected number of keys in a bucket.
    pub(super) fn code(&self, bucket_size: u32) -> Result<CodeParameters, Error> {
        if !(LEAST_OVERHEAD..=MOST_OVERHEAD).contains(&self.overhead) {
            let (what, value, allowed) = ("overhead in bits per key", self.overhead, "0.001 to 1");
            return Err(Error::InvalidParameter { what, value, allowed });
        }
        Ok(Costs::new(bucket_size).code(self.overhead))
    }

    /// Sets the overhead and returns the bucket size, or the fewest reachable bits per key.
    pub(super) fn choose_for_space(&mut self, bits_per_key: f64, time: impl Fn(&Estimate) -> f64) -> Result<u32, f64> {
        let all = BUCKETS.map(|bucket_size| {
            let costs = Costs::new(bucket_size);
            // Bits grow with the overhead.
            let (mut low, mut high) = (LEAST_OVERHEAD, MOST_OVERHEAD);
            for _ in 0..16 {
                let middle = 0.5 * (low + high);
                if costs.bits_per_key(costs.code(middle)) <= bits_per_key { low = middle } else { high = middle }
            }
            (costs.estimate(costs.code(low)), low, bucket_size)
        });
        let space = |(estimate, ..): &(Estimate, f64, u32)| estimate.bits_per_key;
        let within = all.iter().filter(|choice| space(choice) <= bits_per_key);
        let fastest = within.min_by(|(a, ..), (b, ..)| time(a).total_cmp(&time(b)));
        let &(_, overhead, bucket_size) = fastest.ok_or_else(|| all.iter().map(space).fold(f64::INFINITY, f64::min))?;
        self.overhead = overhead;
        Ok(bucket_size)
    }
}

/// Expected numbers of keys in a bucket that are best for some target, or nearly. Their leaves have 4.7 keys on
/// average, so few buckets have leaves of half the size.
const BUCKETS: [u32; 6] = [150, 300, 600, 1200, 2400, 4800];
