//! Loads of saved dictionaries into their final memory: the image is not in memory twice.
//!
//! The test is alone in its executable, because it counts the allocations of the whole process.

use peak_alloc::PeakAlloc;
use warpset_lsm::{CleanupPolicy, Lsm, SortedArray};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Returns the peak of additional bytes in use while `load` runs.
fn peak<T>(load: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let loaded = load();
    (loaded, MEMORY.peak_usage() - before)
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
