//! Loads of saved dictionaries into their final memory: the image is not in memory twice.
//!
//! The test is alone in its executable, because it counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use warpset_lsm::{CleanupPolicy, Lsm, SortedArray};

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

/// Returns the peak of additional bytes in use while `load` runs.
fn peak<T>(load: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let loaded = load();
    (loaded, MOST.load(Ordering::Relaxed) - before)
}

#[test]
fn loading_takes_the_memory_of_what_is_loaded() {
    let keys: Vec<u64> = (0..400_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let values: Vec<[u8; 12]> = keys.iter().map(|key| std::array::from_fn(|i| (key >> i) as u8)).collect();
    let mut lsm = Lsm::builder().batch_size(1 << 10).cleanup(CleanupPolicy::Manual).build().unwrap();
    for (keys, values) in keys.chunks(100_000).zip(values.chunks(100_000)) {
        lsm.insert_bulk(keys, values).unwrap();
    }
    lsm.remove_bulk(&keys[..50_000]).unwrap();
    assert!(lsm.level_lens().len() > 1);
    let array = SortedArray::builder().build_from(&keys, &values).unwrap();
    let path = std::env::temp_dir().join(format!("warpset-lsm-load-{}", std::process::id()));
    // The elements, and half a megabyte for anything else.
    let fits = |peak: usize, bytes: u64| {
        let most = bytes as usize + (1 << 19);
        assert!(peak <= most, "{peak} bytes for {bytes}");
    };
    lsm.save(&path).unwrap();
    let (loaded, of_tree) = peak(|| Lsm::<u64, [u8; 12]>::load(&path).unwrap());
    assert!(loaded == lsm);
    fits(of_tree, loaded.memory_bytes());
    array.save(&path).unwrap();
    let (loaded, of_array) = peak(|| SortedArray::<u64, [u8; 12]>::load(&path).unwrap());
    assert!(loaded == array);
    fits(of_array, loaded.memory_bytes());
    // SAFETY: no other process has the path of the file.
    let (mapped, of_map) = peak(|| unsafe { SortedArray::<u64, [u8; 12]>::map(&path).unwrap() });
    assert!(mapped.iter().eq(array.iter()) && of_map < 1 << 16, "{of_map}");
    std::fs::remove_file(&path).unwrap();
}
