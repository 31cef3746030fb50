//! Keys and values of the published structure.

use papers_kernels::lsm::layout::KeyVariable;
use warpset_primitives::select::Item;
use warpset_primitives::sort::{Payload, SortKey};

use warpset_lsm::gpu::{DeviceKey, DeviceValue};

/// Key with an unused bit for the status: `u32`, of 31 bits, and `u64`, of 63.
pub trait PackedKey: DeviceKey<Stored = Self> + SortKey + KeyVariable + Item {}
impl PackedKey for u32 {}
impl PackedKey for u64 {}

/// Values: `u32` and `u64`.
pub trait PairValue: DeviceValue<Stored = Self> + Payload + Item {}
impl PairValue for u32 {}
impl PairValue for u64 {}
