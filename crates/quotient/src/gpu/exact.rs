//! Keys of exact filters: integers with bijective fingerprints.
//!
//! Kernels make the fingerprints of keys, and check their numbers of bits. Keys of the host travel as their values in
//! 64 bits, whatever their type; what has none is noticed before anything is queued.

use std::borrow::Cow;

use rayon::prelude::*;
use warpset_base::filter::Take;
use warpset_base::key::sealed::Raw;
use warpset_base::parallel;
use warpset_core::bits::lowest;
use warpset_core::hash::permute::spread_of;
use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::batch::keys::{HashFunction, KeyKind, KeySlice};
use warpset_kernels::quotient::exact::{quotient_exact_clear, quotient_exact_fits, quotient_exact_keys};
use warpset_simt::GlobalMut;

use super::DeviceKeys;
use super::launch::{grid, hashing, parameters};
use crate::{Error, Key, Layout};

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

/// Returns the values of keys of the host, if all of them have a fingerprint.
///
/// # Errors
/// [`Error::KeyTooWide`] if a key has none.
pub(crate) fn words<'k, K: Key>(layout: &Layout, keys: &'k [K]) -> Result<Cow<'k, [u64]>, Error> {
    let fits = |word: &u64| *word <= lowest(layout.fingerprint_bits());
    let all = match K::raw(keys) {
        Raw::U64(words) => {
            let fit = parallel::map(words.chunks(FEW), |words| words.iter().all(fits));
            fit.into_iter().all(|fit| fit).then_some(Cow::Borrowed(words))
        }
        _ if keys.len() <= FEW => keys.iter().map(|key| key.word().filter(fits)).collect::<Option<_>>().map(Cow::Owned),
        _ => keys.par_iter().map(|key| key.word().filter(fits)).collect::<Option<_>>().map(Cow::Owned),
    };
    all.ok_or(Error::KeyTooWide { bits: layout.fingerprint_bits() })
}

/// Returns the [`words`] of the keys that have a fingerprint, with their places unless all have one.
pub(crate) fn some_words<'k, K: Key>(layout: &Layout, keys: &'k [K]) -> (Cow<'k, [u64]>, Option<Vec<usize>>) {
    if let Ok(all) = words(layout, keys) {
        return (all, None);
    }
    let fits = |word: &u64| *word <= lowest(layout.fingerprint_bits());
    let some = keys.iter().enumerate().filter_map(|(i, key)| Some((key.word().filter(fits)?, i)));
    let (words, places) = some.unzip();
    (Cow::Owned(words), Some(places))
}

/// Returns the words of keys to ask for. Kernels know themselves that there is none of a word that is too wide.
fn asked<'k, K: Key>(layout: &Layout, keys: &'k [K]) -> (Cow<'k, [u64]>, Option<Vec<usize>>) {
    match K::raw(keys) {
        Raw::U64(words) => (Cow::Borrowed(words), None),
        _ => some_words(layout, keys),
    }
}

/// Returns the [`some_words`] of keys, with their values if there are any.
pub(crate) fn some_pairs<'k, K: Key>(
    layout: &Layout,
    keys: &'k [K],
    values: &'k [u64],
) -> (Cow<'k, [u64]>, Cow<'k, [u64]>) {
    let (words, places) = some_words(layout, keys);
    let of_some = |places: Vec<usize>| places.into_iter().filter_map(|place| values.get(place).copied()).collect();
    (words, places.map_or(Cow::Borrowed(values), |places| Cow::Owned(of_some(places))))
}

/// Writes the answer to each key of the host: that of `ask` to its word, or `absent` for a key without fingerprint.
pub(crate) fn answer<K: Key, T: Copy>(
    layout: &Layout,
    keys: &[K],
    answers: &mut [T],
    absent: T,
    ask: impl FnOnce(&[u64], &mut [T]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (words, places) = asked(layout, keys);
    let Some(places) = places else { return ask(&words, answers) };
    let mut some = vec![absent; words.len()];
    ask(&words, &mut some)?;
    answers.fill(absent);
    places.into_iter().zip(some).for_each(|(place, answer)| answers[place] = answer);
    Ok(())
}

/// Gives `take` the answers to keys of the host: those of `ask` to their words, and no for keys without fingerprint.
pub(super) fn answer_bulk<K: Key>(
    layout: &Layout,
    keys: &[K],
    take: &mut Take<'_>,
    ask: impl FnOnce(&[u64], &mut Take<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (words, places) = asked(layout, keys);
    let Some(places) = places else { return ask(&words, take) };
    let mut bits = vec![0; words.len().div_ceil(64)];
    ask(&words, &mut |first, words| bits[first / 64..][..words.len()].copy_from_slice(words))?;
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
const FEW: usize = 1 << 14;
