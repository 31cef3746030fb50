//! Tables of k-mer counts, saved and loaded.
//!
//! A table is an exact rank-and-select quotient filter with counters, and its file is that of the filter; above 32
//! bases it is a list of [long k-mers](crate::long). The number of bits of a filter's keys gives `k`: keys have 2k bits
//! from k = 17 on. Up to k = 16 they have 31 more bits, all zero, which makes the number odd. Short k-mers are dense,
//! and a filter of 2k bits, with remainders of a bit or two, would have no room for all of them and their counters.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rayon::prelude::*;
use warpset_base::file::{self, FileError, FileKind};
use warpset_base::filter::{Filter, LengthMismatch};
use warpset_kernels::kmers::letters::CLASSES;
use warpset_quotient::{Container, Count, Duplicates, Layout, RankSelectBuilder, RankSelectQuotientFilter};

use crate::count::builder_for;
use crate::long::Long;
use crate::recognise::{head_of, is_table, recognise};
use crate::roll::{canonical, letters};
use crate::word::{MOST_SHORT, Word, short};
use crate::{Error, K};

/// Further bits of the key of a short k-mer.
const SHORT_EXTRA: u32 = 31;
/// Largest k with these bits.
const LAST_SHORT: u32 = 16;

/// Returns the bits of a key of a table of k-mers.
pub(crate) fn key_bits(k: K) -> u32 {
    2 * k.get() + if k.get() <= LAST_SHORT { SHORT_EXTRA } else { 0 }
}

fn k_of(key_bits: u32) -> Option<K> {
    (1..=MOST_SHORT).filter_map(|k| K::new(k).ok()).find(|&k| crate::table::key_bits(k) == key_bits)
}

/// Returns the builder of a filter with 2^`quotient_bits` slots; `None` if no such filter exists.
pub(crate) fn builder(k: K, quotient_bits: u32) -> Option<RankSelectBuilder> {
    let remainder_bits = key_bits(k).checked_sub(quotient_bits)?;
    let builder = RankSelectBuilder::with_bits(quotient_bits, remainder_bits).duplicates(Duplicates::Counted);
    let builder = builder.exact(key_bits(k));
    builder.layout().is_ok().then_some(builder)
}

/// Returns the builder of the smallest filter with room for `slots(remainder_bits)` slots.
pub(crate) fn smallest(k: K, slots: impl Fn(u32) -> u64) -> Option<RankSelectBuilder> {
    (1..=48)
        .filter_map(|quotient_bits| builder(k, quotient_bits))
        .find(|builder| builder.layout().is_ok_and(|layout| slots(layout.remainder_bits()) <= layout.limit()))
}

/// Exact numbers of copies of different k-mers.
#[derive(Clone, Debug)]
pub struct Table {
    k: K,
    counts: Counts,
    /// Number of different k-mers, if it was counted.
    distinct: Option<u64>,
}

/// Counts of k-mers of up to 32 bases, or of longer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Counts {
    Short(RankSelectQuotientFilter),
    Long(Long),
}

/// Equality of k-mers and counts, in filters of equal size: a table that others were merged into may have a larger one.
impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.k == other.k && self.counts == other.counts
    }
}
impl Eq for Table {}

impl Table {
    pub(crate) fn new(k: K, filter: RankSelectQuotientFilter, distinct: u64) -> Table {
        Table { k, counts: Counts::Short(filter), distinct: Some(distinct) }
    }

    /// Reads a file of [`Table::save`].
    ///
    /// # Errors
    /// [`Error::Table`] if the file cannot be read or is damaged; [`Error::NotTable`] or [`Error::OtherKind`] if it
    /// holds something else.
    pub fn load(path: impl AsRef<Path>) -> Result<Table, Error> {
        let path = path.as_ref();
        // A pipe can be read once only.
        if path.is_file() && number_in(path) == Some(FileKind::KMERS_LONG.number) {
            return Ok(file::load::<Long>(path).map_err(of_file)?.into());
        }
        let filter = match RankSelectQuotientFilter::load(path) {
            Ok(filter) => filter,
            Err(_) if path.is_file() && !Table::is_in(path) => return Err(no_table(path)),
            Err(error) => return Err(Error::Table(Box::new(error))),
        };
        Table::of_filter(filter, path)
    }

