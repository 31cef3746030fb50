//! Values that kernels do not carry: rows, whose addresses they carry instead.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::lsm::rows::{BLOCK, lsm_progression, lsm_rows};
use warpset_primitives::Result;
use warpset_simt::{GlobalMut, LaunchConfig};

use crate::gpu::DeviceValue;

/// Largest number of blocks of grid-stride launches.
const MOST_BLOCKS: usize = 1 << 16;

fn covering(threads: usize) -> LaunchConfig {
    LaunchConfig::new(threads.div_ceil(BLOCK as usize).clamp(1, MOST_BLOCKS) as u32, BLOCK)
}

/// Returns the address of the first row.
pub(super) fn address_of<T: Pod>(rows: DeviceSlice<'_, T>) -> u64 {
    rows.global().as_ptr().expose_provenance() as u64
}

/// Checks that values have the alignment that kernels need; memory of other libraries may not.
pub(super) fn check_alignment<V: DeviceValue>(values: DeviceSlice<'_, V::Stored>) -> Result<()> {
    match (V::IN_ROWS, V::WORDS) {
        (false, 1) => values.cast::<u32>().map(drop)?,
        (false, 2) => values.cast::<u64>().map(drop)?,
        _ => {}
    }
    Ok(())
}

/// Queues the writing of the address of each row.
pub(super) fn addresses<T: Pod>(stream: &Stream, rows: DeviceSlice<'_, T>) -> Result<DeviceVec<u64>> {
    let mut out = stream.alloc_uninit(rows.len())?;
    // SAFETY: the memory is new and has a place for each row.
    unsafe { write_addresses(stream, rows, out.as_mut_slice())? };
    Ok(out)
}

/// Queues the writing of the address of each row to its place in `out`.
///
/// # Safety
/// `out` has one place per row. Until `stream` has passed this work, it stays allocated and nothing else accesses it.
pub(super) unsafe fn write_addresses<T: Pod>(
    stream: &Stream,
    rows: DeviceSlice<'_, T>,
    mut out: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    // SAFETY: the contract of this function.
    unsafe { write_progression(stream, address_of(rows), size_of::<T>() as u64, out.slice_mut(..rows.len())) }
}

/// Queues the writing of `first`, `first + step` and so on to the places in `out`.
///
/// # Safety
/// The contract of [`write_addresses`].
pub(super) unsafe fn write_progression(
    stream: &Stream,
    first: u64,
    step: u64,
    mut out: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let n = out.len();
    // SAFETY: the contract of this function.
    unsafe { lsm_progression { first, step, n, out: out.global_mut() }.launch(stream, covering(n))? };
    Ok(())
}

/// Queues the writing of a one to each counter of 4 or 8 bytes.
///
/// # Safety
/// The contract of [`write_addresses`].
pub(super) unsafe fn write_ones<T: Pod>(stream: &Stream, mut out: DeviceSliceMut<'_, T>) -> Result<()> {
    if size_of::<T>() == 4 {
        return Ok(stream.fill_words(out.cast::<u32>()?, 1)?);
    }
    // SAFETY: the contract of this function.
    unsafe { write_progression(stream, 1, 0, out.reborrow().cast()?) }
}

/// Queues the copy of the rows at these addresses, or of zeros where an address is 0, to their places in `out`. All
/// addresses are at multiples of the row's size from `first`, or, if that is 0, from the start of an allocation.
///
/// # Safety
/// `out` has one place per address. Until `stream` has passed this work all memory stays allocated, nothing writes
/// addresses and rows, and nothing else accesses `out`.
pub(super) unsafe fn copy<T: Pod>(
    stream: &Stream,
    addresses: DeviceSlice<'_, u64>,
    first: u64,
    mut out: DeviceSliceMut<'_, T>,
) -> Result<()> {
    let n = addresses.len();
    let unit = match (first | address_of(out.as_slice()) | size_of::<T>() as u64).trailing_zeros() {
        0 | 1 => 1,
        2 => 4,
        _ => 8,
    };
    let units = (size_of::<T>() / unit) as u32;
    let lane_bits = units.next_power_of_two().trailing_zeros();
    let (addresses, out, config) = (addresses.global(), out.global_mut(), covering(n << lane_bits));
    // SAFETY: the contract of this function; all rows are at multiples of the unit.
    unsafe {
        match unit {
            1 => lsm_rows::<u8> { addresses, n, units, lane_bits, out: out.cast() }.launch(stream, config)?,
            4 => lsm_rows::<u32> { addresses, n, units, lane_bits, out: out.cast() }.launch(stream, config)?,
            _ => lsm_rows::<u64> { addresses, n, units, lane_bits, out: out.cast() }.launch(stream, config)?,
        }
    }
    Ok(())
}

/// Output for the values of a query: their places, or a buffer of addresses for values in rows.
pub(super) struct AnswerBuffer<'a, V: DeviceValue> {
    out: DeviceSliceMut<'a, V::Stored>,
    addresses: Option<DeviceVec<u64>>,
}

impl<'a, V: DeviceValue> AnswerBuffer<'a, V> {
    /// Allocates a place for each value.
    pub(super) fn new(stream: &Stream, out: DeviceSliceMut<'a, V::Stored>) -> Result<Self> {
        check_alignment::<V>(out.as_slice())?;
        let addresses = if V::IN_ROWS { Some(stream.alloc_uninit(out.len())?) } else { None };
        Ok(AnswerBuffer { out, addresses })
    }

    /// Returns the memory to which a kernel writes `V::WORDS` words per value.
    pub(super) fn global_mut(&mut self) -> GlobalMut<u32> {
        match &mut self.addresses {
            Some(addresses) => addresses.global_mut().cast(),
            None => self.out.global_mut().cast(),
        }
    }

    /// Queues the rest of the work after the kernel.
    ///
    /// # Safety
    /// All places have been written on the stream. As for the query, the memory and the levels stay allocated until the
    /// stream has passed.
    pub(super) unsafe fn finish(self, stream: &Stream) -> Result<()> {
        let Some(addresses) = self.addresses else { return Ok(()) };
        // SAFETY: the addresses are 0 or those of rows in the levels; they are freed in stream order; the rest is the
        // contract of this function.
        unsafe { copy(stream, addresses.as_slice(), 0, self.out) }
    }
}
