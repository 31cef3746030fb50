//! Every way to build a RecSplit function gives the same bits.

use warpset_mphf::{Method, RecSplit, Simd};

fn random(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| (i + 9).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn every_search_gives_the_same_bits() {
    for leaf in 2..=24_u32 {
        for bucket_size in [5, 100, 2000] {
            let keys = random(if leaf < 18 { 4_000 } else { 500 });
            let of = |simd| {
                let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket_size).simd(simd);
                builder.build_from(&keys).unwrap().words().to_vec()
            };
            let expected = of(Simd::Auto);
            assert!(of(Simd::Avx2) == expected, "AVX2, leaf {leaf}, bucket {bucket_size}");
            assert!(of(Simd::Portable) == expected, "portable, leaf {leaf}, bucket {bucket_size}");
            if leaf <= 10 {
                assert!(of(Simd::Sequential) == expected, "sequential, leaf {leaf}, bucket {bucket_size}");
            }
        }
    }
    // Few keys, so that the sequential search gets at the large leaves too.
    for leaf in 11..=24 {
        let keys = random(leaf as usize * if leaf <= 16 { 2 } else { 1 });
        let of = |simd| RecSplit::builder().leaf_size(leaf).simd(simd).build_from(&keys).unwrap().words().to_vec();
        assert!(of(Simd::Sequential) == of(Simd::Auto), "sequential, leaf {leaf}");
    }
}

#[test]
fn every_search_gives_the_same_bits_with_the_thesis_methods() {
    for leaf in 2..=14_u32 {
        for method in [Method::BruteForce, Method::Rotation] {
            for (n, bucket_size) in [(2000, 5), (if leaf < 11 { 500 } else { 50 }, 200)] {
                if leaf > 11 && bucket_size == 5 {
                    continue;
                }
                let keys = random(n);
                let of = |simd| {
                    let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket_size).method(method);
                    builder.simd(simd).build_from(&keys).unwrap().words().to_vec()
                };
                let expected = of(Simd::Auto);
                for simd in [Simd::Avx2, Simd::Portable, Simd::Sequential] {
                    assert!(of(simd) == expected, "{simd:?}, leaf {leaf}, bucket {bucket_size}, {method:?}");
                }
            }
        }
    }
}

#[test]
fn every_fanout_gives_the_same_bits() {
    for first in 2..=6 {
        for second in 1..=4 {
            let keys = random(1000);
            let of = |simd| {
                let builder = RecSplit::builder().leaf_size(5).fanouts(first, second).bucket_size(1000).simd(simd);
                builder.build_from(&keys).unwrap().words().to_vec()
            };
            assert!(of(Simd::Sequential) == of(Simd::Auto), "{first} {second}");
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let keys = random(200_000);
    for bucket_size in [5, 100, 2000] {
        let of = |threads| {
            let builder = RecSplit::builder().leaf_size(6).bucket_size(bucket_size).threads(threads);
            builder.build_from(&keys).unwrap().words().to_vec()
        };
        let one = of(1);
        for threads in [2, 3, 7] {
            assert!(of(threads) == one, "{threads} threads, bucket {bucket_size}");
        }
    }
}
