//! Kernels of the blocked Bloom filter for blocks of 64 to 256 bits, for shapes without kernels of their own: see
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
    sectors_narrow, for_each_narrow_layout:
    blocked_insert_64_1, blocked_contains_64_1, blocked_insert_parts_64_1: 64, 1, 6, 3;
    blocked_insert_64_2, blocked_contains_64_2, blocked_insert_parts_64_2: 64, 2, 6, 2;
    blocked_insert_128_1, blocked_contains_128_1, blocked_insert_parts_128_1: 128, 1, 6, 3;
    blocked_insert_128_2, blocked_contains_128_2, blocked_insert_parts_128_2: 128, 2, 6, 2;
    blocked_insert_128_4, blocked_contains_128_4, blocked_insert_parts_128_4: 128, 4, 6, 2;
    blocked_insert_256_1, blocked_contains_256_1, blocked_insert_parts_256_1: 256, 1, 6, 3;
    blocked_insert_256_2, blocked_contains_256_2, blocked_insert_parts_256_2: 256, 2, 6, 3;
    blocked_insert_256_4, blocked_contains_256_4, blocked_insert_parts_256_4: 256, 4, 6, 3;
    blocked_insert_256_8, blocked_contains_256_8, blocked_insert_parts_256_8: 256, 8, 6, 3;
}
