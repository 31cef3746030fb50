//! Counting on the CPU or on a GPU: the parts in common.

mod device;
mod host;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use warpset_base::parallel::threads_for;
use warpset_core::quotient::rank_select::counters;
use warpset_gpu::Backend as Found;
use warpset_kernels::kmers::letters::{CLASSES, least_of};
use warpset_quotient::RankSelectBuilder;

use crate::pieces::Text;
use crate::settings::Executor;
use crate::table::smallest;
use crate::{BackendChoice, Error, K, Settings, Table};

pub(crate) use host::Counts;

/// Bytes of plain input above which opening a GPU pays.
const LEAST_FOR_DEVICE: u64 = 256 << 20;
/// Least bytes of input per thread; small in tests, so that they use several threads.
const LEAST_FOR_THREAD: u64 = if cfg!(test) { 1 << 6 } else { 1 << 12 };

/// Counts the canonical k-mers of FASTA and FASTQ files, plain, gzip or Zstandard; `-` is the standard input.
///
/// # Errors
/// [`Error::NoInput`], [`Error::Read`], [`Error::NotSequence`]; [`Error::NoKmers`], [`Error::TooManyKmers`]; if memory
/// or threads do not suffice [`Error::BudgetTooSmall`], [`Error::OverBudget`], [`Error::Threads`], [`Error::Filter`];
/// on a device also [`Error::Device`] and [`Error::Primitives`].
pub fn count_files(files: &[PathBuf], settings: &Settings) -> Result<Table, Error> {
    if files.is_empty() {
        return Err(Error::NoInput);
    }
    let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
    count(&texts, settings)
}

/// Counts the canonical k-mers of the bytes of one FASTA or FASTQ file, plain, gzip or Zstandard.
///
/// # Errors
/// The errors of [`count_files`], except for [`Error::NoInput`].
pub fn count_bytes(bytes: &[u8], settings: &Settings) -> Result<Table, Error> {
    count(&[Text::Bytes(bytes)], settings)
}

/// Counts the canonical k-mers of sequences of letters, each on its own. Without k-mers the table is empty.
///
/// # Errors
/// The errors of [`count_bytes`], except for [`Error::NoKmers`].
pub fn count_sequences<S: AsRef<[u8]>>(
    sequences: impl IntoIterator<Item = S>,
    settings: &Settings,
) -> Result<Table, Error> {
    let mut fasta = Vec::new();
    for sequence in sequences {
        fasta.extend_from_slice(b">\n");
        // No line of a sequence becomes a name or a comment.
        fasta.extend(sequence.as_ref().iter().map(|&letter| if matches!(letter, b'>' | b';') { b'-' } else { letter }));
        fasta.push(b'\n');
    }
    if fasta.is_empty() {
        return Table::empty(settings.k);
    }
    match count_bytes(&fasta, settings) {
        Err(Error::NoKmers { .. }) => Table::empty(settings.k),
        counted => counted,
    }
}

/// Starts a pool of threads.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|_| Error::Threads { threads })
}

/// Calls `work` on a pool, with the settings of one count. Returns also whether there were any records.
fn on_pool<T: Send>(
    texts: &[Text<'_>],
    settings: &Settings,
    work: impl FnOnce(&Settings) -> Result<T, Error> + Send,
) -> Result<(Result<T, Error>, bool), Error> {
    let threads = threads_for(settings.threads, pieces_of_work(texts));
    let settings = &Settings { threads, seen: Arc::default(), ..settings.clone() };
    let done = pool(settings.threads)?.install(|| work(settings));
    let seen = *settings.seen.lock().unwrap_or_else(PoisonError::into_inner);
    settings.progress.note(seen.odd);
    Ok((settings.progress.outcome(done), seen.any))
}

/// Calls `build` with the number of different k-mers of all genomes, and with each of them and the number of its
/// genome, from 1 on; that of several genomes is above 255.
pub(crate) fn label<W: Counts, T: Send>(
    genomes: &[Text<'_>],
    settings: &Settings,
    build: impl FnOnce(u64, &mut dyn Iterator<Item = (W, u64)>) -> Result<T, Error> + Send,
) -> Result<T, Error> {
    on_pool(genomes, settings, |settings| host::label(genomes, settings, build))?.0
}

fn count(texts: &[Text<'_>], settings: &Settings) -> Result<Table, Error> {
    let find = || match Found::auto() {
        Found::Cuda(device) => Ok(device),
        Found::Cpu(why) => Err(why),
    };
    let counted = on_pool(texts, settings, |settings| match &settings.place {
        Executor::Device(device) => device::count(texts, settings, || Ok(device.clone())),
        Executor::Backend(BackendChoice::Cuda) => device::count(texts, settings, find),
        Executor::Backend(BackendChoice::Auto) if pays_on_device(texts, settings) => {
            match device::count(texts, settings, find) {
                Err(error) if error.asks_for_cpu() => host::count(texts, settings),
                counted => counted,
            }
        }
        Executor::Backend(BackendChoice::Cpu | BackendChoice::Auto) => host::count(texts, settings),
    })?;
    match counted {
        (Err(Error::NoKmers { .. }), false) => Table::empty(settings.k),
        (counted, _) => counted,
    }
}

/// Returns the bytes of all texts, or `None` unless all of them can be read twice.
pub(crate) fn bytes_of(texts: &[Text<'_>]) -> Option<u64> {
    let bytes = |text: &Text<'_>| match text {
        Text::Bytes(bytes) => Some(bytes.len() as u64),
        Text::File(path) if *path == Path::new("-") => None,
        Text::File(path) => path.metadata().ok().filter(|file| file.is_file()).map(|file| file.len()),
    };
    texts.iter().map(bytes).sum()
}

/// Returns the number of parts of the texts that are worth a thread each, as far as it is known before reading.
pub(crate) fn pieces_of_work(texts: &[Text<'_>]) -> u64 {
    bytes_of(texts).map_or(u64::MAX, |bytes| bytes.div_ceil(LEAST_FOR_THREAD))
}

/// Whether there is enough to count, and all of it can be read again if no device answers.
fn pays_on_device(texts: &[Text<'_>], settings: &Settings) -> bool {
    settings.memory.is_none() && bytes_of(texts).is_some_and(|bytes| bytes >= LEAST_FOR_DEVICE)
}

/// Returns the smallest filter for these numbers of k-mers per class of counts.
pub(crate) fn builder_for(k: K, classes: &[u64; CLASSES]) -> Result<RankSelectBuilder, Error> {
    let slots = |remainder_bits: u32| {
        let of_class = |(class, kmers): (usize, &u64)| kmers * counters::slots(least_of(class), remainder_bits);
        classes.iter().enumerate().map(of_class).sum::<u64>()
    };
    smallest(k, slots).ok_or_else(|| Error::TooManyKmers { kmers: classes.iter().sum(), k: k.get() })
}