    fn of_filter(filter: RankSelectQuotientFilter, path: &Path) -> Result<Table, Error> {
        match Table::k_of(filter.layout()) {
            Some(k) => Ok(Table { k, counts: Counts::Short(filter), distinct: None }),
            None => Err(Error::NotTable { path: path.to_owned() }),
        }
    }

    /// Whether a file begins as tables do; [`Table::load`] reports the fault of a damaged one.
    pub fn is_in(path: impl AsRef<Path>) -> bool {
        number_in(path.as_ref()).is_some_and(is_table)
    }

    /// Creates a table without k-mers, to merge others into.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory.
    pub fn empty(k: K) -> Result<Table, Error> {
        if k.is_long() {
            return Ok(Long::from_kmers(k, Vec::new()).map_err(Error::of_table)?.into());
        }
        Ok(Table::new(k, builder_for(k, &[0; CLASSES])?.build()?, 0))
    }

    /// Creates the table of a filter of canonical k-mers, such as one that [`Table::filter`] lends.
    ///
    /// # Errors
    /// [`Error::NotTable`] if the filter is no table, see [`Table::k_of`].
    pub fn from_filter(filter: RankSelectQuotientFilter) -> Result<Table, Error> {
        Table::of_filter(filter, Path::new("the filter"))
    }

    /// Returns the bases per k-mer of a filter with this layout; `None` if no table has it.
    pub fn k_of(layout: &Layout) -> Option<K> {
        let is_table = layout.is_exact()
            && layout.duplicates() == Duplicates::Counted
            && layout.seed() == 0
            && layout.container() == Container::Packed;
        k_of(layout.fingerprint_bits()).filter(|_| is_table)
    }

