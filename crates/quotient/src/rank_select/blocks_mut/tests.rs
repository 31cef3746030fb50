//! Changes compared with those of `warpset_core`, word by word.

use warpset_core::bits::Portable;
use warpset_core::hash::finalise;
use warpset_core::quotient::rank_select::counters::Recounted;
use warpset_core::quotient::rank_select::{Blocks, Changed as Core};

use super::*;

/// Widths of remainders, and crowding of quotients: runs reach over blocks, or clusters do.
const CROWDS: [(u32, u32); 12] =
    [(1, 0), (2, 2), (5, 0), (5, 1), (5, 3), (7, 3), (13, 0), (13, 4), (31, 1), (32, 0), (60, 2), (61, 1)];
const BLOCKS: u64 = 7;
const STEPS: usize = if cfg!(miri) { 40 } else { 3000 };

/// Returns a random fingerprint that crowds, and whether to insert it; insertions are more frequent while `held` is
/// small.
fn next(state: &mut u64, (width, crowd): (u32, u32), held: u64) -> (u64, u64, bool) {
    *state = finalise(*state + 1);
    // The last block is mostly left alone.
    let quotients = 64 * (BLOCKS - 2);
    let quotient = ((*state >> 20) % (quotients >> crowd) + (*state >> 12) % 2 * 160) % quotients;
    let remainder = (*state & 3 | (*state & 4) << 50) & lowest(width);
    (quotient, remainder, *state >> 61 < if held < 42 * (BLOCKS - 1) { 5 } else { 2 })
}

/// Compares each change with the general one; no words change where it reaches the last block.
#[test]
fn changes_are_the_general_ones() {
    let mut state = 5;
    for (width, crowd) in CROWDS {
        let split = Split::new(1, width).unwrap();
        let mut words = vec![0u64; BLOCKS as usize * (width as usize + 3)];
        let (mut near_ones, mut held, duplicates) = (0, 0, width % 2 == 0);
        for _ in 0..STEPS {
            let (quotient, remainder, inserts) = next(&mut state, (width, crowd), held);
            let mut general = words.clone();
            let mut slots = Blocks::new(&mut general[..], BLOCKS, width);
            let before = words.clone();
            let mut blocks = BlocksMut::<false>::new(&mut words, split);
            let (near, wanted) = if inserts {
                let near = blocks.insert(quotient, remainder, duplicates, Portable);
                (near, slots.insert(quotient, remainder, duplicates, Portable))
            } else {
                let near = blocks.remove(quotient, remainder, Portable);
                (near, slots.remove(quotient, remainder, Portable))
            };
            if wanted == Core::Done {
                held = if inserts { held + 1 } else { held - 1 };
            }
            match near {
                None => {
                    assert!(words == before);
                    words = general;
                }
                Some(changed) => {
                    near_ones += 1;
                    assert_eq!(changed == Changed::Done, wanted == Core::Done);
                    assert!(words == general, "{width} {quotient} {remainder}");
                }
            }
        }
        assert!(near_ones > STEPS / 2, "{width}: {near_ones}");
    }
}

#[test]
fn counts_are_the_general_ones() {
    let mut state = 6;
    for (width, crowd) in CROWDS {
        let split = Split::new(1, width).unwrap();
        let mut words = vec![0u64; BLOCKS as usize * (width as usize + 4)];
        let (mut near_ones, mut held) = (0, 0);
        for i in 0..STEPS {
            let (quotient, remainder, inserts) = next(&mut state, (width, crowd), held);
            // Most steps have a few copies, some many.
            let copies = 1 + (state >> 33 & if i % 8 == 0 { lowest(width) } else { 1 });
            let mut general = words.clone();
            let mut slots_of = Blocks::counted(&mut general[..], BLOCKS, width);
            let before = words.clone();
            let mut blocks = BlocksMut::<true>::new(&mut words, split);
            let (near, wanted) = if inserts {
                let near = blocks.add(quotient, remainder, copies, Portable);
                (near, slots_of.add(quotient, remainder, copies, Portable))
            } else {
                let near = blocks.subtract(quotient, remainder, copies, Portable);
                (near, slots_of.subtract(quotient, remainder, copies, Portable))
            };
            let wanted = match wanted {
                Recounted::Done { before, after } => {
                    let [before, after] = [before, after].map(|count| [count, slots(count, width)]);
                    held = held + after[1] - before[1];
                    let [copies, slots] = [0, 1].map(|i| after[i].abs_diff(before[i]));
                    Some(Counts { copies, slots })
                }
                _ => None,
            };
            if near.is_some() {
                near_ones += 1;
                assert_eq!(near, wanted);
                assert!(words == general, "{width} {quotient} {remainder} {copies}");
            } else {
                assert!(words == before);
                words = general;
            }
        }
        assert!(near_ones > STEPS / 3, "{width}: {near_ones}");
    }
}
