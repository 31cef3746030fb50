//! Global memory: every access is checked against the handle and the registered buffers.
use super::engine;
use super::operation::AccessKind as Access;
use super::word::Word;

/// The pointer comes first: a launch passes the address of an argument on, and the
/// device takes 8 bytes there.
#[repr(C)]
pub struct Raw<T> {
    pointer: *mut T,
    len: usize,
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Raw<T> {}

impl<T> Raw<T> {
    pub fn new(pointer: *mut T, len: usize) -> Self {
        Self { pointer, len }
    }

    pub fn pointer(self) -> *mut T {
        self.pointer
    }

    pub fn count(self) -> usize {
        self.len
    }
}

pub fn at_address<T>(address: u64, len: usize) -> Raw<T> {
    Raw { pointer: std::ptr::with_exposed_provenance_mut(address as usize), len }
}

pub fn at<T>(raw: Raw<T>, i: usize) -> Raw<T> {
    Raw { pointer: raw.pointer.wrapping_add(i), len: raw.len.saturating_sub(i) }
}

pub fn cast<T, U>(raw: Raw<T>) -> Raw<U> {
    Raw { pointer: raw.pointer.cast(), len: (raw.len * size_of::<T>()).checked_div(size_of::<U>()).unwrap_or(0) }
}

/// Checks and returns the address of `count` elements from `i` on, as one access with an alignment of `align` bytes.
#[track_caller]
#[inline]
fn check<T>(raw: Raw<T>, i: usize, count: usize, align: usize, access: Access) -> *mut T {
    let pointer = raw.pointer.wrapping_add(i);
    engine::global_access(pointer.addr(), i, count, raw.len, size_of::<T>(), align, access);
    pointer
}

/// Reads element `i`.
///
/// # Safety
/// The contract of [`Global::read`](crate::Global::read).
#[track_caller]
pub unsafe fn read<T: Copy>(raw: Raw<T>, i: usize) -> T {
    let pointer = check(raw, i, 1, align_of::<T>(), Access::Read);
    // SAFETY: `check` found the element inside a live buffer, aligned.
    unsafe { pointer.read_volatile() }
}

/// Reads element `i`, which no thread writes.
///
/// # Safety
/// The contract of [`Global::read_nc`](crate::Global::read_nc).
#[track_caller]
pub unsafe fn read_nc<T: Word>(raw: Raw<T>, i: usize) -> T {
    // SAFETY: `i` is below the length and no thread writes the element, which is more than `read` asks.
    unsafe { read(raw, i) }
}

/// Sets element `i`.
///
/// # Safety
/// The contract of [`GlobalMut::write`](crate::GlobalMut::write).
#[track_caller]
pub unsafe fn write<T: Copy>(raw: Raw<T>, i: usize, value: T) {
    let pointer = check(raw, i, 1, align_of::<T>(), Access::Write);
    // SAFETY: `check` found the element inside a live buffer, aligned.
    unsafe { pointer.write_volatile(value) };
}

/// Does nothing.
///
/// # Safety
/// The contract of [`Global::prefetch_l2`](crate::Global::prefetch_l2).
pub unsafe fn prefetch_l2<T>(_raw: Raw<T>, _i: usize) {}

macro_rules! vector {
    ($ty:ty, $n:literal, $load:ident, $nc:ident, $store:ident) => {
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $load(raw: Raw<$ty>, i: usize) -> [$ty; $n] {
            let pointer = check(raw, i, $n, 16, Access::Read);
            // SAFETY: `check` found the elements inside a live buffer, aligned.
            unsafe { pointer.cast::<[$ty; $n]>().read_volatile() }
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $nc(raw: Raw<$ty>, i: usize) -> [$ty; $n] {
            // SAFETY: the elements are valid, aligned and not written, which is more than the plain load asks.
            unsafe { $load(raw, i) }
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $store(raw: Raw<$ty>, i: usize, values: [$ty; $n]) {
            let pointer = check(raw, i, $n, 16, Access::Write);
            // SAFETY: `check` found the elements inside a live buffer, aligned.
            unsafe { pointer.cast::<[$ty; $n]>().write_volatile(values) };
        }
    };
}

vector!(u32, 4, read4, read4_nc, write4);
vector!(u64, 2, read2, read2_nc, write2);

/// Reads two elements.
///
/// # Safety
/// The contract of [`Global::read2_nc_once`](crate::Global::read2_nc_once).
#[track_caller]
pub unsafe fn read2_nc_once(raw: Raw<u64>, i: usize) -> [u64; 2] {
    // SAFETY: the callee has this function's contract.
    unsafe { read2_nc(raw, i) }
}
