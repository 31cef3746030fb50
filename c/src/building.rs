//! Construction of structures.

use crate::error::{Result, guard, warpset_status};
use crate::handle::hand_out;
use crate::keys::{Batch, array, read, warpset_key_type, warpset_keys};
use crate::object::{Held, Object, warpset_structure};
use crate::options::{Options, read as settings, warpset_options};
use crate::{bloom, fuse, lsm, mphf, quotient, ranges, sequences, static_sets};

/// Builds a structure for a number of keys.
///
/// # Safety
/// The contract of the header.
unsafe fn sized(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
    build: impl FnOnce(u64, &Options) -> Result<Box<dyn Object>>,
) -> warpset_status {
    // SAFETY: the contract of this function.
    guard(|| unsafe {
        let options = settings(options)?;
        hand_out(out, || Ok(Held::new(build(keys, &options)?)))
    })
}

/// Builds a structure of keys.
///
/// # Safety
/// The contract of the header.
unsafe fn of_keys(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
    build: impl FnOnce(&Batch<'_>, &Options) -> Result<Box<dyn Object>>,
) -> warpset_status {
    // SAFETY: the contract of this function.
    guard(|| unsafe {
        let (batch, options) = (read(keys)?, settings(options)?);
        hand_out(out, || Ok(Held::new(build(&batch, &options)?)))
    })
}

/// Builds a structure of keys with values.
///
/// # Safety
/// The contract of the header.
unsafe fn of_pairs(
    keys: *const warpset_keys,
    values: *const u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
    build: impl FnOnce(&Batch<'_>, &[u64], &Options) -> Result<Box<dyn Object>>,
) -> warpset_status {
    // SAFETY: the contract of this function.
    guard(|| unsafe {
        let (batch, options) = (read(keys)?, settings(options)?);
        let values = array(values, batch.len(), "values")?;
        hand_out(out, || Ok(Held::new(build(&batch, &batch.of_keys(values), &options)?)))
    })
}

/// Makes an empty split-block Bloom filter, for a number of keys at the false-positive rate of the settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_split_block_bloom_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, bloom::split_block) }
}

/// Makes an empty blocked Bloom filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_blocked_bloom_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, bloom::blocked) }
}

/// Makes an empty two-level Bloom filter of Rao.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_rao_bloom_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, bloom::rao) }
}

/// Makes an empty quotient filter for a number of keys. It takes back keys, and counts copies where they are kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_standard_quotient_filter_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, quotient::standard) }
}

/// Makes an empty quotient filter with rank and select, which is faster when full, and can count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_rank_select_quotient_filter_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, quotient::rank_select) }
}

/// Makes an empty maplet: a quotient filter with a value of `value_bits` bits beside each fingerprint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_maplet_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, quotient::maplet) }
}

/// Makes an empty filter for a number of k-mers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sequence_filter_build(
    keys: u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(keys, options, out, sequences::build) }
}

/// Builds a binary fuse filter of `fingerprint_bits` bits. Repeated keys are no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_binary_fuse_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, fuse::build) }
}

/// Builds a range filter, which answers whether any key lies between two bounds. Repeated keys are no error. Pass keys
/// of the same order to it later: unsigned integers, signed integers, doubles, or strings, whose first 16 bytes count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, ranges::build) }
}

/// Makes an empty range filter for a number of keys, which are inserted and removed later, of a `warpset_key_type`.
/// Integers of 8 to 64 bits have one type, by their sign. `fpr` is the rate at that number of keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_dynamic_range_filter_build(
    keys: u64,
    key_type: u32,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe {
        sized(keys, options, out, |keys, options| ranges::dynamic(keys, warpset_key_type::of(key_type)?, options))
    }
}

/// Builds the perfect hash function RecSplit of keys, which must differ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_recsplit_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, mphf::recsplit) }
}

/// Builds the perfect hash function Consensus of keys, which must differ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_consensus_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, mphf::consensus) }
}

/// Builds a perfect hash function by placement of keys, which must differ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_placement_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, mphf::placement) }
}

/// Builds a static filter of keys, which must differ: a perfect hash function with fingerprints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_static_filter_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, mphf::static_filter) }
}

/// Builds an exact set of integers. Repeated keys are no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_static_set_build(
    keys: *const warpset_keys,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_keys(keys, options, out, static_sets::set) }
}

/// Builds a function that returns the value of each key, without storing keys. Repeated keys need equal values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_static_function_build(
    keys: *const warpset_keys,
    values: *const u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_pairs(keys, values, options, out, fuse::function) }
}

/// Builds an exact map of strings, which must differ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_string_map_build(
    keys: *const warpset_keys,
    values: *const u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_pairs(keys, values, options, out, mphf::string_map) }
}

/// Builds an exact map of integers. Of repeated keys the last value counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_static_map_build(
    keys: *const warpset_keys,
    values: *const u64,
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { of_pairs(keys, values, options, out, static_sets::map) }
}

/// Makes an empty dictionary, a log-structured merge tree, for updates in batches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_lsm_build(
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(0, options, out, |_, options| lsm::tree(options)) }
}

/// Makes an empty dictionary, a sorted array, for many lookups and few updates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sorted_array_build(
    options: *const warpset_options,
    out: *mut *mut warpset_structure,
) -> warpset_status {
    // SAFETY: the contract of the header.
    unsafe { sized(0, options, out, |_, options| lsm::array(options)) }
}
