//! Batches of keys: what device code of every structure shares.
//!
//! | module | holds |
//! | --- | --- |
//! | `keys` | keys in device memory ([`DeviceKeys`]), and how kernels get their hashes ([`Hashing`], [`KernelKeys`]) |
//! | `strings` | byte strings in device memory ([`DeviceStrings`], [`StringVec`]) |
//! | `staging` | how keys on the host travel to a device in chunks, and replies back ([`Staging`]) |
//! | `answers` | where answers go, and in which form ([`Answers`]); bits to booleans |
//!
//! A structure says how it hashes keys with one [`Hashing`]. From keys on the device it gets [`KernelKeys`]; keys on the host it
//! sends through a [`Staging`], chunk by chunk.

mod answers;
mod hashing;
mod keys;
mod staging;
mod strings;

pub use answers::{Answers, bits_to, expect_room};
pub use hashing::Hashing;
pub use keys::{DeviceKey, DeviceKeys, KernelKeys, KeyClass};
pub use staging::{Chunk, DEFAULT_CHUNK_KEYS, Reply, Staging};
pub use strings::{DeviceStrings, Offset, StringVec};
