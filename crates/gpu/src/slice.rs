//! Borrowed parts of device vectors.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use warpset_base::filter::LengthMismatch;

use bytemuck::Pod;
use warpset_simt::{Global, GlobalMut};

use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::memory::Memory;
use crate::transfer::LARGE;
use crate::vector::DeviceVec;

/// Items on a device, borrowed for reading.
pub struct DeviceSlice<'a, T> {
    memory: &'a Memory,
    address: usize,
    len: usize,
    items: PhantomData<&'a [T]>,
}

/// Items on a device, borrowed for writing.
pub struct DeviceSliceMut<'a, T> {
    memory: &'a Memory,
    address: usize,
    len: usize,
    items: PhantomData<&'a mut [T]>,
}

impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

/// Converts the range to offset and length, checked like ranges of the standard library.
#[track_caller]
pub(crate) fn resolve(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.checked_add(1).expect("range start overflows"),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1).expect("range end overflows"),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    assert!(start <= end, "range starts at {start} and ends at {end}");
    assert!(end <= len, "range ends at {end}, and there are {len} items on the device");
    (start, end - start)
}

/// Implements what slices for reading and for writing share.
macro_rules! memory_and_length {
    ($($slice:ident)*) => {$(
        impl<'a, T: Pod> $slice<'a, T> {
            pub(crate) fn new(memory: &'a Memory, len: usize) -> Self {
                Self { memory, address: memory.address(), len, items: PhantomData }
            }

            /// Returns the number of items.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether there are no items.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns the bytes that the items take.
            pub fn byte_len(&self) -> usize {
                self.len * size_of::<T>()
            }

            /// Returns the device of the items.
            pub fn device(&self) -> &'a Device {
                &self.memory.device
            }

            pub(crate) fn memory(&self) -> &'a Memory {
                self.memory
            }

            pub(crate) fn address(&self) -> usize {
                self.address
            }
        }
    )*};
}
memory_and_length! { DeviceSlice DeviceSliceMut }

impl<'a, T: Pod> DeviceSlice<'a, T> {
    /// Returns the argument for a kernel that reads the items.
    pub fn global(&self) -> Global<T> {
        Global::from_raw_parts(std::ptr::with_exposed_provenance(self.address), self.len)
    }

