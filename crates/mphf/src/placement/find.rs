//! Search for the seeds of a segment's buckets.
//!
//! Buckets are taken by position and size: one of `k` keys is taken as if it were some distance further ahead than one
//! of a single key ([`Order`]), since it needs more free slots at a time. A seed's candidates are the 64 rotations of
//! four layouts. The slots of a residue modulo the step between two rotations have a bitmap of their own, a *plane*. A
//! slice has 64 slots of each residue, so the slice of a bucket is eight *windows* of 64 bits. The rotations of a key
//! are one of these, rotated, and the free rotations of a bucket are the complement of the union over its keys. Among
//! these the builder takes the one with the least sum of costs, which leaves few gaps behind.
//!
//! If none is free, some rotations meet one taken slot. The bucket there, a *victim*, searches another seed with that
//! slot and the bucket's others taken ([`Scratch::make_place`]).

use super::CodeParameters;
use warpset_core::placement::{LAYOUTS, POINT, ROTATIONS, SLICE, STEP, Shape, cost_of, rotated};
use wide::i16x8;

/// Keys of the largest bucket for which a seed is searched. Random hashes do not give larger ones.
const LARGEST: usize = 20;
const _: () = assert!(LARGEST as u32 * cost_of(SLICE - 1) < i16::MAX as u32);
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
const AHEAD: [u32; SIZES] = [0, 25, 166, 269, 339, 377, 410, 443, 477, 505];

/// Costs of the slots of a slice with each residue, twice: a window has those of all rotations of a key.
static COSTS: [[i16; 2 * ROTATIONS as usize]; STEP as usize] = {
    let mut costs = [[0; 2 * ROTATIONS as usize]; STEP as usize];
    let mut at = 0;
    while at < 2 * SLICE {
        costs[(at % STEP) as usize][(at / STEP) as usize] = cost_of(at % SLICE) as i16;
        at += 1;
    }
    costs
};

/// For each byte with a bit per rotation: a number per rotation, the largest if its bit says that it is taken, else 0.
static TAKEN: [[i16; 8]; 256] = {
    let mut lanes = [[0; 8]; 256];
    let mut at = 0;
    while at < 8 * 256 {
        lanes[at / 8][at % 8] = if ((at / 8) >> (at % 8)) & 1 == 1 { i16::MAX } else { 0 };
        at += 1;
    }
    lanes
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
    /// Bucket of the key at each position, or [`OUTSIDE`].
    owners: Vec<u32>,
    victims: Vec<Victim>,
    seeds: Vec<u8>,
    bumped: Vec<u64>,
    free: Vec<u32>,
}

/// A seed of a bucket that meets one taken slot, in the order in which they are tried: those of small buckets first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Victim {
    size: u32,
    seed: u8,
    bucket: u32,
}

/// Mark of positions outside of the segment, and of free ones.
const OUTSIDE: u32 = u32::MAX;

