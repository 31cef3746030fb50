//! Kernels of the blocked Bloom filter for blocks of 512 and 1024 bits, for shapes without kernels of their own: see
//! [`sectors`].
//!
//! A module of their own, because the driver compiles modules as a whole when they are first used.

use crate::bloom::batch_partition::{self, Parts};
#[cfg(doc)]
use crate::bloom::sectors;
use crate::bloom::sectors::{BLOCK, sectored_kernels};
#[cfg(feature = "bodies")]
use crate::bloom::sectors::{Sectored, insert_warp};
use warpset_simt::{Global, GlobalMut, thread, warp};

sectored_kernels! {
    sectors_wide, for_each_wide_layout:
    blocked_insert_512_1, blocked_contains_512_1, blocked_insert_parts_512_1: 512, 1, 4, 3;
    blocked_insert_512_2, blocked_contains_512_2, blocked_insert_parts_512_2: 512, 2, 4, 3;
    blocked_insert_512_4, blocked_contains_512_4, blocked_insert_parts_512_4: 512, 4, 4, 3;
    blocked_insert_512_8, blocked_contains_512_8, blocked_insert_parts_512_8: 512, 8, 4, 3;
    blocked_insert_512_16, blocked_contains_512_16, blocked_insert_parts_512_16: 512, 16, 4, 3;
    blocked_insert_1024_1, blocked_contains_1024_1, blocked_insert_parts_1024_1: 1024, 1, 4, 3;
    blocked_insert_1024_2, blocked_contains_1024_2, blocked_insert_parts_1024_2: 1024, 2, 4, 3;
    blocked_insert_1024_4, blocked_contains_1024_4, blocked_insert_parts_1024_4: 1024, 4, 4, 3;
    blocked_insert_1024_8, blocked_contains_1024_8, blocked_insert_parts_1024_8: 1024, 8, 4, 3;
    blocked_insert_1024_16, blocked_contains_1024_16, blocked_insert_parts_1024_16: 1024, 16, 4, 3;
    blocked_insert_1024_32, blocked_contains_1024_32, blocked_insert_parts_1024_32: 1024, 32, 4, 3;
}
