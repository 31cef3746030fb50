//! Lookups in RecSplit functions and static filters around them, one key per thread.
//!
//! Source: section 4.4.2 of the thesis, where queries run on the host. The walk is that of
//! `warpset_core::recsplit::lookup`, as on the CPU. The threads of a warp go through its stages together: lists, higher
//! levels, two aggregation levels, leaf.

use crate::recsplit::answers::lookup_kernels;
use warpset_core::recsplit::lookup::Plan;

lookup_kernels! { Plan, recsplit_lookup, recsplit_contains }
