//! Sequences from Python: one sequence, or many in any container.
//!
//! | argument | sequences |
//! | --- | --- |
//! | `str`, `bytes`; arrays of bytes of one dimension (`uint8`, `S1`, `bytearray`) | one, read in place |
//! | arrays of bytes of two dimensions | one per row, read in place |
//! | NumPy arrays of strings (`S`), Arrow arrays and streams of strings | one per item, read in place |
//! | other arrays of strings | copied |
//! | lists and other iterables of `str`, `bytes` and arrays of bytes | read in place |

use std::ops::Range;
use std::slice;

use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use warpset::sequence::{Error, Minimizers, Scheme};
use warpset_kmers::{K, Word, canonical};

use crate::error::{Failure, Result};
use crate::keys::{ArrayKeys, Batch, HostKeys, is_masked, is_null, is_one_key};
use crate::output::array;
use crate::threads::{Threads, run};

/// Owner of letters.
enum Owner {
    /// A `str` or `bytes`, which are immutable.
    Object(#[allow(dead_code, reason = "held, not read")] Py<PyAny>),
    /// A buffer of Python.
    Buffer(#[allow(dead_code, reason = "held, not read")] PyUntypedBuffer),
    /// An array of strings.
    Array(#[allow(dead_code, reason = "held, not read")] ArrayKeys),
}

/// Extends the lifetime of bytes.
///
/// # Safety
/// The owner of the bytes lives as long as the result.
unsafe fn held(bytes: &[u8]) -> &'static [u8] {
    // SAFETY: the caller guarantees that the bytes live as long as the result.
    unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
}

/// One sequence.
pub struct Letters {
    letters: &'static [u8],
    owner: Owner,
}

impl Letters {
    /// Reads one sequence.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Letters> {
        Letters::of_one(object)?.ok_or_else(|| no_sequence(object))
    }

    /// Reads one sequence; `None` for other objects.
    fn of_one(object: &Bound<'_, PyAny>) -> PyResult<Option<Letters>> {
        let letters = if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_str()?;
            if !text.is_ascii() {
                return Err(PyValueError::new_err("a sequence with letters beyond ASCII: pass its letters as `bytes`"));
            }
            text.as_bytes()
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            bytes.as_bytes()
        } else {
            let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
            if buffer.dimensions() != 1 || !has_letters(&buffer) {
                return Ok(None);
            }
            if is_masked(object)? {
                return Err(masked_letters());
            }
            return Letters::of_buffer(buffer).map(Some);
        };
        expect_letters(letters)?;
        // SAFETY: the object moves into the result, and both types are immutable.
        let letters = unsafe { held(letters) };
        Ok(Some(Letters { letters, owner: Owner::Object(object.clone().unbind()) }))
    }

    fn of_buffer(buffer: PyUntypedBuffer) -> PyResult<Letters> {
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("letters with gaps: pass a contiguous array, as by `.copy()`"));
        }
        let letters: &'static [u8] = match buffer.len_bytes() {
            0 => &[],
            // SAFETY: contiguous bytes, kept by the buffer, which moves into the result. Python code that writes them
            // meanwhile changes the letters, as with NumPy's own functions.
            len => unsafe { slice::from_raw_parts(buffer.buf_ptr().cast_const().cast(), len) },
        };
        Ok(Letters { letters, owner: Owner::Buffer(buffer) })
    }

    /// Returns the letters.
    pub fn get(&self) -> &[u8] {
        self.letters
    }
}

/// Whether the items of a buffer are bytes.
fn has_letters(buffer: &PyUntypedBuffer) -> bool {
    buffer.item_size() == 1 && matches!(buffer.format().to_bytes(), [.., b'B' | b'b' | b'c' | b's'])
}

fn masked_letters() -> PyErr {
    PyTypeError::new_err("letters in a masked array: fill it, as by `.filled(ord(\"N\"))`")
}

/// Most bytes of a file name.
const LONGEST_PATH: usize = 4096;

/// Returns an error for short texts with letters that are no bases, such as file names.
pub fn expect_letters(letters: &[u8]) -> Result<()> {
    const BASES: &[u8] = b"ACGTUNRYSWKMBDHVXI";
    let is_wrong = |letter: &u8| {
        b"/\\_".contains(letter) || letter.is_ascii_alphanumeric() && !BASES.contains(&letter.to_ascii_uppercase())
    };
    match letters.iter().copied().take(LONGEST_PATH + 1).find(is_wrong) {
        Some(wrong) if letters.len() <= LONGEST_PATH => Err(Failure::value(format!(
            "{:?} is no sequence of bases, because of its letter {:?}: pass letters; those of a file are read by \
             `open(path).read()`, and counted by `KmerCounter(path)`",
            String::from_utf8_lossy(&letters[..letters.len().min(60)]),
            char::from(wrong)
        ))),
        _ => Ok(()),
    }
}

fn no_sequence(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("a sequence is a `str`, `bytes` or an array of `uint8`, not `{name}`"))
}

/// Letters collected from an iterable before they are inserted.
const GATHERED: usize = 1 << 26;

