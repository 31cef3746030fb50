//! Memory of the caller on a device.

use bytemuck::Pod;
use warpset::gpu::batch::DeviceStrings;
use warpset::gpu::{AdoptedMemory, Device, DeviceSlice};
use warpset_base::key::Hashed;

use super::warpset_device_keys;
use crate::error::{Failure, Result, warpset_status as Status};
use crate::handle::null;
use crate::keys::{too_long, warpset_key_type};

/// Keys on the device of a structure.
pub struct Adopted<'a> {
    key_type: warpset_key_type,
    pub memory: Memory<'a>,
}

/// Keys by the type of a batch in Rust. Signed integers of 64 bits and doubles are keys by their bits.
pub enum Memory<'a> {
    U32(AdoptedMemory<'a, u32>),
    I32(AdoptedMemory<'a, i32>),
    U64(AdoptedMemory<'a, u64>),
    Hashes(AdoptedMemory<'a, Hashed>),
    Strings(Strings<'a>),
}

/// Strings with offsets, and their bytes.
pub enum Strings<'a> {
    Narrow(AdoptedMemory<'a, i32>, AdoptedMemory<'a, u8>),
    Wide(AdoptedMemory<'a, i64>, AdoptedMemory<'a, u8>),
}

impl Strings<'_> {
    pub fn as_slice(&self) -> Result<DeviceStrings<'_>> {
        Ok(match self {
            Strings::Narrow(offsets, bytes) => DeviceStrings::unchecked(offsets.as_slice(), bytes.as_slice())?,
            Strings::Wide(offsets, bytes) => DeviceStrings::unchecked(offsets.as_slice(), bytes.as_slice())?,
        })
    }
}

impl Adopted<'_> {
    /// Returns keys of 64 bits, for structures that take no others on a device.
    pub fn words(&self) -> Result<DeviceSlice<'_, u64>> {
        match &self.memory {
            Memory::U64(memory) => Ok(memory.as_slice()),
            _ => Err(Failure::new(Status::WrongType, "this structure takes keys of 64 bits on a device")),
        }
    }

    /// Returns keys of a type, which is `T` in Rust.
    pub fn of_type<T: Pod>(&self, key_type: warpset_key_type) -> Result<DeviceSlice<'_, T>> {
        let found = self.key_type;
        match &self.memory {
            Memory::U32(memory) if found == key_type => Ok(memory.as_slice().cast()?),
            Memory::I32(memory) if found == key_type => Ok(memory.as_slice().cast()?),
            Memory::U64(memory) if found == key_type => Ok(memory.as_slice().cast()?),
            _ => {
                let why = format!("keys of type {found:?}: this structure takes {key_type:?} on a device");
                Err(Failure::new(Status::WrongType, why))
            }
        }
    }
}

/// Runs `$body` with the slice of keys that are no strings under the name `$keys`; returns an error for strings.
macro_rules! with_device_integers {
    ($adopted:expr, |$keys:ident| $body:expr) => {
        $crate::device::with_device_integers!($adopted, |$keys| $body, _strings => {
            return Err($crate::error::Failure::new(
                $crate::error::warpset_status::WrongType,
                "the keys of this structure are integers",
            ))
        })
    };
    ($adopted:expr, |$keys:ident| $body:expr, $strings:ident => $of_strings:expr) => {
        match &$adopted.memory {
            $crate::device::Memory::U32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Memory::I32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Memory::U64(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Memory::Hashes(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Memory::Strings($strings) => $of_strings,
        }
    };
}
pub(crate) use with_device_integers;

/// Runs `$body` with the batch of keys under the name `$keys`, whatever their type.
macro_rules! with_device_keys {
    ($adopted:expr, |$keys:ident| $body:expr) => {
        $crate::device::with_device_integers!($adopted, |$keys| $body, strings => {
            let $keys = strings.as_slice()?;
            $body
        })
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

    /// Checks that `needed` items fit.
    pub fn has_room(&self, needed: usize) -> Result<()> {
        fits("capacity", needed, self.len)
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
    /// As [`Address::adopt`], also for offsets of strings.
    pub unsafe fn adopt<'a>(&self, device: &Device) -> Result<Adopted<'a>> {
        let key_type = warpset_key_type::of(self.key_type)?;
        let (address, len) = (self.address, self.len);
        let more = len.checked_add(1).ok_or_else(|| too_long("keys", len))?;
        // SAFETY: the contract of this function.
        let memory = unsafe {
            match key_type {
                warpset_key_type::U32 => Memory::U32(Address::new(address, len).adopt(device)?),
                warpset_key_type::I32 => Memory::I32(Address::new(address, len).adopt(device)?),
                warpset_key_type::U64 | warpset_key_type::I64 | warpset_key_type::F64 => {
                    Memory::U64(Address::new(address, len).adopt(device)?)
                }
                warpset_key_type::Hashes => Memory::Hashes(Address::new(address, len).adopt(device)?),
                warpset_key_type::Strings32 | warpset_key_type::Strings64 if self.offsets == 0 => {
                    return Err(null("offsets"));
                }
                warpset_key_type::Strings32 => Memory::Strings(Strings::Narrow(
                    Address::new(self.offsets, more).adopt(device)?,
                    Address::new(address, self.bytes).adopt(device)?,
                )),
                warpset_key_type::Strings64 => Memory::Strings(Strings::Wide(
                    Address::new(self.offsets, more).adopt(device)?,
                    Address::new(address, self.bytes).adopt(device)?,
                )),
                other => {
                    let why = format!(
                        "keys of type {other:?}: on a device they are integers of 32 or 64 bits, doubles, hashes or \
                         strings with offsets"
                    );
                    return Err(Failure::new(Status::WrongType, why));
                }
            }
        };
        Ok(Adopted { key_type, memory })
    }
}

/// Checks that `needed` items fit into `len`, a number of the caller by that name.
pub fn fits(name: &str, needed: usize, len: usize) -> Result<()> {
    match needed <= len {
        true => Ok(()),
        false => Err(Failure::new(Status::InvalidLength, format!("{name} = {len}: {needed} items do not fit"))),
    }
}

pub fn broken<T>(_: T) -> Failure {
    Failure::new(Status::Internal, "an earlier copy failed by a defect of this library: make another buffer")
}
