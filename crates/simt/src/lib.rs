//! Vocabulary of Warpset's kernels, for two targets.
//!
//! | | `nvptx64-nvidia-cuda` | the host |
//! | --- | --- | --- |
//! | a thread | a GPU thread | a coroutine of the [emulator] |
//! | [`Global`], [`GlobalMut`] | one pointer | pointer and length, checked at each access |
//! | [`shared::Shared`] | a 32-bit address, `ld.shared`/`st.shared` | an offset, checked |
//! | [`warp`], [`thread::sync_threads`] | LLVM's convergent intrinsics | suspension points, checked for divergence |
//! | [`atomic`], [`fence`] | PTX operations at GPU scope | host atomics with seeded delays |
//!
//! Kernels are written once, with [`kernel!`], and use nothing but this crate and arithmetic. The names follow
//! `cuda_std`. The documentation is here; the two implementations are in `src/device` and `src/emulator`.
//!
//! Versions are those of `warpset`, and follow its promise. The vocabulary costs nothing on the device; on the emulator
//! every access is checked. Faults there are [`emulator::Fault`]s, which name kernel, thread, source line and seed. The
//! crate writes no files.
//!
//! ```
//! use warpset_simt::{Global, GlobalMut, LaunchConfig, kernel, thread};
//! use warpset_simt::emulator::{Config, Emulator};
//!
//! kernel! {
//!     /// `y[i] += a * x[i]`.
//!     ///
//!     /// # Safety
//!     /// `x` and `y` are valid for `n` elements; no other thread accesses `y`.
//!     pub unsafe fn saxpy(a: u32, x: Global<u32>, y: GlobalMut<u32>, n: usize) {
//!         for i in thread::grid_stride(n) {
//!             // SAFETY: `i < n`, and each `i` belongs to one thread.
//!             unsafe { y.write(i, y.read(i).wrapping_add(a.wrapping_mul(x.read(i)))) };
//!         }
//!     }
//! }
//!
//! let emulator = Emulator::new(Config::default());
//! let x = emulator.buffer_from(&[1, 2, 3]);
//! let y = emulator.buffer_from(&[10, 20, 30]);
//! // SAFETY: both buffers hold three words, and this is the only launch.
//! unsafe { saxpy { a: 5, x: x.global(), y: y.global_mut(), n: 3 }.launch(&emulator, LaunchConfig::new(2, 32)) }.unwrap();
//! assert_eq!(y.to_vec(), [15, 30, 45]);
//! ```
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx, asm_experimental_arch, link_llvm_intrinsics))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

pub mod allow;
pub mod atomic;
pub mod fence;
mod hint;
mod kernel;
mod memory;
mod module;
pub mod shared;
pub mod thread;
pub mod warp;
mod word;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(target_arch = "nvptx64")]
use device as target;

#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
pub mod emulator;
#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(not(target_arch = "nvptx64"))]
use host as target;

pub use hint::{multiply_high, opaque};
pub use kernel::{Dim3, EntryOf, KernelInfo, LaunchBounds, LaunchConfig, Launcher, ThreadBody};
pub use memory::{Global, GlobalMut};
pub use module::{Module, Ptx};
pub use word::{AtomicWord, MatchWord, ShuffleWord, Word};

#[doc(hidden)]
pub mod macro_support {
    //! Names that the expansion of `kernel!` uses.
    #[cfg(target_arch = "nvptx64")]
    pub use crate::device::launch_bounds;
    pub use crate::module::{no_module, top_module};
    #[cfg(not(target_arch = "nvptx64"))]
    pub use std::boxed::Box;
}