    /// Copies a table from the bytes of [`Table::save`] in memory.
    ///
    /// # Errors
    /// [`Error::Table`] if the bytes are damaged; [`Error::NotTable`] if they hold another kind of filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Table, Error> {
        if number_of(bytes) == Some(FileKind::KMERS_LONG.number) {
            return Ok(file::from_bytes::<Long>(bytes).map_err(of_file)?.into());
        }
        Table::from_filter(RankSelectQuotientFilter::from_bytes(bytes).map_err(|error| Error::Table(Box::new(error)))?)
    }

    /// Returns the bytes that [`Table::save`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.counts {
            Counts::Short(filter) => filter.to_bytes(),
            Counts::Long(long) => file::to_bytes(long),
        }
    }

    /// Writes a file, as [`RankSelectQuotientFilter::save`] does: a regular file appears at once, a pipe gets bytes as
    /// they are made.
    ///
    /// # Errors
    /// [`Error::Table`] with the error of the file system.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        match &self.counts {
            Counts::Short(filter) => filter.save(path).map_err(|error| Error::Table(Box::new(error))),
            Counts::Long(long) => file::save(long, path.as_ref()).map_err(of_file),
        }
    }

    /// Returns the bases per k-mer.
    pub fn k(&self) -> K {
        self.k
    }

    /// Borrows the filter; `None` for k-mers of more than 32 bases. Its keys are canonical k-mers in 2 bits per base,
    /// A < C < G < T.
    pub fn filter(&self) -> Option<&RankSelectQuotientFilter> {
        match &self.counts {
            Counts::Short(filter) => Some(filter),
            Counts::Long(_) => None,
        }
    }

    /// Returns the bytes of memory of the counts.
    pub fn memory_bytes(&self) -> u64 {
        match &self.counts {
            Counts::Short(filter) => filter.memory_bytes(),
            Counts::Long(long) => long.memory_bytes(),
        }
    }

    /// Returns the number of different k-mers.
    pub fn distinct(&self) -> u64 {
        self.distinct.unwrap_or_else(|| match &self.counts {
            Counts::Short(filter) => filter.distinct(),
            Counts::Long(long) => long.len(),
        })
    }

    /// Returns the number of k-mers, copies included.
    pub fn total(&self) -> u64 {
        match &self.counts {
            Counts::Short(filter) => filter.len(),
            Counts::Long(long) => long.total(),
        }
    }

    /// Returns the number of copies of a k-mer or its reverse complement.
    ///
    /// # Errors
    /// [`Error::NotKmer`] unless `kmer` is [`Table::k`] letters A, C, G or T.
    pub fn count(&self, kmer: &[u8]) -> Result<u64, Error> {
        Ok(match &self.counts {
            Counts::Short(filter) => filter.count(canonical::<u64>(kmer, self.k)?),
            Counts::Long(long) => long.view().count(canonical(kmer, self.k)?),
        })
    }

    /// Writes the number of copies of each canonical k-mer, in 2 bits per base, A < C < G < T.
    ///
    /// # Errors
    /// [`Error::Filter`] if the slices have different lengths.
    pub fn count_bulk_into<W: Word>(&self, kmers: &[W], copies: &mut [u64]) -> Result<(), Error> {
        if kmers.len() != copies.len() {
            let other = LengthMismatch { what: "copies", needed: kmers.len(), found: copies.len() };
            return Err(warpset_quotient::Error::from(other).into());
        }
        match (&self.counts, short(kmers)) {
            (Counts::Short(filter), Some(kmers)) => filter.count_bulk_into(kmers, copies)?,
            (Counts::Short(filter), None) => {
                let count = |kmer: &W| u64::try_from(kmer.wide()).map_or(0, |kmer| filter.count(kmer));
                copies.iter_mut().zip(kmers).for_each(|(copies, kmer)| *copies = count(kmer));
            }
            (Counts::Long(long), _) => {
                let all = copies.par_iter_mut().zip(kmers).with_min_len(1 << 10);
                all.for_each(|(copies, kmer)| *copies = long.view().count(kmer.wide()));
            }
        }
        Ok(())
    }

    /// Whether the table has each k-mer, looked up on this thread or by the current pool. K-mers have its width.
    pub(crate) fn contains_bulk<W: Word>(&self, kmers: &[W]) -> Vec<bool> {
        match (&self.counts, short(kmers)) {
            (Counts::Short(filter), Some(kmers)) => {
                filter.contains_bulk(kmers).expect("lookups in host memory do not fail")
            }
            (Counts::Long(long), None) => {
                let mut found = vec![false; kmers.len()];
                long.view().contains_into(bytemuck::cast_slice(kmers), &mut found);
                found
            }
            _ => vec![false; kmers.len()],
        }
    }

    /// Iterates over all k-mers in letters with their copies, in no order.
    ///
    /// # Errors
    /// [`Error::Filter`] if the table came from a damaged file.
    pub fn counts(&self) -> Result<impl Iterator<Item = (String, u64)> + '_, Error> {
        let k = self.k;
        // Letters of short k-mers take less time from words of 64 bits.
        let (short, long) = match k.is_long() {
            true => (None, Some(self.kmers::<u128>()?)),
            false => (Some(self.kmers::<u64>()?), None),
        };
        let short = short.into_iter().flatten().map(move |(kmer, copies)| (letters(kmer, k), copies));
        Ok(short.chain(long.into_iter().flatten().map(move |(kmer, copies)| (letters(kmer, k), copies))))
    }

    /// Iterates over all canonical k-mers, in 2 bits per base, A < C < G < T, with their copies, in no order.
    ///
    /// # Errors
    /// [`Error::InvalidK`] if `u64` is to hold more than 32 bases; [`Error::Filter`] if the table came from a damaged
    /// file.
    pub fn kmers<W: Word>(&self) -> Result<impl Iterator<Item = (W, u64)> + '_, Error> {
        self.k.within::<W>()?;
        let (short, long) = match &self.counts {
            Counts::Short(filter) => (Some(filter.key_counts()?), None),
            Counts::Long(long) => (None, Some(long.view().iter())),
        };
        let short = short.into_iter().flatten().map(|(kmer, copies)| (W::from(kmer), copies));
        Ok(short.chain(long.into_iter().flatten().map(|(kmer, copies)| (W::of(kmer), copies))))
    }

    /// Counts different k-mers by their numbers of copies: entry `c` is the number of k-mers with `c` copies; the last
    /// entry, `most`, counts those with at least as many.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory for these entries.
    pub fn histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        match &self.counts {
            Counts::Short(filter) => Ok(filter.count_histogram(most)?),
            Counts::Long(long) => long.histogram(most).map_err(Error::of_table),
        }
    }

    /// Adds the copies of another table, as if both inputs had been counted at once.
    ///
    /// # Errors
    /// [`Error::DifferentK`]; [`Error::TooManyKmers`] if no table holds both; [`Error::Filter`] if there is no memory.
    /// After an error the table is unchanged.
    pub fn merge(&mut self, other: &Table) -> Result<(), Error> {
        let (left, right) = (self.k, other.k);
        if left != right {
            return Err(Error::DifferentK { left: left.get(), right: right.get() });
        }
        let (one, two) = match (&self.counts, &other.counts) {
            (Counts::Short(one), Counts::Short(two)) => (one, two),
            (Counts::Long(one), Counts::Long(two)) => {
                *self = one.merged(two).map_err(Error::of_table)?.into();
                return Ok(());
            }
            _ => return Err(Error::DifferentK { left: left.get(), right: right.get() }),
        };
        let bits = |filter: &RankSelectQuotientFilter| filter.layout().quotient_bits();
        let (large, small) = if bits(one) >= bits(two) { (one, two) } else { (two, one) };
        let mut sum = large.clone();
        loop {
            use warpset_quotient::Error::{Full, OverflowRegionFull};
            match sum.merge(small) {
                Ok(()) => break,
                Err(Full { .. } | OverflowRegionFull { .. })
                    if builder(left, sum.layout().quotient_bits() + 1).is_some() =>
                {
                    sum = large.resized(sum.layout().quotient_bits() + 1)?;
                }
                Err(Full { .. } | OverflowRegionFull { .. }) => {
                    let kmers = self.distinct().saturating_add(other.distinct());
                    return Err(Error::TooManyKmers { kmers, k: left.get() });
                }
                Err(other) => return Err(other.into()),
            }
        }
        (self.counts, self.distinct) = (Counts::Short(sum), None);
        Ok(())
    }

    /// Removes k-mers with fewer than `least` copies.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory; the table is then unchanged.
    pub fn keep(&mut self, least: u64) -> Result<(), Error> {
        if least > 1 {
            match &mut self.counts {
                Counts::Short(filter) => filter.retain_counts(least).map(|_| ())?,
                Counts::Long(long) => *long = long.kept(least).map_err(Error::of_table)?,
            }
            self.distinct = None;
        }
        Ok(())
    }
}

