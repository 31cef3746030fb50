//! Blocks against a sorted vector, laid out slot by slot.

extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::bits::{ByHalves, Portable, write_field};
use crate::hash::finalise;
use crate::quotient::standard::place;

/// Writes ascending items bit by bit. Returns `None` if the last slot would be used.
fn laid_out(items: &[(u64, u64)], blocks: u64, r: u32) -> Option<Vec<u64>> {
    let mut words = vec![0u64; (blocks * (r as u64 + 3)) as usize];
    let block_words = r as u64 + 3;
    let mut free = 0;
    for (i, &(quotient, remainder)) in items.iter().enumerate() {
        let slot = place(free, quotient);
        free = slot + 1;
        if free >= 64 * blocks {
            return None;
        }
        words[((quotient / 64) * block_words + OCCUPIEDS) as usize] |= 1 << (quotient % 64);
        if items.get(i + 1).is_none_or(|next| next.0 != quotient) {
            words[((slot / 64) * block_words + RUNENDS) as usize] |= 1 << (slot % 64);
        }
        for bit in 0..r as u64 {
            let at = slot % 64 * r as u64 + bit;
            words[(slot / 64 * block_words + 3 + at / 64) as usize] |= (remainder >> bit & 1) << (at % 64);
        }
    }
    for block in 0..blocks {
        let mut free = 0;
        for &(quotient, _) in items.iter().take_while(|item| item.0 < 64 * block) {
            free = place(free, quotient) + 1;
        }
        words[(block * block_words + OFFSET) as usize] = free.saturating_sub(64 * block);
    }
    Some(words)
}

/// Makes random changes, and compares each with the layout of the expected items.
fn changes(r: u32, blocks: u64, crowd: u32, duplicates: bool, mut state: u64, steps: usize) {
    let mut items: Vec<(u64, u64)> = Vec::new();
    let mut words = vec![0u64; (blocks * (r as u64 + 3)) as usize];
    for _ in 0..steps {
        state = finalise(state + 1);
        let quotient = (state >> 20) % (((64 * blocks) >> crowd).max(1));
        let remainder = (state & 3 | (state & 4) << 50) & lowest(r);
        let item = (quotient, remainder);
        let mut wanted = items.clone();
        let at = wanted.partition_point(|&other| other < item);
        let there = wanted.get(at) == Some(&item);
        let mut slots = Blocks::new(&mut words[..], blocks, r);
        let removes = state >> 60 < 5;
        let changed = if removes {
            if there {
                wanted.remove(at);
            }
            slots.remove(quotient, remainder, Portable)
        } else {
            if !there || duplicates {
                wanted.insert(at, item);
            }
            slots.insert(quotient, remainder, duplicates, ByHalves)
        };
        match laid_out(&wanted, blocks, r) {
            None => assert_eq!(changed, Changed::Outside),
            Some(same) => {
                assert_eq!(changed, if wanted == items { Changed::Unchanged } else { Changed::Done });
                assert!(words == same, "{item:?} {removes} r = {r}");
                items = wanted;
            }
        }
    }
    let slots = Blocks::new(&words[..], blocks, r);
    for quotient in 0..64 * blocks {
        for remainder in [0, 1, 2, 3, (1 << 52) & lowest(r), lowest(r)].map(|remainder| remainder & lowest(r)) {
            let copies = items.iter().filter(|&&item| item == (quotient, remainder)).count() as u64;
            assert_eq!(slots.count(quotient, remainder, Portable), copies);
            assert_eq!(slots.contains(quotient, remainder, ByHalves), copies > 0);
        }
    }
    let mut free = 0;
    let mut used = vec![0u64; blocks as usize];
    for &(quotient, _) in &items {
        let slot = place(free, quotient);
        free = slot + 1;
        used[(slot / 64) as usize] |= 1 << (slot % 64);
    }
    for block in 0..blocks {
        assert_eq!(slots.used(block), used[block as usize]);
    }
    for slot in 0..64 * blocks {
        let empty = (slot..64 * blocks).find(|&slot| used[(slot / 64) as usize] >> (slot % 64) & 1 == 0);
        assert_eq!(slots.unused_from(slot, Portable), empty.unwrap_or(64 * blocks));
    }
}

#[test]
fn changes_are_those_of_a_sorted_vector() {
    let steps = if cfg!(miri) { 40 } else { 500 };
    for (i, r) in [1, 2, 5, 7, 13, 31, 32, 61].into_iter().enumerate() {
        for (blocks, crowd) in [(1, 0), (2, 1), (4, 0), (4, 2), (5, 8)] {
            changes(r, blocks, crowd, i % 2 == 0, i as u64 * 77, steps);
            changes(r, blocks, crowd, i % 2 == 1, i as u64 * 78, steps);
        }
    }
}

/// Checks a run over many blocks, shifted runs after it, and lookups and removals in between.
#[test]
fn offsets_of_many_blocks() {
    let (r, blocks) = (4, 40);
    let mut items: Vec<(u64, u64)> = (0..1000).map(|i| (70, i / 100)).collect();
    items.extend((71..1200u64).step_by(3).flat_map(|quotient| [(quotient, 1), (quotient, 9)]));
    let mut words = laid_out(&items, blocks, r).unwrap();
    assert!(Blocks::new(&words[..], blocks, r).metadata(2).offset > 900);
    for step in [1, 7, 100] {
        for at in (0..items.len()).rev().step_by(step * 13) {
            let item = items.remove(at);
            let mut slots = Blocks::new(&mut words[..], blocks, r);
            assert_eq!(slots.remove(item.0, item.1, Portable), Changed::Done);
            assert!(words == laid_out(&items, blocks, r).unwrap());
        }
    }
    let slots = Blocks::new(&words[..], blocks, r);
    assert!(items.iter().all(|&(quotient, remainder)| slots.contains(quotient, remainder, Portable)));
    assert!(!slots.contains(70, 12, Portable) && !slots.contains(72, 1, Portable));
}