/// Many sequences.
#[derive(Default)]
pub struct Sequences {
    letters: Vec<&'static [u8]>,
    owners: Vec<Owner>,
    /// Total number of letters.
    total: usize,
    /// Whether each place has a sequence; `None` without nulls.
    present: Option<Vec<bool>>,
}

impl Sequences {
    /// Reads the sequences of an array, a list or another iterable.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Sequences> {
        if let Some(all) = Sequences::of_array(object)? {
            return Ok(all);
        }
        let (mut all, mut present) = (Sequences::default(), Vec::new());
        for item in object.try_iter().map_err(|_| no_sequences(object))? {
            let item = item?;
            present.push(!is_null(&item)?);
            if present.ends_with(&[true]) {
                all.push(Letters::of(&item)?);
            }
        }
        all.present = Some(present).filter(|present| present.contains(&false));
        Ok(all)
    }

    /// Calls `work` with the sequences of an array, or with groups of sequences of an iterable.
    pub fn each_part(object: &Bound<'_, PyAny>, work: &mut dyn FnMut(&Sequences) -> PyResult<()>) -> PyResult<()> {
        if let Some(all) = Sequences::of_array(object)? {
            return work(&all);
        }
        let mut gathered = Sequences::default();
        for item in object.try_iter().map_err(|_| no_sequences(object))? {
            let item = item?;
            if is_null(&item)? {
                continue;
            }
            gathered.push(Letters::of(&item)?);
            if gathered.total >= GATHERED {
                work(&std::mem::take(&mut gathered))?;
            }
        }
        work(&gathered)
    }

    /// Reads the sequences of an array; `None` for other objects.
    fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Sequences>> {
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        if Letters::of_one(object)?.is_some() {
            return Err(PyTypeError::new_err("one sequence where many are expected: use `add`, or pass a list of it"));
        }
        if let Ok(buffer) = PyUntypedBuffer::get(object)
            && buffer.dimensions() == 2
            && has_letters(&buffer)
        {
            if is_masked(object)? {
                return Err(masked_letters());
            }
            let (rows, columns) = (buffer.shape()[0], buffer.shape()[1]);
            let Letters { letters, owner } = Letters::of_buffer(buffer)?;
            let letters: Vec<_> = (0..rows).map(|row| &letters[row * columns..(row + 1) * columns]).collect();
            return Ok(Some(Sequences { total: rows * columns, letters, owners: vec![owner], present: None }));
        }
        if is_one_key(object) {
            return Err(no_sequences(object)); // an integer
        }
        match Batch::of_array(object)? {
            Some(Batch::Host(parts)) => Sequences::of_strings(parts).map(Some),
            Some(Batch::Device(_)) => Err(PyTypeError::new_err(
                "sequences on a device go in by `add`, and are asked by `contains_windows`: letters of one dimension",
            )),
            None => Ok(None),
        }
    }

    fn of_strings(parts: Vec<ArrayKeys>) -> PyResult<Sequences> {
        let mut all = Sequences::default();
        let has_nulls = parts.iter().any(|part| part.present().is_some());
        let mut present = Vec::new();
        for part in parts {
            match part.keys() {
                HostKeys::Strings(strings) => {
                    strings.iter().try_for_each(|letters| expect_letters(letters))?;
                    all.total += strings.iter().map(|letters| letters.len()).sum::<usize>();
                    // SAFETY: the array moves to the owners, and its strings stay in place.
                    all.letters.extend(strings.iter().map(|letters| unsafe { held(letters) }));
                }
                _ if part.count() == 0 => {}
                _ => {
                    return Err(PyTypeError::new_err(
                        "sequences: pass strings or arrays of `uint8`, not other integers",
                    ));
                }
            }
            if has_nulls {
                present.extend(part.present().map_or_else(|| vec![true; part.count()], <[bool]>::to_vec));
            }
            all.owners.push(Owner::Array(part));
        }
        all.present = has_nulls.then_some(present);
        Ok(all)
    }

    fn push(&mut self, one: Letters) {
        self.total += one.letters.len();
        self.letters.push(one.letters);
        self.owners.push(one.owner);
    }

    /// Returns the sequences, without nulls.
    pub fn get(&self) -> &[&[u8]] {
        &self.letters
    }

    /// Returns the number of places, sequences and nulls.
    pub fn len(&self) -> usize {
        self.present.as_ref().map_or(self.letters.len(), Vec::len)
    }

    /// Returns one answer per place: the answers of the sequences, and the default for nulls.
    pub fn spread<T: Default>(&self, answers: Vec<T>) -> Vec<T> {
        match &self.present {
            None => answers,
            Some(present) => {
                let mut answers = answers.into_iter();
                let answer = |&is_there| if is_there { answers.next().unwrap_or_default() } else { T::default() };
                present.iter().map(answer).collect()
            }
        }
    }
}

/// Letters between two checks of signals.
const AT_ONCE: usize = 1 << 21;

