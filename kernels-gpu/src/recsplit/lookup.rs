//! Lookups in functions and static filters, one key per thread.
//!
//! Source: section 4.4.2 of the thesis, whose queries run on the host; the walk is that of
//! `warpset_core::recsplit::lookup`, as on the CPU. The threads of a warp go through its stages together: lists, higher
//! levels, two aggregation levels, leaf.

use warpset_core::bits::ByHalves;
use warpset_core::recsplit::lookup::{Function, Plan};
use warpset_core::recsplit::{Hash128, Remix};
use warpset_simt::{Global, GlobalMut};

use crate::batch::keys::KeyKind;
use crate::recsplit::answers::Asked;
#[cfg(feature = "bodies")]
use crate::recsplit::answers::{contain, look_up};
#[cfg(feature = "bodies")]
use crate::recsplit::device_function::DeviceFunction;
#[cfg(feature = "bodies")]
use crate::recsplit::device_words::DeviceWords;

pub use crate::recsplit::answers::BLOCK;

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
#[cfg(feature = "bodies")]
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
    /// - The rest: as for [`look_up`], whose numbers are below `function.plan.values`.
    #[launch_bounds(256, 5)]
    pub unsafe fn recsplit_lookup(
        words: Global<u64>, rows: Global<u64>, function: FunctionPlan, keys: Global<u64>, kind: KeyKind, seed: u64,
        n: usize, form: u32, table: Global<u64>, out: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
            let asked = Asked { keys, kind, seed, n };
            look_up(asked, (form, table, out), |hash| number_of(parts, hash, function.remix));
        }
    }

    /// Looks up `n` keys in a static filter: whether each is a member goes to `found` in the form `found_form`, and its
    /// number, if it is one, else zero, to place `i` of `numbers`, unless `form` is
    /// [`NO_NUMBERS`](crate::recsplit::answers::NO_NUMBERS).
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`]; `function.width` is from 1 to 32, and the
    ///   words go on with `fingerprints` words of fingerprints, one for each key.
    /// - The rest: as for [`contain`].
    #[launch_bounds(256, 5)]
    pub unsafe fn recsplit_contains(
        words: Global<u64>, rows: Global<u64>, function: FunctionPlan, fingerprints: u64, keys: Global<u64>,
        kind: KeyKind, seed: u64, n: usize, found_form: u32, found: GlobalMut<u64>, form: u32, numbers: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
            let kept = DeviceWords::new(words.at(function.words as usize), fingerprints);
            let kept = if function.plan.keys > 0 { Some(kept) } else { None };
            let asked = Asked { keys, kind, seed, n };
            contain(asked, (kept, function.width), (found_form, found), (form, numbers), |hash| {
                number_of(parts, hash, function.remix)
            });
        }
    }
}
