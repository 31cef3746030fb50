//! Sequences as arguments of filters, and their division into tasks for threads.

use std::ops::Range;

use super::packed::PackedSequences;

/// Sequences for bulk operations: a slice, an array or a vector of items that give letters as bytes, or
/// [`PackedSequences`]. Sealed.
pub trait Sequences: Sync + sealed::Sealed {
    /// Returns the number of sequences.
    fn count(&self) -> usize;
    /// Returns the number of letters of sequence `i`.
    #[doc(hidden)]
    fn letters_of(&self, i: usize) -> usize;
    /// Appends a range of letters of sequence `i` as a sequence; `range.start` is a multiple of 32.
    #[doc(hidden)]
    fn append(&self, i: usize, range: Range<usize>, to: &mut PackedSequences);
}

mod sealed {
    pub trait Sealed {}
    impl<S: AsRef<[u8]>> Sealed for [S] {}
    impl<S: AsRef<[u8]>> Sealed for Vec<S> {}
    impl<S: AsRef<[u8]>, const N: usize> Sealed for [S; N] {}
    impl Sealed for super::PackedSequences {}
}

macro_rules! of_letters {
    ($([$($generics:tt)*] $of:ty;)*) => {$(
        impl<S: AsRef<[u8]> + Sync $($generics)*> Sequences for $of {
            fn count(&self) -> usize {
                self.len()
            }

            fn letters_of(&self, i: usize) -> usize {
                self[i].as_ref().len()
            }

            fn append(&self, i: usize, range: Range<usize>, to: &mut PackedSequences) {
                to.push(&self[i].as_ref()[range]);
            }
        }
    )*};
}
of_letters! {
    [] [S];
    [] Vec<S>;
    [, const N: usize] [S; N];
}

impl Sequences for PackedSequences {
    fn count(&self) -> usize {
        self.len()
    }

    fn letters_of(&self, i: usize) -> usize {
        self.letters(i)
    }

    fn append(&self, i: usize, range: Range<usize>, to: &mut PackedSequences) {
        let words = self.first_word(i) + range.start / 32..self.first_word(i) + range.end.div_ceil(32);
        to.push_words(&self.bases()[words.clone()], Some(&self.breaks()[words]), range.len());
    }
}

/// Range of windows of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Number of the sequence.
    pub sequence: usize,
    /// First window of the piece, a multiple of 32.
    pub first: usize,
    /// End of the range of windows.
    pub end: usize,
}

/// Divides all sequences into pieces in order, and these into tasks of about `positions` positions, a multiple of 32.
/// Returns the pieces, and the end of each task among them.
pub(super) fn tasks<S: Sequences + ?Sized>(sequences: &S, k: usize, positions: usize) -> (Vec<Piece>, Vec<usize>) {
    let (mut pieces, mut ends, mut taken) = (Vec::new(), Vec::new(), 0);
    for sequence in 0..sequences.count() {
        let windows = (sequences.letters_of(sequence) + 1).saturating_sub(k);
        let mut first = 0;
        while first < windows {
            let end = windows.min(first + positions);
            pieces.push(Piece { sequence, first, end });
            taken += end - first + k;
            if taken >= positions {
                ends.push(pieces.len());
                taken = 0;
            }
            first = end;
        }
    }
    if ends.last().copied().unwrap_or(0) < pieces.len() {
        ends.push(pieces.len());
    }
    (pieces, ends)
}

impl Piece {
    /// Appends the letters of the windows to `to`.
    pub(super) fn append<S: Sequences + ?Sized>(self, sequences: &S, k: usize, to: &mut PackedSequences) {
        sequences.append(self.sequence, self.first..self.end + k - 1, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_is_in_one_piece() {
        for lengths in [vec![], vec![0, 8, 9, 1000, 5, 64 + 8, 65 + 8, 3], vec![9; 300]] {
            let sequences: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![b'A'; len]).collect();
            let (pieces, ends) = tasks(&sequences, 9, 64);
            let mut at = pieces.iter();
            for (i, &len) in lengths.iter().enumerate() {
                let mut next = 0;
                while next + 9 <= len {
                    let piece = at.next().unwrap();
                    assert_eq!((piece.sequence, piece.first), (i, next));
                    assert!(piece.end > next && piece.end <= len - 8 && piece.first.is_multiple_of(32));
                    next = piece.end;
                }
            }
            assert!(at.next().is_none() && ends.is_sorted() && ends.last().copied().unwrap_or(0) == pieces.len());
        }
    }
}
