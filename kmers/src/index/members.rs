//! Sets and filters that hold the minimizers of an index. A new kind is a variant here, and a number in `format`.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_base::file::{HEADER_BYTES, MappedWords};
use warpset_base::words::AlignedWords;
use warpset_fuse::{BinaryFuse16, BinaryFuse32};
use warpset_sequence::{SequenceFilter, SequenceFilterView};
use warpset_static::{Filter, StaticSet, StaticSetView};

use super::front::PART;
use super::lines::Lines;
use super::sequence;
use crate::long::{self, Long};
use crate::word::{Word, short};

/// Kind of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexKind {
    /// Exact answers, in 80.4 bits per minimizer, or 136 above 32 bases: a [`StaticSet`] or an ascending list, and a
    /// filter in front of it that rejects most others.
    #[default]
    Exact,
    /// False-positive rate of 2^-16, in 18.9 bits per minimizer: a [`BinaryFuse16`].
    Fuse16,
    /// False-positive rate of 2^-32, in 37.7 bits per minimizer: a [`BinaryFuse32`].
    Fuse32,
    /// All k-mers instead of minimizers, in 16 bits per k-mer by default, with a false-positive rate from 10^-4 (a
    /// genome full of repeats) to 10^-6 (random bases) for k = 31: a [`SequenceFilter`]. Such an index has `w` = 1:
    /// every k-mer of a read counts, each time that it occurs.
    Sequences,
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexKind::Exact => "exact",
            IndexKind::Fuse16 => "fuse16",
            IndexKind::Fuse32 => "fuse32",
            IndexKind::Sequences => "sequences",
        })
    }
}

pub(crate) enum Members {
    /// K-mers of an index that Deacon made.
    Lines(Lines),
    Static(StaticSet<u64>),
    /// K-mers of more than 32 bases.
    Long(Long),
    Fuse16(BinaryFuse16),
    Fuse32(BinaryFuse32),
    Sequences(SequenceFilter),
    Mapped(Mapped),
}

/// Words of a front above which huge pages pay: the reach of a processor's address translations.
const LEAST_COPIED: usize = 1 << 20;

/// Saved index in a memory-mapped file: a header, then the saved structure. Both headers have been checked.
pub(crate) struct Mapped {
    pub(crate) file: MappedWords<u64>,
    pub(crate) kind: IndexKind,
    /// Whether k-mers have more than 32 bases.
    is_long: bool,
    /// Words of the filter in front, between the header and the structure.
    front: usize,
    /// Copy of these words in huge pages, made after enough lookups to pay for it.
    copy: OnceLock<Option<AlignedWords<u64>>>,
    asked: AtomicU64,
}

impl Mapped {
    pub(crate) fn new(file: MappedWords<u64>, (kind, is_long): (IndexKind, bool), front: usize) -> Mapped {
        Mapped { file, kind, is_long, front, copy: OnceLock::new(), asked: AtomicU64::new(0) }
    }

    /// Returns the words of [`front`](Mapped::front), or their copy, for `kmers` lookups. A file has pages of 4 KiB, so
    /// each lookup misses the translation of its address; making the copy takes as long as some lookups per ten words.
    pub(crate) fn front_for(&self, kmers: usize) -> &[u64] {
        if let Some(copy) = self.copy.get() {
            return copy.as_ref().map_or(self.front(), AlignedWords::as_slice);
        }
        let words = self.front();
        let before = self.asked.fetch_add(kmers as u64, Ordering::Relaxed);
        let pays = words.len() as u64 / 2;
        // One thread copies, and the others go on meanwhile.
        if before < pays && before + kmers as u64 >= pays && words.len() >= LEAST_COPIED {
            let copy = AlignedWords::zeroed(words.len() as u64).ok().map(|copy| {
                let mut copy = copy.in_huge_pages();
                copy.as_mut_slice().copy_from_slice(words);
                copy
            });
            let _ = self.copy.set(copy);
        }
        words
    }

    /// Borrows the saved structure.
    pub(crate) fn structure(&self) -> &[u8] {
        self.file.bytes().get(HEADER_BYTES + 8 * self.front..).unwrap_or_default()
    }

    /// Borrows the words of the filter in front; none for filters.
    pub(crate) fn front(&self) -> &[u64] {
        let words: &[u64] = self.file.as_ref();
        words.get(HEADER_BYTES / 8..HEADER_BYTES / 8 + self.front).unwrap_or_default()
    }

