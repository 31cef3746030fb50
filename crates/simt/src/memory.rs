//! Handles to global memory: one pointer on the device, pointer and length on the host.
//!
//! A handle has no lifetime, so that it can be a parameter of a kernel. The owners are in the host crates, and the
//! kernel's contract limits the use of a handle. A second field would hide from the device compiler that the pointer is
//! to global memory, so only the emulator checks lengths.
use crate::Word;
use crate::target::memory as imp;

/// Elements in global memory that a kernel reads.
#[repr(transparent)]
pub struct Global<T>(pub(crate) imp::Raw<T>);

/// Elements in global memory that a kernel reads and writes.
#[repr(transparent)]
pub struct GlobalMut<T>(pub(crate) imp::Raw<T>);

macro_rules! common {
    ($name:ident, $pointer:ty) => {
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        // SAFETY: a handle is an address; every access through it is unsafe, and the kernel's contract excludes races.
        unsafe impl<T: Send> Send for $name<T> {}
        // SAFETY: a handle is an address; every access through it is unsafe.
        unsafe impl<T: Send> Sync for $name<T> {}

        impl<T> $name<T> {
            /// Returns the handle that begins at element `i`. No access, so `i` may equal the length.
            #[inline(always)]
            #[must_use]
            pub fn at(self, i: usize) -> Self {
                Self(imp::at(self.0, i))
            }

            /// Does the work of [`at`](Self::at), for handles that denote an array.
            #[inline(always)]
            #[must_use]
            pub fn offset(self, i: usize) -> Self {
                self.at(i)
            }

            /// Returns a handle to these bytes as elements of another type. The emulator checks the alignment at each
            /// access.
            #[inline(always)]
            #[must_use]
            pub fn cast<U>(self) -> $name<U> {
                $name(imp::cast(self.0))
            }

            /// Brings the cache line of element `i` into the L2 cache.
            ///
            /// # Safety
            /// `i` is below the length.
            #[inline(always)]
            pub unsafe fn prefetch_l2(self, i: usize) {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::prefetch_l2(self.0, i) }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl<T> $name<T> {
            /// Returns a handle to `len` elements of device memory at `pointer`. Only kernels access them.
            #[must_use]
            pub fn from_raw_parts(pointer: $pointer, len: usize) -> Self {
                Self(imp::Raw::new(pointer as *mut T, len))
            }

            /// Returns the number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.count()
            }

            /// Whether there are no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the address on the device.
            #[must_use]
            pub fn as_ptr(&self) -> $pointer {
                self.0.pointer()
            }
        }

        impl<T: Copy> $name<T> {
            /// Reads element `i`.
            ///
            /// # Safety
            /// `i` is below the length, and no other thread writes the element at the
            /// same time (without a barrier or a release and acquire between).
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read(self, i: usize) -> T {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read(self.0, i) }
            }
        }

        impl $name<u32> {
            /// Reads elements `i` to `i + 3` in one 128-bit load.
            ///
            /// # Safety
            /// As [`read`](Self::read), for all four; the address of element `i` is a multiple of 16.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read4(self, i: usize) -> [u32; 4] {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read4(self.0, i) }
            }

            /// Does the work of [`read4`](Self::read4) through the read-only cache.
            ///
            /// # Safety
            /// As [`read4`](Self::read4), and no thread writes these elements while the kernel runs.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read4_nc(self, i: usize) -> [u32; 4] {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read4_nc(self.0, i) }
            }
        }

        impl $name<u64> {
            /// Reads elements `i` and `i + 1` in one 128-bit load.
            ///
            /// # Safety
            /// As [`read`](Self::read), for both; the address of element `i` is a multiple of 16.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read2(self, i: usize) -> [u64; 2] {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read2(self.0, i) }
            }

            /// Does the work of [`read2`](Self::read2) through the read-only cache.
            ///
            /// # Safety
            /// As [`read2`](Self::read2), and no thread writes these elements while the kernel runs.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read2_nc(self, i: usize) -> [u64; 2] {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read2_nc(self.0, i) }
            }

            /// Does the work of [`read2_nc`](Self::read2_nc) for elements that are not read again soon: they leave the
            /// L2 cache first, and other data stays.
            ///
            /// # Safety
            /// As [`read2_nc`](Self::read2_nc).
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read2_nc_once(self, i: usize) -> [u64; 2] {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read2_nc_once(self.0, i) }
            }
        }

        impl<T: Word> $name<T> {
            /// Reads element `i` through the read-only cache (`ld.global.nc`).
            ///
            /// # Safety
            /// `i` is below the length, and no thread writes the element while the kernel runs.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn read_nc(self, i: usize) -> T {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::read_nc(self.0, i) }
            }
        }
    };
}

common!(Global, *const T);
common!(GlobalMut, *mut T);

impl<T> Global<T> {
    /// Returns a handle to `len` elements at an address that was read from memory, for tables of arrays.
    ///
    /// The compiler cannot infer that such an address is in global memory, so on the device these elements are read by
    /// [`read_nc`](Self::read_nc) and the vector reads only, which are explicit about it.
    #[inline(always)]
    #[must_use]
    pub fn at_address(address: u64, len: usize) -> Self {
        Self(imp::at_address(address, len))
    }
}

impl<T> From<GlobalMut<T>> for Global<T> {
    #[inline(always)]
    fn from(handle: GlobalMut<T>) -> Self {
        Self(handle.0)
    }
}

impl<T> GlobalMut<T> {
    /// Returns a handle to these elements for reading.
    #[inline(always)]
    #[must_use]
    pub fn as_const(self) -> Global<T> {
        self.into()
    }
}

impl<T: Copy> GlobalMut<T> {
    /// Sets element `i`.
    ///
    /// # Safety
    /// `i` is below the length, and no other thread accesses the element at the same
    /// time (without a barrier or a release and acquire between).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(self, i: usize, value: T) {
        // SAFETY: the callee has this function's contract.
        unsafe { imp::write(self.0, i, value) }
    }
}

impl GlobalMut<u32> {
    /// Sets elements `i` to `i + 3` in one 128-bit store.
    ///
    /// # Safety
    /// As [`write`](Self::write), for all four; the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write4(self, i: usize, values: [u32; 4]) {
        // SAFETY: the callee has this function's contract.
        unsafe { imp::write4(self.0, i, values) }
    }
}

impl GlobalMut<u64> {
    /// Sets elements `i` and `i + 1` in one 128-bit store.
    ///
    /// # Safety
    /// As [`write`](Self::write), for both; the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write2(self, i: usize, values: [u64; 2]) {
        // SAFETY: the callee has this function's contract.
        unsafe { imp::write2(self.0, i, values) }
    }
}