    /// Returns a part.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'a, T> {
        let (start, len) = resolve(range, self.len);
        Self { address: self.address + start * size_of::<T>(), len, ..*self }
    }

    /// Returns a slice of these bytes as items of another type.
    ///
    /// # Errors
    /// [`GpuError::InvalidCast`] unless size and alignment fit.
    pub fn cast<U: Pod>(&self) -> Result<DeviceSlice<'a, U>> {
        let len = cast_len::<U>(self.address, self.byte_len())?;
        Ok(DeviceSlice { memory: self.memory, address: self.address, len, items: PhantomData })
    }

    /// Copies the items to the host. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut items = vec![T::zeroed(); self.len];
        self.copy_to_slice(&mut items)?;
        Ok(items)
    }

    /// Copies the items to `target`, of the same length. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device
    /// failed.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        same_len(self.len, target.len())?;
        if self.byte_len() >= LARGE {
            return self.device().waiting(|stream| stream.download(*self, target));
        }
        self.memory.download(self.address, bytemuck::cast_slice_mut(target))
    }
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    /// Returns the argument for a kernel that reads the items.
    pub fn global(&self) -> Global<T> {
        self.as_slice().global()
    }

    /// Returns the argument for a kernel that writes the items.
    pub fn global_mut(&mut self) -> GlobalMut<T> {
        GlobalMut::from_raw_parts(std::ptr::with_exposed_provenance_mut(self.address), self.len)
    }

    /// Returns a slice of these items for reading.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice { memory: self.memory, address: self.address, len: self.len, items: PhantomData }
    }

    /// Borrows these items for a shorter time.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut { memory: self.memory, address: self.address, len: self.len, items: PhantomData }
    }

    /// Returns a part for reading.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.as_slice().slice(range)
    }

    /// Returns a part for writing.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        let (start, len) = resolve(range, self.len);
        let address = self.address + start * size_of::<T>();
        DeviceSliceMut { memory: self.memory, address, len, items: PhantomData }
    }

    /// Splits into the items before `middle`, and the others.
    ///
    /// # Panics
    /// If `middle` is past the end.
    #[track_caller]
    pub fn split_at_mut(self, middle: usize) -> (DeviceSliceMut<'a, T>, DeviceSliceMut<'a, T>) {
        let (_, rest) = resolve(middle.., self.len);
        let Self { memory, address, .. } = self;
        (
            DeviceSliceMut { memory, address, len: middle, items: PhantomData },
            DeviceSliceMut { memory, address: address + middle * size_of::<T>(), len: rest, items: PhantomData },
        )
    }

    /// Returns a slice of these bytes as items of another type.
    ///
    /// # Errors
    /// [`GpuError::InvalidCast`] unless size and alignment fit.
    pub fn cast<U: Pod>(self) -> Result<DeviceSliceMut<'a, U>> {
        let len = cast_len::<U>(self.address, self.byte_len())?;
        Ok(DeviceSliceMut { memory: self.memory, address: self.address, len, items: PhantomData })
    }

    /// Copies the items to the host. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.as_slice().to_vec()
    }

    /// Copies the items to `target`, of the same length. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device
    /// failed.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.as_slice().copy_to_slice(target)
    }

    /// Overwrites the items with `source`, of the same length. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device
    /// failed.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        same_len(source.len(), self.len)?;
        if self.byte_len() >= LARGE {
            return self.device().waiting(|stream| stream.upload(self.reborrow(), source));
        }
        self.memory.upload(self.address, bytemuck::cast_slice(source))
    }

    /// Sets every byte of the items. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.memory.set(self.address, byte, self.byte_len())
    }
}

impl<'a, T: Pod> From<&'a DeviceVec<T>> for DeviceSlice<'a, T> {
    fn from(vector: &'a DeviceVec<T>) -> Self {
        vector.as_slice()
    }
}

impl<'a, T: Pod> From<&'a mut DeviceVec<T>> for DeviceSliceMut<'a, T> {
    fn from(vector: &'a mut DeviceVec<T>) -> Self {
        vector.as_mut_slice()
    }
}

impl<'a, T: Pod> From<DeviceSliceMut<'a, T>> for DeviceSlice<'a, T> {
    fn from(slice: DeviceSliceMut<'a, T>) -> Self {
        Self { memory: slice.memory, address: slice.address, len: slice.len, items: PhantomData }
    }
}

impl<'a, T: Pod> From<&'a mut DeviceSliceMut<'_, T>> for DeviceSliceMut<'a, T> {
    fn from(slice: &'a mut DeviceSliceMut<'_, T>) -> Self {
        slice.reborrow()
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlice({} items on {})", self.len, self.memory.device)
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSliceMut({} items on {})", self.len, self.memory.device)
    }
}

pub(crate) fn same_len(source_len: usize, target_len: usize) -> Result<()> {
    Ok(LengthMismatch::unless_equal("items in the target of a copy", source_len, target_len)?)
}

fn cast_len<U>(address: usize, bytes: usize) -> Result<usize> {
    let size = size_of::<U>();
    if size == 0 && bytes == 0 {
        return Ok(0);
    }
    if size == 0 || !bytes.is_multiple_of(size) || !address.is_multiple_of(align_of::<U>()) {
        return Err(GpuError::InvalidCast { bytes, item_size: size, alignment: align_of::<U>() });
    }
    Ok(bytes / size)
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "range ends at 4")]
    fn ranges_end_with_the_items() {
        assert_eq!(super::resolve(1..=2, 3), (1, 2));
        super::resolve(0..4, 3);
    }
}
