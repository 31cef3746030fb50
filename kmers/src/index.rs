//! Indexes of minimizers: kinds, saving and loading.

mod build;
mod deacon;
mod device;
mod format;
mod front;
mod lines;
mod members;
mod sequence;

use std::fmt;
use std::path::Path;

use warpset_base::words::AlignedWords;
use warpset_core::minimizer::{DEACON_ROTATION, Kmer, MOST_K};
use warpset_gpu::Device;
use warpset_sequence::{Minimizers, Scheme, SequenceFilterView};

use crate::word::Word;
use crate::{Error, K};
use front::{Front, PART, Passed};
use members::Members;

pub use build::Indexing;
pub(crate) use device::{Copied, DeviceWord};
pub(crate) use format::{open, write};
pub use members::IndexKind;

/// Index of the minimizers of sequences, for screening reads ([`Screening::by_index`](crate::Screening::by_index)).
///
/// An index has one k-mer of each window of `w`, selected as [`Minimizers::deacon`] does; an index of kind
/// [`IndexKind::Sequences`] has all k-mers. It is made of sequences or other indexes ([`Indexing`]), or read from a
/// file that [`save`](Index::save) or Deacon wrote.
///
/// ```
/// use warpset_kmers::{Index, IndexKind, Indexing};
///
/// # let folder = tempfile::tempdir()?;
/// # let (fasta, saved) = (folder.path().join("genome.fa"), folder.path().join("genome.index"));
/// # std::fs::write(&fasta, ">g\nGATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG\n")?;
/// let index = Indexing::new(31, 15)?.run(&[fasta])?;
/// index.save(&saved)?;
/// let index = Index::load(&saved)?;
/// assert_eq!((index.k().get(), index.w(), index.kind()), (31, 15, IndexKind::Exact));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Memory: [`IndexKind`] gives the bits per minimizer; exact indexes of Deacon take 81.
pub struct Index {
    k: u32,
    w: u32,
    len: u64,
    members: Members,
    /// Words of the filter in front of an exact index that is not mapped.
    front: Option<AlignedWords<u64>>,
}

/// Checks that an index can have these windows.
fn check(k: u32, w: u32) -> Result<(u32, u32), Error> {
    let is_odd = k % 2 == 1 && w % 2 == 1;
    if is_odd && k <= MOST_K && w <= 63 { Ok((k, w)) } else { Err(Error::InvalidWindow { k, w }) }
}

/// Returns the search for minimizers of an index.
fn minimizers<W: Kmer>(k: u32, w: u32) -> Result<Minimizers<W>, Error> {
    K::new(k)?.within::<W>()?;
    let scheme = Scheme::new(k, w).ok_or(Error::InvalidWindow { k, w })?;
    Minimizers::with_scheme(scheme.rotated_by(DEACON_ROTATION)).map_err(Error::of_index)
}

impl Index {
    /// Reads and checks a file that [`save`](Index::save) wrote; or one of Deacon, exact (version 3) or a binary fuse
    /// filter (version 1), on all threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::NotIndex`] if the file is damaged or no index; [`Error::InvalidWindow`] for an index
    /// of Deacon of more than 63 k-mers; [`Error::Index`] if there is no memory.
    pub fn load(path: impl AsRef<Path>) -> Result<Index, Error> {
        format::load(path.as_ref())
    }

