//! Radix partition: groups hashes by a digit, and hashes keys on the way.
//!
//! [`group_by_digit_async`] is one stable counting pass over a digit of up to 8 bits, in three launches: a histogram, a
//! scan of at most 256 counts, and a scatter that reads each key once and writes each hash once (see
//! [`warpset_kernels::primitives::radix`] for how). Passes over successive digits, lowest first, sort;
//! [`group_by_top_bits_async`] chains the necessary passes.
//!
//! Scratch: `8 << bits` bytes for each 4096 keys, and for each further pass 8 bytes per key.

use warpset_gpu::{DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::primitives::radix::{
    self as kernels, BLOCK, GROUP_SHARED_BYTES, GROUP_TILE, HISTOGRAM_SHARED_BYTES, MAX_DIGITS, PASS_SHARED_BYTES, TILE,
};

use crate::LookBack;
use crate::{Error, Result, check};

/// Largest number of bits of a digit.
pub const MAX_DIGIT_BITS: u32 = MAX_DIGITS.trailing_zeros();
/// Largest number of bits of [`group_by_top_bits_async`]: three passes.
pub const MAX_GROUP_BITS: u32 = 3 * MAX_DIGIT_BITS;

/// Bits `shift..shift + bits` of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    shift: u32,
    bits: u32,
}

impl Digit {
    /// Returns the digit of 1 to 8 bits from bit `shift` on.
    ///
    /// # Errors
    /// [`Error::InvalidDigit`].
    pub fn new(shift: u32, bits: u32) -> Result<Digit> {
        if bits == 0 || bits > MAX_DIGIT_BITS || shift.checked_add(bits).is_none_or(|end| end > 64) {
            return Err(Error::InvalidDigit { shift, bits });
        }
        Ok(Digit { shift, bits })
    }

    /// Returns the digit of the highest bits of a hash.
    ///
    /// # Errors
    /// [`Error::InvalidDigit`].
    pub fn top(bits: u32) -> Result<Digit> {
        Digit::new(64u32.saturating_sub(bits), bits)
    }

    /// Returns the digit of `hash`.
    pub fn of(self, hash: u64) -> usize {
        (hash >> self.shift) as usize & (self.values() - 1)
    }

    /// Returns the number of values of the digit.
    pub fn values(self) -> usize {
        1 << self.bits
    }
}

/// Whether hashes of one group stay in input order.
#[derive(Clone, Copy)]
enum Order {
    Kept,
    Any,
}

/// Queues one pass: `out` gets the hashes of the `n` keys grouped by `digit`, in input order within each group. Returns
/// where each group starts.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](Error::LengthMismatch), [`TooLong`](Error::TooLong).
///
/// # Safety
/// - `keys` holds `n` keys of its kind, which is not one of Parquet columns of type INT32.
/// - Until `stream` has passed this work, `keys` and `out` stay allocated, and no other work writes `keys` or accesses
///   `out`.
/// - `keys` and `out` do not overlap.
pub unsafe fn group_by_digit_async<'a>(
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    digit: Digit,
    out: impl Into<DeviceSliceMut<'a, u64>>,
) -> Result<DeviceVec<u64>> {
    // SAFETY: the contract of this function.
    unsafe { pass(stream, keys, n, digit, Order::Kept, out.into()) }
}

/// Queues one pass like [`group_by_digit_async`], whose hashes are in any order within each group: faster.
///
/// # Errors
/// The errors of [`group_by_digit_async`].
///
/// # Safety
/// The contract of [`group_by_digit_async`].
pub(crate) unsafe fn group_async(
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    digit: Digit,
    out: DeviceSliceMut<'_, u64>,
) -> Result<DeviceVec<u64>> {
    // SAFETY: the contract of this function.
    unsafe { pass(stream, keys, n, digit, Order::Any, out) }
}

