//! Stand-in for the emulator executor without the feature `emulator`: types without values, so that each `match` on a
//! device or a stream has the same arms.

use std::convert::Infallible;
use std::sync::Arc;

use warpset_simt::{KernelInfo, LaunchConfig, ThreadBody};

use crate::error::Result;
use crate::loaded::Asked;
use crate::memory::Budget;
use crate::pinned_pool::PinnedPool;
use crate::properties::{DeviceProperties, MemoryInfo};

/// An emulated device, which cannot be made.
pub(crate) struct EmulatedDevice {
    pub(crate) number: u64,
    pub(crate) budget: Budget,
    pub(crate) pinned: PinnedPool,
    pub(crate) asked: Asked,
    never: Infallible,
}

/// A stream of an emulated device, which cannot be made.
pub(crate) struct EmulatedStream(Infallible);

/// A point of such a stream.
#[derive(Clone)]
pub(crate) struct Point(Infallible);

macro_rules! never_called {
    ($type:ident: $never:tt;
        $(fn $name:ident($($ty:ty),*) $(-> $ret:ty)?;)* $(unsafe fn $unsafe_name:ident($($unsafe_ty:ty),*) -> Result<()>;)*
    ) => {
        impl $type {
            $(pub(crate) fn $name(&self $(, _: $ty)*) $(-> $ret)? {
                match self.$never {}
            })*

            $(
                /// # Safety
                /// There is no value to call it on.
                pub(crate) unsafe fn $unsafe_name(&self $(, _: $unsafe_ty)*) -> Result<()> {
                    match self.$never {}
                }
            )*
        }
    };
}

never_called! {
    EmulatedDevice: never;
    fn properties() -> &DeviceProperties;
    fn memory_info() -> MemoryInfo;
    fn allocate(usize) -> Result<usize>;
    fn free(usize, usize);
    fn synchronize() -> Result<()>;
    fn pass(&Point) -> Result<()>;
    fn has_passed(&Point) -> Result<bool>;
    fn poison(&mut [u64]);
    fn resident_blocks(&'static KernelInfo, LaunchConfig) -> Result<u32>;
    unsafe fn write(usize, *const u8, usize) -> Result<()>;
    unsafe fn read(usize, *mut u8, usize) -> Result<()>;
    unsafe fn set(usize, u8, usize) -> Result<()>;
}

never_called! {
    EmulatedStream: 0;
    fn end() -> Option<Point>;
    fn synchronize() -> Result<()>;
    fn is_idle() -> Result<bool>;
    fn wait(&EmulatedDevice, Point) -> Result<()>;
    fn wait_for(&EmulatedStream) -> Result<()>;
    fn allocate(usize) -> Result<usize>;
    fn free(usize, usize);
    unsafe fn upload(usize, *const u8, usize) -> Result<()>;
    unsafe fn download(*mut u8, usize, usize) -> Result<()>;
    unsafe fn copy(usize, &EmulatedDevice, usize, usize) -> Result<()>;
    unsafe fn set_bytes(usize, u8, usize) -> Result<()>;
    unsafe fn set_words(usize, u32, usize) -> Result<()>;
    unsafe fn launch(&'static KernelInfo, LaunchConfig, ThreadBody) -> Result<()>;
}

impl EmulatedStream {
    pub(crate) fn new(device: Arc<EmulatedDevice>) -> Self {
        match device.never {}
    }
}
