//! Decoupled look-back: tiles combine the values of all tiles before them in a single pass.
//!
//! Every tile first publishes the aggregate of its own items and, once the values before them are known, the inclusive
//! prefix up to its end. A tile walks back over its predecessors, a warp reading 32 of them at a time, combining
//! aggregates until it meets a prefix. Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
//! Look-back", NVIDIA NVR-2016-002, 2016.
//!
//! A tile publishes one or more 64-bit *words*, each with the tile's state in its two highest bits over 62 bits of
//! payload:
//!
//! ```text
//!   63 62 61                                                       0
//!  +-----+---------------------------------------------------------+
//!  |state| payload: a 32-bit value, a count, half of a 64-bit value |
//!  +-----+---------------------------------------------------------+
//! ```
//!
//! A word goes from unknown (zero) through aggregate to inclusive, each at most once. So words that show one state
//! belong to one value, in whatever order they became visible, and relaxed accesses without any fence suffice, for
//! values of any size. Departure: the paper has a flag beside a value of more than 32 bits, and a fence between them.
//!
//! # How a kernel uses it
//!
//! The host clears the words and the ticket. A block takes its tile by [`ticket`], because blocks may start in any
//! order, and a tile must only wait for tiles that have begun. Then one warp has to [`publish`] the aggregate, look
//! back by [`exclusive_prefix`], and publish the inclusive prefix; [`tile_prefix`] does all three for a block.

use warpset_core::scan::{Count, Flagged, Lift, Operator, Runs};
use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{GlobalMut, atomic, thread};

use crate::block::Value;

/// The state of a tile that has published the value of its own items.
pub const AGGREGATE: u64 = 1 << 62;
/// The state of a tile that has published the value of everything up to its end.
pub const INCLUSIVE: u64 = 2 << 62;
/// The bits of a word that are payload.
pub const PAYLOAD: u64 = AGGREGATE - 1;
const _: () = assert!(Count::LARGEST == PAYLOAD);

/// The words of one value: `[u64; 1]`, `[u64; 2]` or `[u64; 4]`.
pub trait ValueWords: Copy + AsRef<[u64]> + AsMut<[u64]> {
    /// Number of words.
    const COUNT: usize;
    /// All zero.
    const ZERO: Self;
    /// Loads the words.
    ///
    /// # Safety
    /// `at` is valid for `COUNT` words, accessed only atomically, at a multiple of 16 bytes if there are several.
    unsafe fn load(at: GlobalMut<u64>) -> Self;
    /// Stores the words.
    ///
    /// # Safety
    /// The contract of [`load`](Self::load).
    unsafe fn store(self, at: GlobalMut<u64>);
}

impl ValueWords for [u64; 1] {
    const COUNT: usize = 1;
    const ZERO: Self = [0];
    #[inline(always)]
    unsafe fn load(at: GlobalMut<u64>) -> Self {
        // SAFETY: the callee has this function's contract.
        [unsafe { atomic::load_relaxed(at) }]
    }
    #[inline(always)]
    unsafe fn store(self, at: GlobalMut<u64>) {
        // SAFETY: the callee has this function's contract.
        unsafe { atomic::store_relaxed(at, self[0]) }
    }
}

