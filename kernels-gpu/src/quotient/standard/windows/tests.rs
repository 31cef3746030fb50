//! Answers are those of the definition on single slots, for windows that end anywhere.

use warpset_core::hash::mix;
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{Appender, ByteSlots, Container, PackedSlots, bytes_of_slot};
use warpset_core::quotient::standard::{self, item_metadata, place};

use super::{PackedWindows, contains, fields, in_single_bytes, in_wide_slots};
use crate::quotient::memory::Pairs;

impl Pairs for &[u64] {
    fn pair(&self, index: u64) -> [u64; 2] {
        assert!(index % 2 == 0);
        [self[index as usize], self[index as usize + 1]]
    }
}

/// Returns fingerprints with runs and clusters of every length.
fn fingerprints(split: Split, most: u64, seed: u64) -> Vec<u64> {
    let (quotients, last) = (split.quotients(), (1 << split.remainder_bits) - 1);
    let random = |i: u64| mix(i, seed);
    let mut all: Vec<u64> = match seed % 4 {
        // They are anywhere.
        0 => (0..most).map(|i| split.fingerprint(random(i))).collect(),
        // One run is long, with others after and before it.
        1 => {
            let run = random(0) % quotients;
            let near = |i| (run + random(i) % 150).saturating_sub(20).min(quotients - 1);
            let quotient = |i: u64| if i < most / 2 { run } else { near(i) };
            (0..most).map(|i| split.join(quotient(i), random(i + most) & last)).collect()
        }
        // Items reach into the overflow region.
        2 => (0..most)
            .map(|i| split.join(quotients - 1 - (random(i) % 40).min(quotients - 1), random(!i) & last))
            .collect(),
        // Each quotient occurs twice, up to some place.
        _ => (0..most).map(|i| split.join((i / 2).min(quotients - 1), random(i) & last)).collect(),
    };
    all.sort_unstable();
    all
}

fn build(split: Split, container: Container, fingerprints: &[u64], slots: u64) -> Vec<u64> {
    let mut words = vec![0; (slots / 64 * container.block_words(split.remainder_bits)) as usize];
    let mut appender = Appender::new(&mut words[..], container, split.remainder_bits);
    let (mut free, mut last) = (0, None);
    for &fingerprint in fingerprints {
        let quotient = split.quotient(fingerprint);
        let slot = place(free, quotient);
        appender.occupy(quotient);
        appender.item(slot, item_metadata(slot, quotient, last == Some(quotient)), split.remainder(fingerprint));
        (free, last) = (slot + 1, Some(quotient));
    }
    appender.finish();
    words
}

fn in_windows(words: &[u64], container: Container, slots: u64, split: Split, quotient: u64, remainder: u64) -> bool {
    let bits = split.remainder_bits;
    match (container, bytes_of_slot(bits)) {
        (Container::Packed, _) => {
            let fields = fields(bits);
            let found = contains(&PackedWindows::<false, _>::new(words, slots, bits, fields), quotient, remainder);
            if bits % 2 == 1 {
                let paired = PackedWindows::<true, _>::new(words, slots, bits, fields);
                assert_eq!(contains(&paired, quotient, remainder), found);
            }
            found
        }
        (Container::Bytes, 1) => in_single_bytes(words, slots, quotient, remainder),
        (Container::Bytes, _) => in_wide_slots(words, slots, bits, quotient, remainder),
    }
}

#[test]
fn answers_are_the_definitions() {
    for remainder_bits in 1..=61 {
        for seed in 0..8 {
            let quotient_bits =
                [3, 6, 8, 9][(seed / 2 + u64::from(remainder_bits)) as usize % 4].min(64 - remainder_bits);
            let split = Split::new(quotient_bits, remainder_bits).unwrap();
            let quotients = split.quotients();
            let most = [quotients / 2, quotients * 7 / 10, quotients * 95 / 100, quotients - 1]
                [(seed / 4 + seed) as usize % 4];
            let stored = fingerprints(split, most.max(1), seed);
            let slots = (quotients + most + 2).next_multiple_of(64);
            for container in [Container::Packed, Container::Bytes] {
                let words = build(split, container, &stored, slots);
                let by_definition = |quotient, remainder| match container {
                    Container::Packed => {
                        standard::contains(&PackedSlots::new(&words[..], slots, remainder_bits), quotient, remainder)
                    }
                    Container::Bytes => {
                        standard::contains(&ByteSlots::new(&words[..], slots, remainder_bits), quotient, remainder)
                    }
                };
                let others = (0..2 * quotients).map(|i| split.fingerprint(mix(i, seed + 99)));
                // Neighbours of stored fingerprints include others of the same run.
                let near = stored.iter().flat_map(|&f| [f, f ^ 1, f.saturating_sub(1)]);
                for fingerprint in near.chain(others) {
                    let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
                    let expected = stored.binary_search(&fingerprint).is_ok();
                    assert_eq!(by_definition(quotient, remainder), expected);
                    assert_eq!(
                        in_windows(&words, container, slots, split, quotient, remainder),
                        expected,
                        "{container:?}, {split:?}, seed {seed}, {quotient} {remainder}"
                    );
                }
            }
        }
    }
}

#[test]
fn fields_fill_a_word() {
    assert_eq!(
        (fields(1), fields(5), fields(32), fields(33), fields(61)),
        (!0, 0x0084_2108_4210_8421 & 0x0fff_ffff_ffff_ffff, 1 << 32 | 1, 1, 1)
    );
}
