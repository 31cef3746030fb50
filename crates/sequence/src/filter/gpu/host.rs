//! Host sequences, packed on all threads and copied to the device in chunks.

use std::ops::Range;

use bytemuck::Pod;
use warpset_base::bitmap::Bitmap;
use warpset_base::parallel;
use warpset_gpu::batch::upload_many;
use warpset_gpu::{DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::sequence::filter::sequence_count;
use warpset_kernels::sequence::tile::BLOCK;

use super::{Packed, SequenceFilter};
use crate::filter::packed::PackedSequences;
use crate::filter::sequences::{Piece, Sequences, tasks};
use crate::filter::view::matching;
use crate::{Error, Hits, Threshold};

/// Positions per task: packed by one thread, sent in one copy.
const TASK: usize = 1 << 20;
/// Tasks per chunk: 2^26 positions, 24 MiB, unless sequences are short.
const CHUNK_TASKS: usize = 1 << 6;

/// Division of sequences into pieces, of pieces into tasks, and of tasks into chunks.
struct Plan<'s, S: ?Sized> {
    sequences: &'s S,
    k: usize,
    pieces: Vec<Piece>,
    /// Range of pieces of each task.
    tasks: Vec<Range<usize>>,
    /// Words of the largest chunk.
    most_words: usize,
}

impl<'s, S: Sequences + ?Sized> Plan<'s, S> {
    fn new(sequences: &'s S, k: usize) -> Plan<'s, S> {
        let (pieces, ends) = tasks(sequences, k, TASK);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let tasks: Vec<Range<usize>> = starts.zip(&ends).map(|(start, &end)| start..end).collect();
        let words = |tasks: &[Range<usize>]| {
            let pieces = tasks.iter().flat_map(|task| &pieces[task.clone()]);
            pieces.map(|piece| (piece.end - piece.first + k - 1) / 32 + 1).sum::<usize>()
        };
        let most_words = tasks.chunks(CHUNK_TASKS).map(words).max().unwrap_or(0);
        Plan { sequences, k, pieces, tasks, most_words }
    }

    /// Packs and uploads each chunk in turn, and calls `queue` with the chunk, its pieces, and the first word of each
    /// piece.
    fn each_chunk(
        &self,
        stream: &Stream,
        mut queue: impl FnMut(&[Piece], &[usize], Packed<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut bases, mut breaks) = (stream.alloc_uninit(self.most_words)?, stream.alloc_uninit(self.most_words)?);
        for tasks in self.tasks.chunks(CHUNK_TASKS) {
            // The device still works on the chunk before.
            let parts = parallel::map(tasks, |task| {
                let mut packed = PackedSequences::new();
                let pieces = &self.pieces[task.clone()];
                pieces.iter().for_each(|piece| piece.append(self.sequences, self.k, &mut packed));
                packed
            });
            let (mut firsts, mut words) = (Vec::new(), 0);
            for part in &parts {
                firsts.extend((0..part.len()).map(|i| words + part.first_word(i)));
                words += part.bases().len();
            }
            upload(stream, parts.iter().map(PackedSequences::bases), &mut bases)?;
            upload(stream, parts.iter().map(PackedSequences::breaks), &mut breaks)?;
            let pieces = &self.pieces[tasks[0].start..tasks[tasks.len() - 1].end];
            queue(pieces, &firsts, Packed { bases: bases.slice(..words), breaks: breaks.slice(..words) })?;
        }
        Ok(())
    }
}

/// Copies parts to the device, one after the other. Waits.
fn upload<'p, T: Pod>(
    stream: &Stream,
    parts: impl Iterator<Item = &'p [T]>,
    to: &mut DeviceVec<T>,
) -> Result<(), Error> {
    let mut to: DeviceSliceMut<'_, T> = to.as_mut_slice();
    let mut places = Vec::new();
    for part in parts {
        let (place, rest) = to.split_at_mut(part.len());
        places.push((part, place));
        to = rest;
    }
    Ok(upload_many(stream, places)?)
}

impl SequenceFilter {
    /// Inserts the k-mers of a sequence: of each window of `k` letters that are all bases.
    ///
    /// # Errors
    /// The errors of [`insert_bulk`](Self::insert_bulk).
    pub fn insert(&mut self, letters: &[u8]) -> Result<(), Error> {
        self.insert_bulk(&[letters])
    }

