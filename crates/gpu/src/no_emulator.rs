//! Stand-in for the emulator executor without the feature `emulator`: a type without values, so that each `match` on a
//! device has the same arms.

use std::convert::Infallible;

use warpset_simt::{KernelInfo, LaunchConfig};

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

macro_rules! never_called {
    ($(fn $name:ident($($ty:ty),*) $(-> $ret:ty)?;)* $(unsafe fn $unsafe_name:ident($($unsafe_ty:ty),*) -> Result<()>;)*) => {
        impl EmulatedDevice {
            $(pub(crate) fn $name(&self $(, _: $ty)*) $(-> $ret)? {
                match self.never {}
            })*

            $(
                /// # Safety
                /// There is no device to call it on.
                pub(crate) unsafe fn $unsafe_name(&self $(, _: $unsafe_ty)*) -> Result<()> {
                    match self.never {}
                }
            )*
        }
    };
}

never_called! {
    fn properties() -> &DeviceProperties;
    fn memory_info() -> MemoryInfo;
    fn allocate(usize) -> Result<usize>;
    fn free(usize);
    fn launch(&'static KernelInfo, LaunchConfig, &(dyn Fn() + Sync)) -> Result<()>;
    fn resident_blocks(&'static KernelInfo, LaunchConfig) -> Result<u32>;
    unsafe fn write(usize, *const u8, usize) -> Result<()>;
    unsafe fn read(usize, *mut u8, usize) -> Result<()>;
    unsafe fn copy(usize, usize, usize) -> Result<()>;
    unsafe fn set(usize, u8, usize) -> Result<()>;
    unsafe fn set_words(usize, u32, usize) -> Result<()>;
}
