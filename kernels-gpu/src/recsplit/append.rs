//! Appending to lists of nodes.

use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{GlobalMut, atomic};

use crate::recsplit::nodes::{HIGHER, Item, NO_LIST};

/// Appends each lane's `item` to its `list`: nowhere if that is [`NO_LIST`], to the list `higher` if it is [`HIGHER`].
/// The order within a list is not determined; what stands in `numbers` in the end does not depend on it.
///
/// # Safety
/// - All lanes of the warp come here together.
/// - `cursors`: where the next item of each list goes, a word per list, accessed by atomics alone while the kernel
///   runs.
/// - `items`: valid for the items of all lists, each written once.
#[inline(always)]
#[track_caller]
pub unsafe fn append(list: u32, higher: u32, item: Item, cursors: GlobalMut<u32>, items: GlobalMut<u32>) {
    let list = if list == HIGHER { higher } else { list };
    // SAFETY: the caller's promise; the first lane of those with the same list asks for places for all of them.
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
