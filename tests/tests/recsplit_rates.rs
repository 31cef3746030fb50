//! Bits for each key. The bounds are those of the thesis (figure 6.22), or of the measured C++ implementation at the same
//! leaf and bucket sizes, plus 0.01.

use warpset_recsplit::{Builder, Method};

#[test]
fn bits_per_key_of_the_thesis_shapes() {
    let keys: Vec<u64> = (0..300_000_u64).collect();
    // Leaf size, bucket size, bits with brute force, bits with rotation.
    for (leaf, bucket, brute_force, rotation) in [(5, 5, 2.956, 2.99), (8, 100, 1.792, 1.808), (8, 2000, 1.711, 1.727)]
    {
        for (method, bound) in [(Method::BruteForce, brute_force), (Method::Rotation, rotation)] {
            let function = Builder::new().leaf_size(leaf).bucket_size(bucket).method(method).build(&keys).unwrap();
            let bits = function.bits_per_key();
            assert!((bits - bound).abs() < 0.015, "leaf {leaf}, bucket {bucket}, {method:?}: {bits} bits, not {bound}");
        }
    }
}

#[test]
fn bits_per_key_of_the_tuned_shapes() {
    let keys: Vec<u64> = (0..100_000_u64).collect();
    for (leaf, bucket, bound) in [(8, 2000, 1.71), (13, 2000, 1.62), (16, 2000, 1.6)] {
        let bits = Builder::new().leaf_size(leaf).bucket_size(bucket).build(&keys).unwrap().bits_per_key();
        assert!(bits < bound, "leaf {leaf}: {bits} bits");
    }
}
