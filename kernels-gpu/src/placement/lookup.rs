//! Lookups in placement functions and static filters around them, one key per thread: those of
//! `warpset_core::placement::lookup`, as on the CPU.

use warpset_core::placement::lookup::Plan;
#[cfg(feature = "bodies")]
use warpset_core::recsplit::Hash128;
use warpset_simt::{Global, GlobalMut};

use crate::batch::keys::KeyKind;
use crate::recsplit::answers::lookup_kernels;
#[cfg(feature = "bodies")]
use crate::recsplit::answers::{Query, contain, look_up};
#[cfg(feature = "bodies")]
use crate::recsplit::device_function::DeviceFunction;
#[cfg(feature = "bodies")]
use crate::recsplit::device_words::DeviceWords;

pub use crate::recsplit::answers::{BLOCK, FunctionPlan};

/// Returns the number of the key with this hash; there is one kind of hash.
#[cfg(feature = "bodies")]
#[inline(always)]
fn number_of(function: DeviceFunction<'_, Plan>, hash: Hash128, _remix: u32) -> u64 {
    function.number_of(hash)
}

lookup_kernels! { Plan, number_of, placement_lookup, placement_contains }
