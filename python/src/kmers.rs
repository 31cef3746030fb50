//! Counts of k-mers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use warpset::gpu;
use warpset::prelude::Count;
use warpset::quotient::{self, MappedRankSelectQuotientFilter, RankSelectQuotientFilter};
use warpset_kmers::{
    BackendChoice, Error, K, Progress, Screening, Settings, Table, Word, canonical, count_files, count_sequences,
    letters,
};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::files::FilePath;
use crate::filter::numbers;
use crate::keys::{Batch, HostKeys, OneKey, one_key};
use crate::output::array;
use crate::sequences::expect_letters;
use crate::structure::{ALL_OF_IT, Forms, Object, Structure, Where, length, read_only};
use crate::threads::{Shared, Threads, Watch, run, run_watched};
use crate::{anywhere, ask, class, with_device_keys};

/// Counts outside of host memory.
pub struct Elsewhere<F> {
    k: K,
    filter: F,
}

impl<F> Elsewhere<F> {
    fn k(&self) -> K {
        self.k
    }
}

impl<F> Elsewhere<F>
where
    F: Count,
    Failure: From<F::Error>,
{
    fn count_bulk_into(&self, kmers: &[u64], copies: &mut [u64]) -> Result<()> {
        Ok(self.filter.count_bulk_into(kmers, copies)?)
    }
}

/// Methods of a table for counts elsewhere.
macro_rules! as_tables {
    ($($filter:ty),*) => {$(
        impl Elsewhere<$filter> {
            fn total(&self) -> u64 {
                self.filter.len()
            }

            fn memory_bytes(&self) -> u64 {
                self.filter.memory_bytes()
            }

            fn histogram(&self, most: usize) -> Result<Vec<u64>> {
                Ok(self.filter.count_histogram(most)?)
            }
        }
    )*};
}
as_tables!(MappedRankSelectQuotientFilter, quotient::gpu::RankSelectQuotientFilter);

/// Types of the class.
pub struct Kmers;

impl Forms for Kmers {
    type Host = Table;
    type Mapped = Elsewhere<MappedRankSelectQuotientFilter>;
    type Device = Elsewhere<quotient::gpu::RankSelectQuotientFilter>;

    fn to_device(host: &Table, device: &gpu::Device) -> Result<Self::Device> {
        let filter = host.filter().ok_or(Error::LongOnDevice { k: host.k().get() })?;
        Ok(Elsewhere { k: host.k(), filter: filter.to_device(device)? })
    }

    fn to_host(there: &Self::Device) -> Result<Table> {
        Ok(Table::from_filter(there.filter.to_host()?)?)
    }

    fn device(there: &Self::Device) -> &gpu::Device {
        there.filter.device()
    }

    fn copy(host: &Table) -> Table {
        host.clone()
    }

