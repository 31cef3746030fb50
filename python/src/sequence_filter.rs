//! Filters of k-mers that take sequences.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpset::gpu::{DeviceSlice, DeviceVec};
use warpset::sequence::{self, Bitmap, Error, Hits, Layout, MappedSequenceFilter, SequenceFilter as Host, Threshold};
use warpset_base::bitmap::bits_to;

use crate::device::{DeviceLetters, Location, SharedItem};
use crate::error::{Failure, Result};
use crate::output::{Answers, array};
use crate::sequences::{Letters, Sequences, each_group, each_stretch};
use crate::structure::{ALL_OF_IT, Forms, Where, combine, copy, keys_elsewhere};
use crate::threads::{ON_DEVICE, Shared, Threads, run};
use crate::{anywhere, ask, changing, class, structure};

structure!(OfKmers = "SequenceFilter": Host, MappedSequenceFilter, sequence::gpu::SequenceFilter; |value: &Where<Self>| {
    Ok(anywhere!(value, |filter| format!("k={}, {} bytes", filter.layout().k(), filter.memory_bytes())))
});

/// Lookups of host sequences in a filter in any place.
trait Asked {
    fn layout(&self) -> &Layout;
    /// Counts the k-mers of each sequence, and those found.
    fn hits(&self, sequences: &[&[u8]]) -> Result<Vec<Hits>>;
    /// Returns one bit per window.
    fn windows(&self, letters: &[u8]) -> Result<Bitmap>;

    /// Whether one k-mer is found.
    fn has(&self, kmer: &[u8]) -> Result<bool> {
        let (hits, k) = (self.hits(&[kmer])?, self.layout().k());
        match hits[..] {
            [Hits { found, kmers: 1 }] if kmer.len() == k as usize => Ok(found == 1),
            _ => Err(Error::NotKmer { kmer: String::from_utf8_lossy(kmer).into(), k }.into()),
        }
    }
}

macro_rules! asked {
    ($($filter:ty => |$answer:ident| $result:expr;)*) => {$(
        impl Asked for $filter {
            fn layout(&self) -> &Layout {
                self.layout()
            }
            fn hits(&self, sequences: &[&[u8]]) -> Result<Vec<Hits>> {
                Ok(self.count_bulk(sequences)?)
            }
            fn windows(&self, letters: &[u8]) -> Result<Bitmap> {
                let $answer = self.contains_windows(letters);
                Ok($result)
            }
        }
    )*};
}
asked! {
    Host => |answer| answer;
    MappedSequenceFilter => |answer| answer;
    sequence::gpu::SequenceFilter => |answer| answer?;
}

/// Insertions of host sequences.
trait Grown {
    fn insert_all(&mut self, sequences: &[&[u8]]) -> Result<()>;
    fn remove_all(&mut self) -> Result<()>;
}

impl Grown for Host {
    fn insert_all(&mut self, sequences: &[&[u8]]) -> Result<()> {
        Ok(self.insert_bulk(sequences)?)
    }
    fn remove_all(&mut self) -> Result<()> {
        self.clear();
        Ok(())
    }
}

impl Grown for sequence::gpu::SequenceFilter {
    fn insert_all(&mut self, sequences: &[&[u8]]) -> Result<()> {
        Ok(self.insert_bulk(sequences)?)
    }
    fn remove_all(&mut self) -> Result<()> {
        Ok(self.clear()?)
    }
}

/// Returns one bit per window of letters on a device.
fn windows_there(filter: &sequence::gpu::SequenceFilter, letters: DeviceSlice<'_, u8>) -> Result<DeviceVec<u32>> {
    let mut found = filter.device().alloc_zeroed(letters.len().div_ceil(32))?;
    filter.contains_windows_device(letters, found.as_mut_slice())?;
    Ok(found)
}

impl SequenceFilter {
    /// Inserts sequences.
    fn insert(&self, py: Python<'_>, sequences: &[&[u8]], threads: Option<Threads>) -> PyResult<()> {
        each_group(py, sequences, self.k(py)? as usize, |fragments, _, letters| {
            Ok(self.0.write(py, threads, letters, |filter| changing!(filter, |filter| filter.insert_all(fragments)))?)
        })
    }

    /// Counts the k-mers of each sequence, and those found.
    fn hits(&self, py: Python<'_>, sequences: &Sequences, threads: Option<Threads>) -> PyResult<Vec<Hits>> {
        let mut hits = vec![Hits::default(); sequences.get().len()];
        each_group(py, sequences.get(), self.k(py)? as usize, |fragments, owners, letters| {
            let found =
                self.0.read(py, threads, letters, |filter| anywhere!(filter, |filter| filter.hits(fragments)))?;
            for (&owner, more) in owners.iter().zip(found) {
                let sum = &mut hits[owner];
                *sum = Hits { found: sum.found + more.found, kmers: sum.kmers + more.kmers };
            }
            Ok(())
        })?;
        Ok(sequences.spread(hits))
    }
}

