//! Lookups in placement functions and static filters around them, one key per thread: those of
//! `warpset_core::placement::lookup`, as on the CPU.

use crate::recsplit::answers::lookup_kernels;
use warpset_core::placement::lookup::Plan;

lookup_kernels! { Plan, placement_lookup, placement_contains }
