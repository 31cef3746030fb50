//! Lookups in Consensus functions and static filters around them, one key per thread: the walk of
//! `warpset_core::consensus::lookup`, as on the CPU.

use crate::recsplit::answers::lookup_kernels;
use warpset_core::consensus::lookup::Plan;

lookup_kernels! { Plan, consensus_lookup, consensus_contains }
