//! Exchange of a batch between devices that own ranges of hashes: the owner of each key, and answers in question order.

use crate::batch::keys::{HashFunction, KeyKind};
#[cfg(feature = "bodies")]
use crate::batch::keys::{mix_at, word_at, xxh64_at};
use crate::batch::results;
use warpset_core::fuse;
use warpset_core::hash::permute::permute;
use warpset_simt::{
    Global, GlobalMut, thread,
    warp::{self, FULL_MASK},
};

/// Threads per block, in every kernel of this module.
pub const BLOCK: u32 = 256;
/// Keys of a tile, which a warp counts and moves.
pub const TILE: usize = 256;
/// Largest number of owners: a lane counts the keys of each.
pub const MAX_OWNERS: usize = 32;

/// Hash that chooses a key's owner, and the word that travels there. A function has a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Route {
    /// The function.
    pub by: By,
    /// Parameter of the function.
    pub parameter: u64,
}

const _: () = assert!(size_of::<Route>() == 16);

/// Function of a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum By {
    /// The structure's hash, which travels without its highest bits, as many as the parameter, moved up.
    Hash,
    /// The hash of fuse filters, under the seed in the parameter; the key's word travels.
    FuseHash,
    /// The hash of exact static sets, under the spread seed in the parameter; the key's word travels.
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
    /// Returns the first key of each row of a tile, which has a key per lane. Their number is not a constant, so that
    /// loops over them stay loops: hashes of strings are long code.
    #[inline(always)]
    fn rows(&self, tile: usize) -> impl Iterator<Item = usize> {
        (tile * TILE..Ord::min((tile + 1) * TILE, self.n)).step_by(32)
    }

    /// Returns the owner of key `i`, the number of bounds that do not exceed its hash, and the word that travels. A key
    /// past the end has owner [`MAX_OWNERS`].
    ///
    /// # Safety
    /// The contract of [`exchange_count`] for the routing.
    #[inline(always)]
    unsafe fn owner_and_word(&self, keys: Global<u64>, bounds: Global<u64>, i: usize) -> (u32, u64) {
        let Routing { kind, spread, n, owners, route } = *self;
        if i >= n {
            return (MAX_OWNERS as u32, 0);
        }
        // SAFETY: `i < n`, and `b` is below the number of bounds.
        unsafe {
            let (hash, word) = match route.by {
                By::Hash => {
                    let hash = match kind.function {
                        HashFunction::Seeded => mix_at(keys, kind, spread, i),
                        _ => xxh64_at(keys, kind, i),
                    };
                    (hash, hash << route.parameter)
                }
                By::FuseHash => {
                    let word = word_at(keys, kind.class, i);
                    (fuse::hash::mix(word, route.parameter), word)
                }
                By::StaticHash => {
                    let word = word_at(keys, kind.class, i);
                    (permute(word, 64, route.parameter), word)
                }
            };
            let mut owner = 0;
            for b in 0..owners - 1 {
                owner += (bounds.read_nc(b) <= hash) as u32;
            }
            (owner, word)
        }
    }
}

/// Copies value `i` of `units` units to place `number`.
///
/// # Safety
/// `from` is valid for reads of value `i`, and `to` for writes of value `number`, which nothing else accesses.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn put<T: warpset_simt::Word>(from: Global<T>, i: usize, to: GlobalMut<T>, number: usize, units: u32) {
    let units = units as usize;
    for unit in 0..units {
        // SAFETY: the contract of this function; `unit < units`.
        unsafe { to.write(number * units + unit, from.read_nc(i * units + unit)) };
    }
}

