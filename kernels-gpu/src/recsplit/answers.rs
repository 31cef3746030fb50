//! Lookups of every kind of function: queries, forms of answers, and the kernels.

use warpset_core::recsplit::Hash128;
use warpset_core::recsplit::fingerprint::fingerprint;
use warpset_core::recsplit::lookup::Words;
use warpset_simt::{Global, GlobalMut, thread};

#[cfg(feature = "bodies")]
use crate::batch::hash128::hash128_at;
use crate::batch::keys::KeyKind;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::recsplit::device_words::DeviceWords;

/// Threads of a block, in every kernel that looks keys up.
pub const BLOCK: u32 = 256;

/// Numbers of 64 bits.
pub const NUMBERS_64: u32 = 0;
/// Numbers of 32 bits.
pub const NUMBERS_32: u32 = 1;
/// Values of 64 bits from a table.
pub const VALUES_64: u32 = 2;
/// Values of 32 bits from a table.
pub const VALUES_32: u32 = 3;
/// No numbers, only whether keys are members.
pub const NO_NUMBERS: u32 = 4;

/// Parts of a function that its kernels need besides words and rows; `P` is the plan of its kind.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FunctionPlan<P> {
    /// Fields of the header, as lookups need them.
    pub plan: P,
    /// Words of the function.
    pub words: u64,
    /// [`Remix`](warpset_core::recsplit::Remix) of RecSplit's trial hashes; 0 for Consensus.
    pub remix: u32,
    /// Bits of a fingerprint after the function's words, 0 for a function.
    pub width: u32,
}

/// Keys of a lookup.
#[derive(Clone, Copy)]
pub struct Query {
    /// The keys.
    pub keys: Global<u64>,
    /// Type of the keys.
    pub kind: KeyKind,
    /// Seed of their hash.
    pub seed: u64,
    /// Their number.
    pub n: usize,
}

#[cfg(feature = "bodies")]
impl Query {
    /// Returns the hash of key `i`.
    ///
    /// # Safety
    /// `i < n`; `keys` has `n` keys of a kind that `hash128_at` takes, and nothing writes them.
    #[inline(always)]
    unsafe fn hash(&self, i: usize) -> Hash128 {
        // SAFETY: this function's contract.
        unsafe { hash128_at(self.keys, self.kind, self.seed, i) }
    }
}

/// Writes the number of every key, or the value at that number of `table`, in the form `form`; one key per thread.
///
/// # Safety
/// - `query`: `n` keys of a kind that `hash128_at` takes, not written while the kernel runs.
/// - `form`: [`NUMBERS_64`], [`NUMBERS_32`], [`VALUES_64`] or [`VALUES_32`]; with the last two `table` is valid at all
///   that `number_of` returns, and not written while the kernel runs.
/// - `out`: `n` places of that size, used by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn look_up(
    query: Query,
    (form, table, out): (u32, Global<u64>, GlobalMut<u64>),
    number_of: impl Fn(Hash128) -> u64,
) {
    for i in thread::grid_stride(query.n) {
        // SAFETY: `i < n`, and the rest is this function's contract.
        unsafe {
            let number = number_of(query.hash(i));
            match form {
                NUMBERS_64 => out.write(i, number),
                NUMBERS_32 => out.cast::<u32>().write(i, number as u32),
                VALUES_64 => out.write(i, table.read_nc(number as usize)),
                _ => out.cast::<u32>().write(i, table.cast::<u32>().read_nc(number as usize)),
            }
        }
    }
}

