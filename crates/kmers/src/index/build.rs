//! Indexes of sequences, and of other indexes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rayon::prelude::*;
use warpset_base::parallel::threads_for;
use warpset_fuse::{BinaryFuse16, BinaryFuse32};
use warpset_sequence::{DEFAULT_BITS_PER_KMER, Minimizers};
use warpset_static::StaticSet;

use super::format::begins_as_index;
use super::front;
use super::members::Members;
use super::{Index, IndexKind, check};
use crate::count::pool;
use crate::screen::{Batch, Pairing, Source};
use crate::{Error, Progress};

/// Bytes of a batch of sequences.
const BATCH: usize = 1 << 22;
/// Letters that one task takes.
const TASK: usize = 1 << 18;

/// How to make an index; each setter states its default.
///
/// ```
/// use warpset_kmers::{IndexKind, Indexing};
///
/// # let folder = tempfile::tempdir()?;
/// # let genome = folder.path().join("genome.fa");
/// # std::fs::write(&genome, ">g\nGATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG\n")?;
/// let index = Indexing::new(31, 15)?.kind(IndexKind::Fuse32).run(&[genome])?;
/// assert!(index.len() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is indexed until `run`"]
pub struct Indexing {
    pub(super) k: u32,
    w: u32,
    kind: IndexKind,
    pub(super) without: Vec<PathBuf>,
    pub(super) bits_per_kmer: f64,
    threads: usize,
    progress: Progress,
}

impl Indexing {
    /// Minimizers of windows of `w` k-mers of `k` bases.
    ///
    /// # Errors
    /// [`Error::InvalidWindow`] unless `k` is odd and from 1 to 31, and `w` odd and from 1 to 63.
    pub fn new(k: u32, w: u32) -> Result<Indexing, Error> {
        let (k, w) = check(k, w)?;
        let (kind, without) = (IndexKind::default(), Vec::new());
        let bits_per_kmer = DEFAULT_BITS_PER_KMER;
        Ok(Indexing { k, w, kind, without, bits_per_kmer, threads: 0, progress: Progress::hidden() })
    }

    /// How the index is to answer. [`IndexKind::Sequences`] takes all k-mers, whatever `w` is, and `k` from 9 on.
    /// Default: [`IndexKind::Exact`].
    pub fn kind(mut self, kind: IndexKind) -> Self {
        self.kind = kind;
        self
    }

    /// Bits of memory per k-mer of [`IndexKind::Sequences`]; other kinds have a number of their own. Default: 16.
    pub fn bits_per_kmer(mut self, bits: f64) -> Self {
        self.bits_per_kmer = bits;
        self
    }

    /// Leaves out the minimizers of these files: sequences, or exact indexes of the same `k`, whatever their `w`. For
    /// [`IndexKind::Sequences`] their k-mers: of sequences, or of tables of the same `k`; the `k - s` k-mers next to what
    /// stays (four, if k is 31) may be found nevertheless. Default: none.
    pub fn without(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.without = files.into_iter().collect();
        self
    }

    /// Threads; 0 for all of the machine. Default: all of the machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Indexes files: FASTA and FASTQ, compressed or not, and exact indexes of the same windows, which are united.
    /// Takes 16 bytes of memory per minimizer, equal ones of different places included, besides the index.
    ///
    /// # Errors
    /// [`Error::NoInput`], [`Error::Read`], [`Error::NotSequence`]; [`Error::NotIndex`], [`Error::DifferentWindow`],
    /// [`Error::OnlyFilter`] for indexes; [`Error::NoKmers`] if there is no minimizer; [`Error::Threads`];
    /// [`Error::Index`] if there is no memory; [`Error::Interrupted`]; for a sequence filter [`Error::Sequence`] if it
    /// cannot have such `k` or bits, or there is no memory, [`Error::NotKmers`] for indexes, and [`Error::DifferentK`] and
    /// the errors of [`count_files`](crate::count_files) for what is left out.
    pub fn run(&self, files: &[PathBuf]) -> Result<Index, Error> {
        if files.is_empty() {
            return Err(Error::NoInput);
        }
        let pool = pool(threads_for(self.threads, u64::MAX))?;
        let indexed = pool.install(|| {
            self.progress.say("indexing");
            if self.kind == IndexKind::Sequences {
                return self.run_sequences(files);
            }
            let mut kmers = self.kmers_of(files, true)?;
            if !self.without.is_empty() {
                let out: HashSet<u64> = self.kmers_of(&self.without, false)?.into_iter().collect();
                kmers.retain(|kmer| !out.contains(kmer));
            }
            match kmers.is_empty() {
                true => Err(Error::NoKmers { k: self.k + self.w - 1 }),
                false => Index::from_kmers((self.k, self.w), &kmers, self.kind),
            }
        });
        self.progress.outcome(indexed)
    }

