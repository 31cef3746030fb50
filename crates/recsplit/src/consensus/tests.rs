use super::*;
use crate::ConsensusFilter;

/// Whether the function is one of these keys.
fn is_perfect(function: &Consensus, keys: &[u64]) -> bool {
    let mut seen = vec![false; keys.len()];
    let bulk = function.get_bulk(keys);
    let each = keys
        .iter()
        .zip(bulk)
        .all(|(&key, number)| number == function.get(key) && !std::mem::replace(&mut seen[number as usize], true));
    each && function.len() == keys.len() as u64 && function.values() == function.len()
}

#[test]
fn sizes_and_buckets() {
    for overhead in [0.02, 0.2, 1.0] {
        for bucket_size in [1, 2, 3, 7, 33, 200, 2400] {
            for count in (0..30).chain([63, 64, 65, 100, 333, 2399, 2401, 6000]) {
                let keys: Vec<u64> = (0..count).map(|i| i * 7 + 1).collect();
                let function =
                    Consensus::builder().overhead(overhead).bucket_size(bucket_size).build_from(&keys).unwrap();
                assert!(is_perfect(&function, &keys), "{overhead} {bucket_size} {count}");
            }
        }
    }
}

#[test]
fn all_instructions_and_threads_build_the_same() {
    let keys: Vec<u64> = (0..30_000).collect();
    let build =
        |simd, threads| Consensus::builder().overhead(0.04).simd(simd).threads(threads).build_from(&keys).unwrap();
    let expected = build(Simd::Portable, 1);
    for simd in [Simd::Auto, Simd::Avx2, Simd::Avx512] {
        for threads in [1, 3] {
            assert!(build(simd, threads) == expected, "{simd:?} {threads}");
        }
    }
}

#[test]
fn filters() {
    let keys: Vec<u64> = (0..10_000).collect();
    let filter = ConsensusFilter::builder().width(8).build_from(&keys).unwrap();
    assert!(keys.iter().all(|&key| filter.contains(key)));
    let wrong = (10_000..110_000_u64).filter(|&key| filter.contains(key)).count();
    assert!((300..500).contains(&wrong), "{wrong}");
}
