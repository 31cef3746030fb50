//! Keys of exact filters: integers with bijective fingerprints.
//!
//! Kernels make the fingerprints of keys on the device, and check their numbers of bits. Keys of the host become
//! fingerprints there and travel as hashes with these fingerprints. So keys of any integer type work, and one that does
//! not fit is noticed before anything is queued.

use warpset_base::filter::Take;
use warpset_base::parallel;
use warpset_core::hash::permute::spread_of;
use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::batch::keys::{HashFunction, KeyKind, KeySlice};
use warpset_kernels::quotient::exact::{quotient_exact_clear, quotient_exact_fits, quotient_exact_keys};
use warpset_simt::GlobalMut;

use super::DeviceKeys;
use super::launch::{grid, hashing, parameters};
use crate::{Error, Hashed, Key, Layout};

/// Returns keys as the kernels of this layout take them, given those for hashing.
pub(crate) fn keys_for(layout: &Layout, keys: KeySlice) -> KeySlice {
    if !layout.exact {
        return keys;
    }
    let kind = KeyKind { function: HashFunction::Permutation, ..keys.kind };
    KeySlice { kind, spread: spread_of(layout.seed()), ..keys }
}

/// Queues answers to which of `n > 0` keys have a fingerprint, as bits, or as their number added to a word.
///
/// # Safety
/// Until `stream` has passed this work the keys stay allocated, and nothing writes them; the answers are valid for `n`
/// keys.
pub(super) unsafe fn fits(
    layout: &Layout,
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    answers: Answers,
) -> Result<(), Error> {
    let (KeySlice { keys, kind, spread, .. }, Answers { words: out, form }) = (keys, answers);
    // SAFETY: the contract is the same.
    unsafe {
        quotient_exact_fits { keys, kind, spread, n, parameters: parameters(layout), form, out }
            .launch(stream, grid(n))?
    };
    Ok(())
}

/// Queues zeros as the answers for the keys, of `n > 0`, that have no fingerprint.
///
/// # Safety
/// The contract of [`fits`], with a word per key.
pub(super) unsafe fn clear(
    layout: &Layout,
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    out: GlobalMut<u64>,
) -> Result<(), Error> {
    let KeySlice { keys, kind, spread, .. } = keys;
    // SAFETY: the contract is the same.
    unsafe {
        quotient_exact_clear { keys, kind, spread, n, parameters: parameters(layout), out }.launch(stream, grid(n))?
    };
    Ok(())
}

/// Queues the replacement of fingerprints by their keys.
pub(super) fn to_keys(layout: &Layout, stream: &Stream, fingerprints: &mut DeviceVec<u64>) -> Result<(), Error> {
    if !layout.exact {
        return Err(Error::NotExact);
    }
    let n = fingerprints.len();
    if n > 0 {
        let (bits, spread) = (layout.fingerprint_bits(), spread_of(layout.seed()));
        let fingerprints = fingerprints.global_mut();
        // SAFETY: the vector is the caller's alone, and freed in the order of the stream.
        unsafe { quotient_exact_keys { fingerprints, n, bits, spread }.launch(stream, grid(n))? };
    }
    Ok(())
}

/// Returns hashes with the fingerprints of keys of the host.
///
/// # Errors
/// [`Error::KeyTooWide`] if a key has none.
pub(crate) fn hashes<K: Key>(layout: &Layout, keys: &[K]) -> Result<Vec<Hashed>, Error> {
    let (of, unused) = (layout.fingerprints_of(), unused_bits(layout));
    let hash = |key: &K| layout.expect_fingerprint(of.of(key)).map(|fingerprint| Hashed(fingerprint << unused));
    let parts = parallel::map(keys.chunks(FEW), |keys| keys.iter().map(hash).collect::<Result<Vec<Hashed>, Error>>());
    Ok(parts.into_iter().collect::<Result<Vec<Vec<Hashed>>, Error>>()?.concat())
}

/// Returns the [`hashes`] of the keys that have a fingerprint, with their places unless all have one.
pub(crate) fn some_hashes<K: Key>(layout: &Layout, keys: &[K]) -> (Vec<Hashed>, Option<Vec<usize>>) {
    if let Ok(all) = hashes(layout, keys) {
        return (all, None);
    }
    let (of, unused) = (layout.fingerprints_of(), unused_bits(layout));
    let some = keys.iter().enumerate().filter_map(|(i, key)| Some((Hashed(of.of(key)? << unused), i)));
    let (hashes, places) = some.unzip();
    (hashes, Some(places))
}

/// Returns the [`some_hashes`] of keys, with their values.
pub(crate) fn some_pairs<K: Key>(layout: &Layout, keys: &[K], values: &[u64]) -> (Vec<Hashed>, Vec<u64>) {
    let (hashes, places) = some_hashes(layout, keys);
    // There may be none for any key.
    let of_some = |places: Vec<usize>| places.into_iter().filter_map(|place| values.get(place).copied()).collect();
    (hashes, places.map_or_else(|| values.to_vec(), of_some))
}

/// Writes the answer to each key of the host: that of `ask` to its hash, or `absent` for a key without fingerprint.
pub(crate) fn answer<K: Key, T: Copy>(
    layout: &Layout,
    keys: &[K],
    answers: &mut [T],
    absent: T,
    ask: impl FnOnce(&[Hashed], &mut [T]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (hashes, places) = some_hashes(layout, keys);
    let Some(places) = places else { return ask(&hashes, answers) };
    let mut some = vec![absent; hashes.len()];
    ask(&hashes, &mut some)?;
    answers.fill(absent);
    places.into_iter().zip(some).for_each(|(place, answer)| answers[place] = answer);
    Ok(())
}

/// Gives `take` the answers to keys of the host: those of `ask` to their hashes, and no for keys without fingerprint.
pub(super) fn answer_bulk<K: Key>(
    layout: &Layout,
    keys: &[K],
    take: &mut Take<'_>,
    ask: impl FnOnce(&[Hashed], &mut Take<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (hashes, places) = some_hashes(layout, keys);
    let Some(places) = places else { return ask(&hashes, take) };
    let mut bits = vec![0; hashes.len().div_ceil(64)];
    ask(&hashes, &mut |first, words| bits[first / 64..][..words.len()].copy_from_slice(words))?;
    let mut all = vec![0u64; keys.len().div_ceil(64)];
    for (i, place) in places.into_iter().enumerate() {
        all[place / 64] |= (bits[i / 64] >> (i % 64) & 1) << (place % 64);
    }
    take(0, &all);
    Ok(())
}

/// Refuses a batch on a device with a key that has no fingerprint. Waits.
///
/// # Errors
/// [`Error::KeyTooWide`] if there is one.
pub(crate) fn expect_fits<K: DeviceKeys>(layout: &Layout, keys: K) -> Result<(), Error> {
    let fitting = keys.device().waiting(|stream| {
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: keys are borrowed until the stream has been waited for; others may add to a count.
        unsafe {
            keys.for_each_chunk(&hashing(layout), stream, |_, hashed, n| {
                fits(layout, stream, keys_for(layout, hashed.keys), n, Answers::count(count.as_mut_slice())?)
            })?;
        }
        Ok::<_, Error>(stream.download_first(&count)?)
    })?;
    let all_fit = fitting == keys.count() as u64;
    if all_fit { Ok(()) } else { Err(Error::KeyTooWide { bits: layout.fingerprint_bits() }) }
}

/// Keys per task.
const FEW: usize = 1 << 12;

/// Returns the number of low bits of a hash that are not in its fingerprint.
pub(super) fn unused_bits(layout: &Layout) -> u32 {
    64 - layout.fingerprint_bits()
}