#[test]
fn damaged_words_give_answers_and_nothing_worse() {
    let mut state = 1;
    for density in 0..6 {
        let mut words: Vec<u64> = (0..8 * 8)
            .map(|i| {
                state = finalise(state);
                match density {
                    0 => state,
                    1 => state | state.rotate_left(17),
                    2 => state & state.rotate_left(17),
                    3 if i % 8 == 0 => state % 700,
                    3 => state,
                    4 => 0,
                    _ => !0,
                }
            })
            .collect();
        for quotient in 0..512 {
            let slots = Blocks::new(&words[..], 8, 5);
            let _ = (slots.contains(quotient, 3, Portable), slots.count(quotient, 3, ByHalves));
            let _ = (slots.used(quotient / 64), slots.unused_from(quotient, Portable));
            let mut slots = Blocks::new(&mut words[..], 8, 5);
            let _ = slots.insert(quotient, quotient % 32, true, Portable);
            let _ = slots.remove(quotient, quotient % 32, Portable);
        }
    }
}

/// Sets everything that others may change while changes are made within `begin..end`: bits of slots and quotients, and
/// offsets.
fn disturb(words: &mut [u64], blocks: u64, r: u32, begin: u64, end: u64, mut state: u64) {
    let block_words = r as u64 + 3;
    for block in 0..blocks {
        let first = block * block_words;
        for slot in 64 * block..64 * block + 64 {
            if (begin..end).contains(&slot) {
                continue;
            }
            state = finalise(state + 1);
            for which in [OCCUPIEDS, RUNENDS] {
                let word = &mut words[(first + which) as usize];
                *word = *word & !(1 << (slot % 64)) | (state >> which & 1) << (slot % 64);
            }
            write_field(words, 64 * (first + 3) + slot % 64 * r as u64, r, state >> 3 & lowest(r));
        }
        if 64 * block < begin || 64 * block >= end {
            state = finalise(state + 1);
            words[first as usize] = state >> 58;
        }
    }
}

/// Checks that changes between two slots neither depend on anything outside nor touch it.
#[test]
fn changes_within_a_supercluster_are_its_own() {
    let (r, blocks) = (5, 6u64);
    let mut state = 3;
    let mut filled = [0; 3];
    for round in 0..if cfg!(miri) { 3 } else { 300 } {
        let mut items: Vec<(u64, u64)> = (0..[150, 250, 300][round % 3])
            .map(|_| {
                state = finalise(state + 1);
                (state % (64 * (blocks - 1)), state >> 40 & 31)
            })
            .collect();
        items.sort_unstable();
        let Some(mut words) = laid_out(&items, blocks, r) else { continue };
        for step in 0..20 {
            state = finalise(state + 1);
            let removes = state >> 50 & 1 != 0;
            let slots = Blocks::new(&words[..], blocks, r);
            let (quotient, remainder) = match removes && !items.is_empty() {
                true => items[(state % items.len() as u64) as usize],
                false => (state % (64 * (blocks - 1)), state >> 40 & 31),
            };
            let next = quotient + 1 + (state >> 20) % 60;
            let begin_of = |quotient| match removes {
                true => slots.cluster_start(quotient),
                false => slots.supercluster_start(quotient),
            };
            let begin = begin_of(quotient);
            // The end is another group of the batch, or the end of all.
            let end = match begin_of(next.min(64 * blocks - 1)) {
                end if end > quotient && state >> 30 & 1 != 0 => end,
                _ => 64 * blocks - 1,
            };
            // Insertions go on until the group is full.
            for more in 0..if removes { 1 } else { 6 } {
                let item = (quotient, (remainder + more) & 31);
                let mut disturbed = words.clone();
                disturb(&mut disturbed, blocks, r, begin, end, state + more);
                let before = disturbed.clone();
                let mut alone = words.clone();
                let mut outcomes = [&mut alone, &mut disturbed].map(|words| {
                    let mut slots = Blocks::new(&mut words[..], blocks, r).within(begin, end);
                    match removes {
                        true => slots.remove(item.0, item.1, ByHalves),
                        false => slots.insert(item.0, item.1, true, Portable),
                    }
                });
                outcomes.sort_by_key(|&outcome| outcome as u8);
                assert_eq!(outcomes[0], outcomes[1], "round {round}, {step}");
                // Everything outside is unchanged; everything inside changed in the same way.
                for index in 0..words.len() {
                    let (ours, theirs) = (alone[index] ^ words[index], disturbed[index] ^ before[index]);
                    assert_eq!(ours, theirs, "round {round}, {step}: word {index}");
                }
                filled[outcomes[0] as usize] += 1;
                if outcomes[0] != Changed::Done {
                    break;
                }
                match removes {
                    true => drop(items.remove(items.binary_search(&item).unwrap())),
                    false => items.insert(items.partition_point(|&other| other < item), item),
                }
                words = laid_out(&items, blocks, r).unwrap();
                assert!(words == alone);
            }
        }
    }
    let [done, unchanged, outside] = filled;
    assert!(cfg!(miri) || done > 1000 && unchanged == 0 && outside > 100, "{filled:?}");
}
