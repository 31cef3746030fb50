//! Predicted costs of functions.

/// Predicted cost of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Bits per key of large functions.
    pub bits_per_key: f64,
    /// Evaluations of trial hashes per key.
    pub hashes_per_key: f64,
    /// Time per key on one core with AVX-512, in nanoseconds, for comparing shapes with each other.
    pub nanoseconds_per_key: f64,
    /// Time per key of a large function on one H100 or H200, in nanoseconds, from keys to words in its memory; infinite
    /// for kinds that are built on the host only.
    pub device_nanoseconds_per_key: f64,
    /// Time on a device that is independent of the number of keys, in nanoseconds, besides launches: the time of one
    /// bucket if each bucket is searched by one warp, else 0.
    pub device_nanoseconds: f64,
    /// Share of the evaluations in splittings that [`Method::Grouped`](crate::Method::Grouped) has to search by brute
    /// force, because the counts of their children do not fit one word (`docs/recsplit.md`). It is 0 for the default
    /// fanouts and for those of [`Builder::for_space`](crate::Builder::for_space); if it is not, smaller fanouts build
    /// faster.
    pub brute_force_share: f64,
}

/// Least time of a build on a device in nanoseconds, launches and waits: half a millisecond to two, after its kernels
/// have been loaded.
const DEVICE_CALL: f64 = 2e6;
/// Nanoseconds per key that crosses the bus.
const BUS: f64 = 0.5;

impl Estimate {
    /// Whether a device is predicted to build a function of `keys` keys in host memory sooner than `threads` threads of
    /// the host.
    pub fn device_pays(&self, keys: u64, threads: usize) -> bool {
        let keys = keys as f64;
        let here = keys * self.nanoseconds_per_key / threads.max(1) as f64;
        here > DEVICE_CALL + self.on_device(keys) + keys * BUS
    }

    /// Returns the nanoseconds that a device takes for `keys` keys in its memory, without launches.
    pub(crate) fn on_device(&self, keys: f64) -> f64 {
        self.device_nanoseconds + keys * self.device_nanoseconds_per_key
    }
}
