//! Build of one shard: the pilots of its groups, then its buckets.

use warpset_base::processor::prefetch;
use warpset_core::static_set::{BUCKET_WORDS, MOST_IN_GROUP, PILOTS, Shape, hash, key, place};

use super::Element;
use crate::{Layout, StaticKey, Value};

/// Most keys of a group that is placed by several pilots at once.
const FEW: usize = 5;

/// Memory that a thread reuses from shard to shard.
#[derive(Default)]
pub(super) struct Scratch {
    /// Start of each group, and the end of the last one.
    begins: Vec<u32>,
    /// Groups with keys, largest first, those of one size by number.
    order: Vec<u32>,
    /// Keys in each bucket.
    counts: Vec<u8>,
    /// Keys written to each bucket.
    written: Vec<u8>,
}

/// Parts of a shard to write.
pub(super) struct Shard<'a> {
    pub(super) number: u64,
    pub(super) pilots: &'a mut [u8],
    pub(super) keys: &'a mut [u64],
    pub(super) values: &'a mut [u64],
}

impl Shard<'_> {
    /// Places the shard's elements, ascending by hash; returns whether it could.
    pub(super) fn place<K: StaticKey, V: Value>(
        self,
        layout: &Layout<K, V>,
        elements: &[Element<V>],
        scratch: &mut Scratch,
    ) -> bool {
        let shape = layout.shape();
        (0..self.keys.len()).step_by(BUCKET_WORDS).for_each(|line| prefetch(self.keys, line));
        if elements.len() > layout.shard_slots() || !scratch.group(shape, elements) {
            return false;
        }
        let found = scratch.find_pilots(shape, elements, K::SLOTS as u8, self.pilots);
        if found {
            self.write(layout, elements, scratch);
        }
        found
    }

    /// Writes keys and values, and fills the free slots.
    fn write<K: StaticKey, V: Value>(self, layout: &Layout<K, V>, elements: &[Element<V>], scratch: &mut Scratch) {
        let (shape, spread) = (layout.shape(), layout.spread());
        let keys: &mut [K] = bytemuck::cast_slice_mut(self.keys);
        let key_of = |hash| K::of_word(key(hash, spread)).expect("hashes are those of keys");
        let written = &mut scratch.written;
        written.clear();
        written.resize(shape.buckets as usize, 0);
        for (&pilot, group) in self.pilots.iter().zip(scratch.begins.windows(2)) {
            for element in &elements[group[0] as usize..group[1] as usize] {
                let bucket = place(element.hash as u32, pilot.into(), shape.buckets) as usize;
                let slot = bucket * K::SLOTS + usize::from(written[bucket]);
                written[bucket] += 1;
                keys[slot] = key_of(element.hash);
                V::put(self.values, slot, element.value);
            }
        }
        for ((bucket, held), &written) in keys.chunks_exact_mut(K::SLOTS).enumerate().zip(&*written) {
            let filler = match written {
                0 => self::filler(self.number, bucket as u32, layout, self.pilots),
                _ => held[0],
            };
            held[usize::from(written)..].fill(filler);
        }
    }
}

/// Returns the smallest key that lookups search in another bucket than this one of this shard. It fills the bucket
/// while it is empty, which marks it as empty, and no lookup finds it there. Such a key exists, since a set with an
/// empty bucket has a key in another one.
fn filler<K: StaticKey, V: Value>(shard: u64, bucket: u32, layout: &Layout<K, V>, pilots: &[u8]) -> K {
    let shape = layout.shape();
    let is_sought_here = |word: &u64| {
        let hash = hash(*word, layout.spread());
        let pilot = || pilots[shape.group_in_shard(hash) as usize].into();
        shape.shard(hash) == shard && place(hash as u32, pilot(), shape.buckets) == bucket
    };
    let word = (0..).find(|word| !is_sought_here(word)).unwrap_or(0);
    K::of_word(word).unwrap_or(K::zeroed())
}

