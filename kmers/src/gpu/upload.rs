//! Upload of packed bases to the device.

use bytemuck::Pod;
use warpset_gpu::batch::upload_many;
use warpset_gpu::{DeviceSliceMut, DeviceVec, Stream};

use super::{PADDING, Packed};
use crate::Error;

/// Uploads the bases and breaks of all parts, one after the other, then [`PADDING`] words that are all breaks. Waits.
pub(super) fn upload(
    stream: &Stream,
    parts: &[Packed],
    words: usize,
) -> Result<(DeviceVec<u64>, DeviceVec<u32>), Error> {
    let (mut bases, mut breaks) =
        (stream.alloc_uninit::<u64>(words + PADDING)?, stream.alloc_uninit::<u32>(words + PADDING)?);
    stream.fill_bytes(bases.slice_mut(words..), 0)?;
    stream.fill_bytes(breaks.slice_mut(words..), 0xff)?;
    upload_many(stream, places(parts.iter().map(Packed::bases), bases.slice_mut(..words)))?;
    upload_many(stream, places(parts.iter().map(Packed::breaks), breaks.slice_mut(..words)))?;
    Ok((bases, breaks))
}

/// Returns each part with its place.
fn places<'p, 'd, T: Pod>(
    parts: impl Iterator<Item = &'p [T]>,
    mut to: DeviceSliceMut<'d, T>,
) -> Vec<(&'p [T], DeviceSliceMut<'d, T>)> {
    let mut places = Vec::new();
    for part in parts {
        let (place, rest) = to.split_at_mut(part.len());
        places.push((part, place));
        to = rest;
    }
    places
}
