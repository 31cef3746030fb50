//! False-positive rates of quotient filters: fixed keys and seeds, stated bounds.

use warpset::quotient::{Builder, Container, Duplicates, RankSelectBuilder, SlotKind, StandardBuilder};
use warpset_base::filter::{Filter, Remove};

/// Checks filters at loads up to 0.95: no false negative; the rate within four standard deviations of load times 2^-r.
#[test]
fn rates_are_load_times_two_to_the_minus_r() {
    rates(|q, r| StandardBuilder::with_bits(q, r).container(Container::Packed));
    rates(|q, r| StandardBuilder::with_bits(q, r).container(Container::Bytes));
    rates(RankSelectBuilder::with_bits);
}

fn rates<S: SlotKind>(with_bits: impl Fn(u32, u32) -> Builder<S>) {
    for (q, r) in [(18, 5), (17, 8), (16, 13)] {
        for load in [0.1, 0.5, 0.75, 0.9, 0.95] {
            let n = (load * 2f64.powi(q as i32)) as u64;
            let keys: Vec<u64> = (0..n).collect();
            let builder = with_bits(q, r).max_load(0.95);
            let filter = builder.build_from(&keys).unwrap();
            assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len(), "false negatives");

            // The stored fingerprints give the rate exactly; it is near the expected rate for that number of keys.
            let expected = filter.expected_fpr(n);
            assert!(expected <= load * 2f64.powi(-(r as i32)));
            let deviation = (n as f64).sqrt() / 2f64.powi((q + r) as i32);
            assert!((filter.fpr() - expected).abs() <= 4.0 * deviation, "{} {expected}", filter.fpr());

            let samples = ((5_000.0 / expected) as u64).min(250_000);
            let measured = filter.measured_fpr(samples, 0xfeed);
            let deviation = (filter.fpr() / samples as f64).sqrt();
            assert!((measured - filter.fpr()).abs() <= 4.0 * deviation, "{filter:?}: {measured}");
        }
    }
}

/// Compares bytes per item at a load of 0.95 with the paper's remainders: its Table I has 0.94, 2.0 and 3.0 for 2.125
/// bits of metadata per slot; three bits per slot make that 1.05, 2.11 and 3.16.
#[test]
fn bytes_per_item_of_full_rank_and_select_filters() {
    for (r, least, most, papers) in [(5, 1.05, 1.06, 0.94), (13, 2.10, 2.12, 2.0), (21, 3.15, 3.17, 3.0)] {
        let builder = RankSelectBuilder::with_bits(18, r).max_load(0.95);
        let keys: Vec<u64> = (0..builder.layout().unwrap().limit()).collect();
        // In a set, keys that share a fingerprint would take one slot.
        let filter = builder.duplicates(Duplicates::Kept).build_from(&keys).unwrap();
        let bytes = filter.bits_per_key() / 8.0;
        assert!((least..most).contains(&bytes), "{bytes}");
        assert!((filter.load_factor() - 0.95).abs() < 1e-4 && bytes < 1.13 * papers);
    }
}

/// Checks that the fullest filters spill over the last quotient by less than the overflow region holds, for any seed.
#[test]
fn hashed_keys_do_not_fill_the_overflow_region() {
    for seed in 0..200 {
        let builder = StandardBuilder::with_bits(12, 9).max_load(0.99).seed(seed).duplicates(Duplicates::Kept);
        let keys: Vec<u64> = (0..builder.layout().unwrap().limit()).collect();
        let filter = builder.build_from(&keys).unwrap();
        assert_eq!(filter.len(), keys.len() as u64);
    }
}

#[test]
fn removal_of_half_leaves_the_rate_of_the_other_half() {
    let keys: Vec<u64> = (0..900_000).collect();
    let builder = StandardBuilder::with_bits(20, 7).duplicates(Duplicates::Kept);
    let mut filter = builder.build_from(&keys).unwrap();
    assert_eq!(filter.remove_bulk(&keys[..450_000]).unwrap(), 450_000);
    assert_eq!(filter.count_contained_bulk(&keys[450_000..]).unwrap(), 450_000);
    assert!(filter == builder.build_from(&keys[450_000..]).unwrap());
    let measured = filter.measured_fpr(2_000_000, 3);
    assert!((measured / filter.fpr() - 1.0).abs() < 0.05, "{measured} {}", filter.fpr());
}
