//! Vocabulary of kernels on the host: each item calls the engine of the launch that runs on this host thread. Without
//! the emulator no kernel runs on the host, and each item panics.
pub mod atomic;
pub mod fence;
pub mod memory;
#[cfg(not(feature = "emulator"))]
mod no_engine;
#[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "only the engine looks at operations"))]
pub mod operation;
pub mod shared;
pub mod thread;
pub mod warp;
pub mod word;

#[cfg(feature = "emulator")]
use crate::emulator::engine;
#[cfg(not(feature = "emulator"))]
use no_engine as engine;

#[inline(always)]
pub fn multiply_high(x: u32, y: u32) -> u32 {
    ((u64::from(x) * u64::from(y)) >> 32) as u32
}

#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    x
}
