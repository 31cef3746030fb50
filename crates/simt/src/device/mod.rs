//! The vocabulary on `nvptx64-nvidia-cuda`: LLVM intrinsics and inline PTX.
//!
//! Convergent operations are LLVM intrinsics, because LLVM would move inline assembly
//! into divergent branches. Shared memory is assembly on 32-bit addresses, because
//! rustc cannot name address space 3. Assembly that reads what another thread may
//! change is never `pure`. Read-modify-writes on global memory are core's relaxed
//! atomics (LLVM folds their addresses and drops unused results), except
//! compare-exchange, which core would do at system scope.
use core::arch::asm;

pub mod atomic;
pub mod fence;
pub mod memory;
mod panic;
pub mod shared;
pub mod thread;
pub mod warp;
pub mod word;

#[inline(always)]
pub fn opaque(mut x: u32) -> u32 {
    // SAFETY: the assembly is a comment.
    unsafe { asm!("/* {0} */", inout(reg32) x, options(pure, nomem, nostack, preserves_flags)) };
    x
}

#[inline(always)]
pub fn multiply_high(x: u32, y: u32) -> u32 {
    let high;
    // SAFETY: it is arithmetic.
    unsafe {
        asm!("mul.hi.u32 {}, {}, {};", lateout(reg32) high, in(reg32) x, in(reg32) y,
             options(pure, nomem, nostack, preserves_flags));
    }
    high
}

/// Leaves a comment in the kernel, which `warpset-builder` turns into directives.
#[inline(always)]
pub fn launch_bounds<const THREADS: u32, const BLOCKS: u32>() {
    // SAFETY: the assembly is a comment.
    unsafe {
        if BLOCKS == 0 {
            asm!("// @launch_bounds {}", const THREADS, options(nomem, nostack, preserves_flags));
        } else {
            asm!("// @launch_bounds {} {}", const THREADS, const BLOCKS, options(nomem, nostack, preserves_flags));
        }
    }
}