impl ValueWords for [u64; 2] {
    const COUNT: usize = 2;
    const ZERO: Self = [0; 2];
    #[inline(always)]
    unsafe fn load(at: GlobalMut<u64>) -> Self {
        // SAFETY: the callee has this function's contract.
        unsafe { atomic::load_relaxed2(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: GlobalMut<u64>) {
        // SAFETY: the callee has this function's contract.
        unsafe { atomic::store_relaxed2(at, self) }
    }
}

impl ValueWords for [u64; 4] {
    const COUNT: usize = 4;
    const ZERO: Self = [0; 4];
    #[inline(always)]
    unsafe fn load(at: GlobalMut<u64>) -> Self {
        // SAFETY: `at` is valid, by this function's contract; both pairs are aligned if the first is.
        let ([a, b], [c, d]) = unsafe { (atomic::load_relaxed2(at), atomic::load_relaxed2(at.at(2))) };
        [a, b, c, d]
    }
    #[inline(always)]
    unsafe fn store(self, at: GlobalMut<u64>) {
        let [a, b, c, d] = self;
        // SAFETY: `at` is valid, by this function's contract; both pairs are aligned if the first is.
        unsafe {
            atomic::store_relaxed2(at, [a, b]);
            atomic::store_relaxed2(at.at(2), [c, d]);
        }
    }
}

/// Returns the state that all words show; 0 if they do not agree yet, because a part of a store is not visible.
#[cfg(feature = "bodies")]
#[inline(always)]
fn state<W: ValueWords>(words: W) -> u64 {
    let (mut all, mut any) = (!0, 0);
    for &word in words.as_ref() {
        all &= word;
        any |= word;
    }
    if (all ^ any) & !PAYLOAD == 0 { all & !PAYLOAD } else { 0 }
}

/// A value that tiles can publish.
pub trait Published: Value {
    /// The words it takes.
    type Words: ValueWords;
    /// Returns the value's words, with the two highest bits of each clear.
    fn pack(self) -> Self::Words;
    /// Returns the value of words whose two highest bits are clear.
    fn unpack(words: Self::Words) -> Self;
}

/// Returns the number of words for `tiles` tiles that publish values of type `V`, to be allocated by the host.
pub const fn words<V: Published>(tiles: usize) -> usize {
    tiles * V::Words::COUNT
}

/// One word: a count has 62 bits.
impl Published for Count {
    type Words = [u64; 1];
    #[inline(always)]
    fn pack(self) -> [u64; 1] {
        [self.0]
    }
    #[inline(always)]
    fn unpack([count]: [u64; 1]) -> Self {
        Count(count)
    }
}

macro_rules! published {
    ($($number:ty as $unsigned:ty: $words:literal, $lift:literal;)*) => {$(
        impl Published for $number {
            type Words = [u64; $words];
            #[inline(always)]
            fn pack(self) -> Self::Words {
                let mut words = [0; $words];
                for i in 0..$words {
                    words[i] = (self as $unsigned as u64) >> (32 * i) & 0xffff_ffff;
                }
                words
            }
            #[inline(always)]
            fn unpack(words: Self::Words) -> Self {
                let mut bits = 0;
                for i in 0..$words {
                    bits |= (words[i] & 0xffff_ffff) << (32 * i);
                }
                bits as $number
            }
        }

        /// The flag goes above the last word's 32 bits of value.
        impl Published for Flagged<$number> {
            type Words = [u64; $words];
            #[inline(always)]
            fn pack(self) -> Self::Words {
                let mut words = self.value.pack();
                words[$words - 1] |= u64::from(self.head) << 32;
                words
            }
            #[inline(always)]
            fn unpack(words: Self::Words) -> Self {
                Flagged { head: words[$words - 1] >> 32 != 0, value: <$number>::unpack(words) }
            }
        }

        /// 62 bits of the value; the rest of it, and the heads.
        impl Published for Runs<$number> {
            type Words = [u64; 2];
            #[inline(always)]
            fn pack(self) -> [u64; 2] {
                let bits = self.value as $unsigned as u64;
                [bits & PAYLOAD, bits >> 62 | self.heads << 2]
            }
            #[inline(always)]
            fn unpack([low, high]: [u64; 2]) -> Self {
                Runs { heads: high >> 2, value: (low | high << 62) as $number }
            }
        }

        impl Published for Lift<$number> {
            type Words = [u64; $lift];
            #[inline(always)]
            fn pack(self) -> Self::Words {
                let (floor, add) = (self.floor.pack(), self.add.pack());
                let mut words = [0; $lift];
                for i in 0..$words {
                    words[i] = floor[i];
                    words[$words + i] = add[i];
                }
                words
            }
            #[inline(always)]
            fn unpack(words: Self::Words) -> Self {
                let (mut floor, mut add) = ([0; $words], [0; $words]);
                for i in 0..$words {
                    floor[i] = words[i];
                    add[i] = words[$words + i];
                }
                Lift { floor: <$number>::unpack(floor), add: <$number>::unpack(add) }
            }
        }
    )*};
}
published! {
    u32 as u32: 1, 2;
    i32 as u32: 1, 2;
    u64 as u64: 2, 4;
    i64 as u64: 2, 4;
}

/// Takes the block's tile: the number of blocks that did so before. All threads get it.
///
/// # Safety
/// - All threads of the block come here together.
/// - `counter` is one word, zero before the launch, used by this launch alone.
/// - `slot` is one word of shared memory that nothing else accesses meanwhile and until the next barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn ticket(counter: GlobalMut<u32>, slot: Shared<u32>) -> usize {
    // SAFETY: one thread writes the slot, and a barrier separates the write from the reads.
    unsafe {
        if thread::thread_idx_x() == 0 {
            slot.set(0, atomic::fetch_add(counter, 1));
        }
        thread::sync_threads();
        slot.get(0) as usize
    }
}

/// Publishes `value` as value `at` of `look_back`, in `state` ([`AGGREGATE`] or [`INCLUSIVE`]).
///
/// # Safety
/// - `look_back` has room for it, at an address divisible by 16, and is accessed by this module's functions only.
/// - No other thread publishes there.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn publish<V: Published>(look_back: GlobalMut<u64>, at: usize, state: u64, value: V) {
    let mut words = value.pack();
    for word in words.as_mut() {
        *word |= state;
    }
    // SAFETY: `look_back` has room for value `at`, by this function's contract.
    unsafe { words.store(look_back.at(at * V::Words::COUNT)) }
}

