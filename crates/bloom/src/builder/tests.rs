use super::*;
use crate::{BlockedBloom, Filter, Insert, RaoBloom, SplitBlockBloom};

#[test]
fn every_bad_setting_has_its_error() {
    for fpr in [0.0, 1.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(SplitBlockBuilder::new(10).fpr(fpr).layout(), Err(Error::InvalidFpr { .. })), "{fpr}");
        assert!(matches!(BlockedBuilder::new(10).fpr(fpr).layout(), Err(Error::InvalidFpr { .. })), "{fpr}");
        assert!(matches!(RaoBuilder::new(10).fpr(fpr).layout(), Err(Error::InvalidFpr { .. })), "{fpr}");
    }
    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let result = SplitBlockBuilder::new(10).bits_per_key(bits).layout();
        assert!(matches!(result, Err(Error::InvalidBitsPerKey { .. })), "{bits}");
    }
    assert!(matches!(SplitBlockBuilder::new(u64::MAX).layout(), Err(Error::TooLarge { .. })));
    assert!(matches!(BlockedBuilder::new(u64::MAX).layout(), Err(Error::TooLarge { .. })));
    assert!(matches!(RaoBuilder::new(u64::MAX).layout(), Err(Error::TooLarge { .. })));
    assert!(matches!(SplitBlockBuilder::new(1).bits_per_key(1e300).layout(), Err(Error::TooLarge { .. })));
    assert!(matches!(SplitBlockBuilder::new(1).fpr(1e-300).layout(), Err(Error::UnreachableFpr { .. })));
    assert!(matches!(RaoBuilder::new(1).fpr(1e-30).layout(), Err(Error::UnreachableFpr { .. })));
    assert!(matches!(BlockedBuilder::new(1).block_bits(96).layout(), Err(Error::InvalidShape { .. })));
    assert!(matches!(BlockedBuilder::new(1).hashes(0).layout(), Err(Error::InvalidShape { .. })));
    assert!(matches!(RaoBuilder::new(1).bucket_words(1).layout(), Err(Error::InvalidBucket { .. })));
    assert!(matches!(RaoBuilder::new(1).hashes(0).layout(), Err(Error::InvalidBucket { .. })));
    assert!(matches!(RaoBuilder::new(1).choices(3).layout(), Err(Error::InvalidChoices { choices: 3 })));
    for load in [0.0, 1.5, f64::NAN] {
        assert!(matches!(RaoBuilder::new(1).load_factor(load).layout(), Err(Error::InvalidLoadFactor { .. })));
    }
    for keys in [1u64 << 49, 1 << 50] {
        // Within the addressing of 2^48 blocks, past every address space: a system that hands out memory before it
        // has any would grant less.
        assert!(matches!(BlockedBuilder::new(keys).build(), Err(Error::OutOfMemory(_))));
    }
}

#[test]
fn errors_do_not_print_hundreds_of_zeros() {
    for fpr in [1e-300, 1e300, -1e-300] {
        for told in [
            SplitBlockBuilder::new(1).fpr(fpr).layout().unwrap_err().to_string(),
            BlockedBuilder::new(1).fpr(fpr).layout().unwrap_err().to_string(),
            RaoBuilder::new(1).fpr(fpr).layout().unwrap_err().to_string(),
            RaoBuilder::new(1).load_factor(1.0 + fpr.abs()).fpr(fpr).layout().unwrap_err().to_string(),
            SplitBlockBuilder::new(1).bits_per_key(-fpr.abs()).layout().unwrap_err().to_string(),
        ] {
            assert!(told.len() < 150 && !told.contains("00000"), "{told}");
        }
    }
}

