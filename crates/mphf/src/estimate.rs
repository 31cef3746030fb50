//! What functions are predicted to cost.

/// What a function is predicted to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Bits for each key, of large functions.
    pub bits_per_key: f64,
    /// Evaluations of trial hashes for each key.
    pub hashes_per_key: f64,
    /// Time for each key on one core with AVX-512, in nanoseconds, to compare shapes with each other.
    pub nanoseconds_per_key: f64,
    /// Time for each key of a large function on one H100 or H200, in nanoseconds, from keys to words in its memory.
    pub device_nanoseconds_per_key: f64,
    /// Time on a device that does not depend on the number of keys, in nanoseconds, beside launches: that of one bucket
    /// where each bucket is searched by one warp, else 0.
    pub device_nanoseconds: f64,
    /// The part of the evaluations that are spent in splittings that [`Method::Grouped`](crate::Method::Grouped) has
    /// to search by brute force, because the counts of their children do not fit one word (`docs/recsplit.md`). It
    /// is 0 for the default fanouts and for those that [`Builder::for_space`](crate::Builder::for_space) takes;
    /// where it is not, smaller fanouts build faster.
    pub brute_force_share: f64,
}

/// Nanoseconds that a build on a device takes at least, launches and waits: half a millisecond to two, after its
/// kernels have been loaded.
const DEVICE_CALL: f64 = 2e6;
/// Nanoseconds for each key that comes over the bus.
const BUS: f64 = 0.5;

impl Estimate {
    /// Whether a device is predicted to build a function of `keys` keys in host memory sooner than `threads` threads of
    /// the host.
    pub fn device_pays(&self, keys: u64, threads: usize) -> bool {
        let keys = keys as f64;
        let here = keys * self.nanoseconds_per_key / threads.max(1) as f64;
        here > DEVICE_CALL + self.device_nanoseconds + keys * (self.device_nanoseconds_per_key + BUS)
    }
}