    /// Returns the filter of all k-mers if the index is one.
    fn sequences(&self) -> Option<SequenceFilterView<'_>> {
        let view = || SequenceFilterView::from_bytes_unverified(self.structure()).ok();
        (self.kind == IndexKind::Sequences).then(view).flatten()
    }

    /// Returns the set of k-mers of more than 32 bases if the index is one.
    fn long(&self) -> Option<long::View<'_>> {
        let view = || long::View::from_bytes_unverified(self.structure()).ok();
        (self.is_long && self.kind == IndexKind::Exact).then(view).flatten()
    }

    fn contains_into<W: Word>(&self, kmers: &[W], found: &mut [bool]) {
        if let Some(filter) = self.sequences() {
            return sequence::contains_into(filter, kmers, found);
        }
        if let Some(long) = self.long() {
            return contains_long(long, kmers, found);
        }
        by_keys(kmers, found, |kmers, found| self.contains_keys(kmers, found));
    }

    fn contains_keys(&self, kmers: &[u64], found: &mut [bool]) {
        use warpset_fuse::View;
        let bytes = self.structure();
        // These bytes had a view when they were mapped; other bytes contain nothing.
        let done = match self.kind {
            IndexKind::Exact => StaticSetView::from_bytes_unverified(bytes)
                .is_ok_and(|view: StaticSetView<'_, u64>| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Fuse16 => View::<u16>::from_bytes_unverified(bytes)
                .is_ok_and(|view| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Fuse32 => View::<u32>::from_bytes_unverified(bytes)
                .is_ok_and(|view| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Sequences => false,
        };
        if !done {
            found.fill(false);
        }
    }
}

impl Members {
    pub(crate) fn kind(&self) -> IndexKind {
        match self {
            Members::Lines(_) | Members::Static(_) | Members::Long(_) => IndexKind::Exact,
            Members::Fuse16(_) => IndexKind::Fuse16,
            Members::Fuse32(_) => IndexKind::Fuse32,
            Members::Sequences(_) => IndexKind::Sequences,
            Members::Mapped(mapped) => mapped.kind,
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Members::Lines(lines) => lines.memory_bytes(),
            Members::Static(set) => set.memory_bytes(),
            Members::Long(long) => long.memory_bytes(),
            Members::Fuse16(filter) => filter.memory_bytes(),
            Members::Fuse32(filter) => filter.memory_bytes(),
            Members::Sequences(filter) => filter.memory_bytes(),
            Members::Mapped(mapped) => {
                let copied = mapped.copy.get().is_some_and(Option::is_some);
                mapped.file.bytes().len() as u64 + if copied { 8 * mapped.front as u64 } else { 0 }
            }
        }
    }

    /// Whether each k-mer, as long as those of the index, is there, for numbers that are small enough for one thread.
    /// The slices have equal lengths.
    pub(crate) fn contains_into<W: Word>(&self, kmers: &[W], found: &mut [bool]) {
        debug_assert_eq!(kmers.len(), found.len());
        let same_length = "slices of the same length";
        match self {
            Members::Long(long) => contains_long(long.view(), kmers, found),
            Members::Lines(lines) => by_keys(kmers, found, |kmers, found| lines.contains_into(kmers, found)),
            Members::Static(set) => by_keys(kmers, found, |kmers, found| {
                set.view().contains_bulk_into(kmers, found).expect(same_length);
            }),
            Members::Fuse16(filter) => by_keys(kmers, found, |kmers, found| {
                filter.view().contains_bulk_into(kmers, found).expect(same_length);
            }),
            Members::Fuse32(filter) => by_keys(kmers, found, |kmers, found| {
                filter.view().contains_bulk_into(kmers, found).expect(same_length);
            }),
            Members::Sequences(filter) => sequence::contains_into(filter.view(), kmers, found),
            Members::Mapped(mapped) => mapped.contains_into(kmers, found),
        }
    }

    /// Returns all k-mers, in numbers that hold them; `None` for a filter, which does not have them.
    pub(crate) fn kmers<W: Word>(&self) -> Option<Vec<W>> {
        match self {
            Members::Lines(lines) => Some(lines.iter().map(W::from).collect()),
            Members::Static(set) => Some(set.view().keys().map(W::from).collect()),
            Members::Long(long) => Some(long.view().iter().map(|(kmer, _)| W::of(kmer)).collect()),
            Members::Mapped(mapped) if mapped.kind == IndexKind::Exact => {
                if let Some(long) = mapped.long() {
                    return Some(long.iter().map(|(kmer, _)| W::of(kmer)).collect());
                }
                let view = StaticSetView::<u64>::from_bytes_unverified(mapped.structure()).ok()?;
                Some(view.keys().map(W::from).collect())
            }
            Members::Fuse16(_) | Members::Fuse32(_) | Members::Sequences(_) | Members::Mapped(_) => None,
        }
    }

    /// Returns the set of k-mers of more than 32 bases if the index is one.
    pub(crate) fn long(&self) -> Option<long::View<'_>> {
        match self {
            Members::Long(long) => Some(long.view()),
            Members::Mapped(mapped) => mapped.long(),
            _ => None,
        }
    }

    /// Returns the filter of all k-mers if the index is one.
    pub(crate) fn sequences(&self) -> Option<SequenceFilterView<'_>> {
        match self {
            Members::Sequences(filter) => Some(filter.view()),
            Members::Mapped(mapped) => mapped.sequences(),
            Members::Lines(_) | Members::Static(_) | Members::Long(_) | Members::Fuse16(_) | Members::Fuse32(_) => None,
        }
    }
}

/// Looks up k-mers of more than 32 bases.
fn contains_long<W: Word>(long: long::View<'_>, kmers: &[W], found: &mut [bool]) {
    match bytemuck::try_cast_slice(kmers) {
        Ok(kmers) if W::BITS == u128::BITS => long.contains_into(kmers, found),
        _ => found.fill(false),
    }
}

/// Looks up the keys of k-mers.
fn by_keys<W: Word>(kmers: &[W], found: &mut [bool], ask: impl Fn(&[u64], &mut [bool])) {
    if let Some(kmers) = short(kmers) {
        return ask(kmers, found);
    }
    let mut keys = [0; PART];
    for (kmers, found) in kmers.chunks(PART).zip(found.chunks_mut(PART)) {
        keys.iter_mut().zip(kmers).for_each(|(key, kmer)| *key = kmer.key(0));
        ask(&keys[..kmers.len()], found);
    }
}
