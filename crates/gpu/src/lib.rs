//! Host runtime of Warpset: devices, streams, events, memory and launches, with two executors behind one API.
//!
//! | | [`Device::cuda`] | [`Device::emulator`] |
//! | --- | --- | --- |
//! | runs kernels | on an NVIDIA GPU, from device code or PTX | on the host, each GPU thread a coroutine |
//! | needs | feature `cuda`, and a driver for CUDA 12.0 or later when the program runs | nothing |
//! | a launch | is queued, and faults show at a later call | has run when it returns, and reports its fault |
//! | memory | device memory, from a pool of our own | host memory, poisoned, with every access checked |
//!
//! The feature `cuda` builds with Cargo alone: no CUDA toolkit, no C compiler, no environment variable. The driver is
//! loaded when the program first asks for a device; the same binary runs without one ([`Backend::auto`] reports the
//! device found, or the reason why there is none). Failures are [`GpuError`]s, whose messages name cause and remedy.
//!
//! | type | use it to |
//! | --- | --- |
//! | [`Device`], [`Devices`] | open a GPU or an emulated device; allocate; query memory and limits |
//! | [`Stream`], [`Event`] | queue work; order streams |
//! | [`DeviceVec`], [`DeviceSlice`], [`DeviceSliceMut`] | own and borrow device memory |
//! | [`PinnedVec`] | hold page-locked host memory for fast copies |
//! | [`mod@batch`] | pass keys and stencils in device memory to the structures |
//! | [`mod@dlpack`], [`CudaArrayInterface`], [`AdoptedMemory`] | exchange memory with other libraries |
//!
//! **Cost.** The first device of a process loads the driver and its context, and the first launch of a kernel loads
//! that kernel ([`Device::loaded_kernels`] lists the times). Allocations come from a pool and wait for nothing.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_simt::{Global, GlobalMut, LaunchConfig, kernel, thread};
//!
//! kernel! {
//!     /// `to[i] = from[i] + 1`.
//!     ///
//!     /// # Safety
//!     /// Both are valid for `n` words, and no other thread accesses `to`.
//!     pub unsafe fn increment(from: Global<u32>, to: GlobalMut<u32>, n: usize) {
//!         for i in thread::grid_stride(n) {
//!             // SAFETY: `i < n`, and each `i` belongs to one thread.
//!             unsafe { to.write(i, from.read(i) + 1) };
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), warpset_gpu::GpuError> {
//! let device = Device::emulator(Default::default());
//! let stream = device.new_stream()?;
//! let from = device.from_slice(&[1, 2, 3])?;
//! let mut to = device.alloc_uninit::<u32>(3)?;
//! // SAFETY: both vectors hold three words and live until the stream has passed.
//! unsafe { increment { from: from.global(), to: to.global_mut(), n: 3 }.launch(&stream, LaunchConfig::covering(3, 256))? };
//! stream.synchronize()?;
//! assert_eq!(to.to_vec()?, [2, 3, 4]);
//! # Ok(())
//! # }
//! ```
//!
//! # What is ordered with what
//!
//! - Work on one stream runs in order; streams run side by side unless one waits for another ([`Stream::wait`]).
//! - Methods of vectors and slices ([`DeviceVec::to_vec`], [`DeviceVec::copy_from_slice`]) wait: first for everything
//!   that was queued on any stream of the device, then for themselves. The copying methods of [`Stream`] come after
//!   that stream's work only.
//! - A vector's memory is given back after everything that was queued when it was dropped. Drop things in any order.
//! - Kernels get bare addresses, so launches are `unsafe`: the caller keeps the vectors alive until the launch is
//!   queued, and orders other streams and the host after it.

#![warn(clippy::missing_errors_doc)]
// Functions that only emulated devices call.
#![cfg_attr(not(feature = "emulator"), allow(dead_code))]

mod adopt;
#[doc(hidden)]
pub mod arena;
mod backend;
pub mod batch;
#[cfg(feature = "cuda")]
mod cuda;
mod cuda_array;
mod device;
mod devices;
pub mod dlpack;
#[cfg_attr(not(feature = "emulator"), path = "no_emulator.rs")]
mod emulated;
mod error;
mod event;
mod faults;
mod host;
#[doc(hidden)]
pub mod lane;
mod launch;
mod loaded;
mod memory;
mod pinned;
mod pinned_pool;
mod properties;
mod ptx;
mod slice;
mod stream;
#[cfg(feature = "emulator")]
#[doc(hidden)]
pub mod testing;
mod transfer;
mod upload;
mod vector;
mod workers;
mod zeroed;

pub use adopt::AdoptedMemory;
pub use backend::{BACKEND_VARIABLE, Backend};
pub use cuda_array::{ArrayItem, CudaArrayInterface};
pub use device::Device;
pub use devices::Devices;
#[cfg(feature = "emulator")]
pub use emulated::EmulatorOptions;
pub use error::{CudaVersion, DriverCode, GpuError, Result};
pub use event::Event;
pub use loaded::LoadedKernel;
pub use pinned::{Pending, PinnedVec};
pub use properties::{DeviceProperties, KernelAttributes, MemoryInfo};
pub use ptx::register_ptx;
pub use slice::{DeviceSlice, DeviceSliceMut};
pub use stream::Stream;
pub use vector::DeviceVec;
#[doc(hidden)]
pub use workers::{beside, on_threads};
#[doc(hidden)]
pub use zeroed::ZeroedWords;

#[cfg(feature = "emulator")]
pub use warpset_simt::emulator;
pub use warpset_simt::{Dim3, KernelInfo, LaunchConfig, Launcher};
