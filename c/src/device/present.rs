//! Memory of the caller on a device.

use bytemuck::Pod;
use warpset::gpu::{AdoptedMemory, Device, DeviceSlice};

use super::warpset_device_keys;
use crate::error::{Failure, Result, warpset_status as Status};
use crate::keys::warpset_key_type;

/// Keys on the device of a structure, by their type. Signed integers of 64 bits are keys by their bits.
pub enum Adopted<'a> {
    U32(AdoptedMemory<'a, u32>),
    I32(AdoptedMemory<'a, i32>),
    U64(AdoptedMemory<'a, u64>),
}

impl Adopted<'_> {
    /// Returns keys of 64 bits, for structures that take no others on a device.
    pub fn words(&self) -> Result<DeviceSlice<'_, u64>> {
        match self {
            Adopted::U64(memory) => Ok(memory.as_slice()),
            _ => Err(Failure::new(Status::WrongType, "this structure takes keys of 64 bits on a device")),
        }
    }
}

/// Runs `$body` with the slice of keys under the name `$keys`, whatever their type.
macro_rules! with_device_keys {
    ($adopted:expr, |$keys:ident| $body:expr) => {
        match $adopted {
            $crate::device::Adopted::U32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Adopted::I32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Adopted::U64(memory) => {
                let $keys = memory.as_slice();
                $body
            }
        }
    };
}
pub(crate) use with_device_keys;

/// Items of the caller in device memory.
#[derive(Clone, Copy)]
pub struct Address<T> {
    address: u64,
    len: usize,
    items: std::marker::PhantomData<T>,
}

impl<T: Pod> Address<T> {
    pub fn new(address: u64, len: usize) -> Self {
        Address { address, len, items: std::marker::PhantomData }
    }

    /// Returns the memory on the device of a structure.
    ///
    /// # Safety
    /// The memory is valid for `len` items, and work of the caller on it is ordered with that of this call.
    pub unsafe fn adopt<'a>(self, device: &Device) -> Result<AdoptedMemory<'a, T>> {
        // SAFETY: the contract of this function.
        Ok(unsafe { AdoptedMemory::new(device, self.address, self.len) }?)
    }
}

impl warpset_device_keys {
    /// Returns the keys on the device of a structure.
    ///
    /// # Safety
    /// As [`Address::adopt`].
    pub unsafe fn adopt<'a>(&self, device: &Device) -> Result<Adopted<'a>> {
        const U32: u32 = warpset_key_type::U32 as u32;
        const I32: u32 = warpset_key_type::I32 as u32;
        const U64: u32 = warpset_key_type::U64 as u32;
        const I64: u32 = warpset_key_type::I64 as u32;
        // SAFETY: the contract of this function.
        unsafe {
            Ok(match self.key_type {
                U32 => Adopted::U32(Address::new(self.address, self.len).adopt(device)?),
                I32 => Adopted::I32(Address::new(self.address, self.len).adopt(device)?),
                U64 | I64 => Adopted::U64(Address::new(self.address, self.len).adopt(device)?),
                other => {
                    let why = format!("key_type = {other}: keys on a device are integers of 32 or 64 bits");
                    return Err(Failure::new(Status::WrongType, why));
                }
            })
        }
    }
}

/// Checks that `len` bytes fit into a buffer.
pub fn fits(len: usize, bytes: usize) -> Result<()> {
    match len <= bytes {
        true => Ok(()),
        false => Err(Failure::new(Status::InvalidLength, format!("len = {len}: the buffer has {bytes} bytes"))),
    }
}

pub fn broken<T>(_: T) -> Failure {
    Failure::new(Status::Internal, "an earlier copy failed by a defect of this library: make another buffer")
}
