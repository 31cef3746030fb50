//! Structures of `dlpack.h` that cross between libraries, under their names there.
//!
//! Source: DLPack 1.3, `include/dlpack/dlpack.h`. The layouts are those of C on machines of 64 bits.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::NonNull;

/// The major version of the structures here.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// Minor version that this crate writes.
pub const DLPACK_MINOR_VERSION: u32 = 3;
/// The flag of a tensor that must not be written.
pub const DLPACK_FLAG_BITMASK_READ_ONLY: u64 = 1;

/// A place of memory: `device_type` is one of the constants `DL…`, and `device_id` the ordinal there.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// The kind of place.
    pub device_type: u32,
    /// Number among devices of its kind; 0 for memory of the host.
    pub device_id: i32,
}

/// Memory of the host.
pub const DL_CPU: u32 = 1;
/// Memory of a CUDA device.
pub const DL_CUDA: u32 = 2;
/// Memory of the host that is pinned for CUDA.
pub const DL_CUDA_HOST: u32 = 3;
/// The type that is left to extensions. Here: memory of the emulator, which no other library can use.
pub const DL_EXT_DEV: u32 = 12;

/// The type of an item.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// 0: signed integer; 1: unsigned integer; 2: floating point; 6: boolean; others.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of an item: 1, but for vector types.
    pub lanes: u16,
}

/// A tensor that its exporter owns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The address of the memory. Items begin `byte_offset` bytes after it.
    pub data: *mut c_void,
    /// Place of the memory.
    pub device: DLDevice,
    /// Dimensions.
    pub ndim: i32,
    /// Type of the items.
    pub dtype: DLDataType,
    /// Items in each dimension.
    pub shape: *mut i64,
    /// Items from one to the next one of each dimension; null if they lie one after the other, the last dimension
    /// first.
    pub strides: *mut i64,
    /// Bytes from `data` to the first item.
    pub byte_offset: u64,
}

/// A tensor and its deleter: the form without a version, which older libraries exchange.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Data of the deleter.
    pub manager_ctx: *mut c_void,
    /// Function to call once, with the structure's address, when the tensor is no longer used.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A version of DLPack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Structures of another major version have another layout.
    pub major: u32,
    /// Minor versions add codes.
    pub minor: u32,
}

/// A tensor and its deleter.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of this structure.
    pub version: DLPackVersion,
    /// Data of the deleter.
    pub manager_ctx: *mut c_void,
    /// Function to call once, with the structure's address, when the tensor is no longer used.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bits: [`DLPACK_FLAG_BITMASK_READ_ONLY`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DLDevice>() == 8 && size_of::<DLDataType>() == 4 && size_of::<DLTensor>() == 48);
    assert!(offset_of!(DLTensor, ndim) == 16 && offset_of!(DLTensor, dtype) == 20 && offset_of!(DLTensor, shape) == 24);
    assert!(offset_of!(DLTensor, strides) == 32 && offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensor>() == 64 && offset_of!(DLManagedTensor, deleter) == 56);
    assert!(size_of::<DLManagedTensorVersioned>() == 80 && offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
    assert!(offset_of!(DLManagedTensorVersioned, deleter) == 16 && offset_of!(DLManagedTensorVersioned, flags) == 24);
};

/// The two forms in which tensors are exchanged: [`DLManagedTensorVersioned`], and [`DLManagedTensor`] for older
/// libraries. Sealed.
pub trait ManagedTensor: sealed::Managed {}

impl ManagedTensor for DLManagedTensor {}
impl ManagedTensor for DLManagedTensorVersioned {}

pub(super) mod sealed {
    use super::*;

    pub trait Managed: Sized + 'static {
        /// Builds the structure for a tensor of ours.
        fn new(tensor: DLTensor, context: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self;
        /// Returns the version, if the structure has one.
        ///
        /// # Safety
        /// `this` is a tensor of whatever version.
        unsafe fn version(this: NonNull<Self>) -> Option<DLPackVersion>;
        /// Returns the tensor.
        fn tensor(&self) -> &DLTensor;
        /// Returns the data of the deleter.
        fn context(&self) -> *mut c_void;
        /// Whether it must not be written.
        fn is_read_only(&self) -> bool;
        /// Calls the deleter, if there is one.
        ///
        /// # Safety
        /// `this` is a tensor whose deleter has not been called, and which is not used afterwards.
        unsafe fn delete(this: NonNull<Self>);
    }

    impl Managed for DLManagedTensor {
        fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
            Self { dl_tensor, manager_ctx, deleter: Some(deleter) }
        }
        unsafe fn version(_this: NonNull<Self>) -> Option<DLPackVersion> {
            None
        }
        fn tensor(&self) -> &DLTensor {
            &self.dl_tensor
        }
        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }
        fn is_read_only(&self) -> bool {
            false
        }
        unsafe fn delete(this: NonNull<Self>) {
            // SAFETY: the tensor is sound and its deleter has not been called, by this function's contract.
            unsafe {
                if let Some(deleter) = this.as_ref().deleter {
                    deleter(this.as_ptr());
                }
            }
        }
    }

    impl Managed for DLManagedTensorVersioned {
        fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
            let version = DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION };
            Self { version, manager_ctx, deleter: Some(deleter), flags: 0, dl_tensor }
        }
        unsafe fn version(this: NonNull<Self>) -> Option<DLPackVersion> {
            // SAFETY: every version begins with this field.
            Some(unsafe { this.cast::<DLPackVersion>().read() })
        }
        fn tensor(&self) -> &DLTensor {
            &self.dl_tensor
        }
        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }
        fn is_read_only(&self) -> bool {
            self.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0
        }
        unsafe fn delete(this: NonNull<Self>) {
            // SAFETY: the tensor is sound and its deleter has not been called, by this function's contract.
            unsafe {
                if let Some(deleter) = this.as_ref().deleter {
                    deleter(this.as_ptr());
                }
            }
        }
    }
}
