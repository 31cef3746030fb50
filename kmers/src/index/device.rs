//! Sets and filters of an index in device memory.

use warpset_base::file;
use warpset_fuse::{BinaryFuse16, BinaryFuse32};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::kmers::lookup::{BLOCK, kmers_contains, kmers_keys};
use warpset_sequence::gpu::{DeviceKmer, MinimizerFilter};
use warpset_static::StaticSet;

use super::members::Members;
use crate::long::{Long, View};
use crate::word::Word;
use crate::{Error, IndexKind};

/// Resident blocks per multiprocessor in grid-stride launches.
const RESIDENT: u32 = 8;

/// Numbers that hold a k-mer on the host and on a device.
pub(crate) trait DeviceWord: Word + DeviceKmer {}
impl<W: Word + DeviceKmer> DeviceWord for W {}

/// Set or filter of an index in device memory, asked for k-mers in numbers of the type `W`.
pub(crate) type Copied<W> = Box<dyn MinimizerFilter<W> + Sync>;

/// Copies the minimizers of an index to a device. They are no sequence filter.
pub(super) fn to_device<W: DeviceWord>(members: &Members, device: &Device) -> Result<Copied<W>, Error> {
    let set = |set: &StaticSet<u64>| -> Result<Copied<W>, Error> {
        Ok(Box::new(ByKeys(warpset_static::gpu::StaticSet::from_host(device, set)?)))
    };
    let long = |long: View<'_>| -> Result<Copied<W>, Error> {
        Ok(Box::new(LongSet { k: long.k().get(), words: device.from_slice(long.words())? }))
    };
    let fuse16 =
        |filter: &BinaryFuse16| -> Result<Copied<W>, Error> { Ok(Box::new(ByKeys(filter.to_device(device)?))) };
    let fuse32 =
        |filter: &BinaryFuse32| -> Result<Copied<W>, Error> { Ok(Box::new(ByKeys(filter.to_device(device)?))) };
    match members {
        Members::Static(host) => set(host),
        Members::Long(host) => long(host.view()),
        Members::Fuse16(filter) => fuse16(filter),
        Members::Fuse32(filter) => fuse32(filter),
        Members::Sequences(_) => unreachable!("sequence filters have a decider of their own"),
        Members::Lines(lines) => {
            let kmers: Vec<u64> = lines.iter().collect();
            Ok(Box::new(ByKeys(StaticSet::<u64>::builder().on(device).build_from(&kmers)?)))
        }
        // Copied and checked on its way.
        Members::Mapped(mapped) => match mapped.kind {
            IndexKind::Exact if members.long().is_some() => {
                long(file::from_bytes::<Long>(mapped.structure()).map_err(Error::of_index)?.view())
            }
            IndexKind::Exact => set(&StaticSet::from_bytes(mapped.structure())?),
            IndexKind::Fuse16 => fuse16(&BinaryFuse16::from_bytes(mapped.structure())?),
            IndexKind::Fuse32 => fuse32(&BinaryFuse32::from_bytes(mapped.structure())?),
            IndexKind::Sequences => unreachable!("sequence filters have a decider of their own"),
        },
    }
}

/// Returns a grid for `items` items with at most `RESIDENT` blocks per multiprocessor.
fn grid(stream: &Stream, items: usize) -> LaunchConfig {
    let resident = (stream.device().properties().multiprocessors * RESIDENT) as usize;
    LaunchConfig::new(items.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK)
}

/// Filter of the keys of k-mers.
struct ByKeys<F>(F);

impl<W: DeviceWord, F: MinimizerFilter> MinimizerFilter<W> for ByKeys<F> {
    unsafe fn has_async(
        &self,
        stream: &Stream,
        kmers: DeviceSlice<'_, W>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), warpset_sequence::Error> {
        if W::BITS == u64::BITS {
            // SAFETY: `has_async` of the filter has the contract of this method, which the caller keeps.
            return unsafe { self.0.has_async(stream, kmers.cast::<u64>()?, answers) };
        }
        let n = kmers.len();
        let mut keys = stream.alloc_uninit::<u64>(n)?;
        let arguments = kmers_keys { kmers: kmers.cast::<u128>()?.global(), n, keys: keys.global_mut() };
        // SAFETY: there is a key per k-mer. The keys belong to this call, and are freed in stream order; the caller
        // keeps the filter, the k-mers and the answers.
        unsafe {
            arguments.launch(stream, grid(stream, n))?;
            self.0.has_async(stream, keys.as_slice(), answers)
        }
    }
}

/// Set of k-mers of more than 32 bases.
struct LongSet {
    k: u32,
    words: DeviceVec<u128>,
}

impl<W: DeviceWord> MinimizerFilter<W> for LongSet {
    unsafe fn has_async(
        &self,
        stream: &Stream,
        kmers: DeviceSlice<'_, W>,
        mut answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), warpset_sequence::Error> {
        let n = kmers.len();
        let arguments = kmers_contains {
            words: self.words.global(),
            k: self.k,
            kmers: kmers.cast::<u128>()?.global(),
            n,
            answers: answers.global_mut(),
        };
        // SAFETY: the words are those of a `Long`, which has been checked or made here. `Screener` asks for k-mers of
        // `k` bases, and has an answer for each. The caller keeps the set, the k-mers and the answers.
        unsafe { Ok(arguments.launch(stream, grid(stream, n))?) }
    }
}

#[cfg(test)]
mod tests {
    use warpset_core::hash::finalise;
    use warpset_core::minimizer::Kmer;
    use warpset_gpu::testing::devices;

    use super::*;
    use crate::K;

    /// Checks k-mers that are there, their neighbours and others, in sets of no k-mer, few, and many per part.
    #[test]
    fn lookups_are_those_of_the_host() {
        for device in devices(31) {
            for (k, len) in [(33, 0), (34, 1), (47, 3), (55, 700), (56, 5000), (63, 30_000)] {
                let kmer = |i: u64| (u128::from(finalise(i)) << 64 | u128::from(finalise(!i))) & u128::mask(k);
                let kmers: Vec<u128> = (0..len).map(kmer).collect();
                let members = Members::Long(Long::from_kmers(K::new(k).unwrap(), kmers.clone()).unwrap());
                let there = kmers.iter().copied().step_by(1 + kmers.len() / 1000);
                let near = there.clone().flat_map(|kmer| [kmer ^ 1, kmer ^ 1 << (2 * k - 1), !kmer & u128::mask(k)]);
                let others = (len..len + 500).map(kmer).chain([0, u128::mask(k)]);
                let asked: Vec<u128> = there.clone().chain(near).chain(others).collect();
                let mut wanted = vec![false; asked.len()];
                members.contains_into(&asked, &mut wanted);
                let (copied, asked) = (to_device(&members, &device).unwrap(), device.from_slice(&asked).unwrap());
                let mut answers = device.alloc_zeroed::<u8>(asked.len()).unwrap();
                // SAFETY: all arguments live until the stream has been waited for.
                let queued = device
                    .waiting(|stream| unsafe { copied.has_async(stream, asked.as_slice(), answers.as_mut_slice()) });
                queued.unwrap();
                let found: Vec<bool> = answers.to_vec().unwrap().iter().map(|&answer| answer != 0).collect();
                assert!(found == wanted && wanted.iter().filter(|found| **found).count() == there.count(), "{k} {len}");
            }
        }
    }
}
