//! Building of indexes from sequences and other indexes.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::thread;

use rayon::prelude::*;
use warpset_base::parallel::threads_for;
use warpset_base::sort::sort_by_rank;
use warpset_fuse::{Arity, BinaryFuse, Form, Width};
use warpset_sequence::DEFAULT_BITS_PER_KEY;
use warpset_static::StaticSet;

use super::format::begins_as_index;
use super::front;
use super::members::Members;
use super::{Index, IndexKind, check, minimizers};
use crate::count::{pieces_of_work, pool};
use crate::feed::{Cursor, feed};
use crate::long::Long;
use crate::odd::{is_plain, tidy};
use crate::pieces::Text;
use crate::settings::reading_setters;
use crate::word::{Word, short};
use crate::{Error, K, Progress, Settings};

/// Least number of minimizers per part.
const PART: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };

/// Settings of an index to build; each setter states its default.
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
    for_deacon: bool,
    threads: usize,
    progress: Progress,
}

impl Indexing {
    /// Creates settings for minimizers of windows of `w` k-mers of `k` bases.
    ///
    /// # Errors
    /// [`Error::InvalidWindow`] unless `k` is odd and from 1 to 63, and `w` odd and from 1 to 63.
    pub fn new(k: u32, w: u32) -> Result<Indexing, Error> {
        let (k, w) = check(k, w)?;
        let (kind, without) = (IndexKind::default(), Vec::new());
        let (bits_per_kmer, progress) = (DEFAULT_BITS_PER_KEY, Progress::hidden());
        Ok(Indexing { k, w, kind, without, bits_per_kmer, for_deacon: false, threads: 0, progress })
    }

    /// Sets the kind of index. [`IndexKind::Sequences`] has all k-mers, regardless of `w`, and needs `k` of at least 9.
    /// Default: [`IndexKind::Exact`].
    pub fn kind(mut self, kind: IndexKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the bits of memory per k-mer of [`IndexKind::Sequences`]; for other kinds the number is fixed. Default: 16.
    pub fn bits_per_kmer(mut self, bits: f64) -> Self {
        self.bits_per_kmer = bits;
        self
    }

    /// Leaves out the minimizers of these files: sequences, or exact indexes of the same `k` and any `w`. For
    /// [`IndexKind::Sequences`], leaves out their k-mers: of sequences, or of tables of the same `k`; the `k - s`
    /// k-mers next to remaining ones (four, if k is 31; 31, if it is 63) may still be found. Default: none.
    pub fn without(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.without = files.into_iter().collect();
        self
    }

    /// Builds filters that [`Index::save_for_deacon`] writes: those of Deacon have one graph, most of which one thread
    /// builds, where ours have many. Exact indexes are the same either way. Default: `false`.
    pub fn for_deacon(mut self, for_deacon: bool) -> Self {
        self.for_deacon = for_deacon;
        self
    }

    reading_setters!();

    /// Indexes files: FASTA and FASTQ, compressed or not, and exact indexes of the same windows, which are united.
    /// Besides the index this takes 16 bytes of memory per minimizer, 32 above 32 bases, counting equal ones at
    /// different places.
    ///
    /// # Errors
    /// [`Error::NoInput`], [`Error::Read`], [`Error::NotSequence`]; [`Error::NotIndex`], [`Error::DifferentWindow`],
    /// [`Error::OnlyFilter`] for indexes; [`Error::NoKmers`] if there is no minimizer, [`Error::AllLeftOut`] if
    /// [`without`](Indexing::without) leaves none; [`Error::Threads`];
    /// [`Error::Index`] if there is no memory; [`Error::Interrupted`]; for a sequence filter [`Error::Sequence`] if it
    /// cannot have such `k` or bits, or there is no memory, [`Error::NotKmers`] for indexes, and [`Error::DifferentK`]
    /// and the errors of [`count_files`](crate::count_files) for what is left out.
    pub fn run(&self, files: &[PathBuf]) -> Result<Index, Error> {
        if files.is_empty() {
            return Err(Error::NoInput);
        }
        if self.for_deacon {
            super::deacon::takes(self.k, self.w)?;
        }
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        let pool = pool(threads_for(self.threads, pieces_of_work(&texts)))?;
        let indexed = pool.install(|| {
            self.progress.say("indexing");
            if self.kind == IndexKind::Sequences {
                return self.run_sequences(files);
            }
            match K::new(self.k)?.is_long() {
                true => self.run_minimizers::<u128>(files),
                false => self.run_minimizers::<u64>(files),
            }
        });
        self.progress.outcome(indexed)
    }

    /// Builds the index of minimizers of files.
    fn run_minimizers<W: Word>(&self, files: &[PathBuf]) -> Result<Index, Error> {
        let mut kmers = self.kmers_of::<W>(files, true)?;
        if !self.without.is_empty() {
            let out = self.kmers_of::<W>(&self.without, false)?;
            let out = Index::from_kmers((self.k, self.w), out, (IndexKind::Exact, false))?;
            kmers.par_iter_mut().for_each(|kmers| {
                let mut is_out = vec![false; kmers.len()];
                let parts = kmers.par_chunks(PART).zip(is_out.par_chunks_mut(PART));
                parts.for_each(|(kmers, is_out)| out.contains_into(kmers, is_out));
                let mut is_out = is_out.into_iter();
                kmers.retain(|_| !is_out.next().unwrap_or(false));
            });
        }
        match kmers.iter().all(Vec::is_empty) {
            true => Err(self.nothing("minimizers", self.k + self.w - 1)),
            false => Index::from_kmers((self.k, self.w), kmers, (self.kind, self.for_deacon)),
        }
    }

    /// Returns the error of input without a window of `k` bases, or whose minimizers or k-mers are left out.
    pub(super) fn nothing(&self, what: &'static str, k: u32) -> Error {
        if self.without.is_empty() { Error::NoKmers { k } } else { Error::AllLeftOut { what } }
    }

    /// Returns lists of minimizers with repetitions. Indexes among the files also need the same `w` if they are
    /// `added`.
    fn kmers_of<W: Word>(&self, files: &[PathBuf], added: bool) -> Result<Vec<Vec<W>>, Error> {
        let (indexes, sequences): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(|path| begins_as_index(path));
        let mut parts = Vec::new();
        for path in indexes {
            parts.push(self.kmers_of_index(path, added)?);
        }
        let minimizers = minimizers::<W>(self.k, self.w)?;
        let sequences: Vec<PathBuf> = sequences.into_iter().cloned().collect();
        let found =
            self.each_part(&sequences, (self.k + self.w - 1) as usize, |found: &mut Vec<Vec<W>>, letters| {
                // Parts of some megabytes, which are not moved as more of them are added.
                let is_full = |part: &Vec<W>| part.len() + letters.len() > part.capacity();
                if found.last().is_none_or(is_full) {
                    found.push(Vec::with_capacity(PART.max(letters.len())));
                }
                if let Some(part) = found.last_mut() {
                    minimizers.kmers_bulk_into(&[letters], part, &mut Vec::new());
                }
            })?;
        parts.extend(found.into_iter().flatten());
        Ok(parts)
    }

    fn kmers_of_index<W: Word>(&self, path: &Path, added: bool) -> Result<Vec<W>, Error> {
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

    /// Hands parts of all sequences, as letters without white space and with T for U, to the threads of the pool, each
    /// with its own `T`. Each window of the index is whole in one of the parts.
    pub(super) fn each_part<T: Default + Send>(
        &self,
        files: &[PathBuf],
        window: usize,
        take: impl Fn(&mut T, &[u8]) + Sync,
    ) -> Result<Vec<T>, Error> {
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        let threads = rayon::current_num_threads();
        let settings = Settings { k: K::of_window(window), ..Settings::new(1)? };
        let settings = settings.threads(threads).progress(self.progress.clone());
        let take_text = |gathered: &mut T, lines: &mut Vec<u8>, text: &[u8]| {
            if is_plain::<false>(text) {
                return take(gathered, text);
            }
            lines.clear();
            tidy(text, lines);
            take(gathered, lines);
        };
        let gathered = feed(&texts, &settings, |feed, threads| {
            if settings.threads == 1 {
                let (mut gathered, mut lines) = (T::default(), Vec::new());
                feed.each(|text| {
                    take_text(&mut gathered, &mut lines, text);
                    Ok(())
                })?;
                return Ok(vec![gathered]);
            }
            let work = || {
                let (mut gathered, mut lines, mut cursor) = (T::default(), Vec::new(), Cursor::default());
                while feed.step(&mut cursor, |text| take_text(&mut gathered, &mut lines, text))? {}
                Ok(gathered)
            };
            thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                let join = |worker: thread::ScopedJoinHandle<'_, _>| {
                    worker.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                workers.into_iter().map(join).collect()
            })
        });
        self.progress.note(settings.seen.lock().unwrap_or_else(PoisonError::into_inner).odd);
        gathered
    }
}

