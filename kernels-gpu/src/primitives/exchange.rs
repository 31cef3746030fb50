//! Exchange of a batch between devices that own ranges of hashes: the owner of each key, and answers in question order.

#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use crate::batch::keys::{HashFunction, KeyClass, KeyKind};
use crate::batch::results;
use crate::block;
use crate::look_back::{self, AGGREGATE, INCLUSIVE};
use warpset_core::bits::lowest;
use warpset_core::fuse;
use warpset_core::hash::{self, permute::permute};
use warpset_core::scan::{Count, Sum};
use warpset_simt::{
    Global, GlobalMut, atomic, shared, thread,
    warp::{self, FULL_MASK},
};

/// Threads per block of the kernels that give answers.
pub const BLOCK: u32 = 256;
/// Threads per block of [`exchange_group`].
pub const GROUP_BLOCK: u32 = 256;
const WARPS: u32 = GROUP_BLOCK / 32;
/// Keys of a thread.
const ITEMS: usize = 8;
/// Keys of a tile, which a block groups.
pub const TILE: usize = GROUP_BLOCK as usize * ITEMS;
/// Largest number of owners.
pub const MAX_OWNERS: usize = 32;
/// Place of a key without owner.
pub const NOWHERE: u32 = u32::MAX;
const COUNTS_AT: u32 = 8;
/// Bytes of shared memory of [`exchange_group`]: the tile's number, and the keys of each owner in each warp.
pub const GROUP_SHARED_BYTES: u32 = COUNTS_AT + MAX_OWNERS as u32 * WARPS * 4;
/// Bits of a key's owner, or of one past the last for none.
const OWNER: u32 = 2 * MAX_OWNERS as u32 - 1;
/// Answers that a thread of [`exchange_found`] writes.
const ANSWERS: usize = 4;
/// Answers that a block of [`exchange_found`] writes.
pub const FOUND_TILE: usize = BLOCK as usize * ANSWERS;

/// Returns the look-back words of an owner, one for each tile of `n` keys and an even number.
pub const fn column_words(n: usize) -> usize {
    n.div_ceil(TILE).next_multiple_of(2)
}

/// Returns the places of each owner, for `n` keys: enough for all of them, and a multiple of 64, so that bits of
/// different owners share no word.
pub const fn stride(n: usize) -> usize {
    n.next_multiple_of(64)
}

/// Hash that chooses a key's owner, and the word that travels there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Route {
    /// The function.
    pub by: By,
    /// The function's seed, or spread seed.
    pub seed: u64,
    /// Bits of an exact key.
    pub bits: u32,
    /// Highest bits of a hash that do not travel; the others move up.
    pub dropped: u32,
}

const _: () = assert!(size_of::<Route>() == 24);

impl Route {
    /// By the structure's hash, which travels.
    pub const HASH: Self = Self::new(By::Hash, 0);

    /// Returns the route by a function with this seed.
    pub const fn new(by: By, seed: u64) -> Self {
        Self { by, seed, bits: 0, dropped: 0 }
    }
}

/// Function of a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum By {
    /// The structure's hash, which travels.
    Hash,
    /// The bijection of exact quotient filters, which travels. Wider integers, and other keys, have no owner.
    Permutation,
    /// The hash of fuse filters; the key's word travels.
    FuseHash,
    /// The hash of exact static sets; the key's word travels.
    StaticHash,
}

/// Form of a batch of keys, and the owners of their hashes. Kernels take the memory of both beside it, because the
/// host's form of a [`Global`] has a length.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Routing {
    /// Kind of the keys.
    pub kind: KeyKind,
    /// Spread seed of hashes.
    pub spread: u64,
    /// Number of keys.
    pub n: usize,
    /// Number of owners.
    pub owners: usize,
    /// Hash that chooses the owner, and the word that travels.
    pub route: Route,
}

