//! Tables of k-mer counts, saved and loaded.
//!
//! A table is an exact rank-and-select quotient filter with counters, and its file is that of the filter. The number of
//! bits of its keys gives `k`: keys have 2k bits from k = 17 on. Up to k = 16 they have 31 more bits, all zero, which
//! makes the number odd. Short k-mers are dense, and a filter of 2k bits, with remainders of a bit or two, would have
//! no room for all of them and their counters.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use warpset_base::file::FileKind;
use warpset_kernels::kmers::letters::CLASSES;
use warpset_quotient::{Container, Duplicates, Layout, RankSelectBuilder, RankSelectQuotientFilter};

use crate::count::builder_for;
use crate::recognise::{head_of, recognise};
use crate::roll::{canonical, letters};
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
    (1..=32).filter_map(|k| K::new(k).ok()).find(|&k| crate::table::key_bits(k) == key_bits)
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
    filter: RankSelectQuotientFilter,
    /// Number of different k-mers, if it was counted.
    distinct: Option<u64>,
}

/// Equality of k-mers and counts, in filters of equal size: a table that others were merged into may have a larger one.
impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.k == other.k && self.filter == other.filter
    }
}
impl Eq for Table {}

impl Table {
    pub(crate) fn new(k: K, filter: RankSelectQuotientFilter, distinct: u64) -> Table {
        Table { k, filter, distinct: Some(distinct) }
    }

    /// Reads a file of [`Table::save`].
    ///
    /// # Errors
    /// [`Error::Table`] if the file cannot be read or is damaged; [`Error::NotTable`] or [`Error::OtherKind`] if it
    /// holds something else.
    pub fn load(path: impl AsRef<Path>) -> Result<Table, Error> {
        let path = path.as_ref();
        let filter = match RankSelectQuotientFilter::load(path) {
            Ok(filter) => filter,
            Err(_) if path.is_file() && !Table::is_in(path) => return Err(no_table(path)),
            Err(error) => return Err(Error::Table(Box::new(error))),
        };
        match Table::k_of(filter.layout()) {
            Some(k) => Ok(Table { k, filter, distinct: None }),
            None => Err(Error::NotTable { path: path.to_owned() }),
        }
    }

    /// Whether a file begins as tables do; [`Table::load`] reports the fault of a damaged one.
    pub fn is_in(path: impl AsRef<Path>) -> bool {
        let mut head = [0; 12];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
        let number = u16::from_le_bytes([head[10], head[11]]);
        read.is_ok() && head.starts_with(b"WARPSET\0") && number == FileKind::RANK_SELECT_QUOTIENT_FILTER.number
    }

    /// Creates a table without k-mers, to merge others into.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory.
    pub fn empty(k: K) -> Result<Table, Error> {
        Ok(Table::new(k, builder_for(k, &[0; CLASSES])?.build()?, 0))
    }

    /// Creates the table of a filter of canonical k-mers, such as one that [`Table::filter`] lends.
    ///
    /// # Errors
    /// [`Error::NotTable`] if the filter is no table, see [`Table::k_of`].
    pub fn from_filter(filter: RankSelectQuotientFilter) -> Result<Table, Error> {
        match Table::k_of(filter.layout()) {
            Some(k) => Ok(Table { k, filter, distinct: None }),
            None => Err(Error::NotTable { path: "the filter".into() }),
        }
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
        Table::from_filter(RankSelectQuotientFilter::from_bytes(bytes).map_err(|error| Error::Table(Box::new(error)))?)
    }

    /// Returns the bytes that [`Table::save`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.filter.to_bytes()
    }

    /// Writes a file, as [`RankSelectQuotientFilter::save`] does: a regular file appears at once, a pipe gets bytes as
    /// they are made.
    ///
    /// # Errors
    /// [`Error::Table`] with the error of the file system.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.filter.save(path).map_err(|error| Error::Table(Box::new(error)))
    }

    /// Returns the bases per k-mer.
    pub fn k(&self) -> K {
        self.k
    }

    /// Borrows the filter. Its keys are canonical k-mers in 2 bits per base, A < C < G < T.
    pub fn filter(&self) -> &RankSelectQuotientFilter {
        &self.filter
    }

    /// Returns the number of different k-mers.
    pub fn distinct(&self) -> u64 {
        self.distinct.unwrap_or_else(|| self.filter.distinct())
    }

    /// Returns the number of k-mers, copies included.
    pub fn total(&self) -> u64 {
        self.filter.len()
    }

    /// Returns the number of copies of a k-mer or its reverse complement.
    ///
    /// # Errors
    /// [`Error::NotKmer`] unless `kmer` is [`Table::k`] letters A, C, G or T.
    pub fn count(&self, kmer: &[u8]) -> Result<u64, Error> {
        Ok(self.filter.count(canonical(kmer, self.k)?))
    }

    /// Iterates over all k-mers in letters with their copies, in no order.
    ///
    /// # Errors
    /// [`Error::Filter`] if the table came from a damaged file.
    pub fn counts(&self) -> Result<impl Iterator<Item = (String, u64)> + '_, Error> {
        let k = self.k;
        Ok(self.filter.key_counts()?.map(move |(kmer, copies)| (letters(kmer, k), copies)))
    }

    /// Counts different k-mers by their numbers of copies: entry `c` is the number of k-mers with `c` copies; the last
    /// entry, `most`, counts those with at least as many.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory for these entries.
    pub fn histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        Ok(self.filter.count_histogram(most)?)
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
        let bits = |table: &Table| table.filter.layout().quotient_bits();
        let (large, small) = if bits(self) >= bits(other) { (&*self, other) } else { (other, &*self) };
        let mut sum = large.filter.clone();
        loop {
            use warpset_quotient::Error::{Full, OverflowRegionFull};
            match sum.merge(&small.filter) {
                Ok(()) => break,
                Err(Full { .. } | OverflowRegionFull { .. })
                    if builder(left, sum.layout().quotient_bits() + 1).is_some() =>
                {
                    sum = large.filter.resized(sum.layout().quotient_bits() + 1)?;
                }
                Err(Full { .. } | OverflowRegionFull { .. }) => {
                    let kmers = self.distinct().saturating_add(other.distinct());
                    return Err(Error::TooManyKmers { kmers, k: left.get() });
                }
                Err(other) => return Err(other.into()),
            }
        }
        (self.filter, self.distinct) = (sum, None);
        Ok(())
    }

    /// Removes k-mers with fewer than `least` copies.
    ///
    /// # Errors
    /// [`Error::Filter`] if there is no memory; the table is then unchanged.
    pub fn keep(&mut self, least: u64) -> Result<(), Error> {
        if least > 1 {
            self.filter.retain_counts(least)?;
            self.distinct = None;
        }
        Ok(())
    }
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
