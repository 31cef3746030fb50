//! Arrays of CuPy, PyTorch, Numba and others, by the fields of their `__cuda_array_interface__`.
//!
//! Source: Numba's documentation, "CUDA Array Interface (Version 3)". A program that embeds Python, or talks to it,
//! reads the fields from the dictionary, or writes them there; this type interprets them.

use bytemuck::Pod;

use crate::adopt::AdoptedMemory;
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::memory::byte_len;
use crate::slice::{DeviceSlice, DeviceSliceMut};

/// An item that arrays of other libraries have: integers of 8 to 64 bits, `f32` and `f64`. Sealed.
pub trait ArrayItem: Pod + sealed::Sealed {
    /// The letter of its type.
    #[doc(hidden)]
    const KIND: char;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! items {
    ($($kind:literal: $($item:ty)*;)*) => {$($(
        impl sealed::Sealed for $item {}
        impl ArrayItem for $item {
            const KIND: char = $kind;
        }
    )*)*};
}
items! {
    'u': u8 u16 u32 u64;
    'i': i8 i16 i32 i64;
    'f': f32 f64;
}

/// The fields of a `__cuda_array_interface__` of version 3, under the dictionary's names. (Fields `descr` and `mask`
/// have no place here: records and masked arrays are not adopted.)
///
/// ```
/// use warpset_gpu::{CudaArrayInterface, Device};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let keys = device.from_slice(&[2u64, 3, 5, 7])?;
/// let array = CudaArrayInterface::from_slice(keys.as_slice()); // what the other library is told
/// assert_eq!((array.typestr.as_str(), array.shape.as_slice(), array.version), ("<u8", &[4][..], 3));
///
/// // SAFETY: four words that live as long as `keys`; nothing writes them.
/// let back = unsafe { array.adopt::<u64>(&device)? }; // what we make of what it tells
/// assert_eq!(back.as_slice().to_vec()?, [2, 3, 5, 7]);
/// # Ok::<(), warpset_gpu::GpuError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaArrayInterface {
    /// Items in each dimension.
    pub shape: Vec<usize>,
    /// Byte order, kind and bytes of an item: `<u8` is a little-endian `u64`, `|u1` a byte.
    pub typestr: String,
    /// The address, and whether the array must not be written.
    pub data: (u64, bool),
    /// Bytes from an item to the next one of each dimension; `None` if the items lie one after the other, the last
    /// dimension first.
    pub strides: Option<Vec<isize>>,
    /// The stream to wait for before the array is used, by its number; `None` if there is nothing to wait for.
    pub stream: Option<u64>,
    /// The version of the interface: 3.
    pub version: u32,
}

/// Names the type of an item in the notation of `typestr`.
fn typestr_of<T: ArrayItem>() -> String {
    let order = if size_of::<T>() == 1 { '|' } else { '<' };
    format!("{order}{}{}", T::KIND, size_of::<T>())
}

/// Returns the error of an array that does not fit the request.
pub(crate) fn unfit(field: &'static str, found: impl ToString, expected: impl ToString) -> GpuError {
    GpuError::ForeignArray { field, found: found.to_string(), expected: expected.to_string() }
}

impl CudaArrayInterface {
    fn of<T: ArrayItem>(address: u64, len: usize, read_only: bool) -> Self {
        let (shape, typestr, data) = (vec![len], typestr_of::<T>(), (address, read_only));
        CudaArrayInterface { shape, typestr, data, strides: None, stream: None, version: 3 }
    }

    /// Describes a slice that another library may read. The library must not use it once the slice's owner is gone.
    /// `stream` is `None`, so wait first for work that writes the slice (`Device::synchronize`).
    pub fn from_slice<T: ArrayItem>(slice: DeviceSlice<'_, T>) -> Self {
        Self::of::<T>(slice.as_raw(), slice.len(), true)
    }

    /// Describes a slice that another library may read and write, under the conditions of
    /// [`from_slice`](Self::from_slice).
    pub fn from_mut_slice<T: ArrayItem>(mut slice: DeviceSliceMut<'_, T>) -> Self {
        Self::of::<T>(slice.as_raw_mut(), slice.len(), false)
    }

    /// Returns the number of items.
    ///
    /// # Errors
    /// [`GpuError::ForeignArray`] if that is no number of this machine.
    pub fn item_count(&self) -> Result<usize> {
        let product = self.shape.iter().try_fold(1usize, |product, &items| product.checked_mul(items));
        // A dimension without items makes the others irrelevant.
        if self.shape.contains(&0) { Ok(0) } else { product.ok_or_else(|| self.unfit_shape()) }
    }

    fn unfit_shape(&self) -> GpuError {
        unfit("shape", format!("{:?}", self.shape), "one whose items can be addressed")
    }

    /// Whether the items lie one after the other, the last dimension first. Strides of dimensions of one item do not
    /// matter.
    fn is_contiguous(&self, item_bytes: usize) -> bool {
        let Some(strides) = &self.strides else { return true };
        let mut next = item_bytes as isize;
        strides.len() == self.shape.len()
            && strides.iter().zip(&self.shape).rev().all(|(&stride, &items)| {
                let fits = items == 1 || stride == next;
                next = next.wrapping_mul(items as isize);
                fits
            })
    }

