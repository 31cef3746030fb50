//! Special registers and block barriers.
use core::arch::nvptx;

macro_rules! registers {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        pub fn $name() -> u32 {
            // SAFETY: reads a special register.
            unsafe { nvptx::$intrinsic() as u32 }
        }
    )*};
}

registers! {
    thread_idx_x = _thread_idx_x;
    thread_idx_y = _thread_idx_y;
    thread_idx_z = _thread_idx_z;
    block_idx_x = _block_idx_x;
    block_idx_y = _block_idx_y;
    block_idx_z = _block_idx_z;
    block_dim_x = _block_dim_x;
    block_dim_y = _block_dim_y;
    block_dim_z = _block_dim_z;
    grid_dim_x = _grid_dim_x;
    grid_dim_y = _grid_dim_y;
    grid_dim_z = _grid_dim_z;
}

#[allow(improper_ctypes)]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    fn barrier(id: u32);
    #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
    fn barrier_popc(id: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.barrier.cta.red.and.aligned.all"]
    fn barrier_and(id: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    fn barrier_or(id: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.nanosleep"]
    fn sleep(nanoseconds: u32);
    #[link_name = "llvm.nvvm.read.ptx.sreg.clock"]
    fn read_clock() -> u32;
}

#[inline(always)]
pub fn sync_threads() {
    // SAFETY: a barrier touches no memory by itself; that all threads reach it is documented.
    unsafe { barrier(0) }
}

#[inline(always)]
pub fn sync_threads_count(predicate: bool) -> u32 {
    // SAFETY: as `sync_threads`.
    unsafe { barrier_popc(0, predicate) }
}

#[inline(always)]
pub fn sync_threads_and(predicate: bool) -> bool {
    // SAFETY: as `sync_threads`.
    unsafe { barrier_and(0, predicate) }
}

#[inline(always)]
pub fn sync_threads_or(predicate: bool) -> bool {
    // SAFETY: as `sync_threads`.
    unsafe { barrier_or(0, predicate) }
}

#[inline(always)]
pub fn spin_hint() {}

#[inline(always)]
pub fn nanosleep(nanoseconds: u32) {
    // SAFETY: only takes time.
    unsafe { sleep(nanoseconds) }
}

#[inline(always)]
pub fn clock() -> u32 {
    // SAFETY: reads a special register.
    unsafe { read_clock() }
}

#[inline(always)]
pub fn trap() -> ! {
    // SAFETY: ends the launch.
    unsafe { nvptx::trap() }
}