class! {
    /// Bloom filter of k-mers that takes whole sequences: neighbouring k-mers share a block of memory, so a read
    /// touches a few cache lines instead of one per k-mer.
    ///
    /// `n` is the expected number of different k-mers. K-mers have `k` bases, 9 to 63, only A, C, G and T in either
    /// case, and are canonical: both strands have the same k-mers.
    ///
    /// - `bits_per_kmer`: the size. With 16 bits, fewer than one foreign k-mer in 100,000 is found (`k=31`).
    /// - `s`: bases per s-mer; a k-mer is found if all of its `k - s + 1` s-mers are. `m`: bases of the minimizer that
    ///   chooses the block. By default both follow from `k` and `n`.
    ///
    /// A sequence is a `str`, `bytes` or an array of `uint8`, read in place. Sequences are a list or another iterable
    /// of these, an array of strings of NumPy or Arrow, or an array of `uint8` with one sequence per row.
    ///
    /// >>> import warpset
    /// >>> genome = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG"
    /// >>> known = warpset.SequenceFilter(1000, k=21)
    /// >>> known.add(genome)
    /// >>> reads = ["AAGCTAGCTTAGCTAGCCGATCGTGCATGCAA", "ACGT" * 8]   # the first one of the other strand
    /// >>> found, kmers = known.count(reads)
    /// >>> found.tolist(), kmers.tolist()
    /// ([12, 0], [12, 12])
    /// >>> known.matches(reads, min_hits=2, min_share=0.5).tolist()
    /// [True, False]
    /// >>> known.contains_windows(genome[:23]).tolist(), genome[:21] in known
    /// ([True, True, True], True)
    SequenceFilter(OfKmers), other {
        #[new]
        #[pyo3(signature = (n, *, k=31, bits_per_kmer=16.0, s=None, m=None, device=None))]
        fn new(
            py: Python<'_>,
            n: u64,
            k: u32,
            bits_per_kmer: f64,
            s: Option<u32>,
            m: Option<u32>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let place = Location::of(device)?;
            let mut builder = Host::builder(n).k(k).bits_per_key(bits_per_kmer);
            if let Some(s) = s {
                builder = builder.s(s);
            }
            if let Some(m) = m {
                builder = builder.m(m);
            }
            let build = || {
                Ok(match &place {
                    Location::Cpu => Where::Host(builder.build()?),
                    Location::On(device) => Where::Device(builder.on(device).build()?),
                })
            };
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, build)?)))
        }

        /// Adds the k-mers of one sequence. A filter on a device also takes letters there, an array of `uint8`; a
        /// letter that is no base, such as a line end, separates sequences.
        #[pyo3(signature = (sequence, /, *, threads=None))]
        fn add(&self, py: Python<'_>, sequence: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<()> {
            if let Some(letters) = DeviceLetters::of(sequence)? {
                return Ok(self.0.write(py, threads, ON_DEVICE, |filter| {
                    let Where::Device(filter) = filter else { return Err(keys_elsewhere("in host memory")) };
                    let device = filter.device().clone();
                    Ok(filter.insert_device(letters.adopt(&device)?.as_slice())?)
                })?);
            }
            let letters = Letters::of(sequence)?;
            self.insert(py, &[letters.get()], threads)
        }

        /// Adds the k-mers of sequences in an array, or in an iterable, which is read piece by piece.
        ///
        /// Nulls are ignored. If an item of an iterable is no sequence, some of the earlier ones may have been added.
        /// `threads` limits the number of threads (default: all of the machine).
        #[pyo3(signature = (sequences, /, *, threads=None))]
        fn update(&self, py: Python<'_>, sequences: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<()> {
            Sequences::each_part(sequences, &mut |part| self.insert(py, part.get(), threads))
        }

        /// Returns, per sequence, the number of k-mers that may be in the filter and the number of all k-mers,
        /// repetitions included: two arrays of `uint64`. Nulls have 0.
        #[pyo3(signature = (sequences, /, *, threads=None))]
        fn count(
            &self,
            py: Python<'_>,
            sequences: &Bound<'_, PyAny>,
            threads: Option<Threads>,
        ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            let hits = self.hits(py, &Sequences::of(sequences)?, threads)?;
            let (found, kmers): (Vec<u64>, Vec<u64>) = hits.iter().map(|hits| (hits.found, hits.kmers)).unzip();
            Ok((array(py, &found)?, array(py, &kmers)?))
        }

        /// Returns whether enough k-mers of each sequence may be in the filter, at least `min_hits` and at least the
        /// share `min_share` of all: an array of booleans, or `out`, filled. Nulls never match.
        ///
        /// `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an Arrow
        /// array.
        #[pyo3(signature = (sequences, /, *, min_hits=1, min_share=0.0, form="bool", out=None, threads=None))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn matches(
            &self,
            py: Python<'_>,
            sequences: &Bound<'_, PyAny>,
            min_hits: u64,
            min_share: f64,
            form: &str,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            let threshold = Threshold::at_least(min_hits).and_fraction(min_share).map_err(Failure::from)?;
            let sequences = Sequences::of(sequences)?;
            let mut answers = Answers::new(py, sequences.len(), form, out)?;
            let hits = self.hits(py, &sequences, threads)?;
            let is_there = sequences.spread(vec![true; sequences.get().len()]);
            for ((answer, hits), is_there) in answers.items().iter_mut().zip(hits).zip(is_there) {
                *answer = u8::from(is_there && threshold.is_met(hits));
            }
            answers.finish(py)
        }

        /// Returns whether each window of `k` letters of one sequence is a k-mer that may be in the filter: an array of
        /// booleans, or `out`, filled; `form` as in `matches`. Windows with a letter that is no base are not.
        ///
        /// Letters on a device are an array of `uint8`. Their answers are an array of `uint32` there: bit `i % 32` of
        /// word `i // 32` for the window that starts at letter `i`. A letter that is no base separates sequences.
        #[pyo3(signature = (sequence, /, *, form="bool", out=None, threads=None))]
        fn contains_windows(
            &self,
            py: Python<'_>,
            sequence: &Bound<'_, PyAny>,
            form: &str,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            if let Some(letters) = DeviceLetters::of(sequence)? {
                if form != "bool" || out.is_some() {
                    return Err(PyValueError::new_err(
                        "for letters on a device the answers are bits of a new array there: leave `form` and `out` away",
                    ));
                }
                let found = self.0.read(py, threads, ON_DEVICE, |filter| {
                    let Where::Device(filter) = filter else { return Err(keys_elsewhere("in host memory")) };
                    windows_there(filter, letters.adopt(filter.device())?.as_slice())
                })?;
                return Ok(Py::new(py, u32::share(found))?.into_any());
            }
            let letters = Letters::of(sequence)?;
            let letters = letters.get();
            let k = self.k(py)? as usize;
            let mut answers = Answers::new(py, (letters.len() + 1).saturating_sub(k), form, out)?;
            let items = answers.items();
            each_stretch(py, letters.len(), k, |windows, stretch| {
                let (items, letters) = (&mut items[windows], &letters[stretch]);
                Ok(self.0.read(py, threads, letters.len(), |filter| {
                    let windows = anywhere!(filter, |filter| filter.windows(letters))?;
                    bits_to::<u8>(items, windows.as_words());
                    Ok(())
                })?)
            })?;
            answers.finish(py)
        }

        /// Whether one k-mer of `k` bases may be in the filter.
        fn __contains__(&self, py: Python<'_>, kmer: &Bound<'_, PyAny>) -> PyResult<bool> {
            let letters = Letters::of(kmer)?;
            let kmer = letters.get();
            Ok(self.0.read(py, None, kmer.len(), |filter| anywhere!(filter, |filter| filter.has(kmer)))?)
        }

        /// Removes all k-mers and keeps the memory.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |filter| changing!(filter, |filter| filter.remove_all()))?)
        }

        /// Adds the contents of another filter with the same parameters.
        fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            combine(&self.0, &other.0, py, |filter, other| Ok(filter.merge(other)?), |filter, other| {
                Ok(filter.merge(other)?)
            })
        }

        fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
            let both = Self(copy(&self.0, py, None)?);
            both.merge(py, other)?;
            Ok(both)
        }

        fn __ior__(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            self.merge(py, other)
        }

        /// Returns the bases per k-mer.
        #[getter]
        fn k(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| filter.layout().k())
        }

        /// Returns the bases per s-mer.
        #[getter]
        fn s(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| filter.layout().s())
        }

        /// Returns the bases of the minimizer that chooses a block.
        #[getter]
        fn m(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| filter.layout().m())
        }

        /// Returns the bytes of memory of the bits.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| filter.memory_bytes())
        }

        /// Returns the current rate of false positives among k-mers that share no s-mer with the contents.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            Ok(self.0.read(py, None, ALL_OF_IT, |filter| match filter {
                Where::Host(filter) => Ok(filter.fpr()),
                Where::Mapped(filter, _) => Ok(filter.fpr()),
                Where::Device(filter) => Ok(OfKmers::to_host(filter)?.fpr()),
            })?)
        }

        /// Computes the rate of false positives of `n` different k-mers of random sequences.
        fn expected_fpr(&self, py: Python<'_>, n: u64) -> PyResult<f64> {
            ask!(self.0, py, |filter| filter.expected_fpr(n))
        }
    }
}
