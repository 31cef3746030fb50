//! Exact sets and counts of k-mers of more than 32 bases: ascending fingerprints, each with its copies.
//!
//! Fingerprints are in 2048 parts ([`Cut`]). A k-mer takes 16 bytes, and its copies no more unless they exceed some
//! thousands.
//!
//! ```text
//! words of 128 bits:  end of each part; counts as `Cut` has them; (place << 64 | copies) of counts that do not fit
//! ```

use std::fmt;
use std::ops::Range;

use rayon::prelude::*;
use warpset_base::file::{self, FIELDS, FileError, FileKind, Payload, Saved};
use warpset_base::processor::prefetch;
use warpset_base::words::{AlignedWords, OutOfMemory, zeroed_vec};
use warpset_core::minimizer::Kmer as _;
use warpset_kernels::kmers::cut::Cut;
use warpset_kernels::kmers::number::Number as _;

use crate::K;
use crate::parts::{Counted, Parts};
use crate::word::MOST_SHORT;

/// Lookups side by side.
const AHEAD: usize = 16;

/// Ascending fingerprints of k-mers with their copies.
#[derive(Clone)]
pub(crate) struct Long {
    layout: Layout,
    words: AlignedWords<u128>,
}

/// Borrowed words of a [`Long`], which may lie in a mapped file. Words of a damaged file give wrong answers, nothing
/// worse.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    layout: Layout,
    words: &'a [u128],
}

/// Numbers that determine the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    k: K,
    /// Different k-mers.
    len: u64,
    /// Different k-mers whose copies do not fit into their word.
    many: u64,
    /// All k-mers.
    total: u64,
}

impl PartialEq for Long {
    fn eq(&self, other: &Long) -> bool {
        self.layout == other.layout && self.words.as_slice() == other.words.as_slice()
    }
}
impl Eq for Long {}

impl fmt::Debug for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Long").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// Returns the division of fingerprints of k-mers with more than 32 bases.
pub(crate) fn cut_of(k: K) -> Cut<u128> {
    Cut::new(2 * k.get())
}

impl Long {
    /// Joins the counts of all parts.
    pub(crate) fn from_parts(k: K, parts: &Parts<u128>) -> Result<Long, OutOfMemory> {
        let (len, many) = (parts.len(), parts.each().map(|counted| counted.many().len() as u64).sum());
        let mut long = Long::zeroed(Layout { k, len, many, total: 0 })?;
        let words = long.words.as_mut_slice();
        let (ends, rest) = words.split_at_mut(cut_of(k).parts());
        let (mut counts, mut places) = rest.split_at_mut(len as usize);
        let (mut end, mut of_parts) = (0, Vec::with_capacity(ends.len()));
        for (counted, to) in parts.each().zip(ends) {
            for &(place, copies) in counted.many() {
                if let Some(to) = places.split_off_first_mut() {
                    *to = (end + place as u128) << 64 | u128::from(copies);
                }
            }
            of_parts.push((counted, counts.split_off_mut(..counted.len()).unwrap_or_default()));
            end += counted.len() as u128;
            *to = end;
        }
        of_parts.into_par_iter().for_each(|(counted, to)| to.copy_from_slice(counted.words()));
        long.layout.total = long.view().total();
        Ok(long)
    }

    /// Makes a set of k-mers, some of which may be equal.
    pub(crate) fn from_kmers(k: K, mut kmers: Vec<u128>) -> Result<Long, OutOfMemory> {
        let bits = 2 * k.get();
        kmers.par_iter_mut().for_each(|kmer| *kmer = kmer.fingerprint(bits));
        kmers.par_sort_unstable();
        kmers.dedup();
        Long::from_ascending(k, kmers.len() as u64, |_| 1, |to| to.copy_from_slice(&kmers))
    }

