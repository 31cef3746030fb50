//! Sort of fingerprints of 33 and 34 bits as 32-bit words: they are distributed to two or four parts by the bits above,
//! and joined again.

use warpset_gpu::{LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::parts::{
    BLOCK, PARTS, SHARED_BYTES, TILE, WIDENED, quotient_fingerprints_in_parts, quotient_widen,
};
use warpset_primitives::sort;

use super::DeviceKeys;
use super::fingerprints::Fingerprints;
use super::launch::{hashing, parameters};
use crate::{Error, Layout};

/// Least number of keys: for fewer, waiting for the parts' lengths costs as much as the sort saves.
const LEAST: usize = 1 << 23;

/// Whether [`sorted`] is faster than a sort of 64-bit words.
pub(super) fn pays(layout: &Layout, n: usize) -> bool {
    !layout.exact && (33..=34).contains(&layout.fingerprint_bits()) && n >= LEAST
}

/// Returns the fingerprints, of 33 or 34 bits, of keys of a filter that is not exact, in ascending order. Waits for the
/// lengths of the parts.
///
/// # Safety
/// Until `stream` has passed this work the keys stay allocated, and nothing writes them.
pub(super) unsafe fn sorted<K: DeviceKeys>(layout: &Layout, stream: &Stream, keys: K) -> Result<Fingerprints, Error> {
    let n = keys.count();
    let pairs = 1 << (layout.fingerprint_bits() - 33);
    let mut low = stream.alloc_uninit::<u32>(pairs * n)?;
    let mut lens = stream.alloc_zeroed::<u64>(PARTS)?;
    let (lens_to, out, parameters) = (lens.global_mut(), low.global_mut(), parameters(layout));
    // SAFETY: there is a place for each key; scratch is freed in the order of the stream; the rest is the contract of
    // this function.
    unsafe {
        keys.for_each_chunk(&hashing(layout), stream, |_, hashed, some| {
            let grid = LaunchConfig::new(some.div_ceil(TILE) as u32, BLOCK).shared(SHARED_BYTES);
            let KeySlice { keys, kind, spread, .. } = hashed.keys;
            quotient_fingerprints_in_parts { keys, kind, spread, n: some, parameters, lens: lens_to, out, room: n }
                .launch(stream, grid)
        })?;
    }
    let mut held = [0; PARTS];
    stream.download(&lens, &mut held)?;
    let mut all = stream.alloc_uninit::<u64>(n)?;
    let mut at = 0;
    for (high, len) in held.into_iter().enumerate().filter(|(_, len)| *len > 0) {
        let (pair, len) = (high / 2 * n, len as usize);
        let mut part = low.slice_mut(if high % 2 == 0 { pair..pair + len } else { pair + n - len..pair + n });
        // SAFETY: parts lie apart, and have as many places in the result; all is freed in the order of the stream.
        unsafe {
            sort::sort_keys_in_place_async(stream, part.reborrow(), sort::By::ascending())?;
            let (low, high, out) = (part.as_slice().global(), high as u32, all.global_mut().at(at));
            let threads = len.div_ceil(WIDENED).div_ceil(BLOCK as usize) as u32;
            quotient_widen { low, n: len, high, out }.launch(stream, LaunchConfig::new(threads, BLOCK))?;
        }
        at += len;
    }
    Ok(Fingerprints::Wide(all))
}

#[cfg(test)]
mod tests {
    use warpset_gpu::testing::devices;

    use super::*;
    use crate::RankSelectBuilder;

    #[test]
    fn sorted_as_on_the_host() {
        for device in devices(4) {
            for bits in [33, 34] {
                let layout = RankSelectBuilder::with_bits(28, bits - 28).layout().unwrap();
                for n in [1, 31, 255, TILE - 1, TILE, 2 * TILE + 77] {
                    // Some are all in one part, some in any order, some repeated.
                    for spread in [0, 1, 17] {
                        let some: Vec<u64> =
                            (0..n as u64).map(|i| if spread == 17 { i % 17 } else { i * spread }).collect();
                        let mut expected: Vec<u64> = some.iter().filter_map(|&key| layout.fingerprint(key)).collect();
                        expected.sort_unstable();
                        let keys = device.from_slice(&some).unwrap();
                        let stream = device.new_stream().unwrap();
                        device.synchronize().unwrap();
                        // SAFETY: the keys live until the result has been read.
                        let sorted = unsafe { sorted(&layout, &stream, keys.as_slice()) }.unwrap();
                        let mut found = vec![0u64; n];
                        match &sorted {
                            Fingerprints::Wide(items) => stream.download(items, &mut found).unwrap(),
                            Fingerprints::Narrow(_) => unreachable!(),
                        }
                        assert_eq!(found, expected, "{bits} {n} {spread}");
                    }
                }
            }
        }
    }
}