/// Victims to try.
const VICTIMS: usize = 8;

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
        let count = keys.len() as u32;
        self.planes.clear(count);
        self.seeds.clear();
        self.seeds.resize(shape.buckets as usize, 0);
        self.bumped.clear();
        if count < SLICE {
            self.bumped.extend_from_slice(keys);
        } else {
            self.sort_keys(shape, keys);
            self.sort_buckets(order);
            self.owners.clear();
            self.owners.resize((count + SLICE) as usize, OUTSIDE);
            for at in 0..self.order.len() {
                self.place_bucket(shape, self.order[at]);
            }
        }
        // The table of bumped keys depends on their order, and keys come in any order.
        self.bumped.sort_unstable();
        self.planes.free(count, &mut self.free);
        Placed { seeds: &self.seeds, bumped: &self.bumped, free: &self.free }
    }

    /// Finds the seed of a bucket.
    #[inline]
    fn place_bucket(&mut self, shape: Shape, bucket: u32) {
        match self.planes.seed(shape.start_of(bucket), &self.keys[range(&self.ends, bucket)]) {
            0 => self.make_place(shape, bucket),
            seed => self.take(shape, bucket, seed),
        }
    }

    /// Gives a bucket this seed, whose slots are free.
    #[inline(always)]
    fn take(&mut self, shape: Shape, bucket: u32, seed: u8) {
        self.seeds[bucket as usize] = seed;
        let start = shape.start_of(bucket);
        for &low in &self.keys[range(&self.ends, bucket)] {
            let position = start + rotated(low, seed);
            self.planes.take(position);
            self.owners[position as usize] = bucket;
        }
    }

    /// Moves another bucket to make place for one without a free seed, or bumps its keys.
    #[cold]
    #[inline(never)]
    fn make_place(&mut self, shape: Shape, bucket: u32) {
        let keys = &self.keys[range(&self.ends, bucket)];
        let start = shape.start_of(bucket);
        self.victims.clear();
        self.planes.each_seed_with_one_taken_slot(start, keys, |seed, position| {
            let owner = self.owners[position as usize];
            if owner != OUTSIDE {
                self.victims.push(Victim { size: range(&self.ends, owner).len() as u32, seed, bucket: owner });
            }
        });
        self.victims.sort_unstable();
        for &Victim { seed, bucket: victim, .. } in self.victims.iter().take(VICTIMS) {
            let (keys, others) = (&self.keys[range(&self.ends, bucket)], &self.keys[range(&self.ends, victim)]);
            let (before, others_start) = (self.seeds[victim as usize], shape.start_of(victim));
            others.iter().for_each(|&low| self.planes.release(others_start + rotated(low, before)));
            keys.iter().for_each(|&low| self.planes.take(start + rotated(low, seed)));
            let after = self.planes.seed(others_start, others);
            if after != 0 {
                self.take(shape, bucket, seed);
                self.take(shape, victim, after);
                return;
            }
            keys.iter().for_each(|&low| self.planes.release(start + rotated(low, seed)));
            others.iter().for_each(|&low| self.planes.take(others_start + rotated(low, before)));
        }
        self.bumped.extend_from_slice(&self.keys[range(&self.ends, bucket)]);
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

/// Bitmaps of taken positions: one per residue of a position modulo [`STEP`], in turns of a word each. Positions
/// outside of the segment, half a slice at both ends, are taken.
#[derive(Default)]
pub(super) struct Planes {
    rows: Vec<[u64; STEP as usize]>,
}

impl Planes {
    /// Frees all slots of a segment of `keys` keys.
    pub(super) fn clear(&mut self, keys: u32) {
        // A window may begin in the last row but one.
        self.rows.clear();
        self.rows.resize(((keys + SLICE).div_ceil(SLICE) + 1) as usize, [0; STEP as usize]);
        (0..SLICE / 2).for_each(|at| [at, keys + SLICE / 2 + at].into_iter().for_each(|at| self.take(at)));
    }

    /// Returns row, plane and bit of a position.
    #[inline(always)]
    fn place_of(position: u32) -> (usize, usize, u32) {
        ((position / SLICE) as usize, (position % STEP) as usize, position / STEP % ROTATIONS)
    }

    #[inline(always)]
    pub(super) fn take(&mut self, position: u32) {
        let (row, plane, bit) = Self::place_of(position);
        self.rows[row][plane] |= 1 << bit;
    }

    #[inline(always)]
    fn release(&mut self, position: u32) {
        let (row, plane, bit) = Self::place_of(position);
        self.rows[row][plane] &= !(1 << bit);
    }

    #[cfg(test)]
    pub(super) fn is_taken(&self, position: u32) -> bool {
        let (row, plane, bit) = Self::place_of(position);
        self.rows[row][plane] >> bit & 1 == 1
    }

    /// Whether each position of the slice with this start is taken, a word per residue.
    #[inline(always)]
    fn windows(&self, start: u32) -> Windows {
        let (row, _, bit) = Self::place_of(start);
        let (mut windows, next) = (self.rows[row], &self.rows[row + 1]);
        for plane in 0..STEP as usize {
            // Two shifts, since a shift by 64 is undefined.
            windows[plane] = windows[plane] >> bit | (next[plane] << 1) << (63 - bit);
        }
        Windows(windows)
    }

    /// Writes the free slots below `keys` to `free`.
    fn free(&self, keys: u32, free: &mut Vec<u32>) {
        free.clear();
        for (first, row) in (0..).step_by(SLICE as usize).zip(&self.rows) {
            for (plane, &word) in (0..).zip(row) {
                let mut zeros = !word;
                while zeros != 0 {
                    // Positions before the segment are taken.
                    let slot = first + zeros.trailing_zeros() * STEP + plane - SLICE / 2;
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

    /// Returns the seed that places these keys, whose slice has this start, lowest; 0 if none places them all.
    #[inline]
    pub(super) fn seed(&self, start: u32, keys: &[u64]) -> u8 {
        if keys.len() > LARGEST {
            return 0;
        }
        let windows = self.windows(start);
        // Sum of costs, and seed.
        let mut best = u32::MAX;
        for layout in 0..LAYOUTS {
            let mut taken = u64::from(layout == 0);
            for &low in keys {
                taken |= windows.rotations(rotated(low, layout as u8));
            }
            if taken == u64::MAX {
                continue;
            }
            if let Some(seed) = cheaper(keys, layout, taken, best)
                && !collide(keys, layout)
            {
                best = seed;
            }
        }
        if best == u32::MAX { 0 } else { best as u8 }
    }

    /// Calls `found` with each seed that places these keys in different slots with one taken, and its position.
    fn each_seed_with_one_taken_slot(&self, start: u32, keys: &[u64], mut found: impl FnMut(u8, u32)) {
        if keys.len() > LARGEST {
            return;
        }
        let windows = self.windows(start);
        for layout in (0..LAYOUTS).filter(|&layout| !collide(keys, layout)) {
            let (mut once, mut twice) = (0, u64::from(layout == 0));
            for &low in keys {
                let taken = windows.rotations(rotated(low, layout as u8));
                twice |= once & taken;
                once |= taken;
            }
            for &low in keys {
                let mut one = windows.rotations(rotated(low, layout as u8)) & !twice;
                while one != 0 {
                    let seed = (one.trailing_zeros() * LAYOUTS + layout) as u8;
                    one &= one - 1;
                    found(seed, start + rotated(low, seed));
                }
            }
        }
    }
}

/// Whether each position of a slice is taken: bit `i` of word `r` is that of position `i * STEP + r`.
struct Windows([u64; STEP as usize]);

impl Windows {
    /// Whether the slots of all rotations of a key at this distance are taken.
    #[inline(always)]
    fn rotations(&self, distance: u32) -> u64 {
        self.0[(distance % STEP) as usize].rotate_right(distance / STEP)
    }
}

/// Returns the least sum of costs of these keys in a layout over all rotations that are not taken, and the first seed
/// with that sum in the lowest byte, if this is less than `best`. There are at most [`LARGEST`] keys.
#[inline(always)]
fn cheaper(keys: &[u64], layout: u32, taken: u64, best: u32) -> Option<u32> {
    const VECTORS: usize = ROTATIONS as usize / 8;
    let mut free = !taken;
    if free.count_ones() as usize * keys.len() <= 20 {
        // Faster one by one.
        let mut cheapest = best;
        while free != 0 {
            let rotation = free.trailing_zeros();
            free &= free - 1;
            let cost = |&low: &u64| {
                let distance = rotated(low, layout as u8);
                COSTS[(distance % STEP) as usize][(distance / STEP + rotation) as usize] as u32
            };
            let sum: u32 = keys.iter().map(cost).sum();
            cheapest = cheapest.min(sum << 8 | (rotation * LAYOUTS) | layout);
        }
        return (cheapest < best).then_some(cheapest);
    }
    let mut sums = [i16x8::ZERO; VECTORS];
    for &low in keys {
        let distance = rotated(low, layout as u8);
        let costs = &COSTS[(distance % STEP) as usize][(distance / STEP) as usize..][..ROTATIONS as usize];
        let (costs, _) = costs.as_chunks::<8>();
        for i in 0..VECTORS {
            // No sum overflows: `LARGEST` checks the largest.
            sums[i] += i16x8::new(costs[i]);
        }
    }
    let mut least = i16x8::splat(i16::MAX);
    for i in 0..VECTORS {
        sums[i] |= i16x8::new(TAKEN[(taken >> (8 * i)) as usize & 0xff]);
        least = least.min(sums[i]);
    }
    let least = least.to_array().into_iter().fold(i16::MAX, i16::min);
    if least as u32 > best >> 8 {
        return None;
    }
    let lanes = |i: usize| sums[i].simd_eq(i16x8::splat(least)).to_bitmask();
    let at = (0..VECTORS).find(|&i| lanes(i) != 0)?;
    let rotation = 8 * at as u32 + lanes(at).trailing_zeros();
    let seed = (least as u32) << 8 | (rotation * LAYOUTS) | layout;
    (seed < best).then_some(seed)
}

/// Whether two keys of a bucket have equal slots in this layout.
#[inline(always)]
fn collide(keys: &[u64], layout: u32) -> bool {
    let distance = |&low: &u64| rotated(low, layout as u8);
    (1..keys.len()).any(|at| keys[..at].iter().any(|low| distance(low) == distance(&keys[at])))
}