    /// Makes counts of `len` ascending fingerprints, which `fill` writes, with the number of copies of each place.
    pub(crate) fn from_ascending(
        k: K,
        len: u64,
        copies: impl Fn(usize) -> u64 + Sync,
        fill: impl FnOnce(&mut [u128]),
    ) -> Result<Long, OutOfMemory> {
        let (cut, all) = (cut_of(k), (0..len as usize).into_par_iter());
        let most = cut.most_copies();
        let of_many = |place| Some((place as u128) << 64 | u128::from(copies(place))).filter(|_| copies(place) > most);
        let many: Vec<u128> = all.clone().filter_map(of_many).collect();
        let total = all.map(&copies).reduce(|| 0, u64::wrapping_add);
        let mut long = Long::zeroed(Layout { k, len, many: many.len() as u64, total })?;
        let (ends, rest) = long.words.as_mut_slice().split_at_mut(cut.parts());
        let (counts, places) = rest.split_at_mut(len as usize);
        fill(counts);
        places.copy_from_slice(&many);
        for (part, end) in ends.iter_mut().enumerate() {
            *end = counts.partition_point(|&fingerprint| cut.part(fingerprint) <= part) as u128;
        }
        let in_word = |place| Some(copies(place)).filter(|&copies| copies <= most).unwrap_or(0);
        let counts = counts.par_iter_mut().enumerate();
        counts.for_each(|(place, word)| *word = cut.word(*word, in_word(place)));
        Ok(long)
    }

    fn zeroed(layout: Layout) -> Result<Long, OutOfMemory> {
        let words = AlignedWords::zeroed(<Long as Saved>::words_of(&layout))?.in_huge_pages();
        Ok(Long { layout, words })
    }

    pub(crate) fn k(&self) -> K {
        self.layout.k
    }

    /// Returns the number of different k-mers.
    pub(crate) fn len(&self) -> u64 {
        self.layout.len
    }

    /// Returns the number of k-mers, copies included.
    pub(crate) fn total(&self) -> u64 {
        self.layout.total
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { layout: self.layout, words: self.words.as_slice() }
    }

    /// Builds counts part by part, on all threads of the current pool.
    fn by_part(&self, fill: impl Fn(usize, &mut Counted<u128>) + Sync) -> Result<Long, OutOfMemory> {
        Long::from_parts(self.layout.k, &Parts::filled(cut_of(self.layout.k), fill))
    }

    /// Returns the counts of both, added.
    pub(crate) fn merged(&self, other: &Long) -> Result<Long, OutOfMemory> {
        let (cut, own, others) = (cut_of(self.layout.k), self.view(), other.view());
        self.by_part(|part, sum| {
            let (mut own, mut others) = (own.of_part(part).peekable(), others.of_part(part).peekable());
            loop {
                let (low, copies) = match (own.peek().copied(), others.peek().copied()) {
                    (Some(one), Some(two)) if one.0 == two.0 => {
                        own.next();
                        others.next();
                        (one.0, one.1.saturating_add(two.1))
                    }
                    (Some(one), two) if two.is_none_or(|two| one.0 < two.0) => {
                        own.next();
                        one
                    }
                    (_, Some(two)) => {
                        others.next();
                        two
                    }
                    (_, None) => return,
                };
                sum.push(cut, low, copies);
            }
        })
    }

    /// Returns the counts of at least `least`.
    pub(crate) fn kept(&self, least: u64) -> Result<Long, OutOfMemory> {
        let (cut, own) = (cut_of(self.layout.k), self.view());
        self.by_part(|part, kept| {
            let enough = own.of_part(part).filter(|&(_, copies)| copies >= least);
            enough.for_each(|(low, copies)| kept.push(cut, low, copies));
        })
    }

    /// Counts k-mers by their copies, as [`Table::histogram`](crate::Table::histogram) does.
    pub(crate) fn histogram(&self, most: usize) -> Result<Vec<u64>, OutOfMemory> {
        let mut histogram = zeroed_vec((most as u64).saturating_add(1))?;
        let view = self.view();
        let all = (0..view.parts()).flat_map(|part| view.of_part(part));
        all.for_each(|(_, copies)| histogram[usize::try_from(copies).unwrap_or(most).min(most)] += 1);
        Ok(histogram)
    }
}

