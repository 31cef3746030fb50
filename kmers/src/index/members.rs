//! What an index holds its minimizers in. A new kind of set or filter is a variant here, and a number in `format`.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_base::file::{HEADER_BYTES, MappedWords};
use warpset_base::words::AlignedWords;
use warpset_fuse::{BinaryFuse16, BinaryFuse32};
use warpset_sequence::{SequenceFilter, SequenceFilterView};
use warpset_static::{Filter, StaticSet, StaticSetView};

use super::lines::Lines;
use super::sequence;

/// How an index answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexKind {
    /// Exactly, in 80.4 bits per minimizer: a [`StaticSet`], and a filter in front of it that turns most others away.
    #[default]
    Exact,
    /// With a rate of false positives of 2^-16, in 18.1 bits per minimizer: a [`BinaryFuse16`].
    Fuse16,
    /// With a rate of false positives of 2^-32, in 36.1 bits per minimizer: a [`BinaryFuse32`].
    Fuse32,
    /// All k-mers instead of minimizers, in 16 bits per k-mer unless told otherwise, with a rate of false positives
    /// from 10^-4 (a genome full of repeats) to 10^-6 (random bases) for k = 31: a [`SequenceFilter`]. Such an index
    /// has `w` = 1: every k-mer counts, each time that it occurs in a read.
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
    /// The k-mers of an index that Deacon made.
    Lines(Lines),
    Static(StaticSet<u64>),
    Fuse16(BinaryFuse16),
    Fuse32(BinaryFuse32),
    Sequences(SequenceFilter),
    Mapped(Mapped),
}

/// Words of a front from which on huge pages pay: what processors have translations of.
const LEAST_COPIED: usize = 1 << 20;

/// A saved index in a memory-mapped file: a header, then the saved structure, which has been looked at.
pub(crate) struct Mapped {
    pub(crate) file: MappedWords<u64>,
    pub(crate) kind: IndexKind,
    /// Words of what turns k-mers away, between the header and the structure.
    front: usize,
    /// A copy of these words in huge pages, made once enough k-mers have been asked for to pay for it.
    copy: OnceLock<Option<AlignedWords<u64>>>,
    asked: AtomicU64,
}

impl Mapped {
    pub(crate) fn new(file: MappedWords<u64>, kind: IndexKind, front: usize) -> Mapped {
        Mapped { file, kind, front, copy: OnceLock::new(), asked: AtomicU64::new(0) }
    }

    /// The words of [`front`](Mapped::front), or their copy, to look up `kmers` k-mers. A file has pages of 4 KiB, so
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

    /// The saved structure.
    pub(crate) fn structure(&self) -> &[u8] {
        self.file.bytes().get(HEADER_BYTES + 8 * self.front..).unwrap_or_default()
    }

    /// The words of what turns k-mers away; none of filters.
    pub(crate) fn front(&self) -> &[u64] {
        let words: &[u64] = self.file.as_ref();
        words.get(HEADER_BYTES / 8..HEADER_BYTES / 8 + self.front).unwrap_or_default()
    }

    /// The filter of all k-mers, of an index that is one.
    fn sequences(&self) -> Option<SequenceFilterView<'_>> {
        let view = || SequenceFilterView::from_bytes_unverified(self.structure()).ok();
        (self.kind == IndexKind::Sequences).then(view).flatten()
    }

    fn contains_into(&self, kmers: &[u64], found: &mut [bool]) {
        use warpset_fuse::View;
        let bytes = self.structure();
        // The same bytes had a view when they were mapped; nothing is found in others.
        let done = match self.kind {
            IndexKind::Exact => StaticSetView::from_bytes_unverified(bytes)
                .is_ok_and(|view: StaticSetView<'_, u64>| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Fuse16 => View::<u16>::from_bytes_unverified(bytes)
                .is_ok_and(|view| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Fuse32 => View::<u32>::from_bytes_unverified(bytes)
                .is_ok_and(|view| view.contains_bulk_into(kmers, found).is_ok()),
            IndexKind::Sequences => {
                self.sequences().map(|filter| sequence::contains_into(filter, kmers, found)).is_some()
            }
        };
        if !done {
            found.fill(false);
        }
    }
}

impl Members {
    pub(crate) fn kind(&self) -> IndexKind {
        match self {
            Members::Lines(_) | Members::Static(_) => IndexKind::Exact,
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
            Members::Fuse16(filter) => filter.memory_bytes(),
            Members::Fuse32(filter) => filter.memory_bytes(),
            Members::Sequences(filter) => filter.memory_bytes(),
            Members::Mapped(mapped) => {
                let copied = mapped.copy.get().is_some_and(Option::is_some);
                mapped.file.bytes().len() as u64 + if copied { 8 * mapped.front as u64 } else { 0 }
            }
        }
    }

    /// Whether each k-mer is there; few enough that it stays on this thread. The slices have the same length.
    pub(crate) fn contains_into(&self, kmers: &[u64], found: &mut [bool]) {
        debug_assert_eq!(kmers.len(), found.len());
        let same_length = "slices of the same length";
        match self {
            Members::Lines(lines) => lines.contains_into(kmers, found),
            Members::Static(set) => set.view().contains_bulk_into(kmers, found).expect(same_length),
            Members::Fuse16(filter) => filter.view().contains_bulk_into(kmers, found).expect(same_length),
            Members::Fuse32(filter) => filter.view().contains_bulk_into(kmers, found).expect(same_length),
            Members::Sequences(filter) => sequence::contains_into(filter.view(), kmers, found),
            Members::Mapped(mapped) => mapped.contains_into(kmers, found),
        }
    }

    /// All k-mers; `None` of a filter, which does not have them.
    pub(crate) fn kmers(&self) -> Option<Vec<u64>> {
        match self {
            Members::Lines(lines) => Some(lines.iter().collect()),
            Members::Static(set) => Some(set.view().keys().collect()),
            Members::Mapped(mapped) if mapped.kind == IndexKind::Exact => {
                let view = StaticSetView::<u64>::from_bytes_unverified(mapped.structure()).ok()?;
                Some(view.keys().collect())
            }
            Members::Fuse16(_) | Members::Fuse32(_) | Members::Sequences(_) | Members::Mapped(_) => None,
        }
    }

    /// The filter of all k-mers, of an index that is one.
    pub(crate) fn sequences(&self) -> Option<SequenceFilterView<'_>> {
        match self {
            Members::Sequences(filter) => Some(filter.view()),
            Members::Mapped(mapped) => mapped.sequences(),
            Members::Lines(_) | Members::Static(_) | Members::Fuse16(_) | Members::Fuse32(_) => None,
        }
    }
}
