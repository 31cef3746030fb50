//! Batches of lookups: their size, vectors, and reads of bits in vectors.

#[cfg(target_arch = "x86_64")]
pub(crate) mod reads;
#[cfg(target_arch = "x86_64")]
pub(crate) mod u64_vector;

/// Lookups in progress at a time.
pub(crate) const BATCH: usize = 32;