impl Scratch {
    /// Finds the starts of groups, and the order to place them; `false` if one has too many keys.
    fn group<V: Copy>(&mut self, shape: Shape, elements: &[Element<V>]) -> bool {
        let Scratch { begins, order, .. } = self;
        begins.clear();
        begins.resize(shape.groups as usize + 1, 0);
        for (i, element) in elements.iter().enumerate() {
            begins[shape.group_in_shard(element.hash) as usize + 1] = i as u32 + 1;
        }
        // Groups without keys begin where the one before ends.
        let mut end = 0;
        for begin in begins.iter_mut() {
            end = end.max(*begin);
            *begin = end;
        }
        // Start of each size among the groups in order, the largest size first.
        let size = |group: &[u32]| (group[1] - group[0]) as usize;
        let mut next = [0u32; MOST_IN_GROUP as usize + 1];
        for group in begins.windows(2) {
            match next.get_mut(size(group)) {
                Some(count) => *count += 1,
                None => return false,
            }
        }
        let filled = shape.groups - next[0];
        let mut begin = 0;
        for count in next.iter_mut().rev() {
            begin += std::mem::replace(count, begin);
        }
        order.clear();
        order.resize(filled as usize, 0);
        for (group, bounds) in begins.windows(2).enumerate() {
            let size = size(bounds);
            if size > 0 {
                order[next[size] as usize] = group as u32;
                next[size] += 1;
            }
        }
        true
    }

    /// Finds the smallest pilot of each group with which its keys fit, group by group in order; `false` if there is
    /// none for one.
    fn find_pilots<V>(&mut self, shape: Shape, elements: &[Element<V>], slots: u8, pilots: &mut [u8]) -> bool {
        let Scratch { begins, order, counts, .. } = self;
        counts.clear();
        counts.resize(shape.buckets as usize, 0);
        order.iter().all(|&group| {
            let group = group as usize;
            let elements = &elements[begins[group] as usize..begins[group + 1] as usize];
            let mut low = [0u32; MOST_IN_GROUP as usize];
            low.iter_mut().zip(elements).for_each(|(low, element)| *low = element.hash as u32);
            let low = &low[..elements.len()];
            // Larger groups come first, when nearly every pilot fits.
            let pilot = match low.len() {
                ..=FEW => first_fit::<4>(low, shape.buckets, slots, counts),
                _ => first_fit::<1>(low, shape.buckets, slots, counts),
            };
            pilot.inspect(|&pilot| pilots[group] = pilot as u8).is_some()
        })
    }
}

/// Finds the first pilot with which keys with these low bits of their hashes fit, and counts them. Looks for full
/// buckets with `N` pilots at once, because each pilot that is tried has an outcome that no processor predicts.
#[inline(always)]
fn first_fit<const N: usize>(low: &[u32], buckets: u32, slots: u8, counts: &mut [u8]) -> Option<u32> {
    (0..PILOTS).step_by(N).find_map(|first| {
        let mut full = [false; N];
        for &key in low {
            for (i, full) in full.iter_mut().enumerate() {
                *full |= counts[place(key, first + i as u32, buckets) as usize] == slots;
            }
        }
        let mut pilots = (first..first + N as u32).zip(full).filter(|(_, full)| !full).map(|(pilot, _)| pilot);
        pilots.find(|&pilot| fits(low, pilot, buckets, slots, counts))
    })
}

/// Whether keys with these low bits of their hashes fit with this pilot; if so, counts them.
#[inline(always)]
fn fits(low: &[u32], pilot: u32, buckets: u32, slots: u8, counts: &mut [u8]) -> bool {
    for (i, &key) in low.iter().enumerate() {
        let count = &mut counts[place(key, pilot, buckets) as usize];
        if *count == slots {
            low[..i].iter().for_each(|&key| counts[place(key, pilot, buckets) as usize] -= 1);
            return false;
        }
        *count += 1;
    }
    true
}
