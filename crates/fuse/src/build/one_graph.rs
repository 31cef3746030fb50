//! Building one graph: keys are hashed, brought together by their first slots and added to these on all threads; one
//! thread peels.

use warpset_base::parallel;
use warpset_core::fuse::Graph;

use super::Failure;
use super::item::{Item, in_slots};
use super::partition::{Hashes, MOST_PARTS, Partitioned};
use super::peel::Peeler;
use crate::Layout;
use crate::width::Slot;

/// Returns the base-2 logarithm of the number of slots per part: few enough parts; if several threads add keys, at
/// least the number of slots that a key spans.
fn part_bits(graph: Graph, slots: u64, is_shared: bool) -> u32 {
    let mut bits = if is_shared { graph.segment_bits + 2 } else { graph.segment_bits.max(1) - 1 };
    while slots.div_ceil(1 << bits) > MOST_PARTS as u64 {
        bits += 1;
    }
    bits
}

/// Fills `words` with the contents of `keys > 0` keys with these hashes.
pub(super) fn build<const ARITY: usize, T: Item, F: Slot>(
    layout: &Layout,
    keys: usize,
    hash: Hashes<'_, T>,
    words: &mut [u64],
    are_distinct: bool,
) -> Result<(), Failure> {
    let (graph, slots) = (layout.graph, layout.slots());
    let is_shared = rayon::current_num_threads() > 1 && slots >> (graph.segment_bits + 2) > 2;
    let bits = part_bits(graph, slots, is_shared);
    let parts = slots.div_ceil(1 << bits) as usize;
    let hashes = Partitioned::new(keys, hash, parts, |hash| (graph.first(hash) >> bits) as usize)?;
    let mut peeler = Peeler::default();
    peeler.clear(slots, keys as u64)?;
    if !is_shared {
        peeler.add::<ARITY>(graph, hashes.all().iter().copied());
    } else {
        // The keys of a part have slots in it and in the next one: first all even parts, then all odd ones.
        for odd in 0..2 {
            let two = peeler.parts(odd << bits, 2 << bits);
            let overflown = parallel::map(two.zip((odd..parts).step_by(2)), |(mut slots, part)| {
                slots.add::<ARITY>(graph, hashes.part(part))
            });
            if overflown.contains(&true) {
                peeler.overflow();
            }
        }
    }
    if !peeler.peel::<ARITY>(graph, keys as u64) {
        if !are_distinct {
            (0..parts).try_for_each(|part| super::expect_different(&mut hashes.part(part).to_vec()))?;
        }
        return Err(Failure::Unlucky);
    }
    drop(hashes);
    let assign = |slots: &mut [F]| peeler.assign::<ARITY, F>(graph, layout.value_bits, slots);
    Ok(in_slots(layout, words, &mut Vec::new(), assign)?)
}
