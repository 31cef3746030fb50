//! Search for the seeds of a segment's buckets.
//!
//! Buckets are taken by position and size: one of `k` keys is taken as if it were some distance further ahead than one
//! of a single key ([`Order`]), since it needs more free slots at a time. A seed's candidates are the 64 rotations of
//! four layouts. The slots of a residue modulo the step between two rotations have a bitmap of their own, a *plane*. A
//! slice has 64 slots of each residue, so the rotations of a key are one window of 64 bits of a plane, rotated, and the
//! free rotations of a bucket are the complement of the union over its keys. Among these the builder takes the one with
//! the least sum of costs, which leaves few gaps behind.

use super::CodeParameters;
use warpset_core::placement::{FIELD_BITS, LAYOUTS, POINT, ROTATIONS, STEP, Shape, cost_of};

/// Length of a slice that all rotations fill.
const SLICE: u32 = STEP * ROTATIONS;
/// Keys of the largest bucket for which a seed is searched. Random hashes do not give larger ones.
const LARGEST: usize = 64;
/// Sizes of buckets with a distance of their own; larger ones have that of the last.
const SIZES: usize = 10;

/// Distances, in buckets, by which larger buckets are taken earlier.
#[derive(Clone)]
pub(super) struct Order {
    ahead: [u32; SIZES],
}

impl Order {
    pub(super) fn new(code: CodeParameters) -> Self {
        Self { ahead: AHEAD.map(|slots| (slots * code.buckets_per_key) >> POINT) }
    }
}

/// Distances in slots.
const AHEAD: [u32; SIZES] = [0, 27, 180, 292, 369, 410, 446, 482, 518, 549];

/// Costs of all slots of a slice.
const COSTS: [u16; SLICE as usize] = {
    let mut costs = [0; SLICE as usize];
    let mut distance = 0;
    while distance < SLICE {
        costs[distance as usize] = cost_of(distance) as u16;
        distance += 1;
    }
    costs
};

/// Memory reused from segment to segment.
#[derive(Default)]
pub(super) struct Scratch {
    /// Low halves of hashes, in the order of buckets.
    keys: Vec<u64>,
    /// End of each bucket within `keys`.
    ends: Vec<u32>,
    /// Buckets in the order of the search.
    order: Vec<u32>,
    places: Vec<u32>,
    planes: Planes,
    seeds: Vec<u8>,
    bumped: Vec<u64>,
    free: Vec<u32>,
}

/// Seeds of a segment's buckets.
pub(super) struct Placed<'a> {
    pub seeds: &'a [u8],
    /// Low halves of the hashes of keys without a place.
    pub bumped: &'a [u64],
    /// Free slots, as many, in ascending order.
    pub free: &'a [u32],
}

impl Scratch {
    /// Places the keys of a segment.
    pub(super) fn place(&mut self, shape: Shape, order: &Order, keys: &[u64]) -> Placed<'_> {
        self.sort_keys(shape, keys);
        self.sort_buckets(order);
        self.planes.clear(shape.keys);
        self.seeds.clear();
        self.seeds.resize(shape.buckets as usize, 1);
        self.bumped.clear();
        for at in 0..self.order.len() {
            let bucket = self.order[at];
            let keys = &self.keys[range(&self.ends, bucket)];
            let seed = if shape.mask + 1 == SLICE {
                self.planes.seed(shape, keys)
            } else {
                self.planes.seed_of_few(shape, keys)
            };
            self.seeds[bucket as usize] = seed;
            match seed {
                0 => self.bumped.extend_from_slice(keys),
                _ => keys.iter().for_each(|&low| self.planes.take(shape.slot_of(low, seed))),
            }
        }
        self.planes.free(shape.keys, &mut self.free);
        Placed { seeds: &self.seeds, bumped: &self.bumped, free: &self.free }
    }

    /// Sorts the keys into buckets.
    pub(super) fn sort_keys(&mut self, shape: Shape, keys: &[u64]) {
        let Self { keys: sorted, ends, .. } = self;
        ends.clear();
        ends.resize(shape.buckets as usize, 0);
        keys.iter().for_each(|&low| ends[shape.bucket_of(low) as usize] += 1);
        let mut sum = 0;
        ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
        sorted.resize(keys.len(), 0);
        for &low in keys {
            let end = &mut ends[shape.bucket_of(low) as usize];
            sorted[*end as usize] = low;
            *end += 1;
        }
    }

    /// Returns the keys of a bucket.
    #[cfg(test)]
    pub(super) fn keys_of(&self, bucket: u32) -> &[u64] {
        &self.keys[range(&self.ends, bucket)]
    }

    /// Sorts the buckets with keys by their positions in the order of the search.
    fn sort_buckets(&mut self, Order { ahead }: &Order) {
        let Self { ends, order, places, .. } = self;
        let most = ahead[SIZES - 1];
        places.clear();
        places.resize(ends.len() + most as usize + 1, 0);
        let place_of = |bucket: usize| {
            let size = range(ends, bucket as u32).len();
            (size > 0).then(|| bucket + (most - ahead[size.min(SIZES - 1)]) as usize)
        };
        (0..ends.len()).filter_map(place_of).for_each(|place| places[place] += 1);
        let mut sum = 0;
        places.iter_mut().for_each(|place| sum += std::mem::replace(place, sum));
        order.clear();
        order.resize(sum as usize, 0);
        for bucket in 0..ends.len() {
            if let Some(place) = place_of(bucket) {
                order[places[place] as usize] = bucket as u32;
                places[place] += 1;
            }
        }
    }
}

