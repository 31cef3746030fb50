//! False-positive rates: fixed keys and seeds, stated bounds.

use warpset_bloom::cpu::Bloom;
use warpset_bloom::{
    BlockShape, BlockedBloom, BlockedLayout, BucketShape, Builder, FirstLevel, Insert, Layout, RaoBloom, RaoLayout,
    SplitBlockBloom, SplitBlockLayout, rates,
};

/// Measures with as many samples as give 4,000 expected hits, at most `most`.
///
/// The bound: 10% of theory, as promised, plus three standard deviations of the count.
fn assert_near<L: Layout>(filter: &Bloom<L>, expected: f64, most: u64) {
    let samples = ((4_000.0 / expected) as u64).min(most);
    let measured = filter.measured_fpr(samples, 0xfeed);
    let bound = 0.10 * expected + 3.0 * (expected / samples as f64).sqrt();
    assert!((measured - expected).abs() <= bound, "{filter:?}: {measured} instead of {expected}");
    // The rate that the bits themselves imply.
    let estimated = filter.fpr();
    assert!((measured - estimated).abs() <= bound, "{filter:?}: {measured}, by its bits {estimated}");
}

fn fill<L: Layout>(filter: &mut Bloom<L>, keys: u64, mut insert: impl FnMut(&mut Bloom<L>, &[u64])) {
    for first in (0..keys).step_by(1 << 20) {
        insert(filter, &(first..keys.min(first + (1 << 20))).collect::<Vec<_>>());
    }
    let estimate = filter.estimated_len();
    assert!((estimate - keys as f64).abs() < 0.02 * keys as f64, "{estimate} of {keys}");
}

#[test]
fn split_block_at_every_size() {
    // 1 KiB to 16 MiB at powers of two, and neighbours; 16 bits per key.
    for blocks in [32u64, 33, 1 << 10, 1 << 15, (1 << 15) + 1, 1 << 19] {
        let mut filter = Builder::with_layout(SplitBlockLayout::new(blocks).unwrap()).build().unwrap();
        let keys = blocks * 16;
        fill(&mut filter, keys, |filter, keys| filter.insert_bulk(keys).unwrap());
        if blocks > 1000 {
            assert_near(&filter, filter.expected_fpr(keys), 4_000_000);
        } else {
            // So few blocks have a rate of their own; the bits tell it.
            assert_near(&filter, filter.fpr(), 4_000_000);
        }
    }
}

#[test]
fn blocked_of_every_shape_at_powers_of_two() {
    for (block_bits, word_bits, hashes) in [
        (64, 64, 5),
        (64, 32, 4),
        (128, 64, 8),
        (256, 32, 8),
        (256, 64, 8),
        (256, 64, 5),
        (256, 32, 12),
        (512, 64, 8),
        (512, 64, 3),
        (512, 32, 11),
        (1024, 64, 10),
        (1024, 32, 16),
        (1024, 64, 1),
    ] {
        let shape = BlockShape::new(block_bits, word_bits, hashes).unwrap();
        for log2_bits in [20u32, 22] {
            let blocks = 1u64 << (log2_bits - block_bits.ilog2());
            let mut filter = Builder::with_layout(BlockedLayout::new(blocks, shape, 9).unwrap()).build().unwrap();
            let keys = (1 << log2_bits) / 12;
            fill(&mut filter, keys, |filter, keys| filter.insert_bulk(keys).unwrap());
            assert_near(&filter, filter.expected_fpr(keys), 2_000_000);
        }
    }
}

#[test]
fn blocked_filters_of_kilobytes_on_average() {
    // 4 KiB and 32 KiB: so few blocks that each filter has a rate of its own, whose mean is the theory's.
    for (block_bits, word_bits, hashes) in [(64, 64, 5), (256, 32, 8), (512, 64, 8), (1024, 32, 11)] {
        let shape = BlockShape::new(block_bits, word_bits, hashes).unwrap();
        for (log2_bits, filters) in [(15u32, 64u64), (18, 16)] {
            let blocks = 1u64 << (log2_bits - block_bits.ilog2());
            let keys: Vec<u64> = (0..(1 << log2_bits) / 12).collect();
            let (mut measured, mut estimated, mut expected) = (0.0, 0.0, 0.0);
            for seed in 0..filters {
                let mut filter =
                    Builder::with_layout(BlockedLayout::new(blocks, shape, seed).unwrap()).build().unwrap();
                filter.insert_bulk(&keys).unwrap();
                measured += filter.measured_fpr(1_500_000 / filters, !seed) / filters as f64;
                estimated += filter.fpr() / filters as f64;
                expected += filter.expected_fpr(keys.len() as u64) / filters as f64;
            }
            let near = |a: f64| (measured - a).abs() <= 0.10 * a;
            assert!(
                near(expected) && near(estimated),
                "{shape:?}: {measured}, not {expected}; by the bits {estimated}"
            );
        }
    }
}

