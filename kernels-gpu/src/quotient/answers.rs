//! Common parts of lookup kernels, for every kind of slots: from keys, or from sorted fingerprints, to answers.

use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::batch::keys::KeyKind;
use crate::batch::results;
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::Parameters;

/// Answers one key per thread; `is_stored` decides on a quotient and a remainder.
///
/// # Safety
/// - All threads of blocks of a multiple of 64 threads come here together, one thread per key in a 1-D grid.
/// - `keys`: `n` keys of `kind`, one that [`fingerprint_at`] takes, not written while the kernel runs.
/// - `out`: `results::words(form, n)` words, used by this launch alone; for `results::COUNT`, others may add to it.
#[inline(always)]
pub unsafe fn contains(
    is_stored: impl Fn(u64, u64) -> bool,
    parameters: Parameters,
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
) {
    let split = parameters.split();
    let i = thread::index_1d() as usize;
    let mut yes = false;
    // SAFETY: `i < n` where it is read; all threads arrive at `put`.
    unsafe {
        if i < n {
            let fingerprint = fingerprint_at(keys, kind, spread, split, i);
            yes = fingerprint.is_some_and(|item| is_stored(split.quotient(item), split.remainder(item)));
        }
        results::put(form, out, i, n, yes);
    }
}

/// Answers one sorted fingerprint per thread, each at the place of its key.
///
/// # Safety
/// - All threads of a block come here together, one thread per fingerprint in a 1-D grid.
/// - `fingerprints`: `n`, of 64 bits if they are `wide`, otherwise of 32, not written while the kernel runs. The same
///   holds for `places`, which are different and below `n`; `results::COUNT` does not read them.
/// - `out`: `results::words(form, n)` words, used by this launch alone; zero at the start for `results::BITS`; for
///   `results::COUNT`, others may add to it.
#[inline(always)]
pub unsafe fn contains_sorted(
    is_stored: impl Fn(u64, u64) -> bool,
    parameters: Parameters,
    fingerprints: Global<u64>,
    wide: u32,
    places: Global<u32>,
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let split = parameters.split();
    let mut yes = false;
    // SAFETY: `i < n` where it is read; a place is that of one key; all threads reach the count.
    unsafe {
        if i < n {
            let fingerprint =
                if wide != 0 { fingerprints.read_nc(i) } else { fingerprints.cast::<u32>().read_nc(i) as u64 };
            yes = is_stored(split.quotient(fingerprint), split.remainder(fingerprint));
            if form == results::BYTES {
                out.cast::<u8>().write(places.read_nc(i) as usize, yes as u8);
            } else if form == results::BITS && yes {
                let place = places.read_nc(i);
                atomic::reduce_or(out.at(place as usize / 64), 1 << (place % 64));
            }
        }
        if form == results::COUNT {
            let count = thread::sync_threads_count(yes);
            if thread::thread_idx_x() == 0 && count != 0 {
                atomic::reduce_add(out, count as u64);
            }
        }
    }
}