impl From<Long> for Table {
    fn from(long: Long) -> Table {
        Table { k: long.k(), distinct: Some(long.len()), counts: Counts::Long(long) }
    }
}

fn of_file(error: FileError) -> Error {
    Error::Table(Box::new(error.into()))
}

/// Returns the number of the structure of a saved file with this head.
fn number_of(head: &[u8]) -> Option<u16> {
    let number = head.strip_prefix(b"WARPSET\0")?.get(2..4)?;
    Some(u16::from_le_bytes([number[0], number[1]]))
}

/// Returns the number of the structure of a saved file.
fn number_in(path: &Path) -> Option<u16> {
    let mut head = [0; 12];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    number_of(&head)
}

/// Returns the error for a file that does not begin as tables do.
fn no_table(path: &Path) -> Error {
    let needed = "a table is needed, which `kmers count` writes".to_owned();
    match head_of(path).ok().and_then(|head| recognise(&head)) {
        Some((found, _)) if found != "a table" => Error::OtherKind { path: path.to_owned(), found, needed },
        _ => Error::NotTable { path: path.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_k_is_known_from_its_bits() {
        for k in 1..=32 {
            let k = K::new(k).unwrap();
            assert_eq!(k_of(key_bits(k)), Some(k));
            assert!(smallest(k, |_| 100_000).is_some(), "{k:?}");
        }
        assert!(k_of(32).is_none() && k_of(65).is_none() && k_of(30).is_none());
    }

    /// Checks that all short k-mers fit, each with a count of ten digits.
    #[test]
    fn tables_of_short_kmers_have_room_for_all() {
        use warpset_core::quotient::rank_select::counters;
        for k in 1..=16 {
            let of_all = |remainder_bits| counters::slots(10_000_000_000, remainder_bits) << (2 * k);
            assert!(smallest(K::new(k).unwrap(), of_all).is_some(), "{k}");
        }
    }
}