/// Writes whether each key is a member of a static filter to `found` in the form `found_form`. Writes its number if it
/// is one, else zero, to place `i` of `numbers`, unless `form` is [`NO_NUMBERS`]. One key per thread. Without
/// fingerprints there are no members.
///
/// # Safety
/// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
/// - `query`: as for [`look_up`]. `width` is from 1 to 32, and `kept` has a fingerprint for all that `number_of`
///   returns.
/// - `found`: [`results::words`] words; `numbers`: `n` places of the form `form`, [`NUMBERS_64`], [`NUMBERS_32`] or
///   [`NO_NUMBERS`]. Both are used by this launch alone, except that counts are added atomically.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn contain(
    query: Query,
    (kept, width): (Option<DeviceWords>, u32),
    (found_form, found): (u32, GlobalMut<u64>),
    (form, numbers): (u32, GlobalMut<u64>),
    number_of: impl Fn(Hash128) -> u64,
) {
    let i = thread::index_1d() as usize;
    // SAFETY: `i < n` where a key is read and answered; all threads reach `put`; the rest is this function's contract.
    unsafe {
        let mut member = false;
        if i < query.n {
            let mut answer = 0;
            if let Some(kept) = kept {
                let hash = query.hash(i);
                let number = number_of(hash);
                member = kept.field(number * width as u64, width) == fingerprint(hash, width);
                answer = if member { number } else { 0 };
            }
            match form {
                NUMBERS_64 => numbers.write(i, answer),
                NUMBERS_32 => numbers.cast::<u32>().write(i, answer as u32),
                _ => {}
            }
        }
        results::put(found_form, found, i, query.n, member);
    }
}

/// Makes the two kernels of a kind with the plan `$plan`: `$lookup` for functions, `$contains` for static filters
/// around them.
macro_rules! lookup_kernels {
    ($plan:ty, $lookup:ident, $contains:ident) => {
        use warpset_simt::{Global, GlobalMut};

        use crate::batch::keys::KeyKind;
        #[cfg(feature = "bodies")]
        use crate::recsplit::answers::{Query, contain, look_up};
        #[cfg(feature = "bodies")]
        use crate::recsplit::device_function::DeviceFunction;
        #[cfg(feature = "bodies")]
        use crate::recsplit::device_words::DeviceWords;

        pub use crate::recsplit::answers::{BLOCK, FunctionPlan};

        kernel! {
            /// Looks up `n` keys: place `i` of `out` becomes the number of key `i`, or the value at that number of
            /// `table`, as `form` says.
            ///
            /// # Safety
            /// - Launch: 1-D, any grid and block size, no shared memory.
            /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`].
            /// - The rest: as for [`look_up`]; numbers are below the plan's number of values, or zero.
            #[launch_bounds(256, 5)]
            pub unsafe fn $lookup(
                words: Global<u64>, rows: Global<u64>, function: FunctionPlan<$plan>, keys: Global<u64>, kind: KeyKind,
                seed: u64, n: usize, form: u32, table: Global<u64>, out: GlobalMut<u64>,
            ) {
                // SAFETY: words, rows and plan are those of one function, and keys and places are `n`, by this kernel's
                // contract.
                unsafe {
                    let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
                    let query = Query { keys, kind, seed, n };
                    look_up(query, (form, table, out), |hash| parts.number_of(hash, function.remix));
                }
            }

            /// Looks up `n` keys in a static filter. Whether each is a member goes to `found` in the form `found_form`.
            /// Place `i` of `numbers` becomes the number of key `i` if it is a member, else zero, unless `form` is
            /// [`NO_NUMBERS`](crate::recsplit::answers::NO_NUMBERS).
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
            /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`]; `function.width` is from 1 to 32, and
            ///   `fingerprints` words of fingerprints, one per key, follow the function's words.
            /// - The rest: as for [`contain`].
            #[launch_bounds(256, 5)]
            pub unsafe fn $contains(
                words: Global<u64>, rows: Global<u64>, function: FunctionPlan<$plan>, fingerprints: u64,
                keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, found_form: u32, found: GlobalMut<u64>,
                form: u32, numbers: GlobalMut<u64>,
            ) {
                // SAFETY: words, rows and plan are those of one function, followed by its fingerprints, and keys and
                // places are `n`, by this kernel's contract.
                unsafe {
                    let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
                    let kept = DeviceWords::new(words.at(function.words as usize), fingerprints);
                    let kept = if function.plan.keys > 0 { Some(kept) } else { None };
                    let query = Query { keys, kind, seed, n };
                    contain(query, (kept, function.width), (found_form, found), (form, numbers), |hash| {
                        parts.number_of(hash, function.remix)
                    });
                }
            }
        }
    };
}
pub(crate) use lookup_kernels;
