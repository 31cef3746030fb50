//! Lookups in RecSplit functions and static filters around them, one key per thread.
//!
//! Source: section 4.4.2 of the thesis, where queries run on the host. The walk is that of
//! `warpset_core::recsplit::lookup`, as on the CPU. The threads of a warp go through its stages together: lists, higher
//! levels, two aggregation levels, leaf.

use warpset_core::recsplit::lookup::Plan;
#[cfg(feature = "bodies")]
use warpset_core::recsplit::{Hash128, Remix};
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

/// Returns the number of the key with this hash. The remix is tested at every trial hash, by all threads alike: two
/// versions of the walk would take twice as long to compile.
#[cfg(feature = "bodies")]
#[inline(always)]
fn number_of(function: DeviceFunction<'_, Plan>, hash: Hash128, remix: u32) -> u64 {
    let remix = if remix == Remix::Bits32 as u32 { Remix::Bits32 } else { Remix::Bits64 };
    function.number_of(hash, remix)
}

lookup_kernels! { Plan, number_of, recsplit_lookup, recsplit_contains }