    /// Different minimizers, ascending. Indexes have the same `w` too if they are `added`.
    fn kmers_of(&self, files: &[PathBuf], added: bool) -> Result<Vec<u64>, Error> {
        let mut kmers = Vec::new();
        let (indexes, sequences): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(|path| begins_as_index(path));
        for path in indexes {
            kmers.append(&mut self.kmers_of_index(path, added)?);
        }
        let sequences: Vec<PathBuf> = sequences.into_iter().cloned().collect();
        let found = Mutex::new(&mut kmers);
        self.each_batch(&sequences, |batch| {
            let minimizers = Minimizers::deacon(self.k, self.w).map_err(Error::of_index)?;
            let (parts, together) = parts_of(batch, (self.k + self.w - 1) as usize);
            let of_parts: Vec<Vec<u64>> = parts
                .par_chunks(together)
                .map(|parts| {
                    let mut kmers = Vec::new();
                    parts.iter().for_each(|letters| minimizers.kmers_into(letters, &mut kmers));
                    kmers
                })
                .collect();
            let mut kmers = found.lock().unwrap_or_else(PoisonError::into_inner);
            of_parts.into_iter().for_each(|mut part| kmers.append(&mut part));
            Ok(())
        })?;
        kmers.par_sort_unstable();
        kmers.dedup();
        Ok(kmers)
    }

    fn kmers_of_index(&self, path: &Path, added: bool) -> Result<Vec<u64>, Error> {
        let index = Index::load(path)?;
        if index.k != self.k || (added && index.w != self.w) {
            return Err(Error::DifferentWindow {
                path: path.to_owned(),
                found_k: index.k,
                found_w: index.w,
                k: self.k,
                w: self.w,
            });
        }
        index.members.kmers().ok_or_else(|| Error::OnlyFilter { path: path.to_owned() })
    }

    pub(super) fn each_batch(
        &self,
        files: &[PathBuf],
        mut visit: impl FnMut(&Batch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let threads = rayon::current_num_threads();
        thread::scope(|scope| {
            let source = Source::new(scope, files, Pairing::Single, (BATCH, threads), &self.progress);
            let mut batch = Batch::default();
            while source.next(&mut batch)?.is_some() {
                visit(&batch)?;
            }
            Ok(())
        })
    }
}

/// Parts of the sequences of a batch that have all windows of so many letters between them, and how many of them one task
/// takes.
pub(super) fn parts_of(batch: &Batch, window: usize) -> (Vec<&[u8]>, usize) {
    let parts = (0..batch.len()).flat_map(|record| {
        let letters = batch.letters(record);
        (0..letters.len()).step_by(TASK).map(move |begin| &letters[begin..letters.len().min(begin + TASK + window - 1)])
    });
    let parts: Vec<&[u8]> = parts.collect();
    let together = (parts.len() * TASK / batch.text().len().max(1)).max(1);
    (parts, together)
}

impl Index {
    /// The index of canonical k-mers, all different.
    pub(crate) fn from_kmers((k, w): (u32, u32), kmers: &[u64], kind: IndexKind) -> Result<Index, Error> {
        let members = match kind {
            IndexKind::Exact => StaticSet::builder().build_from(kmers).map(Members::Static).map_err(Error::of_index),
            IndexKind::Fuse16 => {
                BinaryFuse16::builder().build_from(kmers).map(Members::Fuse16).map_err(Error::of_index)
            }
            IndexKind::Fuse32 => {
                BinaryFuse32::builder().build_from(kmers).map(Members::Fuse32).map_err(Error::of_index)
            }
            IndexKind::Sequences => unreachable!("sequence filters are made of sequences"),
        };
        let front = if kind == IndexKind::Exact { Some(front::of(kmers)?) } else { None };
        Ok(Index { k, w, len: kmers.len() as u64, members: members?, front })
    }
}
