//! Decisions on a GPU: host threads parse and pack, each with its own stream, and get decisions back.
//!
//! A batch of text fits into a core's cache, so that reading, parsing and packing load its bytes from memory once.
//! Several batches go to the device together, in 3 bits per base, and the thread packs the next ones while the device
//! decides. Finding minimizers, lookups, counting different ones and the rule are kernels
//! ([`warpset_sequence::gpu::Screener`]).

use warpset_gpu::Device;
use warpset_sequence::Packed;
use warpset_sequence::gpu::{Answers, HitCounts, Reads, ScreenOutput, Screener};

use super::batch::Batch;
use super::decide::{Decider, Decision, Done, Failure, Worker};
use super::rule::Rule;
use crate::index::{Copied, DeviceWord};
use crate::{Error, Index};

/// Words of packed bases, 32 positions each, per launch: enough to hide its latency.
const ENOUGH: usize = if cfg!(test) { 1 << 7 } else { 1 << 17 };
/// Most batches per launch, for text with few bases.
const MOST_TOGETHER: usize = 16;

/// Decider by the minimizers of an index in device memory.
pub(crate) struct OnDevice<'a, W> {
    index: &'a Index,
    device: Device,
    there: Copied<W>,
    rule: Rule,
    prefix: usize,
    counts: bool,
}

impl<'a, W: DeviceWord> OnDevice<'a, W> {
    /// Copies the index to the device.
    ///
    /// # Errors
    /// [`Error::IndexTooLarge`] if the device has less memory than the index; [`Error::Device`], [`Error::Index`].
    pub(crate) fn new(
        index: &'a Index,
        device: &Device,
        (rule, prefix, counts): (Rule, usize, bool),
    ) -> Result<OnDevice<'a, W>, Error> {
        let (bytes, free) = (index.memory_bytes(), device.memory_info()?.free as u64);
        let too_large = || Error::IndexTooLarge { bytes, free };
        if bytes > free {
            return Err(too_large());
        }
        let there = match index.to_device(device) {
            Err(Error::Device(why)) if why.is_out_of_memory() => return Err(too_large()),
            there => there?,
        };
        Ok(OnDevice { index, device: device.clone(), there, rule, prefix, counts })
    }
}

impl<W: DeviceWord> Decider for OnDevice<'_, W> {
    fn most_held(&self) -> usize {
        2 * MOST_TOGETHER
    }

    fn worker(&self, keeps_text: bool) -> Result<Box<dyn Worker + '_>, Error> {
        let screener = Screener::new(&self.device, self.index.minimizers()?)?;
        Ok(Box::new(Together {
            by: self,
            keeps_text,
            packed: Packed::new(),
            starts: Vec::new(),
            packing: Vec::new(),
            screener,
            deciding: Vec::new(),
            spare: Vec::new(),
            decisions: Vec::new(),
        }))
    }
}

/// Worker that packs some batches while the device decides those before, on its own stream.
struct Together<'a, W> {
    by: &'a OnDevice<'a, W>,
    keeps_text: bool,
    packed: Packed,
    starts: Vec<u32>,
    /// Batches that are packed.
    packing: Vec<(u64, Batch)>,
    screener: Screener<W>,
    /// Batches on the device.
    deciding: Vec<(u64, Batch)>,
    spare: Vec<Batch>,
    decisions: Vec<Decision>,
}

impl<W: DeviceWord> Worker for Together<'_, W> {
    fn empty(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    fn decide(&mut self, number: u64, mut batch: Batch, done: &mut Done<'_>) -> Result<(), Failure> {
        for unit in 0..batch.units() {
            self.starts.push(u32::try_from(self.packed.words()).unwrap_or(u32::MAX));
            for letters in batch.letters_of_unit(unit) {
                self.packed.push(&letters[..letters.len().min(self.by.prefix)]);
            }
        }
        if !self.keeps_text {
            // The next batch is read into memory that is still in the cache.
            let mut next = Batch::default();
            next.replace_text(batch.replace_text(Vec::new()));
            self.spare.push(next);
        }
        self.packing.push((number, batch));
        if self.packed.words() < ENOUGH && self.packing.len() < MOST_TOGETHER {
            return Ok(());
        }
        self.hand_over(done)?;
        self.send()
    }

    fn finish(&mut self, done: &mut Done<'_>) -> Result<(), Failure> {
        self.hand_over(done)?;
        self.send()?;
        self.hand_over(done)
    }
}

