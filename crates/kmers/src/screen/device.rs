//! Decisions by a GPU: the host's threads parse and pack, each with a stream of its own, and get decisions back.
//!
//! While one thread waits for the device, the others parse and write, and the batches of several are on their way. A
//! batch goes to the device in 3 bits per base; minimizers, lookups, the counting of different ones and the rule are
//! kernels ([`warpset_sequence::gpu::Screener`]).

use warpset_fuse::gpu::{BinaryFuse16, BinaryFuse32};
use warpset_gpu::Device;
use warpset_sequence::Packed;
use warpset_sequence::gpu::Screener;
use warpset_static::StaticSet as HostSet;
use warpset_static::gpu::StaticSet;

use super::batch::Batch;
use super::decide::{Decider, Decision, Worker};
use super::rule::Rule;
use crate::index::Members;
use crate::{Error, Index, IndexKind};

/// Bytes of text per batch: enough for a device to be worth its launches.
const BATCH: usize = 8 << 20;

/// Decides by the minimizers of an index in device memory.
pub(crate) struct OnDevice<'a> {
    index: &'a Index,
    device: Device,
    there: There,
    rule: Rule,
    prefix: usize,
    counts: bool,
}

/// An index in device memory.
enum There {
    Static(StaticSet<u64>),
    Fuse16(BinaryFuse16),
    Fuse32(BinaryFuse32),
}

impl There {
    /// Copies an index to a device.
    fn new(members: &Members, device: &Device) -> Result<There, Error> {
        let set = |set: &HostSet<u64>| Ok(There::Static(StaticSet::from_host(device, set)?));
        match members {
            Members::Static(host) => set(host),
            Members::Fuse16(filter) => Ok(There::Fuse16(filter.to_device(device)?)),
            Members::Fuse32(filter) => Ok(There::Fuse32(filter.to_device(device)?)),
            Members::Sequences(_) => unreachable!("sequence filters have a decider of their own"),
            Members::Lines(lines) => {
                let kmers: Vec<u64> = lines.iter().collect();
                Ok(There::Static(HostSet::<u64>::builder().on(device).build_from(&kmers)?))
            }
            Members::Mapped(mapped) => match mapped.kind {
                IndexKind::Exact => set(&HostSet::from_bytes(mapped.structure())?),
                IndexKind::Fuse16 => {
                    Ok(There::Fuse16(warpset_fuse::BinaryFuse16::from_bytes(mapped.structure())?.to_device(device)?))
                }
                IndexKind::Fuse32 => {
                    Ok(There::Fuse32(warpset_fuse::BinaryFuse32::from_bytes(mapped.structure())?.to_device(device)?))
                }
                IndexKind::Sequences => unreachable!("sequence filters have a decider of their own"),
            },
        }
    }
}

impl<'a> OnDevice<'a> {
    /// Copies the index to the device.
    ///
    /// # Errors
    /// [`Error::IndexTooLarge`] if the device has less memory than the index; [`Error::Device`], [`Error::Index`].
    pub(crate) fn new(
        index: &'a Index,
        device: &Device,
        (rule, prefix, counts): (Rule, usize, bool),
    ) -> Result<OnDevice<'a>, Error> {
        let (bytes, free) = (index.memory_bytes(), device.memory_info()?.free as u64);
        let too_large = || Error::IndexTooLarge { bytes, free };
        if bytes > free {
            return Err(too_large());
        }
        let there = match There::new(index.members(), device) {
            Err(Error::Device(why)) if why.is_out_of_memory() => return Err(too_large()),
            there => there?,
        };
        Ok(OnDevice { index, device: device.clone(), there, rule, prefix, counts })
    }
}

impl Decider for OnDevice<'_> {
    fn batch_bytes(&self) -> usize {
        BATCH
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Error> {
        let screener = Screener::new(&self.device, self.index.minimizers())?;
        Ok(Box::new(Batches { by: self, screener, packed: Packed::new(), starts: Vec::new() }))
    }
}

/// Decides batches on a stream of its own.
struct Batches<'a> {
    by: &'a OnDevice<'a>,
    screener: Screener,
    packed: Packed,
    starts: Vec<u32>,
}

