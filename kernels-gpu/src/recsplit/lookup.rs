//! Lookups in functions and static filters, one key per thread.
//!
//! Source: section 4.4.2 of the thesis, whose queries run on the host; the walk is that of
//! `warpset_core::recsplit::lookup`, as on the CPU. The threads of a warp go through its stages together: lists, higher
//! levels, two aggregation levels, leaf.

use warpset_core::bits::ByHalves;
use warpset_core::recsplit::fingerprint::fingerprint;
use warpset_core::recsplit::lookup::{Function, Plan, Words};
use warpset_core::recsplit::{Hash128, Remix};
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::hash128::hash128_at;
use crate::batch::keys::KeyKind;
use crate::batch::results;
use crate::recsplit::device_function::{DeviceFunction, DeviceWords};

/// Threads of a block, in every kernel of this module.
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

/// Numbers of 64 bits, and all ones for keys that are no members.
pub const NUMBERS_OR_ONES: u32 = 5;
/// Instead of a form of [`results`]: only numbers are wanted.
pub const NO_ANSWERS: u32 = !0;

/// What a function's kernels need to know of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FunctionPlan {
    /// What lookups want.
    pub plan: Plan,
    /// Words of the function.
    pub words: u64,
    /// [`Remix`] of the trial hashes.
    pub remix: u32,
    /// Bits of a fingerprint after the function's words, 0 for a function.
    pub width: u32,
}

/// The number of the key with this hash. Which remix it is, is asked at every trial hash, by all threads alike: two
/// versions of the walk would take twice as long to compile.
#[inline(always)]
fn number_of(function: DeviceFunction<'_>, hash: Hash128, remix: u32) -> u64 {
    let remix = if remix == Remix::Bits32 as u32 { Remix::Bits32 } else { Remix::Bits64 };
    function.value_of(hash, remix, ByHalves)
}

kernel! {
    /// Looks up `n` keys: place `i` of `out` becomes the number of key `i`, or the value at that number of `table`, as
    /// `form` says.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`].
    /// - `keys`: `n` keys of a kind that `hash128_at` takes, not written while the kernel runs.
    /// - `form`: [`NUMBERS_64`], [`NUMBERS_32`], [`VALUES_64`] or [`VALUES_32`]; with the last two `table` is valid for
    ///   `function.plan.values` reads of that size, and not written while the kernel runs.
    /// - `out`: room for `n` answers of that size, used by this launch alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn recsplit_lookup(
        words: Global<u64>, rows: Global<u64>, function: FunctionPlan, keys: Global<u64>, kind: KeyKind, seed: u64,
        n: usize, form: u32, table: Global<u64>, out: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, numbers are below `values`, and the rest is the caller's contract.
            unsafe {
                let hash = hash128_at(keys, kind, seed, i);
                let number = number_of(
                    DeviceFunction::new(words, function.words, rows, &function.plan), hash, function.remix,
                );
                match form {
                    NUMBERS_64 => out.write(i, number),
                    NUMBERS_32 => out.cast::<u32>().write(i, number as u32),
                    VALUES_64 => out.write(i, table.read_nc(number as usize)),
                    _ => out.cast::<u32>().write(i, table.cast::<u32>().read_nc(number as usize)),
                }
            }
        }
    }

    /// Looks up `n` keys in a static filter: whether each is a member goes to `found` in the form `found_form`, and its
    /// number, if it is one, else zero, to place `i` of `numbers`, unless `form` is [`NO_NUMBERS`].
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`]; `function.width` is from 1 to 32, and the
    ///   words go on with `fingerprints` words of fingerprints, one for each key.
    /// - `keys`: `n` keys of a kind that `hash128_at` takes, not written while the kernel runs.
    /// - `found`: [`results::words`] words, unless `found_form` is [`NO_ANSWERS`]; `numbers`: room for `n` numbers as
    ///   `form` says, [`NUMBERS_64`], [`NUMBERS_32`], [`NUMBERS_OR_ONES`] or [`NO_NUMBERS`]. Both are used by this
    ///   launch alone, but that counts are added atomically.
    #[launch_bounds(256, 5)]
    pub unsafe fn recsplit_contains(
        words: Global<u64>, rows: Global<u64>, function: FunctionPlan, fingerprints: u64, keys: Global<u64>,
        kind: KeyKind, seed: u64, n: usize, found_form: u32, found: GlobalMut<u64>, form: u32, numbers: GlobalMut<u64>,
    ) {
        let i = thread::index_1d() as usize;
        // SAFETY: `i < n` where a key is read and answered; all threads come to `put`; the rest is the caller's
        // contract.
        unsafe {
            let mut member = false;
            if i < n {
                let mut answer = 0;
                if function.plan.keys > 0 {
                    let hash = hash128_at(keys, kind, seed, i);
                    let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
                    let number = number_of(parts, hash, function.remix);
                    let kept = DeviceWords::new(words.at(function.words as usize), fingerprints);
                    member = kept.field(number * function.width as u64, function.width) == fingerprint(hash, function.width);
                    answer = if member { number } else { 0 };
                }
                match form {
                    NUMBERS_64 => numbers.write(i, answer),
                    NUMBERS_32 => numbers.cast::<u32>().write(i, answer as u32),
                    NUMBERS_OR_ONES => numbers.write(i, if member { answer } else { !0 }),
                    _ => {}
                }
            }
            if found_form != NO_ANSWERS {
                results::put(found_form, found, i, n, member);
            }
        }
    }
}
