//! Lookups in functions and static filters, one key per thread: the walk of `warpset_core::consensus::lookup`, as on
//! the CPU.

use warpset_core::bits::ByHalves;
use warpset_core::consensus::lookup::{Function, Plan};
use warpset_simt::{Global, GlobalMut};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::consensus::device_function::DeviceFunction;
use crate::recsplit::answers::Asked;
#[cfg(feature = "bodies")]
use crate::recsplit::answers::{contain, look_up};
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
    /// Bits of a fingerprint after the function's words, 0 for a function.
    pub width: u32,
}

kernel! {
    /// Looks up `n` keys: place `i` of `out` becomes the number of key `i`, or the value at that number of `table`, as
    /// `form` says.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `words`, `rows` and `function`: as for [`DeviceFunction::new`].
    /// - The rest: as for [`look_up`], whose numbers are below `function.plan.keys`, or zero.
    #[launch_bounds(256, 5)]
    pub unsafe fn consensus_lookup(
        words: Global<u64>, rows: Global<u64>, function: FunctionPlan, keys: Global<u64>, kind: KeyKind, seed: u64,
        n: usize, form: u32, table: Global<u64>, out: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            let parts = DeviceFunction::new(words, function.words, rows, &function.plan);
            look_up(Asked { keys, kind, seed, n }, (form, table, out), |hash| parts.value_of(hash, ByHalves));
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
    pub unsafe fn consensus_contains(
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
                parts.value_of(hash, ByHalves)
            });
        }
    }
}