kernel! {
    /// Counts the keys of each owner in each tile: `counts[owner * tiles + tile]`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of [`BLOCK`] threads, one warp per tile of [`TILE`] keys, no shared memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs, `n < 1 << 32`; the class is not one of 128
    ///   bits, and the function is of 64 bits.
    /// - `bounds`: valid for `owners - 1` reads and not written while the kernel runs, `1 <= owners <=
    ///   MAX_OWNERS`. [`By::Hash`] has a parameter below 64.
    /// - `counts`: valid for `owners` words per tile; nothing else accesses them.
    #[launch_bounds(256)]
    pub unsafe fn exchange_count(of: Routing, keys: Global<u64>, bounds: Global<u64>, counts: GlobalMut<u32>) {
        let (tile, tiles) = (thread::index_1d() as usize / 32, of.n.div_ceil(TILE));
        if tile >= tiles {
            return;
        }
        // SAFETY: the routing is this kernel's contract. All lanes of a warp have the same tile, so all reach each
        // vote; lanes below `owners` each write their own word.
        unsafe {
            let (lane, mut count) = (warp::lane_id(), 0);
            for row in of.rows(tile) {
                let (own, _) = of.owner_and_word(keys, bounds, row + lane as usize);
                for owner in 0..of.owners as u32 {
                    let owned = warp::ballot(FULL_MASK, own == owner).count_ones();
                    count += if lane == owner { owned } else { 0 };
                }
            }
            if lane < of.owners as u32 {
                counts.write(lane as usize * tiles + tile, count);
            }
        }
    }

    /// Moves words and numbers of keys to the places of their owners, in the order of the keys: a tile's keys of an
    /// owner go from `places[owner * tiles + tile]` on. Writes the place of the first key of each owner but the first
    /// to `starts`.
    ///
    /// # Safety
    /// - Launch, `of`, `keys` and `bounds`: as for [`exchange_count`].
    /// - `places`: exclusive sums of its counts; nothing writes them while the kernel runs.
    /// - `words` and `numbers`: valid for `n` writes, and `starts` for `owners - 1`; they overlap nothing else, and
    ///   nothing else accesses them.
    #[launch_bounds(256)]
    pub unsafe fn exchange_move(
        of: Routing, keys: Global<u64>, bounds: Global<u64>, places: Global<u32>, words: GlobalMut<u64>,
        numbers: GlobalMut<u32>, starts: GlobalMut<u64>,
    ) {
        let (tile, tiles) = (thread::index_1d() as usize / 32, of.n.div_ceil(TILE));
        if tile >= tiles {
            return;
        }
        // SAFETY: as for `exchange_count`; lanes below `owners` read and write their own word of `places` and `starts`.
        // The places of different keys differ, since the sums count each key once.
        unsafe {
            let (lane, mut next) = (warp::lane_id(), 0);
            if lane < of.owners as u32 {
                next = places.read_nc(lane as usize * tiles + tile);
                if tile == 0 && lane > 0 {
                    starts.write(lane as usize - 1, next as u64);
                }
            }
            for row in of.rows(tile) {
                let i = row + lane as usize;
                let (own, word) = of.owner_and_word(keys, bounds, i);
                let mut place = 0;
                for owner in 0..of.owners as u32 {
                    let owned = warp::ballot(FULL_MASK, own == owner);
                    let first = warp::shuffle_idx(FULL_MASK, next, owner);
                    if own == owner {
                        place = first + (owned & warp::lane_mask_lt()).count_ones();
                    }
                    next += if lane == owner { owned.count_ones() } else { 0 };
                }
                if i < of.n {
                    words.write(place as usize, word);
                    numbers.write(place as usize, i as u32);
                }
            }
        }
    }

    /// Writes value `i` of a round: the value of the key whose number is in `numbers[i]`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `numbers`: valid for `n` reads, and `values` for all numbers there; nothing writes them while the kernel runs.
    /// - `out`: valid for `n` writes, overlaps nothing else, nothing else accesses it.
    pub unsafe fn exchange_gather(values: Global<u64>, numbers: Global<u32>, n: usize, out: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the place belongs to this thread.
            unsafe { out.write(i, values.read_nc(numbers.read_nc(i) as usize)) };
        }
    }

    /// Writes answer `i` to the place of the key with the number in `numbers[i]`: a value of `width` bytes, or a byte
    /// with bit `i` of `answers` for a width of 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `answers` and `out` have the alignment of the largest power of two up to 8 that divides `width`.
    /// - `answers`: valid for `n` bits or values, and `numbers` for `n` reads; nothing writes them while the kernel
    ///   runs.
    /// - `out`: valid for all of these numbers, which differ; nothing else accesses these places.
    pub unsafe fn exchange_spread(
        answers: Global<u64>, numbers: Global<u32>, n: usize, width: u32, out: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the place belongs to this thread.
            unsafe {
                let number = numbers.read_nc(i) as usize;
                match width {
                    0 => out.cast::<u8>().write(number, (answers.cast::<u32>().read_nc(i / 32) >> (i % 32) & 1) as u8),
                    _ if width % 2 != 0 => put(answers.cast::<u8>(), i, out.cast::<u8>(), number, width),
                    _ if width % 4 != 0 => put(answers.cast::<u16>(), i, out.cast::<u16>(), number, width / 2),
                    _ if width % 8 != 0 => put(answers.cast::<u32>(), i, out.cast::<u32>(), number, width / 4),
                    _ => put(answers, i, out, number, width / 8),
                }
            }
        }
    }

    /// Writes answers in bytes as answers in the form `form`.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one thread per answer, no shared memory.
    /// - `bytes`: valid for `n` reads, and nothing writes them while the kernel runs.
    /// - `out`: valid for `n` answers in that form; nothing else accesses it, except that others may add to a count.
    #[launch_bounds(256)]
    pub unsafe fn exchange_finish(bytes: Global<u8>, n: usize, form: u32, out: GlobalMut<u64>) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n` for the read; all threads reach `put`.
        unsafe { results::put(form, out, i, n, i < n && bytes.read(i) != 0) };
    }
}