    /// Maps a file that [`save`](Index::save) wrote into memory, and reads only its header. This takes milliseconds,
    /// and processes that map one file share its memory. Damage gives wrong answers and no other harm. Indexes of
    /// Deacon are read instead.
    ///
    /// # Errors
    /// The errors of [`load`](Index::load).
    ///
    /// # Safety
    /// No process changes or truncates the file until the index is dropped. Replacing it, as `save` does, or removing
    /// it is allowed.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Index, Error> {
        // SAFETY: the file does not change while it is mapped, by the contract of this function.
        unsafe { format::map(path.as_ref()) }
    }

    /// Whether [`map`](Index::map) maps a file, and does not read it as those of Deacon.
    pub fn can_be_mapped(path: impl AsRef<Path>) -> bool {
        crate::recognise::head_of(path.as_ref()).is_ok_and(|head| head.starts_with(b"WARPSET\0"))
    }

    /// Writes a file. A regular file of that name is replaced at once at the end.
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Index`] if there is no memory.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        format::save(self, path.as_ref())
    }

    /// Writes a file for Deacon: an exact index as `deacon index build` does, a filter as `deacon index freeze` does,
    /// if it was built [for Deacon](Indexing::for_deacon).
    ///
    /// # Errors
    /// [`Error::Write`], also for a filter without any minimizer, or not built for Deacon; [`Error::NotForDeacon`] for
    /// a sequence filter, and [`Error::LongFilterForDeacon`] for another filter of more than 32 bases.
    pub fn save_for_deacon(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        format::save_for_deacon(self, path.as_ref())
    }

    /// Returns the bases per k-mer.
    pub fn k(&self) -> K {
        K::new(self.k).expect("an index has k from 1 to 63")
    }

    /// Returns the k-mers per window.
    pub fn w(&self) -> u32 {
        self.w
    }

    /// Counts different minimizers; for a sequence filter different k-mers, within 1 % if there are more than a
    /// million.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no minimizers.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the kind of the index.
    pub fn kind(&self) -> IndexKind {
        self.members.kind()
    }

    /// Returns the bytes of memory of the index, or of the mapped file.
    pub fn memory_bytes(&self) -> u64 {
        self.members.memory_bytes() + self.front.as_ref().map_or(0, |words| 8 * words.as_slice().len() as u64)
    }

    /// Returns the search for minimizers with the parameters of the index, as numbers of 64 or 128 bits.
    ///
    /// # Errors
    /// [`Error::InvalidK`] if `u64` is to hold more than 32 bases.
    pub fn minimizers<W: Kmer>(&self) -> Result<Minimizers<W>, Error> {
        minimizers(self.k, self.w)
    }

    /// Whether the index has each of these canonical k-mers, given as by [`Minimizers`]; a filter may also claim
    /// others. K-mers of an index are numbers of 64 bits up to 32 bases, and otherwise of 128; it has no others.
    pub fn contains_bulk<W: Word>(&self, kmers: &[W]) -> Vec<bool> {
        let mut found = vec![false; kmers.len()];
        if self.k().is_long() == (W::BITS > u64::BITS) {
            self.contains_into(kmers, &mut found);
        }
        found
    }

    /// Looks up k-mers, as long as those of the index, on this thread, some thousands at a time.
    pub(crate) fn contains_into<W: Word>(&self, kmers: &[W], found: &mut [bool]) {
        let parts = kmers.chunks(PART).zip(found.chunks_mut(PART));
        let Some(front) = self.front(kmers.len()) else {
            return parts.for_each(|(kmers, found)| self.members.contains_into(kmers, found));
        };
        let mut passed = Passed { kmers: [W::default(); PART], at: [0; PART] };
        let mut there = [false; PART];
        for (kmers, found) in parts {
            let count = front.pass(kmers, &mut passed);
            self.members.contains_into(&passed.kmers[..count], &mut there[..count]);
            found.fill(false);
            passed.at[..count].iter().zip(&there).for_each(|(&at, &there)| found[usize::from(at)] = there);
        }
    }

    /// Returns the filter to ask before the set, if the index has one; `kmers` k-mers are about to be looked up.
    fn front(&self, kmers: usize) -> Option<Front<'_>> {
        let words = match (&self.front, &self.members) {
            (Some(words), _) => words.as_slice(),
            (None, Members::Mapped(mapped)) => mapped.front_for(kmers),
            (None, _) => &[],
        };
        (!words.is_empty()).then(|| Front::new(words))
    }

    /// Returns the filter of all k-mers if the index is one.
    pub(crate) fn sequences(&self) -> Option<SequenceFilterView<'_>> {
        self.members.sequences()
    }

    /// Copies the set or filter of the minimizers to a device.
    pub(crate) fn to_device<W: DeviceWord>(&self, device: &Device) -> Result<Copied<W>, Error> {
        device::to_device(&self.members, device)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (k, w, len) = (self.k, self.w, self.len);
        let kind = self.kind();
        f.debug_struct("Index").field("k", &k).field("w", &w).field("len", &len).field("kind", &kind).finish()
    }
}
