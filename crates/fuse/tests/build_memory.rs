//! Memory of builds: a sharded filter takes at most 12 bytes per key beside itself.
//!
//! The test is alone in its executable, because it counts the allocations of the whole process.

use peak_alloc::PeakAlloc;
use warpset_fuse::{Arity, BinaryFuse8, Form};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn sharded_builds_take_twelve_bytes_per_key() {
    let keys: Vec<u64> = (0..500_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for arity in [Arity::Three, Arity::Four] {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let builder = BinaryFuse8::builder().form(Form::Sharded).arity(arity);
        let filter = pool.install(|| builder.build_from(&keys)).unwrap();
        let beside = MEMORY.peak_usage() - before - filter.memory_bytes() as usize;
        assert!(beside <= 12 * keys.len(), "{beside} bytes for {} keys", keys.len());
    }
}