/// Queues one pass.
///
/// # Safety
/// The contract of [`group_by_digit_async`].
unsafe fn pass(
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    digit: Digit,
    order: Order,
    mut out: DeviceSliceMut<'_, u64>,
) -> Result<DeviceVec<u64>> {
    check::same_len("grouped hashes", n, out.len())?;
    check::on_device_of(stream, "grouping by a digit", &out)?;
    let Digit { shift, bits } = digit;
    let mut starts = stream.alloc_zeroed::<u64>(digit.values())?;
    if n == 0 {
        return Ok(starts);
    }
    let (tile, shared_bytes) = match order {
        Order::Kept => (TILE, PASS_SHARED_BYTES),
        Order::Any => (GROUP_TILE, GROUP_SHARED_BYTES),
    };
    let tiles = check::tiles(n, tile)?;
    let mut look_back = LookBack::new(stream, tiles as usize * digit.values())?;
    let ticket = look_back.ticket();
    let resident = stream.device().properties().multiprocessors as usize * 8;
    let histogram_grid = n.div_ceil(BLOCK as usize).min(resident) as u32;
    // SAFETY: sizes are those of the kernels' contracts; scratch belongs to this call and is freed in stream order;
    // `keys` and `out` are covered by the contract of this function.
    unsafe {
        let config = LaunchConfig::new(histogram_grid, BLOCK).shared(HISTOGRAM_SHARED_BYTES);
        let counts = starts.global_mut();
        kernels::radix_histogram { keys: keys.keys, kind: keys.kind, spread: keys.spread, n, shift, bits, counts }
            .launch(stream, config)?;
        let config = LaunchConfig::new(1, BLOCK).shared(64);
        kernels::radix_scan { counts: starts.global_mut(), digits: digit.values() as u32 }.launch(stream, config)?;
        let config = LaunchConfig::new(tiles, BLOCK).shared(shared_bytes);
        let (starts, look_back, out) = (starts.global(), look_back.words(), out.global_mut());
        let KeySlice { keys, kind, spread, .. } = keys;
        match order {
            Order::Kept => kernels::radix_pass { keys, kind, spread, n, shift, bits, starts, look_back, ticket, out }
                .launch(stream, config)?,
            Order::Any => kernels::radix_group { keys, kind, spread, n, shift, bits, starts, look_back, ticket, out }
                .launch(stream, config)?,
        }
    }
    Ok(starts)
}

