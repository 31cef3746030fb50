//! Batches of keys: what device code of every structure shares.
//!
//! Programs need the keys ([`DeviceKeys`], [`DeviceStrings`]) and stencils ([`Stencil`]), which the crates of the
//! structures re-export; the rest is for those crates, and not stable.
//!
//! | module | holds |
//! | --- | --- |
//! | `keys` | keys in device memory ([`DeviceKeys`]), and how kernels get their hashes ([`Hashing`], [`KernelKeys`]) |
//! | `keys128` | the same by hashes of 128 bits ([`DeviceKeys128`], [`KernelKeys128`]) |
//! | `strings` | byte strings in device memory ([`DeviceStrings`], [`StringVec`]) |
//! | `staging` | how keys on the host travel to a device in chunks, and replies back ([`Staging`]) |
//! | `stencil` | for which keys of a batch an operation is meant ([`Stencil`]), and these keys alone ([`SelectedKeys`]) |
//! | `answers` | where answers go, and in which form ([`Answers`]) |
//!
//! A structure says how it hashes keys with one [`Hashing`]. From keys on the device it gets [`KernelKeys`]; keys on
//! the host it sends through a [`Staging`], chunk by chunk.

mod answers;
mod hashing;
mod keys;
mod keys128;
mod staging;
mod stencil;
mod strings;

pub use answers::{Answers, expect_room};
pub use hashing::{Hashing, copy_many};
pub use keys::{DeviceBatch, DeviceKey, DeviceKeys, KernelKeys, KeyClass};
pub use keys128::{DeviceKeys128, KernelKeys128};
pub use staging::{Chunk, DEFAULT_CHUNK_KEYS, Reply, Staging};
pub use stencil::{KeyWords, SelectWords, SelectedKeys, SelectedSlice, Stencil};
pub use strings::{DeviceStrings, Offset, StringVec};

pub use crate::transfer::{upload_many, upload_parts};
