//! Bits of words of 64 bits: ranks, selection, fields, and walks over many words. Bit 0 is the lowest of word 0.
//!
//! - [`mask`]: the lowest bits, a range of bits, the ones below a bit (`rank`).
//! - [`mod@select`]: the place of the one of a given rank, in three forms that agree: any processor, `pdep`, devices.
//! - [`words`]: memory in words as a parameter, so that slices and device memory share the code below.
//! - [`mod@field`]: fields of 1 to 64 bits that are packed one after the other, and windows of 64 bits.
//! - [`walk`]: counting, selecting and searching ones over many words.

pub mod field;
pub mod mask;
pub mod select;
pub mod walk;
pub mod words;

pub use field::{field, read_field, window, write_field};
pub use mask::{above_last, lowest, range, rank};
pub use select::{ByHalves, Portable, Select, select, select_short};
pub use walk::{count, next_one, previous_one, select_from};
pub use words::{OrWords, ReadWords, WriteWords, word};