#[test]
#[cfg_attr(target_arch = "aarch64", ignore = "predictions: nothing of the processor")]
fn the_rate_is_met_and_not_by_far() {
    for fpr in [0.3, 0.05, 0.01, 0.001, 1e-6] {
        for keys in [1000, 1_000_000, 3_000_000_000] {
            let split = SplitBlockBuilder::new(keys).fpr(fpr).layout().unwrap();
            assert!(split.expected_fpr(keys) <= 1.0001 * fpr && split.expected_fpr(keys) > 0.6 * fpr);
            for block_bits in [64, 256, 1024] {
                let blocked = BlockedBuilder::new(keys).fpr(fpr).block_bits(block_bits).layout().unwrap();
                let expected = blocked.expected_fpr(keys);
                assert!(expected <= 1.0001 * fpr && expected > 0.6 * fpr, "{fpr} {keys} {block_bits}: {expected}");
            }
            for choices in [1, 2] {
                let rao = RaoBuilder::new(keys).fpr(fpr).choices(choices).layout().unwrap();
                // Hashes are whole numbers, and buckets are not filled to the brim.
                let expected = rao.expected_fpr(keys);
                assert!(expected <= fpr && expected > 0.2 * fpr, "{fpr} {keys} {choices}: {expected}");
            }
        }
    }
}

#[test]
fn memory_limits() {
    let limit = 1 << 20;
    for keys in [100_000u64, 1_000_000] {
        assert_eq!(4 * SplitBlockBuilder::new(keys).memory_limit(limit).layout().unwrap().words(), limit);
        assert_eq!(4 * BlockedBuilder::new(keys).memory_limit(limit).layout().unwrap().words(), limit);
        assert_eq!(4 * RaoBuilder::new(keys).memory_limit(limit).layout().unwrap().words(), limit);
    }
    let result = SplitBlockBuilder::new(1_000_000).fpr(0.0001).memory_limit(limit).layout();
    assert!(matches!(result, Err(Error::OverMemoryLimit { limit: 1_048_576, keys: 1_000_000, .. })));
    let result = BlockedBuilder::new(1_000_000).bits_per_key(16.0).memory_limit(limit).layout();
    assert!(matches!(result, Err(Error::OverMemoryLimit { .. })));
    assert!(matches!(SplitBlockBuilder::new(1).memory_limit(31).layout(), Err(Error::OverMemoryLimit { .. })));
    assert!(matches!(RaoBuilder::new(1).memory_limit(4).layout(), Err(Error::OverMemoryLimit { .. })));
    let told = |result: Result<SplitBlockLayout, Error>| result.unwrap_err().to_string();
    let builder = SplitBlockBuilder::new(1_000_000).memory_limit(1000);
    assert_eq!(
        told(builder.clone().bits_per_key(16.0).layout()),
        "2000000 bytes are needed for 1000000 keys at 16 bits per key, and the memory limit is 1000: raise it, or ask for less"
    );
    assert!(told(builder.clone().fpr(0.02).layout()).contains("1000000 keys at a false-positive rate of 0.02, and"));
    assert!(told(builder.clone().fpr(1e-12).layout()).contains(" rate of 1e-12, and"));
    assert_eq!(
        told(SplitBlockBuilder::new(1).memory_limit(31).layout()),
        "32 bytes are needed for 1 key in the smallest filter, and the memory limit is 31: raise it, or ask for less"
    );
    let pow2 = SplitBlockBuilder::new(1000).memory_limit(1000).power_of_two(true).layout().unwrap();
    assert_eq!(pow2.blocks(), 16);
}

#[test]
fn any_number_of_keys_gets_a_filter_that_takes_them() {
    for n in [1u64, 2, 3, 10, 100, 5000] {
        let keys: Vec<u64> = (0..n).collect();
        for choices in [1, 2] {
            for builder in [
                RaoBuilder::new(n).choices(choices),
                RaoBuilder::new(n).choices(choices).bits_per_key(12.0),
                RaoBuilder::new(n).choices(choices).bucket_words(16),
            ] {
                let mut filter = builder.build().unwrap();
                filter.insert_bulk(&keys).unwrap();
                assert_eq!(filter.count_contained_bulk(&keys).unwrap(), n as usize);
            }
        }
        assert_eq!(keys.iter().collect::<SplitBlockBloom>().count_contained_bulk(&keys).unwrap(), n as usize);
        assert_eq!(keys.iter().collect::<BlockedBloom>().count_contained_bulk(&keys).unwrap(), n as usize);
        assert_eq!(keys.iter().collect::<RaoBloom>().count_contained_bulk(&keys).unwrap(), n as usize);
    }
}