    /// Inserts the k-mers of many sequences.
    ///
    /// If memory runs out, the filter is unchanged. After another error some k-mers may have been inserted, and
    /// inserting all of them again does no harm.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn insert_bulk<S: Sequences + ?Sized>(&mut self, sequences: &S) -> Result<(), Error> {
        let plan = Plan::new(sequences, self.layout.k() as usize);
        if plan.tasks.is_empty() {
            return Ok(());
        }
        self.device.clone().waiting(|stream| {
            plan.each_chunk(stream, |_, _, packed| {
                // SAFETY: this function borrows the filter until the stream has been waited for; the bases are freed or
                // overwritten in stream order.
                unsafe { self.insert_packed_async(stream, packed.bases, packed.breaks) }
            })
        })
    }

    /// Tests each window of `k` letters: one bit per window, set if it is a k-mer that may be in the filter, as
    /// [`crate::SequenceFilter::contains_windows`] does.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn contains_windows(&self, letters: &[u8]) -> Result<Bitmap, Error> {
        Ok(self.contains_windows_bulk(&[letters])?.pop().unwrap_or_default())
    }

    /// Tests the windows of many sequences as [`contains_windows`](Self::contains_windows) does: one bitmap per
    /// sequence.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn contains_windows_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Bitmap>, Error> {
        let plan = Plan::new(sequences, self.layout.k() as usize);
        let mut words: Vec<Vec<u64>> = vec![Vec::new(); sequences.count()];
        let mut windows = vec![0; sequences.count()];
        if !plan.tasks.is_empty() {
            self.device.waiting(|stream| {
                let mut found = stream.alloc_uninit::<u32>(plan.most_words)?;
                let mut bits = vec![0; plan.most_words];
                plan.each_chunk(stream, |pieces, firsts, packed| {
                    // SAFETY: `found` has a word for each word of bases, and only this stream uses it; this function
                    // borrows the filter until the stream has been waited for.
                    unsafe { self.queue_packed(stream, packed, found.global_mut(), None)? };
                    let bits = &mut bits[..packed.bases.len()];
                    stream.download(found.slice(..bits.len()), bits)?;
                    for (piece, &first) in pieces.iter().zip(firsts) {
                        let len = (piece.end - piece.first).div_ceil(32);
                        // Every piece except the last one of a sequence has an even number of words.
                        let pairs = bits[first..first + len].chunks(2);
                        let pairs =
                            pairs.map(|two| u64::from(two[0]) | two.get(1).map_or(0, |&high| u64::from(high) << 32));
                        words[piece.sequence].extend(pairs);
                        windows[piece.sequence] = piece.end;
                    }
                    Ok(())
                })
            })?;
        }
        Ok(words.into_iter().zip(windows).map(|(words, windows)| Bitmap::from_words(words, windows)).collect())
    }

    /// Counts the k-mers of a sequence, and those that may be in the filter.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn count(&self, letters: &[u8]) -> Result<Hits, Error> {
        Ok(self.count_bulk(&[letters])?.pop().unwrap_or_default())
    }

    /// Counts as [`count`](Self::count) does for many sequences: one answer per sequence, in order. Only the counts are
    /// copied back.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn count_bulk<S: Sequences + ?Sized>(&self, sequences: &S) -> Result<Vec<Hits>, Error> {
        let plan = Plan::new(sequences, self.layout.k() as usize);
        if plan.tasks.is_empty() {
            return Ok(vec![Hits::default(); sequences.count()]);
        }
        let mut counts = vec![0; 2 * sequences.count()];
        self.device.waiting(|stream| {
            let mut sums = stream.alloc_zeroed::<u64>(counts.len())?;
            let (mut found, mut kmers) = (stream.alloc_uninit(plan.most_words)?, stream.alloc_uninit(plan.most_words)?);
            plan.each_chunk(stream, |pieces, firsts, packed| {
                let each = pieces.iter().zip(firsts).flat_map(|(piece, first)| {
                    [32 * first, 32 * first + piece.end - piece.first, piece.sequence].map(|number| number as u64)
                });
                let stretches = stream.from_slice(&each.collect::<Vec<u64>>())?;
                let (n, stretches) = (pieces.len(), stretches.global());
                let counts = sums.global_mut();
                // SAFETY: `found` and `kmers` have a word for each word of bases; `counts` has two numbers per
                // sequence, and `stretches` three per piece. Only this stream uses them, and they are freed in its
                // order. This function borrows the filter until the stream has been waited for.
                unsafe {
                    self.queue_packed(stream, packed, found.global_mut(), Some(kmers.global_mut()))?;
                    let (found, kmers) = (found.global(), kmers.global());
                    sequence_count { found, kmers, stretches, n, counts }
                        .launch(stream, self.grid(n, BLOCK as usize / 32))?;
                }
                Ok(())
            })?;
            stream.download(&sums, &mut counts)?;
            Ok::<_, Error>(())
        })?;
        Ok(counts.chunks_exact(2).map(|two| Hits { found: two[0], kmers: two[1] }).collect())
    }

    /// Whether enough k-mers of the sequence may be in the filter.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn matches(&self, letters: &[u8], threshold: Threshold) -> Result<bool, Error> {
        Ok(threshold.is_met(self.count(letters)?))
    }

    /// Tests many sequences as [`matches`](Self::matches) does: one bit per sequence.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn matches_bulk<S: Sequences + ?Sized>(&self, sequences: &S, threshold: Threshold) -> Result<Bitmap, Error> {
        Ok(matching(&self.count_bulk(sequences)?, threshold))
    }
}