#[test]
fn blocked_filters_of_tens_of_megabytes() {
    for (block_bits, word_bits, hashes) in [(256, 32, 8), (512, 64, 8)] {
        let shape = BlockShape::new(block_bits, word_bits, hashes).unwrap();
        let blocks = (1u64 << 27) / u64::from(block_bits);
        let mut filter = Builder::with_layout(BlockedLayout::new(blocks, shape, 9).unwrap()).build().unwrap();
        let keys = (1 << 27) / 16;
        fill(&mut filter, keys, |filter, keys| filter.insert_bulk(keys).unwrap());
        assert_near(&filter, filter.expected_fpr(keys), 4_000_000);
    }
}

#[test]
fn many_hashes_do_not_repeat_themselves() {
    // Rates of 1e-4 and below come from dense filters with many bits per key.
    for (block_bits, word_bits, hashes, bits_per_key) in [(512, 64, 16, 14), (1024, 64, 24, 12), (512, 32, 32, 10)] {
        let shape = BlockShape::new(block_bits, word_bits, hashes).unwrap();
        let blocks = 1u64 << 14;
        let mut filter = Builder::with_layout(BlockedLayout::new(blocks, shape, 1).unwrap()).build().unwrap();
        let keys = blocks * block_bits as u64 / bits_per_key;
        fill(&mut filter, keys, |filter, keys| filter.insert_bulk(keys).unwrap());
        assert_near(&filter, filter.expected_fpr(keys), 8_000_000);
    }
}

#[test]
fn rao_with_one_and_two_choices() {
    for (words, hashes) in [(1280, 7), (8192, 7), (256, 5)] {
        let shape = BucketShape::new(words, hashes).unwrap();
        let keys_in_bucket = rates::rao_bucket_capacity(shape) as u64 * 9 / 10;
        let buckets = 32;
        let mut rates = [0.0; 2];
        for choices in [1u32, 2] {
            let layout = RaoLayout::new(buckets, shape, choices, FirstLevel::Mixed, 3).unwrap();
            let mut filter = Builder::with_layout(layout).build().unwrap();
            let keys = buckets * keys_in_bucket;
            fill(&mut filter, keys, |filter, keys| filter.insert_bulk(keys).unwrap());
            assert_near(&filter, filter.expected_fpr(keys), 4_000_000);
            rates[choices as usize - 1] = filter.measured_fpr(2_000_000, 1);
        }
        // Table 2: a query that asks two buckets errs almost twice as often.
        let factor = rates[1] / rates[0];
        assert!((1.8..2.1).contains(&factor), "{factor}");
    }
}

#[test]
fn builders_meet_their_rate() {
    for fpr in [0.1, 0.01, 0.001] {
        let keys: Vec<u64> = (0..150_000).collect();
        let n = keys.len() as u64;
        let mut split = SplitBlockBloom::builder(n).fpr(fpr).build().unwrap();
        split.insert_bulk(&keys).unwrap();
        assert_near(&split, fpr, 2_000_000);
        for block_bits in [64, 256, 1024] {
            let mut blocked = BlockedBloom::builder(n).fpr(fpr).block_bits(block_bits).build().unwrap();
            blocked.insert_bulk(&keys).unwrap();
            assert_near(&blocked, fpr, 2_000_000);
        }
        for choices in [1, 2] {
            let mut rao = RaoBloom::builder(n).fpr(fpr).choices(choices).build().unwrap();
            rao.insert_bulk(&keys).unwrap();
            assert!(rao.measured_fpr(1_000_000, 4) <= 1.05 * fpr);
        }
    }
}