/// Queues one pass per 8 bits: `out` gets the hashes of the `n` keys grouped by their `bits` highest bits, in any order
/// within each group.
///
/// # Errors
/// Before anything is queued: [`InvalidBits`](Error::InvalidBits), [`LengthMismatch`](Error::LengthMismatch),
/// [`TooLong`](Error::TooLong).
///
/// # Safety
/// The contract of [`group_by_digit_async`].
pub unsafe fn group_by_top_bits_async<'a>(
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    bits: u32,
    out: impl Into<DeviceSliceMut<'a, u64>>,
) -> Result<()> {
    if bits == 0 || bits > MAX_GROUP_BITS {
        return Err(Error::InvalidBits { bits });
    }
    let mut out = out.into();
    let passes = bits.div_ceil(MAX_DIGIT_BITS);
    let mut scratch = match passes {
        1 => None,
        _ => Some(stream.alloc_uninit::<u64>(n)?),
    };
    // A single pass need not keep the order; each of several passes relies on the order of the previous one.
    let order = if passes == 1 { Order::Any } else { Order::Kept };
    let mut from = keys;
    let mut left = bits;
    for remaining in (0..passes).rev() {
        let width = left.div_ceil(remaining + 1);
        let digit = Digit::new(64 - left, width)?;
        left -= width;
        // Passes alternate so that the last one writes to `out`.
        let to = match &mut scratch {
            Some(scratch) if remaining % 2 == 1 => scratch.as_mut_slice(),
            _ => out.reborrow(),
        };
        let next = KeySlice::hashes(to.global());
        // SAFETY: each pass reads the output of the previous one, which is not its own output; the rest is the contract
        // of this function.
        unsafe { pass(stream, from, n, digit, order, to)? };
        from = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_base::filter::LengthMismatch;
    use warpset_core::hash;
    use warpset_gpu::Device;
    use warpset_gpu::batch::{Hashing, KeyClass};
    use warpset_gpu::testing::devices;

    fn random(n: usize) -> Vec<u64> {
        (0..n as u64).map(|i| hash::mix(i, 1)).collect()
    }

    fn of_hashes(hashes: &DeviceVec<u64>) -> KeySlice {
        KeySlice::hashes(hashes.global())
    }

    fn grouped(device: &Device, hashes: &[u64], digit: Digit) -> (Vec<u64>, Vec<u64>) {
        let stream = device.new_stream().unwrap();
        let keys = device.from_slice(hashes).unwrap();
        let mut out = device.alloc_uninit(hashes.len()).unwrap();
        // SAFETY: both live until the stream has been waited for.
        let starts = unsafe { group_by_digit_async(&stream, of_hashes(&keys), hashes.len(), digit, &mut out) }.unwrap();
        stream.synchronize().unwrap();
        (out.to_vec().unwrap(), starts.to_vec().unwrap())
    }

    #[test]
    fn a_pass_is_a_stable_sort_by_its_digit() {
        for (n, digit) in [
            (0, Digit::top(3).unwrap()),
            (1, Digit::top(8).unwrap()),
            (31, Digit::new(0, 1).unwrap()),
            (TILE - 1, Digit::new(17, 5).unwrap()),
            (TILE + 1, Digit::top(6).unwrap()),
            (5 * TILE + 777, Digit::top(8).unwrap()),
        ] {
            let hashes = random(n);
            let mut expected = hashes.clone();
            expected.sort_by_key(|&h| digit.of(h));
            for device in devices(n as u64) {
                let (out, starts) = grouped(&device, &hashes, digit);
                assert_eq!(out, expected, "{n} keys, {digit:?}");
                for (d, &start) in starts.iter().enumerate() {
                    assert_eq!(start as usize, expected.partition_point(|&h| digit.of(h) < d));
                }
            }
        }
    }

    #[test]
    fn one_digit_may_hold_everything() {
        for device in devices(1) {
            let hashes = vec![!0u64; 2 * TILE + 5];
            assert_eq!(grouped(&device, &hashes, Digit::top(8).unwrap()).0, hashes);
            let hashes = vec![0u64; TILE + 5];
            assert_eq!(grouped(&device, &hashes, Digit::top(2).unwrap()).0, hashes);
        }
    }

    #[test]
    fn keys_are_hashed_on_the_way() {
        for device in devices(5) {
            let stream = device.new_stream().unwrap();
            let n = TILE + 33;
            // Half of the short ones are negative as signed numbers.
            let small: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let large: Vec<u64> = (0..n as u64).collect();
            let (small_keys, large_keys) = (device.from_slice(&small).unwrap(), device.from_slice(&large).unwrap());
            let (large_keys, small_keys) = (large_keys.global(), small_keys.global());
            let (xxh64, seeded) = (Hashing::xxh64(), Hashing::seeded(9));
            let (unsigned, signed) = (|i: usize| u64::from(small[i]), |i: usize| small[i] as i32 as u64);
            let cases: [(KeySlice, &dyn Fn(usize) -> u64); 6] = [
                (xxh64.key_slice(KeyClass::U64, large_keys), &|i| hash::xxh64_u64(large[i], 0)),
                (xxh64.key_slice(KeyClass::U32, small_keys), &|i| hash::xxh64_u64(unsigned(i), 0)),
                (xxh64.key_slice(KeyClass::I32, small_keys), &|i| hash::xxh64_u64(signed(i), 0)),
                (seeded.key_slice(KeyClass::U64, large_keys), &|i| hash::mix(large[i], 9)),
                (seeded.key_slice(KeyClass::U32, small_keys), &|i| hash::mix(unsigned(i), 9)),
                (seeded.key_slice(KeyClass::I32, small_keys), &|i| hash::mix(signed(i), 9)),
            ];
            for (keys, hash) in cases {
                let mut out = device.alloc_uninit(n).unwrap();
                // SAFETY: all live until the stream has been waited for.
                unsafe { group_by_digit_async(&stream, keys, n, Digit::top(4).unwrap(), &mut out) }.unwrap();
                let mut expected: Vec<u64> = (0..n).map(hash).collect();
                expected.sort_by_key(|h| h >> 60);
                assert_eq!(out.to_vec().unwrap(), expected, "{:?}", keys.kind);
            }
        }
    }

    #[test]
    fn many_bits_take_several_passes() {
        for device in devices(3) {
            let stream = device.new_stream().unwrap();
            let hashes = random(TILE + 100);
            let keys = device.from_slice(&hashes).unwrap();
            for bits in [1, 8, 9, 16, 17, 24] {
                let mut out = device.alloc_uninit(hashes.len()).unwrap();
                // SAFETY: both live until the stream has been waited for.
                unsafe { group_by_top_bits_async(&stream, of_hashes(&keys), hashes.len(), bits, &mut out) }.unwrap();
                let mut expected = hashes.clone();
                let out = out.to_vec().unwrap();
                assert!(out.is_sorted_by_key(|h| h >> (64 - bits)), "{bits} bits");
                let mut found = out;
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "{bits} bits");
            }
        }
    }

    #[test]
    fn impossible_digits_and_lengths_are_errors() {
        for (shift, bits) in [(0, 0), (0, 9), (60, 5), (64, 1), (u32::MAX, 8)] {
            assert!(matches!(Digit::new(shift, bits), Err(Error::InvalidDigit { .. })), "{shift} {bits}");
        }
        for device in devices(4) {
            let stream = device.new_stream().unwrap();
            let keys = device.from_slice(&[1u64, 2]).unwrap();
            let mut out = device.alloc_uninit(3).unwrap();
            // SAFETY: nothing gets queued.
            let result =
                unsafe { group_by_digit_async(&stream, of_hashes(&keys), 2, Digit::top(1).unwrap(), &mut out) };
            assert!(matches!(result, Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 3, .. }))));
            // SAFETY: nothing gets queued.
            let result = unsafe { group_by_top_bits_async(&stream, of_hashes(&keys), 2, 25, &mut out) };
            assert!(matches!(result, Err(Error::InvalidBits { bits: 25 })));
        }
    }
}
