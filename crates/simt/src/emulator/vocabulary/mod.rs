//! The host half of the kernel vocabulary: each item asks the engine of the launch
//! that runs on this host thread.
pub mod atomic;
pub mod fence;
pub mod memory;
pub mod shared;
pub mod thread;
pub mod warp;
pub mod word;

#[inline(always)]
pub fn multiply_high(x: u32, y: u32) -> u32 {
    ((u64::from(x) * u64::from(y)) >> 32) as u32
}

#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    x
}
