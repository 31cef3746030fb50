//! Answers and counts are those of the arithmetic of all backends, for runs anywhere.

use warpset_core::bits::Portable;
use warpset_core::hash::mix;
use warpset_core::quotient::rank_select::{Blocks, fields};

use super::Runs;

/// Returns quotients with runs and clusters of every length.
fn quotient(shape: u64, i: u64, quotients: u64) -> u64 {
    let random = mix(i, shape);
    match shape % 4 {
        0 => random % quotients,
        // One run is long, with others after and before it.
        1 if i % 2 == 0 => quotients / 3,
        1 => (quotients / 3 + random % 150).saturating_sub(20).min(quotients - 1),
        // Items reach into the overflow region.
        2 => quotients - 1 - (random % 40).min(quotients - 1),
        // Each quotient occurs twice, up to some place.
        _ => (i / 2).min(quotients - 1),
    }
}

#[test]
fn answers_are_those_of_blocks() {
    let blocks = 9;
    let quotients = 64 * 5;
    for r in 1..=61u32 {
        for shape in [r as u64, r as u64 + 1] {
            let n = [200, 260, 300][(r + shape as u32) as usize % 3];
            let mut words = vec![0u64; (blocks * (r as u64 + 3) + 1) as usize];
            let remainder = |i: u64| (mix(i, 99) % 7) & (!0 >> (64 - r));
            for i in 0..n {
                let mut slots = Blocks::new(&mut words[..], blocks, r);
                slots.insert(quotient(shape, i, quotients), remainder(i), true, Portable);
            }
            let words = &words[..];
            let slots = Blocks::new(words, blocks, r);
            let runs = Runs::<false, false, _>::new(words, blocks, r, fields(r));
            for at in 0..quotients {
                for remainder in (0..7u64).chain([!0]).map(|remainder| remainder & (!0 >> (64 - r))) {
                    let wanted = slots.contains(at, remainder, Portable);
                    assert_eq!(runs.contains(at, remainder), wanted, "r = {r}, shape {shape}: {at} {remainder}");
                    assert_eq!(runs.count(at, remainder), slots.count(at, remainder, Portable), "{r} {shape} {at}");
                    if r % 2 == 1 {
                        let paired = Runs::<true, false, _>::new(words, blocks, r, fields(r));
                        assert_eq!(paired.contains(at, remainder), wanted);
                    }
                }
            }
        }
    }
}