/// Returns the state of value `at`, and the value; state 0 if there is none yet.
///
/// # Safety
/// The contract of [`publish`], for reading.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn look<V: Published>(look_back: GlobalMut<u64>, at: usize) -> (u64, V) {
    // SAFETY: `look_back` has room for value `at`, by this function's contract.
    let mut words = unsafe { V::Words::load(look_back.at(at * V::Words::COUNT)) };
    let state = state(words);
    for word in words.as_mut() {
        *word &= PAYLOAD;
    }
    (state, V::unpack(words))
}

/// Returns value `at`, which was published before.
///
/// # Safety
/// - The contract of [`publish`], for reading.
/// - A fence of the publisher and one of the reader lie between the two.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn published<V: Published>(look_back: GlobalMut<u64>, at: usize) -> V {
    // SAFETY: `look_back` has room for value `at`, by this function's contract.
    unsafe { look::<V>(look_back, at).1 }
}

/// Combines values `0..tile` of `look_back`; run by one warp, each lane of which gets the result.
///
/// # Safety
/// - All lanes of the warp come here together.
/// - The contract of [`publish`] for `look_back`, and each of the tiles before `tile` publishes without waiting for
///   this one.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn exclusive_prefix<O: Operator<Value: Published>>(look_back: GlobalMut<u64>, tile: usize) -> O::Value {
    let lane = warp::lane_id();
    let mut prefix = O::IDENTITY;
    let mut end = tile; // tiles below `end` are still to be added
    // SAFETY: indices are below `tile`; loops and votes are the same for the whole warp.
    unsafe {
        loop {
            let inside = (lane as usize) < end;
            let mut state = INCLUSIVE; // of nothing, before the first tile
            let mut value = O::IDENTITY;
            if inside {
                (state, value) = look(look_back, end - 1 - lane as usize);
            }
            while warp::any(FULL_MASK, state == 0) {
                thread::spin_hint();
                if state == 0 {
                    (state, value) = look(look_back, end - 1 - lane as usize);
                }
            }
            let inclusive = warp::ballot(FULL_MASK, state == INCLUSIVE);
            let nearest = if inclusive == 0 { 31 } else { inclusive.trailing_zeros() };
            if lane > nearest {
                value = O::IDENTITY;
            }
            // Lane 0 is the latest tile: values of higher lanes precede those of lower ones.
            let mut distance = 1;
            while distance < 32 {
                let before = value.shuffle_down(distance);
                if lane + distance < 32 {
                    value = O::combine(before, value);
                }
                distance *= 2;
            }
            prefix = O::combine(value.shuffle_idx(0), prefix);
            if inclusive != 0 {
                return prefix;
            }
            end -= 32;
        }
    }
}

/// Combines the values of the tiles before `tile`, for all threads of its block, given the value of `tile` itself;
/// publishes both. The first warp looks back.
///
/// # Safety
/// - The contract of [`exclusive_prefix`].
/// - All threads of the block come here together, `aggregate` of the first thread is valid (that of the others is
///   ignored), and `slot` is room for a value in shared memory, aligned to 8 bytes, that nothing else accesses
///   meanwhile and until the next barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn tile_prefix<O: Operator<Value: Published>>(
    look_back: GlobalMut<u64>,
    tile: usize,
    aggregate: O::Value,
    slot: Shared<u32>,
) -> O::Value {
    let t = thread::thread_idx_x();
    // SAFETY: the first warp comes here as a whole, and one thread writes the slot and publishes; a barrier separates
    // the write of the slot from the reads.
    unsafe {
        if t < warp::WARP_SIZE {
            if t == 0 {
                publish(look_back, tile, if tile == 0 { INCLUSIVE } else { AGGREGATE }, aggregate);
            }
            let mut prefix = O::IDENTITY;
            if tile != 0 {
                prefix = exclusive_prefix::<O>(look_back, tile);
                if t == 0 {
                    publish(look_back, tile, INCLUSIVE, O::combine(prefix, aggregate));
                }
            }
            if t == 0 {
                prefix.to_shared(slot);
            }
        }
        thread::sync_threads();
        O::Value::from_shared(slot)
    }
}

#[cfg(test)]
pub(crate) mod tests;