#[cfg(feature = "bodies")]
impl Routing {
    /// Returns the words of a thread's keys, 32 apart; past the end those of the last key.
    ///
    /// # Safety
    /// The contract of [`exchange_group`] for keys and routing.
    #[inline(always)]
    unsafe fn words(&self, keys: Global<u64>, first: usize) -> [u64; ITEMS] {
        let at = |j: usize| Ord::min(first + 32 * j, self.n - 1);
        let mut words = [0; ITEMS];
        // SAFETY: keys below `n`. One test for all keys, so that their loads are in flight together.
        unsafe {
            if self.kind.class.bytes() == 4 {
                (0..ITEMS).for_each(|j| words[j] = word_at(keys, self.kind.class, at(j)));
            } else {
                (0..ITEMS).for_each(|j| words[j] = keys.read_nc(at(j)));
            }
        }
        words
    }

    /// Returns the hashes of the keys, by which owners are chosen, and which keys have none, one bit per key. Turns
    /// each key's word into the one that its owner gets.
    #[inline(always)]
    fn hashes(&self, words: &mut [u64; ITEMS]) -> ([u64; ITEMS], u32) {
        let Routing { kind, spread, route: Route { by, seed, bits, dropped }, .. } = *self;
        let (each, mut lost) = (|hash: &dyn Fn(u64) -> u64| words.map(hash), 0);
        let hashes = match (by, kind.class, kind.function) {
            (By::FuseHash, ..) => each(&|word| fuse::hash::mix(word, seed)),
            (By::StaticHash, ..) => each(&|word| permute(word, 64, seed)),
            (By::Permutation, class, _) => {
                let are_hashes = matches!(class, KeyClass::Hashes | KeyClass::Hashes128);
                for j in 0..ITEMS {
                    lost |= ((are_hashes || words[j] > lowest(bits)) as u32) << j;
                }
                each(&|word| permute(word & lowest(bits), bits, seed) << (64 - bits))
            }
            (_, KeyClass::Hashes | KeyClass::Hashes128, _) => *words,
            (_, _, HashFunction::Seeded) => each(&|word| hash::mix_spread(word, spread)),
            (_, _, HashFunction::Int32) => each(&hash::xxh64_int32),
            _ => each(&|word| hash::xxh64_u64(word, 0)),
        };
        if matches!(by, By::Hash | By::Permutation) {
            *words = hashes.map(|hash| hash << dropped);
        }
        (hashes, lost)
    }
}

/// Copies value `from` of `values`, of `units` units, to value `to` of `out`; writes `absent` units if that is
/// [`NOWHERE`].
///
/// # Safety
/// `values` is valid for reads of the first, and `out` for writes of the second, which nothing else accesses.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn put<T: warpset_simt::Word>(
    values: Global<T>,
    from: u32,
    absent: T,
    out: GlobalMut<T>,
    to: usize,
    units: u32,
) {
    let units = units as usize;
    for unit in 0..units {
        // SAFETY: the contract of this function; `unit < units`.
        unsafe {
            let value = if from == NOWHERE { absent } else { values.read_nc(from as usize * units + unit) };
            out.write(to * units + unit, value);
        }
    }
}

