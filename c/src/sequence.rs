//! DNA: filters of k-mers, and minimizers.

use warpset::sequence::{Minimizers, Threshold};

use crate::error::{Failure, Result, guard, warpset_status, warpset_status as Status};
use crate::handle::{content, hand_out};
use crate::keys::{Batch, HostKeys, array, array_mut, read, warpset_keys};
use crate::object::warpset_structure;
use crate::rows::{Rows, warpset_rows};

/// Returns the strings of a batch as sequences.
fn letters<'a>(batch: &'a Batch<'_>) -> Result<&'a [&'a [u8]]> {
    match batch.keys() {
        HostKeys::Strings(sequences) => Ok(sequences),
        _ if batch.len() == 0 => Ok(&[]),
        _ => Err(Failure::new(Status::WrongType, "sequences are strings of letters: pass one of the string types")),
    }
}

/// Inserts the k-mers of sequences, in letters A, C, G and T of either case. K-mers with other letters are skipped, and
/// a k-mer equals its reverse complement.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sequence_filter_insert(
    structure: *const warpset_structure,
    sequences: *const warpset_keys,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(sequences)?);
        held.write()?.insert_sequences(letters(&batch)?)
    })
}

/// Writes the numbers of k-mers of each sequence: those that may be in the filter to `found[i]`, all to `kmers[i]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sequence_filter_count(
    structure: *const warpset_structure,
    sequences: *const warpset_keys,
    found: *mut u64,
    kmers: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(sequences)?);
        let (found, kmers) = (array_mut(found, batch.len(), "found")?, array_mut(kmers, batch.len(), "kmers")?);
        let hits = held.read()?.hits(letters(&batch)?)?;
        let (of_found, of_kmers): (Vec<u64>, Vec<u64>) = hits.into_iter().unzip();
        batch.answer(found, 0, |_, found| {
            found.copy_from_slice(&of_found);
            Ok(())
        })?;
        batch.answer(kmers, 0, |_, kmers| {
            kmers.copy_from_slice(&of_kmers);
            Ok(())
        })
    })
}

/// Writes whether at least `min_hits` k-mers of each sequence, and the share `min_share` of its k-mers, may be in the
/// filter: `answers[i]` is 1 or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sequence_filter_matches(
    structure: *const warpset_structure,
    sequences: *const warpset_keys,
    min_hits: u64,
    min_share: f64,
    answers: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, batch) = (content(structure)?, read(sequences)?);
        let answers = array_mut(answers, batch.len(), "answers")?;
        let threshold = Threshold::at_least(min_hits).and_fraction(min_share)?;
        let hits = held.read()?.hits(letters(&batch)?)?;
        batch.answer(answers, 0, |_, answers| {
            for (answer, (found, kmers)) in answers.iter_mut().zip(hits) {
                *answer = threshold.is_met(warpset::sequence::Hits { found, kmers }).into();
            }
            Ok(())
        })
    })
}

/// Writes whether the k-mer that begins at each letter of a sequence may be in the filter: `answers[i]` is 1 or 0, for
/// `len - k + 1` k-mers, none if the sequence is shorter than a k-mer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_sequence_filter_windows(
    structure: *const warpset_structure,
    letters: *const u8,
    len: usize,
    answers: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (object, letters) = (content(structure)?.read()?, array(letters, len, "letters")?);
        let answers = array_mut(answers, (len + 1).saturating_sub(object.k()? as usize), "answers")?;
        let windows = object.windows(letters)?;
        answers.iter_mut().zip(windows).for_each(|(answer, window)| *answer = window.into());
        Ok(())
    })
}

/// Lists the canonical minimizers of sequences, for `k` letters each and windows of `w` k-mers: one list per sequence,
/// with the 2-bit k-mers as keys and their positions as values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_minimizers_find(
    k: u32,
    w: u32,
    sequences: *const warpset_keys,
    out: *mut *mut warpset_rows,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (batch, minimizers) = (read(sequences)?, Minimizers::new(k, w)?);
        hand_out(out, || {
            let mut rows = Rows { offsets: vec![0], ..Rows::default() };
            for sequence in letters(&batch)? {
                for found in minimizers.find(sequence) {
                    rows.keys.push(found.kmer);
                    rows.values.push(found.position as u64);
                }
                rows.offsets.push(rows.keys.len() as u64);
            }
            Ok(rows)
        })
    })
}