impl Worker for Batches<'_> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        self.packed.clear();
        self.starts.clear();
        for unit in 0..batch.units() {
            self.starts.push(u32::try_from(self.packed.words()).unwrap_or(u32::MAX));
            for letters in batch.letters_of_unit(unit) {
                self.packed.push(&letters[..letters.len().min(self.by.prefix)]);
            }
        }
        let Batches { by, screener, packed, starts } = self;
        let OnDevice { rule, .. } = **by;
        if by.counts {
            let counts = match &by.there {
                There::Static(set) => screener.count(set, packed, starts),
                There::Fuse16(filter) => screener.count(filter, packed, starts),
                There::Fuse32(filter) => screener.count(filter, packed, starts),
            };
            decisions.extend(counts?.into_iter().map(|counts| {
                let (hits, total) = (u64::from(counts.hits), u64::from(counts.minimizers));
                Decision { matches: rule.matches(hits, total), hits, total }
            }));
        } else {
            let (hits, share) = (rule.hits(), rule.share());
            let matches = match &by.there {
                There::Static(set) => screener.decide(set, packed, starts, hits, share),
                There::Fuse16(filter) => screener.decide(filter, packed, starts, hits, share),
                There::Fuse32(filter) => screener.decide(filter, packed, starts, hits, share),
            };
            decisions.extend(matches?.into_iter().map(|matches| Decision { matches, hits: 0, total: 0 }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use warpset_gpu::testing::devices;

    use super::*;
    use crate::{Backend, Indexing, Pairing, Screening};

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed << 32;
        move |below| {
            state += 1;
            warpset_core::hash::finalise(state) % below
        }
    }

    fn genome(seed: u64, len: usize) -> Vec<u8> {
        let mut next = random(seed);
        (0..len).map(|_| b"ACGT"[next(4) as usize]).collect()
    }

    /// Reads of two genomes with errors and letters that are no bases, short ones, and of few different bases.
    fn reads(genomes: [&[u8]; 2], seed: u64, count: usize) -> Vec<u8> {
        let mut next = random(seed);
        let mut text = Vec::new();
        for i in 0..count {
            let len = [150, 40, 150, 44, 45, 600][i % 6];
            let from = genomes[next(2) as usize];
            let at = next((from.len() - len) as u64) as usize;
            let mut read = from[at..at + len].to_vec();
            for _ in 0..next(12) {
                read[next(len as u64) as usize] = b"ACGTN"[next(5) as usize];
            }
            match i % 17 {
                3 => read = b"AC".repeat(len / 2),
                7 => read = [&read[..len / 2], &read[..len / 2]].concat(),
                _ => {}
            }
            text.extend_from_slice(format!("@read{i}\n").as_bytes());
            text.extend_from_slice(&read);
            text.extend_from_slice(b"\n+\n");
            text.extend(std::iter::repeat_n(b'I', read.len()));
            text.push(b'\n');
        }
        text
    }

    /// What a screening writes: reads that match, that do not, and counts where asked for.
    fn written(screening: Screening<'_>, folder: &Path, files: &[PathBuf], counts: bool) -> Vec<Vec<u8>> {
        let outputs = ["matched.fq", "unmatched.fq", "counts.txt"].map(|name| folder.join(name));
        let mut screening = screening.matched(&outputs[0]).unmatched(&outputs[1]);
        if counts {
            screening = screening.counts(&outputs[2]);
        }
        screening.run(files).unwrap();
        outputs[..if counts { 3 } else { 2 }].iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    #[test]
    fn decisions_are_those_of_the_cpu() {
        let folder = tempfile::tempdir().unwrap();
        let [host, first, second, saved] =
            ["host.fa", "1.fq", "2.fq", "host.index"].map(|name| folder.path().join(name));
        let (genome, other) = (genome(1, 20_000), genome(2, 20_000));
        std::fs::write(&host, [b">host\n", &genome[..], b"\n"].concat()).unwrap();
        std::fs::write(&first, reads([&genome, &other], 3, 300)).unwrap();
        std::fs::write(&second, reads([&genome, &other], 4, 300)).unwrap();
        let files = [first, second];
        for kind in [IndexKind::Exact, IndexKind::Fuse16, IndexKind::Fuse32] {
            let index = Indexing::new(31, 15).unwrap().kind(kind).run(std::slice::from_ref(&host)).unwrap();
            index.save(&saved).unwrap();
            // SAFETY: nothing else knows the file.
            let mapped = unsafe { Index::map(&saved).unwrap() };
            for device in devices(11) {
                for (index, rule, prefix, pairing, counts) in [
                    (&index, Rule::DEACON, 0, Pairing::Single, false),
                    (&mapped, Rule::new(1, 0.4).unwrap(), 100, Pairing::Files, true),
                    (&index, Rule::ONE, 0, Pairing::Interleaved, true),
                ] {
                    let screening = Screening::by_index(index).rule(rule).prefix(prefix).pairing(pairing).threads(2);
                    let wanted = written(screening.clone().backend(Backend::Cpu), folder.path(), &files, counts);
                    assert!(wanted.iter().all(|text| !text.is_empty()));
                    let found = written(screening.on(&device), folder.path(), &files, counts);
                    assert!(found == wanted, "{kind} {rule:?} {pairing:?}");
                }
            }
        }
    }

    /// An index of Deacon goes to a device too.
    #[test]
    fn indexes_of_deacon() {
        let folder = tempfile::tempdir().unwrap();
        let [host, reads_at, saved] = ["host.fa", "reads.fq", "host.idx"].map(|name| folder.path().join(name));
        let (genome, other) = (genome(5, 5000), genome(6, 5000));
        std::fs::write(&host, [b">host\n", &genome[..], b"\n"].concat()).unwrap();
        std::fs::write(&reads_at, reads([&genome, &other], 7, 60)).unwrap();
        Indexing::new(21, 9).unwrap().run(&[host]).unwrap().save_for_deacon(&saved).unwrap();
        let index = Index::load(&saved).unwrap();
        for device in devices(12) {
            let screening = Screening::by_index(&index);
            let wanted =
                written(screening.clone().backend(Backend::Cpu), folder.path(), std::slice::from_ref(&reads_at), true);
            assert!(written(screening.on(&device), folder.path(), std::slice::from_ref(&reads_at), true) == wanted);
        }
    }

    #[test]
    fn indexes_that_do_not_fit_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let [host, reads_at] = ["host.fa", "reads.fq"].map(|name| folder.path().join(name));
        let genome = genome(8, 40_000);
        std::fs::write(&host, [b">host\n", &genome[..], b"\n"].concat()).unwrap();
        std::fs::write(&reads_at, reads([&genome, &genome], 9, 10)).unwrap();
        let index = Indexing::new(31, 15).unwrap().run(&[host]).unwrap();
        for device in devices(13) {
            device.set_memory_limit(20_000);
            let error = Screening::by_index(&index).on(&device).run(std::slice::from_ref(&reads_at)).unwrap_err();
            assert!(matches!(error, Error::IndexTooLarge { free: 20_000, .. }) && error.asks_for_cpu(), "{error}");
            device.set_memory_limit(usize::MAX);
            Screening::by_index(&index).on(&device).run(std::slice::from_ref(&reads_at)).unwrap();
        }
    }
}
