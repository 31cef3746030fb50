//! Memory of builds: a sharded filter takes at most 12 bytes per key beside itself.
//!
//! The test is alone in its executable, because it counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use warpset_fuse::{Arity, BinaryFuse8, Form};

struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is passed to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn sharded_builds_take_twelve_bytes_per_key() {
    let keys: Vec<u64> = (0..500_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for arity in [Arity::Three, Arity::Four] {
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let builder = BinaryFuse8::builder().form(Form::Sharded).arity(arity);
        let filter = pool.install(|| builder.build_from(&keys)).unwrap();
        let beside = MOST.load(Ordering::Relaxed) - before - filter.memory_bytes() as usize;
        assert!(beside <= 12 * keys.len(), "{beside} bytes for {} keys", keys.len());
    }
}
