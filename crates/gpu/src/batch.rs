//! Batches of keys in device memory, for every structure.
//!
//! Programs need the keys ([`DeviceKeys`], [`DeviceStrings`]) and stencils ([`Stencil`]), which the structures' crates
//! re-export. The other items are for those crates; they are hidden, and not stable.
//!
//! | module | contents |
//! | --- | --- |
//! | `keys` | keys in device memory ([`DeviceKeys`]), and their hashes for kernels (`Hashing`, `KernelKeys`) |
//! | `keys128` | keys with hashes of 128 bits ([`DeviceKeys128`], `KernelKeys128`) |
//! | `strings` | byte strings in device memory ([`DeviceStrings`], [`StringVec`]) |
//! | `staging` | transfer of host keys to a device in chunks, and of replies back (`Staging`) |
//! | `stencil` | selections of a batch's keys ([`Stencil`]), and the selected keys alone (`SelectedKeys`) |
//! | `answers` | destination and form of answers (`Answers`) |
//!
//! A structure describes its hash function by one `Hashing`. It converts keys on the device to `KernelKeys`, and sends
//! keys on the host through a `Staging`, chunk by chunk.

mod answers;
mod hashing;
mod keys;
mod keys128;
mod staging;
mod stencil;
mod strings;

pub use keys::{DeviceBatch, DeviceKey, DeviceKeys};
pub use keys128::DeviceKeys128;
pub use staging::DEFAULT_CHUNK_KEYS;
pub use stencil::Stencil;
pub use strings::{DeviceStrings, Offset, StringVec};

// For the structures' crates.
pub use answers::Answers;
#[doc(hidden)]
pub use answers::expect_room;
pub use hashing::Hashing;
#[doc(hidden)]
pub use hashing::copy_many;
#[doc(hidden)]
pub use keys::{KernelKeys, KeyClass};
#[doc(hidden)]
pub use keys128::KernelKeys128;
#[doc(hidden)]
pub use staging::{Chunk, Reply, Staging};
#[doc(hidden)]
pub use stencil::{KeyWords, SelectWords};
pub use stencil::{SelectedKeys, SelectedSlice};

#[doc(hidden)]
pub use crate::transfer::{upload_many, upload_parts};
