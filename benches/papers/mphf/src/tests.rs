//! Functions built bucket by bucket are the host's, for any schedule; on CUDA too where there is a device.

use warpset_core::hash::mix;
use warpset_gpu::testing::{devices, is_sanitized};
use warpset_mphf::{Error, Method, RecSplit, Remix};

use super::*;

fn keys(n: u64, seed: u64) -> Vec<u64> {
    (0..n).map(|i| mix(i, seed)).collect()
}

#[test]
fn functions_are_the_hosts() {
    let shapes = [(5, 5), (5, 40), (5, 300), (8, 100), (10, 60), (12, 30)];
    for (seed, (leaf, bucket)) in (0..).zip(shapes) {
        for method in [Method::BruteForce, Method::Rotation, Method::Grouped] {
            let remix = if leaf == 10 { Remix::Bits64 } else { Remix::Bits32 };
            let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).method(method).remix(remix);
            let keys = keys(if is_sanitized() { 200 } else { 1000 }, seed);
            let host = builder.build_from(&keys).unwrap();
            for device in devices(seed) {
                let function = builder.on(&device).strategy(PER_BUCKET).build_from(&keys).unwrap();
                assert!(function.to_host().unwrap() == host, "leaf {leaf}, bucket {bucket}, {method:?}");
            }
        }
    }
}

#[test]
fn equal_keys_are_found() {
    for device in devices(9) {
        let mut keys = keys(300, 1);
        keys[17] = keys[3];
        let built = RecSplit::builder().leaf_size(8).on(&device).strategy(PER_BUCKET).build_from(&keys);
        assert!(matches!(built, Err(Error::DuplicateKey { .. })), "{:?}", built.err());
    }
}