/// Calls `work` with ranges of the windows of `span` letters in a sequence, and the range of their letters. Between two
/// ranges, signals such as Ctrl-C are handled.
pub fn each_stretch(
    py: Python<'_>,
    letters: usize,
    span: usize,
    mut work: impl FnMut(Range<usize>, Range<usize>) -> PyResult<()>,
) -> PyResult<()> {
    let windows = (letters + 1).saturating_sub(span);
    for begin in (0..windows).step_by(AT_ONCE) {
        if begin > 0 {
            py.check_signals()?;
        }
        let end = windows.min(begin + AT_ONCE);
        work(begin..end, begin..end + span - 1)?;
    }
    Ok(())
}

/// Calls `work` with groups of fragments of sequences, which together have the same k-mers, with the number of each
/// fragment's sequence and the number of letters. Between two groups, signals are handled.
pub fn each_group<'a>(
    py: Python<'_>,
    sequences: &[&'a [u8]],
    k: usize,
    mut work: impl FnMut(&[&'a [u8]], &[usize], usize) -> PyResult<()>,
) -> PyResult<()> {
    let (mut fragments, mut owners, mut total) = (Vec::new(), Vec::new(), 0);
    for (owner, letters) in sequences.iter().enumerate() {
        each_stretch(py, letters.len(), k, |_, stretch| {
            if total > 0 && total + stretch.len() > AT_ONCE {
                work(&fragments, &owners, total)?;
                py.check_signals()?;
                fragments.clear();
                owners.clear();
                total = 0;
            }
            total += stretch.len();
            fragments.push(&letters[stretch]);
            owners.push(owner);
            Ok(())
        })?;
    }
    work(&fragments, &owners, total)
}

fn no_sequences(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`{name}` holds no sequences: pass a list of `str`, `bytes` or arrays of `uint8`, or an array of strings"
    ))
}

/// Returns the canonical minimizers of a sequence of DNA: in each window of `w` consecutive k-mers the k-mer with the
/// least hash. Both strands have the same ones if `k + w` is even.
///
/// `sequence` is a `str`, `bytes` or an array of `uint8`; windows contain only A, C, G and T, in either case. The
/// result is two arrays of `uint64`: the position of each minimizer, ascending, and the smaller of the k-mer and its
/// reverse complement, as an integer of `KmerCounter`: 2 bits per base, the first base highest, A 0, C 1, G 2, T 3;
/// above 32 bases they are a list of `int`.
///
/// - `k`: 1 to 63 bases. `w`: 1 to 64 k-mers.
/// - `rotation`: number of bits that the hash is rotated per base; 7 gives the minimizers of the crate
///   `simd-minimizers`, 1 those of Deacon's indexes.
///
/// >>> import warpset
/// >>> positions, kmers = warpset.minimizers("ACGTTGCATTNGACCAGT", k=5, w=3)
/// >>> other = warpset.minimizers(b"ACTGGTCNAATGCAACGT", k=5, w=3)   # the other strand
/// >>> kmers.tolist() == other[1].tolist()[::-1], max(positions.tolist()) < 14
/// (True, True)
#[pyfunction]
#[pyo3(signature = (sequence, *, k=31, w=15, rotation=7))]
pub fn minimizers(
    py: Python<'_>,
    sequence: &Bound<'_, PyAny>,
    k: u32,
    w: u32,
    rotation: u32,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let scheme = Scheme::new(k, w).ok_or(Error::InvalidScheme { k, w }).map_err(Failure::from)?.rotated_by(rotation);
    let minimizers = Minimizers::<u128>::with_scheme(scheme).map_err(Failure::from)?;
    let letters = Letters::of(sequence)?;
    let (bytes, k) = (letters.get(), K::new(k).map_err(Failure::from)?);
    let (mut positions, span) = (Vec::new(), (k.get() + w - 1) as usize);
    each_stretch(py, bytes.len(), span, |_, stretch| {
        Ok(run(py, Some(Threads(1)), stretch.len(), || {
            let before = positions.len();
            minimizers.positions_into(&bytes[stretch.clone()], &mut positions);
            positions[before..].iter_mut().for_each(|position| *position += stretch.start);
            Ok(())
        })?)
    })?;
    // Among equal k-mers, a later window may choose an earlier position.
    positions.sort_unstable();
    positions.dedup();
    let begins: Vec<u64> = positions.iter().map(|&begin| begin as u64).collect();
    let kmers = match k.is_long() {
        true => kmers_at::<u128>(py, bytes, &positions, k)?.into_py_any(py)?,
        false => array(py, &kmers_at::<u64>(py, bytes, &positions, k)?)?,
    };
    Ok((array(py, &begins)?, kmers))
}

/// Returns the canonical k-mers at positions of a sequence.
fn kmers_at<W: Word>(py: Python<'_>, bytes: &[u8], positions: &[usize], k: K) -> Result<Vec<W>> {
    run(py, Some(Threads(1)), bytes.len(), || {
        let kmer = |&begin: &usize| Ok(canonical(&bytes[begin..begin + k.get() as usize], k)?);
        positions.iter().map(kmer).collect()
    })
}