impl<'a> View<'a> {
    /// Opens the saved form and checks its header only.
    pub(crate) fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a>, FileError> {
        file::view_unverified::<Long>(bytes).map(|(layout, words)| View { layout, words })
    }

    pub(crate) fn k(&self) -> K {
        self.layout.k
    }

    /// Whether each k-mer is there once, by the header.
    pub(crate) fn is_set(&self) -> bool {
        self.layout.total == self.layout.len
    }

    /// Returns all words: those of [`Cut`] after the ends of parts, and the list of many copies.
    pub(crate) fn words(&self) -> &'a [u128] {
        self.words
    }

    fn parts(&self) -> usize {
        cut_of(self.layout.k).parts()
    }

    /// Returns the words of all k-mers, and the place and copies of each k-mer whose count does not fit in its word.
    #[inline(always)]
    fn counts(&self) -> (&'a [u128], &'a [u128]) {
        self.words[self.parts()..].split_at(self.layout.len as usize)
    }

    /// Returns the places of a part, which are places of words, even if the ends are damaged.
    #[inline(always)]
    fn places(&self, part: usize) -> Range<usize> {
        let ends = &self.words[..self.parts()];
        let end = ends[part].min(self.layout.len.into()) as usize;
        let begin = if part == 0 { 0 } else { ends[part - 1].min(end as u128) as usize };
        begin..end
    }

    /// Adds up all copies, on all threads of the current pool.
    fn total(&self) -> u64 {
        let of_part = |part| self.of_part(part).fold(0, |sum: u64, (_, copies)| sum.wrapping_add(copies));
        (0..self.parts()).into_par_iter().map(of_part).reduce(|| 0, u64::wrapping_add)
    }

    /// Iterates over the fingerprints of a part, without its bits, with their copies.
    fn of_part(&self, part: usize) -> impl Iterator<Item = (u128, u64)> + use<'a> {
        let (cut, places, (counts, many)) = (cut_of(self.layout.k), self.places(part), self.counts());
        let mut many = many[many.partition_point(|&one| one >> 64 < places.start as u128)..].iter();
        counts[places].iter().map(move |&word| {
            let copies = match cut.copies(word) {
                0 => many.next().map_or(0, |&one| one as u64),
                copies => copies,
            };
            (cut.value(word), copies)
        })
    }

    /// Iterates over all k-mers with their copies.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u128, u64)> + use<'a> {
        let (cut, k) = (cut_of(self.layout.k), self.layout.k.get());
        (0..self.parts()).flat_map(move |part| {
            // Damaged words may have more bits.
            let bases = move |low| u128::of_fingerprint(cut.fingerprint(part, low), 2 * k) & u128::mask(k);
            let kmer = move |(low, copies)| (bases(low), copies);
            self.of_part(part).map(kmer)
        })
    }

    /// Returns the copies of a k-mer.
    pub(crate) fn count(&self, kmer: u128) -> u64 {
        let (cut, bits, (counts, many)) = (cut_of(self.layout.k), 2 * self.layout.k.get(), self.counts());
        if kmer >> bits != 0 {
            return 0;
        }
        let fingerprint = kmer.fingerprint(bits);
        let places = self.places(cut.part(fingerprint));
        let guess = cut.guess(fingerprint, &places);
        cut.find(fingerprint, places, guess, |place| counts[place]).map_or(0, |place| match cut.copies(counts[place]) {
            0 => many.get(many.partition_point(|&one| one >> 64 < place as u128)).map_or(0, |&one| one as u64),
            copies => copies,
        })
    }

    /// Whether each k-mer is there. The slices have equal lengths.
    pub(crate) fn contains_into(&self, kmers: &[u128], found: &mut [bool]) {
        let (cut, bits, (counts, _)) = (cut_of(self.layout.k), 2 * self.layout.k.get(), self.counts());
        for (kmers, found) in kmers.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            let mut guesses = [const { (0, 0, 0..0) }; AHEAD];
            for (guess, kmer) in guesses.iter_mut().zip(kmers) {
                let fingerprint = (kmer & !(!0 << bits)).fingerprint(bits);
                let places = self.places(cut.part(fingerprint));
                let place = cut.guess(fingerprint, &places);
                prefetch(counts, place);
                *guess = (fingerprint, place, places);
            }
            for ((found, kmer), (fingerprint, place, places)) in found.iter_mut().zip(kmers).zip(guesses) {
                let place = cut.find(fingerprint, places, place, |place| counts[place]);
                *found = kmer >> bits == 0 && place.is_some();
            }
        }
    }
}