impl<W: DeviceWord> Together<'_, W> {
    /// Sends the packed batches to the device, which is idle.
    fn send(&mut self) -> Result<(), Failure> {
        let Together { by, packed, starts, screener, .. } = self;
        let output = match by.counts {
            true => ScreenOutput::Counts,
            false => ScreenOutput::Decisions { hits: by.rule.hits(), share: by.rule.share() },
        };
        let reads = Reads { packed, starts };
        // SAFETY: `by` borrows the filter for longer than the screener lives, so nothing writes or frees it.
        let sent = unsafe { screener.begin(&*by.there, reads, output) };
        packed.clear();
        starts.clear();
        self.deciding.append(&mut self.packing);
        sent.map_err(|error| self.failed(error))
    }

    /// Waits for the device, and hands over the batches that it has decided.
    fn hand_over(&mut self, done: &mut Done<'_>) -> Result<(), Failure> {
        let Together { by, screener, decisions, .. } = self;
        let answers = screener.finish(&*by.there);
        decisions.clear();
        match answers {
            Ok(Answers::Decisions(matches)) => {
                let decision = |&matches: &u8| Decision::new(matches != 0, 0, 0);
                decisions.extend(matches.iter().map(decision));
            }
            Ok(Answers::Counts(counts)) => decisions.extend(counts.iter().map(|&both| {
                let HitCounts { hits, minimizers } = HitCounts::from(both);
                let (hits, total) = (u64::from(hits), u64::from(minimizers));
                Decision::new(by.rule.matches(hits, total), hits, total)
            })),
            Err(error) => return Err(self.failed(error)),
        }
        let mut rest = &self.decisions[..];
        for (number, mut batch) in self.deciding.drain(..) {
            let (decided, others) = rest.split_at(batch.units());
            rest = others;
            done(number, &mut batch, decided)?;
            if self.keeps_text {
                self.spare.push(batch);
            }
        }
        Ok(())
    }

    /// Returns the failure of the batches on the device.
    fn failed(&self, error: warpset_sequence::Error) -> Failure {
        (self.deciding.first().map_or(u64::MAX, |(number, _)| *number), error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use warpset_gpu::testing::devices;

    use super::*;
    use crate::{BackendChoice, IndexKind, Indexing, Pairing, Screening};

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

    /// Generates reads of two genomes with errors and letters that are no bases, short ones, and some of few different
    /// bases.
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

    /// Returns the outputs of a screening: reads that match, reads that do not, and counts if requested.
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
        use IndexKind::{Exact, Fuse16, Fuse32};
        for (k, kind) in [(31, Exact), (31, Fuse16), (31, Fuse32), (41, Exact), (61, Exact), (41, Fuse16), (63, Fuse32)]
        {
            let index = Indexing::new(k, 15).unwrap().kind(kind).run(std::slice::from_ref(&host)).unwrap();
            index.save(&saved).unwrap();
            // SAFETY: only this test accesses the file.
            let mapped = unsafe { Index::map(&saved).unwrap() };
            for device in devices(11) {
                for (index, rule, prefix, pairing, counts) in [
                    (&index, Rule::DEACON, 0, Pairing::Single, false),
                    (&mapped, Rule::new(1, 0.4).unwrap(), 100, Pairing::Files, true),
                    (&index, Rule::ONE, 0, Pairing::Interleaved, true),
                ] {
                    let screening = Screening::by_index(index).rule(rule).prefix(prefix).pairing(pairing).threads(2);
                    let screening = screening.any_mates(true);
                    let wanted = written(screening.clone().backend(BackendChoice::Cpu), folder.path(), &files, counts);
                    assert!(wanted.iter().all(|text| !text.is_empty()));
                    let found = written(screening.on(&device), folder.path(), &files, counts);
                    assert!(found == wanted, "{k} {kind} {rule:?} {pairing:?}");
                }
            }
        }
    }

    /// Checks all forms of files: FASTA in lines, CRLF, lower case, empty reads, a last record without a line end; and
    /// calls without outputs, for which no text is kept.
    #[test]
    fn files_of_any_form_and_no_output() {
        let folder = tempfile::tempdir().unwrap();
        let [host, fasta, fastq] = ["host.fa", "reads.fa", "reads.fq"].map(|name| folder.path().join(name));
        let (genome, other) = (genome(14, 20_000), genome(15, 20_000));
        std::fs::write(&host, [b">host\n", &genome[..], b"\n"].concat()).unwrap();
        let (mut lines, mut crlf) = (String::new(), String::new());
        for i in 0..400 {
            let from = if i % 3 == 0 { &genome } else { &other };
            let read = String::from_utf8(from[37 * i..37 * i + [0, 60, 150, 333][i % 4]].to_vec()).unwrap();
            let read = if i % 5 == 0 { read.to_lowercase() } else { read };
            lines += &format!(">{i} x\n");
            let parts = read.as_bytes().chunks(61).map(|line| String::from_utf8_lossy(line) + "\n");
            lines += &parts.collect::<String>();
            crlf += &format!("@{i}\r\n{read}\r\n+\r\n{}\r\n", "@".repeat(read.len()));
        }
        std::fs::write(&fasta, lines.trim_end()).unwrap();
        std::fs::write(&fastq, crlf.trim_end()).unwrap();
        let index = Indexing::new(31, 15).unwrap().run(std::slice::from_ref(&host)).unwrap();
        let files = [fasta, fastq];
        for device in devices(16) {
            for (threads, counts) in [(1, true), (3, false)] {
                let screening = Screening::by_index(&index).threads(threads);
                let of_cpu = screening.clone().backend(BackendChoice::Cpu);
                let wanted = written(of_cpu.clone(), folder.path(), &files, counts);
                assert!(written(screening.clone().on(&device), folder.path(), &files, counts) == wanted);
                let screened = of_cpu.run(&files).unwrap();
                assert_eq!(screening.on(&device).run(&files).unwrap(), screened);
                assert!(screened.matched > 100 && screened.unmatched > 500);
            }
        }
    }

    /// Checks that an index of Deacon is decided on a device too.
    #[test]
    fn indexes_of_deacon() {
        let folder = tempfile::tempdir().unwrap();
        let [host, reads_at, saved] = ["host.fa", "reads.fq", "host.idx"].map(|name| folder.path().join(name));
        let (genome, other) = (genome(5, 5000), genome(6, 5000));
        std::fs::write(&host, [b">host\n", &genome[..], b"\n"].concat()).unwrap();
        std::fs::write(&reads_at, reads([&genome, &other], 7, 60)).unwrap();
        for k in [21, 43] {
            let host = std::slice::from_ref(&host);
            Indexing::new(k, 9).unwrap().run(host).unwrap().save_for_deacon(&saved).unwrap();
            let index = Index::load(&saved).unwrap();
            for device in devices(12) {
                let (screening, reads) = (Screening::by_index(&index), std::slice::from_ref(&reads_at));
                let of_cpu = screening.clone().backend(BackendChoice::Cpu);
                let wanted = written(of_cpu, folder.path(), reads, true);
                assert!(written(screening.on(&device), folder.path(), reads, true) == wanted, "{k}");
            }
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
        // Other tests share the CUDA device, so that its memory is not limited here.
        for device in devices(13).into_iter().filter(Device::is_emulator) {
            device.set_memory_limit(20_000);
            let error = Screening::by_index(&index).on(&device).run(std::slice::from_ref(&reads_at)).unwrap_err();
            assert!(matches!(error, Error::IndexTooLarge { free: 20_000, .. }) && error.asks_for_cpu(), "{error}");
            device.set_memory_limit(usize::MAX);
            Screening::by_index(&index).on(&device).run(std::slice::from_ref(&reads_at)).unwrap();
        }
    }
}