    fn to_bytes(host: &Table) -> Result<Vec<u8>> {
        Ok(host.to_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Table> {
        Ok(Table::from_bytes(bytes)?)
    }

    fn save(host: &Table, path: &Path) -> Result<()> {
        Ok(host.save(path)?)
    }

    fn load(path: &Path) -> Result<Table> {
        Ok(Table::load(path)?)
    }

    unsafe fn map(path: &Path) -> Result<Self::Mapped> {
        // SAFETY: the caller guarantees that the file does not change.
        let filter = unsafe { RankSelectQuotientFilter::map(path)? };
        let k = Table::k_of(filter.layout()).ok_or_else(|| Error::NotTable { path: path.to_owned() })?;
        Ok(Elsewhere { k, filter })
    }
}

impl Structure for Kmers {
    const NAME: &'static str = "KmerCounter";

    fn describe(value: &Where<Self>) -> Result<String> {
        Ok(anywhere!(value, |table| format!(
            "k={}, {} k-mers in all, {} bytes",
            table.k().get(),
            table.total(),
            table.memory_bytes()
        )))
    }
}

/// Returns a callback that reports the share of the files read to `watch`.
fn heard_by(watch: &Arc<Watch>, files: &[PathBuf]) -> Progress {
    let total = files.iter().map(|path| path.metadata().map_or(0, |file| file.len())).sum();
    let watch = watch.clone();
    Progress::calling(move |bytes| watch.note(bytes, total))
}

/// Returns the settings for a place.
fn settings(k: K, place: &Location, threads: Option<Threads>) -> Result<Settings> {
    let settings = Settings::new(k.get())?.threads(threads.unwrap_or_default().0);
    Ok(match place {
        Location::Cpu => settings.backend(BackendChoice::Cpu),
        // The table would have to be on the device.
        Location::On(_) if k.is_long() => return Err(Error::LongOnDevice { k: k.get() }.into()),
        Location::On(device) => settings.on(device),
    })
}

/// Counts the k-mers of files.
fn counted(
    py: Python<'_>,
    files: &Bound<'_, PyAny>,
    mut settings: Settings,
    memory: Option<u64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let files = FilePath::several(files)?;
    if let Some(bytes) = memory {
        settings = settings.memory(bytes);
    }
    run_watched(py, None, progress, move |watch| Ok(count_files(&files, &settings.progress(heard_by(watch, &files)))?))
}

/// Returns the numbers of canonical k-mers, given as letters.
fn numbers_of<W: Word>(kmers: &[&[u8]], k: K) -> Result<Vec<W>> {
    Ok(kmers.iter().map(|kmer| canonical(kmer, k)).collect::<std::result::Result<_, _>>()?)
}

fn only_letters(k: K) -> Failure {
    Failure::wrong_type(format!("{}-mers are longer than 64-bit integers: pass letters", k.get()))
}

/// Counts the copies of k-mers in a table.
fn count_in(table: &Table, kmers: HostKeys<'_>, copies: &mut [u64]) -> Result<()> {
    if table.k().is_long() {
        let kmers = kmers.strings().map_err(|_| only_letters(table.k()))?;
        return Ok(table.count_bulk_into(&numbers_of::<u128>(kmers, table.k())?, copies)?);
    }
    codes(kmers, table.k(), |codes| Ok(table.count_bulk_into(codes, copies)?))
}

/// Runs `work` with the numbers of canonical k-mers, given as letters or as such numbers.
fn codes<R>(keys: HostKeys<'_>, k: K, work: impl FnOnce(&[u64]) -> Result<R>) -> Result<R> {
    match keys {
        HostKeys::U64(codes) => work(codes),
        HostKeys::U32(codes) => work(&codes.iter().map(|&code| code.into()).collect::<Vec<u64>>()),
        HostKeys::I32(codes) => work(&codes.iter().map(|&code| code as u64).collect::<Vec<u64>>()),
        HostKeys::Strings(kmers) => work(&numbers_of(kmers, k)?),
    }
}

/// Adds the copies of a table.
fn merge(object: &Object<Kmers>, py: Python<'_>, more: &Table) -> PyResult<()> {
    Ok(object.write(py, None, ALL_OF_IT, |value| match value {
        Where::Host(table) => Ok(table.merge(more)?),
        Where::Device(there) => {
            let mut table = Kmers::to_host(there)?;
            table.merge(more)?;
            *there = Kmers::to_device(&table, Kmers::device(there))?;
            Ok(())
        }
        Where::Mapped(_, file) => Err(read_only(file)),
    })?)
}

impl KmerCounter {
    /// Returns the settings for additional files.
    fn settings(&self, py: Python<'_>, threads: Option<Threads>) -> Result<Settings> {
        self.0.read(py, None, 1, |value| match value {
            Where::Host(table) => settings(table.k(), &Location::Cpu, threads),
            Where::Device(there) => settings(there.k, &Location::On(Kmers::device(there).clone()), threads),
            Where::Mapped(_, file) => Err(read_only(file)),
        })
    }

    fn all(&self, py: Python<'_>) -> PyResult<(K, All)> {
        Ok(self.0.read(py, None, ALL_OF_IT, |value| {
            Ok((
                anywhere!(value, |table| table.k()),
                match value {
                    Where::Host(table) if table.k().is_long() => All::Long(table.kmers()?.collect()),
                    Where::Host(table) => All::Short(table.kmers()?.collect()),
                    Where::Mapped(there, _) => All::Short(there.filter.key_counts()?.collect()),
                    Where::Device(there) => All::Short(there.filter.key_counts()?),
                },
            ))
        })?)
    }

    fn count_of(&self, py: Python<'_>, kmer: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (kmer, mut count) = (one_key(kmer)?, [0]);
        self.0.read(py, None, 1, |value| {
            let code = |k| match kmer {
                OneKey::Word(code) => Ok(code),
                OneKey::Bytes(ref kmer) => canonical::<u64>(kmer, k),
            };
            match (value, &kmer) {
                (Where::Host(table), OneKey::Bytes(kmer)) => count[0] = table.count(kmer)?,
                (Where::Host(table), _) if table.k().is_long() => return Err(only_letters(table.k())),
                (Where::Host(table), _) => table.count_bulk_into(&[code(table.k())?], &mut count)?,
                (Where::Mapped(there, _), _) => there.count_bulk_into(&[code(there.k)?], &mut count)?,
                (Where::Device(there), _) => there.count_bulk_into(&[code(there.k)?], &mut count)?,
            }
            Ok(())
        })?;
        Ok(count[0])
    }
}

class! {
    /// Exact counts of the k-mers of FASTA and FASTQ files, plain or gzip, on both strands: a k-mer and its reverse
    /// complement are one k-mer, named by the smaller of the two. K-mers contain only A, C, G and T.
    ///
    /// `files` is a path or a list of paths; without it the counter is empty. `k` is 1 to 63 bases, on a device and in
    /// mapped files at most 32.
    ///
    /// - `min_count`: k-mers with fewer copies are dropped.
    /// - `memory`: approximate limit of host memory in bytes, above which `OutOfMemoryError` is raised.
    /// - `device` is the place of the counting and of the counts.
    /// - `threads` limits the number of threads that read and count (default: all of the machine).
    /// - `progress` is called now and then as `progress(done, bytes)`. An exception in it stops the count, as Ctrl-C
    ///   does.
    ///
    /// K-mers are letters as `str` or `bytes`, in arrays or lists, or up to 32 bases integers as `arrays` and
    /// `minimizers` return them: 2 bits per base, the first base highest, A 0, C 1, G 2, T 3. `len` is the number of
    /// different k-mers.
    ///
    /// >>> import warpset
    /// >>> counter = warpset.KmerCounter(k=4)
    /// >>> counter.update_sequences(["ACGTTGCAACGT", b"ttgc"])
    /// >>> counter["ACGT"], counter["TTGC"], counter["GCAA"], "CCCC" in counter
    /// (2, 3, 3, False)
    /// >>> counter.count(["ACGT", "CCCC"]).tolist()
    /// [2, 0]
    KmerCounter(Kmers), other {
        #[new]
        #[pyo3(signature = (
            files=None, *, k=31, min_count=1, memory=None, device=None, threads=None, progress=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            files: Option<&Bound<'_, PyAny>>,
            k: u32,
            min_count: u64,
            memory: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, k) = (Location::of(device)?, K::new(k).map_err(Failure::from)?);
            let table = match files {
                Some(files) => counted(py, files, settings(k, &place, threads)?.least(min_count), memory, progress)?,
                None => Table::empty(k).map_err(Failure::from)?,
            };
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, || Where::at(table, &place))?)))
        }

        /// Adds the k-mers of more files: a path, or a list of paths.
        #[pyo3(signature = (files, /, *, memory=None, threads=None, progress=None))]
        fn update(
            &self,
            py: Python<'_>,
            files: &Bound<'_, PyAny>,
            memory: Option<u64>,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<()> {
            let settings = self.settings(py, threads)?;
            merge(&self.0, py, &counted(py, files, settings, memory, progress)?)
        }

        /// Adds the k-mers of sequences, an array or a list of `str` or `bytes`; k-mers do not cross from one to the
        /// next.
        #[pyo3(signature = (sequences, /, *, threads=None))]
        fn update_sequences(
            &self,
            py: Python<'_>,
            sequences: &Bound<'_, PyAny>,
            threads: Option<Threads>,
        ) -> PyResult<()> {
            let (settings, batch) = (self.settings(py, threads)?, Batch::of(sequences)?);
            let counted = run_watched(py, threads, None, move |watch| {
                let Batch::Host(parts) = &batch else { return Err(Failure::wrong_type("sequences: pass strings, in host memory")) };
                let (mut all, watch): (Vec<&[u8]>, _) = (Vec::new(), watch.clone());
                let settings = settings.progress(Progress::calling(move |letters| watch.note(letters, 0)));
                for part in parts {
                    match part.keys() {
                        HostKeys::Strings(strings) => {
                            strings.iter().try_for_each(|letters| expect_letters(letters))?;
                            all.extend_from_slice(strings);
                        }
                        _ if part.count() == 0 => {}
                        _ => return Err(Failure::wrong_type("sequences: pass `str` or `bytes`, not integers")),
                    }
                }
                Ok(count_sequences(all, &settings)?)
            });
            merge(&self.0, py, &counted?)
        }

        /// Adds the counts of another counter with the same `k`.
        fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            let more = other.0.read(py, None, ALL_OF_IT, |other| other.on_host(|table| Ok(table.clone())))?;
            merge(&self.0, py, &more)
        }

        fn __add__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
            let sum = Self(crate::structure::copy(&self.0, py, None)?);
            sum.merge(py, other)?;
            Ok(sum)
        }

        fn __iadd__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            self.merge(py, other)
        }

        /// Removes k-mers with fewer copies than `min_count`.
        fn keep(&self, py: Python<'_>, min_count: u64) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |value| match value {
                Where::Host(table) => Ok(table.keep(min_count)?),
                Where::Device(there) => Ok(there.filter.retain_counts(min_count).map(|_| ())?),
                Where::Mapped(_, file) => Err(read_only(file)),
            })?)
        }

        /// Returns the number of copies of each k-mer as an array of `uint64`, or `out`, filled. Nulls have 0. For
        /// k-mers on a device the counts are on the device.
        #[pyo3(signature = (kmers, /, *, out=None, threads=None))]
        fn count(
            &self,
            py: Python<'_>,
            kmers: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, kmers, out, threads, 0, |value, keys, counts| match value {
                Where::Host(table) => count_in(table, keys, counts),
                Where::Mapped(there, _) => codes(keys, there.k, |codes| there.count_bulk_into(codes, counts)),
                Where::Device(there) => codes(keys, there.k, |codes| there.count_bulk_into(codes, counts)),
            }, |there, keys, counts| Ok(with_device_keys!(keys, |keys| there.filter.count_device(keys, counts))?))
        }

        /// Returns the number of copies of one k-mer, or `default` if there are none.
        #[pyo3(signature = (kmer, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            kmer: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            match self.count_of(py, kmer)? {
                0 => Ok(default),
                count => Ok(Some(count.into_py_any(py)?)),
            }
        }

        fn __getitem__(&self, py: Python<'_>, kmer: &Bound<'_, PyAny>) -> PyResult<u64> {
            self.count_of(py, kmer)
        }

        fn __contains__(&self, py: Python<'_>, kmer: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(self.count_of(py, kmer)? > 0)
        }

        /// Returns the number of different k-mers.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            Ok(length(self.0.read(py, None, ALL_OF_IT, |value| Ok(match value {
                Where::Host(table) => table.distinct(),
                Where::Mapped(there, _) => there.filter.distinct(),
                Where::Device(there) => there.filter.distinct()?,
            }))?))
        }

        /// Returns the number of k-mers including copies.
        fn total(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |table| table.total())
        }

        /// Returns the bases per k-mer.
        #[getter]
        fn k(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |table| table.k().get())
        }

        /// Returns the bytes of memory of the counts.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |table| table.memory_bytes())
        }

        /// Returns the number of different k-mers per number of copies, as an array of `uint64` with `most + 1` items;
        /// the last item includes all with more copies.
        #[pyo3(signature = (most=10_000))]
        fn histogram(&self, py: Python<'_>, most: usize) -> PyResult<Py<PyAny>> {
            let histogram = self.0.read(py, None, ALL_OF_IT, |value| {
                Ok(anywhere!(value, |table| table.histogram(most)?))
            })?;
            array(py, &histogram)
        }

        /// Returns all k-mers as integers, 2 bits per base, the first base highest, A 0, C 1, G 2, T 3, and their
        /// numbers of copies: two arrays of `uint64`, in no particular order. Above 32 bases the k-mers are a list of
        /// `int`.
        fn arrays(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            match self.all(py)?.1 {
                All::Short(all) => {
                    let (kmers, counts): (Vec<u64>, Vec<u64>) = all.into_iter().unzip();
                    Ok((array(py, &kmers)?, array(py, &counts)?))
                }
                All::Long(all) => {
                    let (kmers, counts): (Vec<u128>, Vec<u64>) = all.into_iter().unzip();
                    Ok((kmers.into_py_any(py)?, array(py, &counts)?))
                }
            }
        }

        /// Iterates over all k-mers in letters with their current numbers of copies, in no particular order.
        fn items(&self, py: Python<'_>) -> PyResult<KmerIterator> {
            let (k, all) = self.all(py)?;
            Ok(KmerIterator { k, next: 0, all, has_counts: true })
        }

        fn __iter__(&self, py: Python<'_>) -> PyResult<KmerIterator> {
            Ok(KmerIterator { has_counts: false, ..self.items(py)? })
        }

        /// Splits the reads of FASTA and FASTQ files by the number of their k-mers in the counter: reads with at least
        /// `min_hits` go to the file `matched`, the others to `unmatched`, unchanged and in order. Without a file they
        /// are only counted. Returns the number of reads that match and the number of those that do not.
        #[pyo3(signature = (files, /, *, matched=None, unmatched=None, min_hits=1, threads=None, progress=None))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn screen(
            &self,
            py: Python<'_>,
            files: &Bound<'_, PyAny>,
            matched: Option<FilePath>,
            unmatched: Option<FilePath>,
            min_hits: u64,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<(u64, u64)> {
            let files = FilePath::several(files)?;
            // No lock is held while files are read.
            let table = self.0.read(py, None, ALL_OF_IT, |value| value.on_host(|table| Ok(table.clone())))?;
            let screened = run_watched(py, threads, progress, move |watch| {
                let mut screening = Screening::new(&table).min_hits(min_hits).progress(heard_by(watch, &files));
                screening = screening.threads(threads.unwrap_or_default().0);
                if let Some(path) = matched {
                    screening = screening.matched(path.0);
                }
                if let Some(path) = unmatched {
                    screening = screening.unmatched(path.0);
                }
                Ok(screening.run(&files)?)
            })?;
            Ok((screened.matched, screened.unmatched))
        }
    }
}

/// All k-mers with their numbers of copies.
enum All {
    Short(Vec<(u64, u64)>),
    Long(Vec<(u128, u64)>),
}

impl All {
    fn len(&self) -> usize {
        match self {
            All::Short(all) => all.len(),
            All::Long(all) => all.len(),
        }
    }

    /// Returns a k-mer in letters, and its copies.
    fn get(&self, i: usize, k: K) -> Option<(String, u64)> {
        match self {
            All::Short(all) => all.get(i).map(|&(kmer, copies)| (letters(kmer, k), copies)),
            All::Long(all) => all.get(i).map(|&(kmer, copies)| (letters(kmer, k), copies)),
        }
    }
}

/// Iterator over k-mers in letters, alone or with their numbers of copies.
#[pyclass(module = "warpset")]
pub struct KmerIterator {
    k: K,
    all: All,
    next: usize,
    has_counts: bool,
}

#[pymethods]
impl KmerIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((kmer, copies)) = self.all.get(self.next, self.k) else { return Ok(None) };
        self.next += 1;
        let item = if self.has_counts { (kmer, copies).into_bound_py_any(py) } else { kmer.into_bound_py_any(py) };
        item.map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.all.len() - self.next
    }
}
