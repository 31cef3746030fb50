//! Programs from one source text on the host and on a device: only the builder differs.

use std::error::Error;

use warpset_base::filter::{Count, Filter, Insert, Remove, TestAndInsert};
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset_fuse::{BinaryFuse8, BinaryFuse16, BinaryFuse32};
use warpset_gpu::Device;
use warpset_gpu::emulator::Config;
use warpset_mphf::{RecSplitKind, StaticFilter};
use warpset_quotient::{Duplicates, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset_sequence::{SequenceFilter, Threshold};
use warpset_static::StaticSet;

const KEYS: [u64; 5] = [2, 3, 5, 7, 11];

/// Pastes lookups in a filter of `KEYS`.
macro_rules! asks {
    ($filter:ident) => {
        let mut answers: Vec<bool> = $filter.contains_bulk(&KEYS)?;
        assert_eq!(answers, [true; 5]);
        $filter.contains_bulk_into(&KEYS, &mut answers)?;
        let mut bytes = [0u8; 5];
        $filter.contains_bytes_bulk_into(&KEYS, &mut bytes)?;
        assert!(answers == [true; 5] && bytes == [1; 5]);
        assert_eq!($filter.contains_bitmap_bulk(&KEYS)?.count_ones(), 5);
        assert_eq!($filter.count_contained_bulk(&KEYS)?, 5);
        assert!($filter.any_contained_bulk(&[KEYS[4]])? && !$filter.any_contained_bulk::<u64>(&[])?);
        let mut kept = KEYS.to_vec();
        $filter.retain_contained_bulk(&mut kept)?;
        assert_eq!(kept, KEYS);
        assert_eq!(
            $filter.contains_if_bulk(&KEYS, &[true, false, true, false, true])?,
            [true, false, true, false, true]
        );
    };
}

/// Pastes the life of a filter that takes keys.
macro_rules! inserts {
    ($filter:ident) => {
        $filter.insert_bulk(&KEYS[..3])?;
        assert_eq!($filter.test_and_insert_bulk(&KEYS)?, [false, false, false, true, true]);
        let mut new = [true; 5];
        $filter.test_and_insert_bulk_into(&KEYS, &mut new)?;
        assert_eq!(new, [false; 5]);
        asks!($filter);
        $filter.clear()?;
        assert_eq!($filter.count_contained_bulk(&KEYS)?, 0);
        $filter.insert_if_bulk(&KEYS, &[true, false, false, false, false])?;
        assert!($filter.any_contained_bulk(&KEYS)?);
    };
}

/// Compiles a body with a builder on the host and with the same builder on the emulator.
macro_rules! on_both {
    ($($test:ident: $builder:expr, |$from:ident| $body:block)*) => {$(
        #[test]
        fn $test() -> Result<(), Box<dyn Error>> {
            {
                let $from = $builder;
                $body
            }
            let device = Device::emulator(Config::seeded(1));
            let $from = $builder.on(&device);
            $body
            Ok(())
        }
    )*};
}

on_both! {
    split_block_bloom: SplitBlockBloom::builder(1000).fpr(1e-4), |builder| {
        let mut filter = builder.build()?;
        inserts!(filter);
    }
    blocked_bloom: BlockedBloom::builder(1000).fpr(1e-4), |builder| {
        let mut filter = builder.build()?;
        inserts!(filter);
    }
    rao_bloom: RaoBloom::builder(1000).fpr(1e-4), |builder| {
        let mut filter = builder.build()?;
        inserts!(filter);
    }
    standard_quotient_filter: StandardQuotientFilter::builder(1000).fpr(1e-6), |builder| {
        let mut filter = builder.build()?;
        inserts!(filter);
    }
    rank_select_quotient_filter: RankSelectQuotientFilter::builder(1000).fpr(1e-6), |builder| {
        let mut filter = builder.build()?;
        inserts!(filter);
    }
    multisets: StandardQuotientFilter::builder(1000).fpr(1e-6).duplicates(Duplicates::Kept), |builder| {
        let mut filter = builder.build_from(&KEYS)?;
        let stored: u64 = filter.insert_bulk(&KEYS[..2])?;
        assert_eq!((stored, filter.count_bulk(&KEYS)?), (2, vec![2, 2, 1, 1, 1]));
        let removed: u64 = filter.remove_bulk(&KEYS)? + filter.remove_if_bulk(&KEYS[..1], &[true])?;
        let mut counts = [0; 5];
        filter.count_bulk_into(&KEYS, &mut counts)?;
        assert_eq!((removed, counts), (6, [0, 1, 0, 0, 0]));
    }
    binary_fuse_8: BinaryFuse8::builder(), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    binary_fuse_16: BinaryFuse16::builder(), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    binary_fuse_32: BinaryFuse32::builder(), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    static_filter: StaticFilter::builder(), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    recsplit_filter: StaticFilter::builder_of_kind(RecSplitKind), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    static_set: StaticSet::<u64>::builder(), |builder| {
        let filter = builder.build_from(&KEYS)?;
        asks!(filter);
    }
    sequence_filter: SequenceFilter::builder(1000).k(11), |builder| {
        let sequences = ["ACGTTGCAACGTACGTTACAG", "TTTTTTTTTTTTTTTTT"];
        let mut filter = builder.build()?;
        filter.insert_bulk(&sequences)?;
        assert_eq!(filter.contains_windows_bulk(&sequences)?[0].count_ones(), 11);
        assert_eq!(filter.count_bulk(&sequences)?[1].found, 7);
        assert_eq!(filter.matches_bulk(&sequences, Threshold::at_least(8))?.iter().collect::<Vec<_>>(), [true, false]);
    }
}
