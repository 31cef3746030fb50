//! The bytes that `binary_fuse8_serialize` and `binary_fuse16_serialize` of the C header `xor_singleheader` write on
//! little-endian machines.
//!
//! ```text
//!   0  Seed                u64
//!   8  Size                u32, keys that the filter was built from
//!  12  SegmentLength       u32
//!  16  SegmentCount        u32, segments that can hold a key's first slot
//!  20  SegmentCountLength  u32, their slots
//!  24  ArrayLength         u32, all slots
//!  28  fingerprints
//! ```

use super::Published;
use crate::width::Width;
use crate::{BinaryFuse, Error};

/// A fingerprint for which the C header has a filter: `u8` and `u16`. Sealed.
#[diagnostic::on_unimplemented(
    message = "the C header has no binary fuse filter with fingerprints of `{Self}`",
    note = "`BinaryFuse8` and `BinaryFuse16` are those that it has"
)]
pub trait CWidth: Width {}
impl CWidth for u8 {}
impl CWidth for u16 {}

/// Bytes before the fingerprints.
const HEADER_BYTES: usize = 28;

impl<F: CWidth> BinaryFuse<F> {
    /// Serializes this filter as the C header serializes it. `Size` is the number of different keys.
    ///
    /// ```
    /// use warpset_fuse::BinaryFuse8;
    ///
    /// let bytes = BinaryFuse8::builder().build_from(&[2u64, 3, 5])?.to_c_bytes()?;
    /// assert!(BinaryFuse8::from_c_bytes(&bytes)?.contains(3u64)); // and so says binary_fuse8_contain(3, …)
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInterchangeable`] if it is four-wise, sharded or empty.
    pub fn to_c_bytes(&self) -> Result<Vec<u8>, Error> {
        let descriptor = self.published()?;
        let fingerprints: &[u8] = bytemuck::cast_slice(self.fingerprints());
        let mut bytes = Vec::with_capacity(HEADER_BYTES + fingerprints.len());
        bytes.extend_from_slice(&descriptor.seed.to_le_bytes());
        let segments = descriptor.segment_count_length / descriptor.segment_length;
        // The slots of one graph, and so its keys, are fewer than 2^32.
        for value in [
            self.len() as u32,
            descriptor.segment_length,
            segments,
            descriptor.segment_count_length,
            self.fingerprints().len() as u32,
        ] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(fingerprints);
        Ok(bytes)
    }

    /// Returns a filter that the C header serialized: all of the bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArray`] if the bytes are not those of such a filter: too few or too many, or with lengths that
    /// no filter has; [`Error::OutOfMemory`].
    pub fn from_c_bytes(bytes: &[u8]) -> Result<BinaryFuse<F>, Error> {
        let invalid = |what, value| Err(Error::InvalidArray { what, value });
        let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
            return invalid("the number of bytes", bytes.len() as u64);
        };
        let field = |at: usize, len: usize| {
            header[at..at + len].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let [size, segment_length, segments, starts, slots] = [8, 12, 16, 20, 24].map(|at| field(at, 4));
        let published = Published { seed: field(0, 8), segment_length, starts, keys: Some(size) };
        if rest.len() as u64 != slots * size_of::<F>() as u64 {
            return invalid("the number of bytes after its header", rest.len() as u64);
        }
        let layout = published.layout::<F>(slots)?;
        if segments * segment_length != starts {
            return invalid("the number of segments", segments);
        }
        BinaryFuse::with_fingerprints(layout, |slots| {
            let bytes = &rest[..size_of_val(slots)];
            bytemuck::cast_slice_mut::<F, u8>(slots).copy_from_slice(bytes);
            Ok(())
        })
    }
}