/// Returns the places of a bucket's keys.
fn range(ends: &[u32], bucket: u32) -> std::ops::Range<usize> {
    let begin = if bucket == 0 { 0 } else { ends[bucket as usize - 1] };
    begin as usize..ends[bucket as usize] as usize
}

/// Bitmaps of taken slots: one per residue of a slot modulo [`STEP`].
#[derive(Default)]
pub(super) struct Planes {
    words: Vec<u64>,
    /// Words of a plane.
    len: usize,
}

impl Planes {
    /// Frees all slots of a segment of `keys` keys.
    pub(super) fn clear(&mut self, keys: u32) {
        // A window may begin in the last word.
        self.len = (keys.div_ceil(STEP * 64) + 1) as usize;
        self.words.clear();
        self.words.resize(self.len * STEP as usize, 0);
    }

    /// Returns word and bit of a slot.
    #[inline(always)]
    fn place_of(&self, slot: u32) -> (usize, u32) {
        let bit = slot / STEP;
        ((slot % STEP) as usize * self.len + (bit / 64) as usize, bit % 64)
    }

    #[inline(always)]
    pub(super) fn take(&mut self, slot: u32) {
        let (word, bit) = self.place_of(slot);
        self.words[word] |= 1 << bit;
    }

    fn is_taken(&self, slot: u32) -> bool {
        let (word, bit) = self.place_of(slot);
        self.words[word] >> bit & 1 == 1
    }

    /// Whether each of the 64 slots from `first` on, a step apart, is taken.
    #[inline(always)]
    fn window(&self, first: u32) -> u64 {
        let (word, bit) = self.place_of(first);
        // Two shifts, since a shift by 64 is undefined.
        self.words[word] >> bit | (self.words[word + 1] << 1) << (63 - bit)
    }

    /// Writes the free slots below `keys` to `free`.
    fn free(&self, keys: u32, free: &mut Vec<u32>) {
        free.clear();
        for (plane, words) in (0..).zip(self.words.chunks_exact(self.len)) {
            for (first, &word) in (0..).step_by(64).zip(words) {
                let mut zeros = !word;
                while zeros != 0 {
                    let slot = (first + zeros.trailing_zeros()) * STEP + plane;
                    if slot >= keys {
                        break;
                    }
                    free.push(slot);
                    zeros &= zeros - 1;
                }
            }
        }
        free.sort_unstable();
    }

    /// Returns the seed that places these keys lowest, or 0 if none places them all.
    #[inline]
    pub(super) fn seed(&self, shape: Shape, keys: &[u64]) -> u8 {
        let mut starts = [0; LARGEST];
        let Some(starts) = starts.get_mut(..keys.len()) else { return 0 };
        starts.iter_mut().zip(keys).for_each(|(start, &low)| *start = shape.start_of(low));
        // Sum of costs, and seed.
        let mut best = u32::MAX;
        for layout in 0..LAYOUTS {
            let field = |low: u64| (low >> (FIELD_BITS * layout)) as u32 % SLICE;
            let mut taken = u64::from(layout == 0);
            for (&low, &start) in keys.iter().zip(&*starts) {
                let field = field(low);
                taken |= self.window(start + field % STEP).rotate_right(field / STEP);
            }
            let mut free = !taken;
            if free == 0 || collide(keys.iter().zip(&*starts).map(|(&low, &start)| start + field(low))) {
                continue;
            }
            while free != 0 {
                let rotation = free.trailing_zeros();
                free &= free - 1;
                let cost = |low: u64| COSTS[((field(low) + rotation * STEP) % SLICE) as usize];
                let sum: u32 = keys.iter().map(|&low| u32::from(cost(low))).sum();
                best = best.min((sum << 8) | (rotation * LAYOUTS) | layout);
            }
        }
        if best == u32::MAX { 0 } else { best as u8 }
    }

    /// Computes [`seed`](Self::seed) for slices of any length.
    pub(super) fn seed_of_few(&self, shape: Shape, keys: &[u64]) -> u8 {
        if keys.len() > LARGEST {
            return 0;
        }
        let mut best = u32::MAX;
        for seed in 1..=u8::MAX {
            let slots = || keys.iter().map(|&low| shape.slot_of(low, seed));
            let sum: u32 = keys.iter().map(|&low| cost_of(shape.slot_of(low, seed) - shape.start_of(low))).sum();
            let key = sum << 8 | u32::from(seed);
            if key < best && !slots().any(|slot| self.is_taken(slot)) && !collide(slots()) {
                best = key;
            }
        }
        if best == u32::MAX { 0 } else { best as u8 }
    }
}

/// Whether two slots are equal modulo the length of a slice. Slots that differ and are equal modulo it are rare.
#[inline(always)]
fn collide(slots: impl Iterator<Item = u32> + Clone) -> bool {
    let mut rest = slots.clone();
    slots.into_iter().any(|slot| {
        rest.next();
        rest.clone().any(|other| other % SLICE == slot % SLICE)
    })
}
