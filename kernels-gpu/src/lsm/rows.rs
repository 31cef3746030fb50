//! Values of other sizes than 4 and 8 bytes: *rows*, at the places of their elements.
//!
//! Kernels that sort, merge and look up carry values of one or two words of 32 bits in registers. For rows they carry
//! the addresses as such values, and output addresses; one launch then copies the rows to their final places.

use warpset_simt::{Global, GlobalMut, thread};

/// Threads per block.
pub const BLOCK: u32 = 256;

kernel! {
    /// Writes `n` numbers, each larger by `step` than the previous one, wrapping: for example the addresses of rows.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `out`: valid for `n` writes, used by this launch alone.
    pub unsafe fn lsm_progression(first: u64, step: u64, n: usize, out: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe { out.write(i, first.wrapping_add((i as u64).wrapping_mul(step))) };
        }
    }
}

kernel! {
    /// Copies the row at each of `n` addresses to its place; where the address is 0, the row becomes zero. A row is
    /// `units` items of type `U`, which `2^lane_bits` threads copy, an item each.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size; `units <= 1 << lane_bits`.
    /// - `addresses`: valid for `n` reads; each of them is 0, or a multiple of the size of `U` and valid for a row.
    ///   Neither they nor these rows are written while the kernel runs.
    /// - `out`: valid for `n` rows, used by this launch alone.
    pub unsafe fn lsm_rows<U>(addresses: Global<u64>, n: usize, units: u32, lane_bits: u32, out: GlobalMut<U>)
    for [u8 => lsm_rows_u8, u32 => lsm_rows_u32, u64 => lsm_rows_u64] {
        for lane in thread::grid_stride(n << lane_bits) {
            let (i, unit) = (lane >> lane_bits, lane & ((1 << lane_bits) - 1));
            let units = units as usize;
            if unit < units {
                // SAFETY: `i < n`, and the unit is within the row.
                unsafe {
                    let address = addresses.read_nc(i);
                    let item = if address == 0 { 0 } else { Global::<U>::at_address(address, units).read_nc(unit) };
                    out.write(i * units + unit, item);
                }
            }
        }
    }
}
