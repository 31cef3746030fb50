//! Appends to lists of nodes.

use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{GlobalMut, atomic};

use crate::recsplit::nodes::{HIGHER, Item, NO_LIST};

/// Appends each lane's `item` to its `list`: nowhere for [`NO_LIST`], to the list `higher` for [`HIGHER`]. The order
/// within a list is undetermined; the final contents of `numbers` do not depend on it.
///
/// # Safety
/// - All lanes of the warp come here together.
/// - `cursors`: position of each list's next item, a word per list, accessed by atomics alone while the kernel runs.
/// - `items`: valid for the items of all lists, each written once.
#[inline(always)]
#[track_caller]
pub unsafe fn append(list: u32, higher: u32, item: Item, cursors: GlobalMut<u32>, items: GlobalMut<u32>) {
    let list = if list == HIGHER { higher } else { list };
    // SAFETY: this function's contract; the first lane of those with the same list takes places for all of them.
    unsafe {
        let same = warp::match_any(FULL_MASK, list);
        let first = same.trailing_zeros();
        let mut place = 0;
        if list != NO_LIST && first == warp::lane_id() {
            place = atomic::fetch_add(cursors.at(list as usize), same.count_ones());
        }
        let place = warp::shuffle_idx(FULL_MASK, place, first);
        if list != NO_LIST {
            item.write(items, (place + (same & warp::lane_mask_lt()).count_ones()) as usize);
        }
    }
}
