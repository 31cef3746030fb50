//! Settings of each kind for tests of builds: small trees, so that few keys make all kinds of nodes.

use warpset_core::recsplit::{Method, Remix};

use super::DeviceHashKind;
use crate::{Builder, ConsensusKind, PlacementKind, RecSplitKind, StaticFilter};

/// A kind, for tests.
pub(super) trait TestKind: DeviceHashKind {
    /// Least calls of a progress callback, in a build of a few hundred keys on a device.
    const CALLS: usize;

    /// Returns settings of small trees with this bucket size.
    fn small(bucket_size: u32) -> Builder<Self> {
        Self::small_of(bucket_size)
    }

    /// Returns settings of filters of small trees with this bucket size.
    fn small_filter(bucket_size: u32) -> Builder<Self, StaticFilter<Self>> {
        Self::small_of(bucket_size)
    }

    /// Returns settings of small trees, for functions or filters.
    fn small_of<S>(bucket_size: u32) -> Builder<Self, S>;

    /// Returns settings of all shapes, each with a share of the keys that fit a test.
    fn shapes() -> Vec<(Builder<Self>, f64)>;

    /// Returns settings that are worth testing on CUDA only.
    fn large_shapes() -> Vec<Builder<Self>>;

    /// Returns settings to build 10^8 keys with.
    fn usual_shapes() -> Vec<Builder<Self>>;
}

impl TestKind for RecSplitKind {
    const CALLS: usize = 6;

    fn small_of<S>(bucket_size: u32) -> Builder<Self, S> {
        Builder::new().leaf_size(4).bucket_size(bucket_size)
    }

    fn shapes() -> Vec<(Builder, f64)> {
        let builder = Builder::<Self>::new;
        let method = |method| builder().method(method);
        vec![
            (builder().leaf_size(8).bucket_size(100), 1.0),
            (builder().leaf_size(5).bucket_size(5), 1.0),
            (builder().leaf_size(2).bucket_size(1), 1.0),
            (builder().leaf_size(3).bucket_size(700).fanouts(2, 2), 1.0),
            (builder().leaf_size(6).bucket_size(500).fanouts(3, 1).seed(9), 1.0),
            (method(Method::BruteForce).leaf_size(5).bucket_size(60), 1.0),
            (method(Method::Rotation).leaf_size(7).bucket_size(300), 0.25),
            (method(Method::BruteForce).leaf_size(4).bucket_size(30).remix(Remix::Bits64), 0.25),
            (builder().leaf_size(8).bucket_size(100).load_factor(0.9), 1.0),
            (builder().leaf_size(5).bucket_size(2000).load_factor(0.8), 1.0),
            (builder().keys_per_value(4).bucket_size(200), 1.0),
            (builder().keys_per_value(2).bucket_size(3), 1.0),
        ]
    }

    fn large_shapes() -> Vec<Builder> {
        let builder = Builder::<Self>::new;
        vec![builder().leaf_size(12).bucket_size(2000), builder().leaf_size(8).bucket_size(20_000)]
    }

    fn usual_shapes() -> Vec<Builder> {
        [(5, 5), (8, 100), (8, 2000), (16, 2000)]
            .map(|(leaf_size, bucket_size)| Builder::<Self>::new().leaf_size(leaf_size).bucket_size(bucket_size))
            .into()
    }
}

impl TestKind for ConsensusKind {
    const CALLS: usize = 2;

    fn small_of<S>(bucket_size: u32) -> Builder<Self, S> {
        Builder::new().overhead(0.2).bucket_size(bucket_size)
    }

    fn shapes() -> Vec<(Builder<Self>, f64)> {
        [
            (1.0, 100, 0, 1.0),
            (0.3, 5, 0, 1.0),
            (0.1, 1, 0, 1.0),
            (0.2, 2, 9, 1.0),
            (0.05, 60, 0, 1.0),
            (0.01, 11, 7, 1.0),
            (0.2, 700, 0, 1.0),
            (0.02, 300, 1, 0.5),
            (0.001, 40, 0, 0.2),
        ]
        .map(|(overhead, bucket_size, seed, share)| {
            (Builder::new().overhead(overhead).bucket_size(bucket_size).seed(seed), share)
        })
        .into()
    }

    fn large_shapes() -> Vec<Builder<Self>> {
        [(0.05, 2400), (0.02, 4800), (0.3, 20_000), (0.5, 58_000)]
            .map(|(overhead, bucket_size)| Builder::new().overhead(overhead).bucket_size(bucket_size))
            .into()
    }

    fn usual_shapes() -> Vec<Builder<Self>> {
        [(0.2, 150), (0.1, 1200), (0.05, 2400)]
            .map(|(overhead, bucket_size)| Builder::new().overhead(overhead).bucket_size(bucket_size))
            .into()
    }
}

impl TestKind for PlacementKind {
    const CALLS: usize = 2;

    fn small_of<S>(bucket_size: u32) -> Builder<Self, S> {
        Builder::new().bucket_size(bucket_size)
    }

    fn shapes() -> Vec<(Builder<Self>, f64)> {
        [(4.5, 1 << 15), (4.5, 1000), (1.0, 600), (6.0, 90), (4.0, 10), (2.0, 1)]
            .map(|(keys, bucket_size)| (Builder::new().keys_per_seed(keys).bucket_size(bucket_size).seed(3), 1.0))
            .into()
    }

    fn large_shapes() -> Vec<Builder<Self>> {
        [(4.5, 1 << 15), (6.0, 58_000), (1.0, 3000)]
            .map(|(keys, bucket_size)| Builder::new().keys_per_seed(keys).bucket_size(bucket_size))
            .into()
    }

    fn usual_shapes() -> Vec<Builder<Self>> {
        [4.0, 4.5].map(|keys| Builder::new().keys_per_seed(keys)).into()
    }
}