    /// Wraps the array's items, all dimensions in one, if they are of type `T` and contiguous. If the array names a
    /// stream, waits for all work on the device, which includes that stream's.
    ///
    /// # Errors
    /// [`GpuError::ForeignArray`] names the field that does not fit. Those of [`AdoptedMemory::new`].
    ///
    /// # Safety
    /// - The conditions of [`AdoptedMemory::new`]: the array stays allocated during `'a`, and other accesses are
    ///   ordered with ours.
    /// - If `data.1` is set, nothing is written through [`AdoptedMemory::as_mut_slice`].
    pub unsafe fn adopt<'a, T: ArrayItem>(&self, device: &Device) -> Result<AdoptedMemory<'a, T>> {
        let expected = typestr_of::<T>();
        if !(2..=3).contains(&self.version) {
            return Err(unfit("version", self.version, "2 or 3"));
        }
        if self.typestr != expected {
            return Err(unfit("typestr", format!("`{}`", self.typestr), format!("`{expected}`")));
        }
        let len = self.item_count()?;
        byte_len::<T>(len).map_err(|_| self.unfit_shape())?;
        if len > 0 && !self.is_contiguous(size_of::<T>()) {
            let found = format!("{:?} for shape {:?}", self.strides, self.shape);
            return Err(unfit("strides", found, "items one after the other: make a contiguous copy"));
        }
        if self.stream == Some(0) {
            return Err(unfit(
                "stream",
                0,
                "`None`, or a stream by its number: 0 is ambiguous, and the interface forbids it",
            ));
        }
        if self.stream.is_some() {
            device.synchronize()?;
        }
        // An array without items may have any address.
        let address = if len == 0 { 0 } else { self.data.0 };
        // SAFETY: the array's items are contiguous, as checked, and stay valid by this function's contract.
        unsafe { AdoptedMemory::new(device, address, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::devices;

    /// Returns the name of the refused field.
    fn refused<T: ArrayItem>(array: &CudaArrayInterface, device: &Device) -> &'static str {
        // SAFETY: nothing is accessed.
        match unsafe { array.adopt::<T>(device) } {
            Err(GpuError::ForeignArray { field, .. }) => field,
            Err(other) => panic!("{other}"),
            Ok(_) => "none",
        }
    }

    #[test]
    fn arrays_go_there_and_back() {
        for device in devices(6) {
            let mut there = device.from_slice(&[1i32, -2, 3, -4, 5, -6]).unwrap();
            let mut array = CudaArrayInterface::from_mut_slice(there.as_mut_slice());
            assert_eq!((array.typestr.as_str(), array.data.1), ("<i4", false));
            // An array as another library describes it: two dimensions, strides, a stream.
            array.shape = vec![2, 1, 3];
            array.strides = Some(vec![12, 99, 4]);
            array.stream = Some(1);
            // SAFETY: the vector has six items, and is not used otherwise while the adopted memory lives.
            let mut adopted = unsafe { array.adopt::<i32>(&device).unwrap() };
            adopted.as_mut_slice().slice_mut(1..2).copy_from_slice(&[7]).unwrap();
            assert_eq!(adopted.as_slice().to_vec().unwrap(), [1, 7, 3, -4, 5, -6]);
            drop(adopted);
            assert_eq!(there.to_vec().unwrap(), [1, 7, 3, -4, 5, -6]);
            assert!(CudaArrayInterface::from_slice(there.as_slice()).data.1);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let device = &Device::emulator(Default::default());
        let there = device.from_slice(&[0u64; 12]).unwrap();
        let array = CudaArrayInterface::from_slice(there.as_slice());
        assert_eq!((refused::<u64>(&array, device), refused::<i64>(&array, device)), ("none", "typestr"));
        assert_eq!((refused::<u32>(&array, device), refused::<f64>(&array, device)), ("typestr", "typestr"));
        assert_eq!(refused::<u64>(&CudaArrayInterface { version: 4, ..array.clone() }, device), "version");
        assert_eq!(refused::<u64>(&CudaArrayInterface { typestr: ">u8".into(), ..array.clone() }, device), "typestr");
        assert_eq!(refused::<u64>(&CudaArrayInterface { stream: Some(0), ..array.clone() }, device), "stream");
        let shaped = |shape: &[usize], strides: Option<&[isize]>| CudaArrayInterface {
            shape: shape.to_vec(),
            strides: strides.map(<[isize]>::to_vec),
            ..array.clone()
        };
        for (shape, strides, field) in [
            (&[3, 4][..], Some(&[32, 8][..]), "none"),
            (&[3, 4], Some(&[8, 24]), "strides"), // column by column
            (&[3, 2], Some(&[32, 8]), "strides"), // a part of each row
            (&[12], Some(&[-8]), "strides"),      // backwards
            (&[12], Some(&[]), "strides"),
            (&[3, 0, 4], Some(&[7, 7, 7]), "none"), // no items
            (&[], None, "none"),                    // one item
            (&[usize::MAX, 2], None, "shape"),
            (&[usize::MAX / 4], None, "shape"),
            (&[usize::MAX, 2, 0], None, "none"),
        ] {
            assert_eq!(refused::<u64>(&shaped(shape, strides), device), field, "{shape:?} {strides:?}");
        }
        // SAFETY: nothing is accessed.
        let error = unsafe { array.adopt::<u8>(device).err().unwrap() };
        assert!(error.to_string().contains("typestr `<u8`, where `|u1` is needed"), "{error}");
    }
}
