//! Sequences on devices.
//!
//! [`SequenceFilter`] is [`crate::SequenceFilter`] in device memory.

pub use crate::filter::gpu::{DeviceSequenceFilterBuilder, SequenceFilter};
