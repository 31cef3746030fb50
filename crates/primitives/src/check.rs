//! Checks of arguments before anything is queued.

use bytemuck::Pod;
use warpset_base::filter::LengthMismatch;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use crate::{Error, Result};

/// Largest number of tiles: a tile is a block of a one-dimensional grid, which has fewer than 2^31.
const MAX_TILES: usize = i32::MAX as usize;

/// Fails unless `found` equals `needed`.
pub(crate) fn same_len(what: &'static str, needed: usize, found: usize) -> Result<()> {
    Ok(LengthMismatch::unless_equal(what, needed, found)?)
}

/// Returns the number of tiles of `tile` items, which are blocks of a grid.
pub(crate) fn tiles(n: usize, tile: usize) -> Result<u32> {
    match n.div_ceil(tile) {
        tiles if tiles <= MAX_TILES => Ok(tiles as u32),
        _ => Err(Error::TooLong { len: n, max: MAX_TILES.saturating_mul(tile) }),
    }
}

/// Checks that the output is memory of the stream's device, unless it is empty.
pub(crate) fn on_device_of<T: Pod>(stream: &Stream, what: &'static str, output: &DeviceSliceMut<'_, T>) -> Result<()> {
    if !output.is_empty() {
        stream.device().expect_same(output.device(), what)?;
    }
    Ok(())
}

/// Checks that input and output are memory of one device and do not overlap. Safe code cannot make them overlap;
/// `unsafe` code can.
pub(crate) fn apart<T: Pod, U: Pod>(
    what: &'static str,
    input: DeviceSlice<'_, T>,
    output: &DeviceSliceMut<'_, U>,
) -> Result<()> {
    let start = |pointer: *const u8| pointer.addr();
    let (a, b) = (start(input.global().as_ptr().cast()), start(output.global().as_ptr().cast()));
    let both = !input.is_empty() && !output.is_empty();
    if both {
        output.device().expect_same(input.device(), what)?;
    }
    if both && a < b + output.byte_len() && b < a + input.byte_len() {
        return Err(Error::Overlap { what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_gpu::{Device, GpuError};

    #[test]
    fn grids_have_their_limit() {
        assert_eq!(tiles(0, 100).unwrap(), 0);
        assert_eq!(tiles(101, 100).unwrap(), 2);
        assert_eq!(tiles(MAX_TILES * 100, 100).unwrap(), i32::MAX as u32);
        let error = tiles(MAX_TILES * 100 + 1, 100).unwrap_err();
        assert!(matches!(error, Error::TooLong { max, .. } if max == MAX_TILES * 100), "{error}");
    }

    #[test]
    fn memory_of_another_device_is_refused() {
        let [device, other] = [1, 2].map(|_| Device::emulator(Default::default()));
        let stream = device.new_stream().unwrap();
        let (here, mut there) = (device.from_slice(&[0u32; 4]).unwrap(), other.from_slice(&[0u32; 4]).unwrap());
        let other_device = |result| matches!(result, Err(Error::Gpu(GpuError::OtherDevice { .. })));
        assert!(other_device(on_device_of(&stream, "them", &there.as_mut_slice())));
        assert!(other_device(apart("them", here.as_slice(), &there.as_mut_slice())));
        on_device_of(&stream, "them", &there.slice_mut(..0)).unwrap();
        apart("them", here.slice(..0), &there.as_mut_slice()).unwrap();
    }

    #[test]
    fn only_shared_bytes_are_an_overlap() {
        let device = Device::emulator(Default::default());
        let mut words = device.from_slice(&[0u32; 16]).unwrap();
        let (input, output) = words.as_mut_slice().split_at_mut(8);
        apart("them", input.as_slice(), &output).unwrap();
        assert!(matches!(apart("them", output.as_slice(), &output), Err(Error::Overlap { what: "them" })));
        apart("them", output.slice(..0), &output).unwrap();
    }
}
