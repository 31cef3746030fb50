//! Scalar types of shared memory, atomics and warp operations.
use crate::target::word as imp;

/// A scalar of 1, 2, 4, 8 or 16 bytes for shared memory and read-only loads; one of 16 bytes has an address divisible
/// by 16. Sealed: the integers from 8 to 64 bits, `u128`, `f32` and `f64`.
pub trait Word: imp::Word {}
impl<T: imp::Word> Word for T {}

/// A scalar with atomic operations. Sealed: `u32`, `u64`, `i32`, `i64`.
pub trait AtomicWord: Word + imp::AtomicWord {}
impl<T: imp::AtomicWord> AtomicWord for T {}

/// A scalar that warp shuffles move. Sealed: 32- and 64-bit integers and floats, and `u128`.
pub trait ShuffleWord: Word + imp::ShuffleWord {}
impl<T: imp::ShuffleWord> ShuffleWord for T {}

/// A scalar that [`match_any`](crate::warp::match_any) compares. Sealed: `u32`, `u64`, `i32`, `i64`.
pub trait MatchWord: Word + imp::MatchWord {}
impl<T: imp::MatchWord> MatchWord for T {}