kernel! {
    /// Groups keys by their owners, in one pass: the words of owner `o` go from place `o * stride(n)` on. With values
    /// they are in the order of the keys, without in any order: to look back at all blocks before takes longer.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`GROUP_BLOCK`] threads per tile of [`TILE`] keys, [`GROUP_SHARED_BYTES`] of shared
    ///   memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs, `0 < n <= 1 << 31`; the class is not one of 128
    ///   bits, and the function is of 64 bits.
    /// - `bounds`: valid for `owners - 1` reads and not written while the kernel runs, `1 <= owners <=
    ///   MAX_OWNERS`. Fewer than 64 bits are dropped, and a key of [`By::Permutation`] has 1 to 64.
    /// - `values`: `n` values unless `has_values` is 0, not written while the kernel runs; `out_values` is valid for as
    ///   many writes as `words` then.
    /// - `words`: valid for `owners * stride(n)` writes.
    /// - `places`: valid for `n` writes, the place of each key, or [`NOWHERE`] without owner, and `n <= 1 << 26`,
    ///   unless `has_places` is 0.
    /// - `lengths`: a word per owner, which gets the number of its keys. `look_back`: [`column_words`] per owner at a
    ///   multiple of 16 bytes with values. `ticket`: a word. All are zero.
    /// - What is written overlaps nothing else, and nothing else accesses it.
    #[launch_bounds(256, 3)]
    pub unsafe fn exchange_group(
        of: Routing, keys: Global<u64>, bounds: Global<u64>, values: Global<u64>, has_values: u32, has_places: u32,
        look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, words: GlobalMut<u64>, out_values: GlobalMut<u64>,
        places: GlobalMut<u32>, lengths: GlobalMut<u64>,
    ) {
        let (number, counts) = (shared::dynamic::<u32>(0), shared::dynamic::<u32>(COUNTS_AT));
        let (warp, lane) = (thread::thread_idx_x() / 32, warp::lane_id());
        let (n, owners, stride) = (of.n, of.owners as u32, stride(of.n));
        // SAFETY: the routing is this kernel's contract; keys are read below `n`. All threads reach each vote and each
        // barrier; between two of these a count belongs to one lane. A warp takes part in the look-back as a whole, and
        // alone publishes its owner's words of the tile; tiles before it have begun and publish without waiting for
        // this one. Places of different keys differ, since prefix and rank count each key once, and are below
        // `owners * stride`.
        unsafe {
            let tile = match has_values {
                0 => thread::block_idx_x() as usize,
                _ => look_back::ticket(ticket, number),
            };
            let first = tile * TILE + warp as usize * 32 * ITEMS + lane as usize;
            let mut word = of.words(keys, first);
            let ((hash, lost), mut own) = (of.hashes(&mut word), [0; ITEMS]);
            for j in 0..ITEMS {
                own[j] = if first + 32 * j < n && lost >> j & 1 == 0 { 0 } else { MAX_OWNERS as u32 };
            }
            for b in 0..of.owners - 1 {
                let bound = bounds.read_nc(b);
                for j in 0..ITEMS {
                    own[j] += (bound <= hash[j]) as u32;
                }
            }
            // A key's rank among those of its owner in the warp goes above the owner.
            for owner in 0..owners {
                let mut count = 0;
                for j in 0..ITEMS {
                    let owned = warp::ballot(FULL_MASK, own[j] & OWNER == owner);
                    if own[j] & OWNER == owner {
                        own[j] |= (count + (owned & warp::lane_mask_lt()).count_ones()) << OWNER.count_ones();
                    }
                    count += owned.count_ones();
                }
                if lane == 0 {
                    counts.set(owner * WARPS + warp, count);
                }
            }
            thread::sync_threads();
            for owner in (warp..owners).step_by(WARPS as usize) {
                let at = owner * WARPS + Ord::min(lane, WARPS - 1);
                let count = if lane < WARPS { counts.get(at) } else { 0 };
                let (before, all) = block::warp_exclusive_scan::<Sum<u32>>(count);
                let mut prefix = 0;
                if has_values != 0 {
                    let column = look_back.at(owner as usize * column_words(n));
                    if lane == 0 {
                        look_back::publish(column, tile, AGGREGATE, Count(all as u64));
                    }
                    prefix = look_back::exclusive_prefix::<Sum<Count>>(column, tile).0;
                    if lane == 0 {
                        look_back::publish(column, tile, INCLUSIVE, Count(prefix + all as u64));
                    }
                    if lane == 0 && (tile + 1) * TILE >= n {
                        lengths.write(owner as usize, prefix + all as u64);
                    }
                } else {
                    if lane == 0 {
                        prefix = atomic::fetch_add(lengths.at(owner as usize), all as u64);
                    }
                    prefix = warp::shuffle_idx(FULL_MASK, prefix, 0);
                }
                if lane < WARPS {
                    counts.set(at, prefix as u32 + before);
                }
            }
            thread::sync_threads();
            for j in 0..ITEMS {
                let i = first + 32 * j;
                if lost >> j & 1 != 0 {
                    if i < n && has_places != 0 {
                        places.write(i, NOWHERE);
                    }
                } else if i < n {
                    let (owner, rank) = (own[j] & OWNER, own[j] >> OWNER.count_ones());
                    let place = owner as usize * stride + (counts.get(owner * WARPS + warp) + rank) as usize;
                    words.write(place, word[j]);
                    if has_values != 0 {
                        out_values.write(place, values.read_nc(i));
                    }
                    if has_places != 0 {
                        places.write(i, place as u32);
                    }
                }
            }
        }
    }

    /// Writes the places of answers to keys that were sorted with their numbers, those of owner `o` from place `o *
    /// stride(n)` on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `numbers`: a permutation of the numbers below `n`; `starts`: the place of the first key of each owner but the
    ///   first in the sorted order, ascending, at most `n`; nothing writes either while the kernel runs.
    /// - `1 <= owners <= MAX_OWNERS`, `n <= 1 << 26`.
    /// - `places`: valid for `n` writes; overlaps nothing else, nothing else accesses it.
    pub unsafe fn exchange_places(
        numbers: Global<u32>, starts: Global<u64>, owners: usize, n: usize, places: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(n) {
            let (mut owner, mut begin) = (0, 0);
            // SAFETY: `b` is below the number of starts, `i < n`, and numbers differ.
            unsafe {
                for b in 0..owners - 1 {
                    let start = starts.read_nc(b) as usize;
                    if start <= i {
                        (owner, begin) = (b + 1, start);
                    }
                }
                places.write(numbers.read_nc(i) as usize, (owner * stride(n) + i - begin) as u32);
            }
        }
    }

    /// Writes the value of each key, `width` bytes: value `places[i]` of `answers`, or for [`NOWHERE`] the lowest
    /// bytes of `absent`, in each of its units.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `answers` and `out` have the alignment of the largest power of two up to 8 that divides `width`.
    /// - `places`: valid for `n` reads, and `answers` for the values of all these places; nothing writes them while the
    ///   kernel runs.
    /// - `out`: valid for `n` values; nothing else accesses it.
    pub unsafe fn exchange_values(
        answers: Global<u64>, places: Global<u32>, n: usize, width: u32, absent: u64, out: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the value belongs to this thread.
            unsafe {
                let place = places.read_nc(i);
                match width {
                    _ if width % 2 != 0 => put(answers.cast::<u8>(), place, absent as u8, out.cast(), i, width),
                    _ if width % 4 != 0 => put(answers.cast::<u16>(), place, absent as u16, out.cast(), i, width / 2),
                    _ if width % 8 != 0 => put(answers.cast::<u32>(), place, absent as u32, out.cast(), i, width / 4),
                    _ => put(answers, place, absent, out, i, width / 8),
                }
            }
        }
    }

    /// Writes values of `width` bytes, 1, 2, 4 or 8, as words.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `values`: valid for `n` values at a multiple of `width`; nothing writes them while the kernel runs.
    /// - `out`: valid for `n` writes; nothing else accesses it.
    pub unsafe fn exchange_words(values: Global<u64>, n: usize, width: u32, out: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe {
                let word = match width {
                    1 => values.cast::<u8>().read_nc(i) as u64,
                    2 => values.cast::<u16>().read_nc(i) as u64,
                    4 => values.cast::<u32>().read_nc(i) as u64,
                    _ => values.read_nc(i),
                };
                out.write(i, word);
            }
        }
    }

    /// Writes whether each key is found, bit `places[i]` of `answers`, in the form `form`; keys without place are not.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`BLOCK`] threads per [`FOUND_TILE`] keys, no shared memory.
    /// - `places`: valid for `n` reads, `n > 0`, and `answers` for the bits of all these places; nothing writes them
    ///   while the kernel runs.
    /// - `out`: valid for `n` answers in that form; nothing else accesses it, except that others may add to a count.
    #[launch_bounds(256)]
    pub unsafe fn exchange_found(
        answers: Global<u64>, places: Global<u32>, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let first = thread::block_idx_x() as usize * FOUND_TILE + thread::thread_idx_x() as usize;
        let number = |j: usize| first + j * BLOCK as usize;
        // Half words: half of an owner's last word may have no answers, and is not written.
        let answers = answers.cast::<u32>();
        // SAFETY: places are read below `n`. All threads reach each `put`, whose numbers are those of a grid with a
        // thread per key.
        unsafe {
            let (mut place, mut half) = ([0; ANSWERS], [0; ANSWERS]);
            for j in 0..ANSWERS {
                place[j] = places.read_nc(Ord::min(number(j), n - 1));
            }
            for j in 0..ANSWERS {
                half[j] = if place[j] == NOWHERE { 0 } else { answers.read_nc(place[j] as usize / 32) };
            }
            for j in 0..ANSWERS {
                results::put(form, out, number(j), n, number(j) < n && half[j] >> (place[j] % 32) & 1 != 0);
            }
        }
    }
}