impl Saved for Long {
    const STRUCTURE: FileKind = FileKind::KMERS_LONG;
    const NAME: &'static str = "set of long k-mers";
    type Word = u128;
    type Layout = Layout;
    type Error = FileError;

    fn layout_of(fields: [u64; FIELDS]) -> Result<Layout, FileError> {
        let [k, len, many, total, unused @ ..] = fields;
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let bases = u32::try_from(k).ok().filter(|&k| k > MOST_SHORT).and_then(|k| K::new(k).ok());
        let Some(bases) = bases else { return invalid("bases per k-mer", k) };
        if len > 1 << 48 {
            return invalid("number of k-mers", len);
        }
        if many > len {
            return invalid("number of k-mers with many copies", many);
        }
        match unused.into_iter().find(|&value| value != 0) {
            Some(value) => invalid("unused parameters", value),
            None => Ok(Layout { k: bases, len, many, total }),
        }
    }

    fn words_of(layout: &Layout) -> u64 {
        cut_of(layout.k).parts() as u64 + layout.len + layout.many
    }

    fn fields(&self) -> [u64; FIELDS] {
        let Layout { k, len, many, total } = self.layout;
        let mut fields = [0; FIELDS];
        fields[..4].copy_from_slice(&[k.get().into(), len, many, total]);
        fields
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u128, u8>(self.words.as_slice())
    }

    /// Checks that parts and fingerprints ascend, and that each count is in one place.
    fn check(layout: &Layout, words: &[u128]) -> Result<(), FileError> {
        let invalid = |field| Err(FileError::InvalidHeader { field, value: layout.len });
        let cut = cut_of(layout.k);
        let (ends, rest) = words.split_at(cut.parts());
        let (counts, many) = rest.split_at(layout.len as usize);
        if !ends.is_sorted() || ends.last() != Some(&u128::from(layout.len)) {
            return invalid("ends of parts");
        }
        let begins = std::iter::once(&0).chain(ends).zip(ends);
        let places: Vec<Range<usize>> = begins.map(|(&begin, &end)| begin as usize..end as usize).collect();
        let is_sound = |places: &Range<usize>| {
            let words = &counts[places.clone()];
            let first = many.partition_point(|&one| one >> 64 < places.start as u128);
            let mut many = many[first..].iter().take_while(|&&one| one >> 64 < places.end as u128);
            let mut zeros = (places.start..).zip(words).filter(|&(_, &word)| cut.copies(word) == 0);
            words.iter().is_sorted_by(|&&left, &&right| cut.value(left) < cut.value(right))
                && words.iter().all(|&word| cut.is_value(cut.value(word)))
                && zeros.all(|(place, _)| many.next().is_some_and(|&one| one >> 64 == place as u128))
                && many.next().is_none()
        };
        let is_in_place = many.iter().is_sorted_by(|one, two| *one >> 64 < *two >> 64)
            && many.iter().all(|&one| one as u64 > cut.most_copies())
            && many.last().is_none_or(|one| one >> 64 < layout.len.into());
        match is_in_place && places.par_iter().all(is_sound) {
            true => Ok(()),
            false => invalid("order of k-mers"),
        }
    }

    fn from_saved(layout: Layout, words: AlignedWords<u128>) -> Result<Long, FileError> {
        let long = Long { layout, words };
        match long.view().total() == layout.total {
            true => Ok(long),
            false => Err(FileError::InvalidHeader { field: "number of all k-mers", value: layout.total }),
        }
    }
}