/// Builds a filter of the keys of k-mers, and returns it with their number. Four slots per k-mer in many graphs take 19
/// bits per k-mer with fingerprints of 16, one graph of three 18.
fn filter_of<F: Width>(kmers: &[Vec<impl Word>], for_deacon: bool) -> Result<(BinaryFuse<F>, u64), Error> {
    let mut keys: Vec<u64> = kmers.iter().flatten().map(|kmer| kmer.key(0)).collect();
    sort_by_rank(&mut keys, u64::BITS, |key| key);
    keys.dedup();
    let builder = BinaryFuse::<F>::builder();
    let builder = if for_deacon { builder } else { builder.arity(Arity::Four).form(Form::Sharded) };
    Ok((builder.build_from(&keys).map_err(Error::of_index)?, keys.len() as u64))
}

impl Index {
    /// Builds an index of canonical k-mers in lists, some of which may be equal; a filter in the form of Deacon on
    /// request.
    pub(crate) fn from_kmers<W: Word>(
        (k, w): (u32, u32),
        kmers: Vec<Vec<W>>,
        (kind, for_deacon): (IndexKind, bool),
    ) -> Result<Index, Error> {
        let (members, len, front) = match kind {
            IndexKind::Exact => {
                let short: Option<Vec<&[u64]>> = kmers.iter().map(|kmers| short(kmers)).collect();
                let (members, len) = match short {
                    Some(kmers) => {
                        let set = StaticSet::builder().build_from_lists(&kmers).map_err(Error::of_index)?;
                        let len = set.len();
                        (Members::Static(set), len)
                    }
                    None => {
                        let kmers = kmers.iter().flatten().map(|kmer| kmer.wide()).collect();
                        let long = Long::from_kmers(K::new(k)?, kmers)?;
                        let len = long.len();
                        (Members::Long(long), len)
                    }
                };
                (members, len, Some(front::of(&kmers, len)?))
            }
            IndexKind::Fuse16 => {
                let (filter, len) = filter_of(&kmers, for_deacon)?;
                (Members::Fuse16(filter), len, None)
            }
            IndexKind::Fuse32 => {
                let (filter, len) = filter_of(&kmers, for_deacon)?;
                (Members::Fuse32(filter), len, None)
            }
            IndexKind::Sequences => unreachable!("sequence filters are made of sequences"),
        };
        Ok(Index { k, w, len, members, front })
    }
}
