//! Indexes that are sequence filters: of all k-mers of sequences instead of minimizers.

use std::collections::HashSet;
use std::path::PathBuf;

use warpset_core::hash::mix_spread;
use warpset_sequence::{PackedSequences, SequenceFilter, SequenceFilterView};

use super::format::begins_as_index;
use super::members::Members;
use super::{Index, Indexing};
use crate::roll::is_base;
use crate::word::{Word, short};
use crate::{BackendChoice, Error, K, Roll, Settings, Table, count_files};

/// K-mers per sample, about.
const SAMPLE: usize = 1 << 20;
/// Seed that separates the hashes of a sample from those of filters.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// Least number of letters per batch of packed sequences.
const BATCH: usize = 1 << 24;

/// Number of different k-mers: exact up to [`SAMPLE`]; beyond that, estimated from k-mers with hashes that begin
/// with `n` zeros, for the least `n` with at most [`SAMPLE`] of them.
#[derive(Default)]
struct Distinct {
    zeros: u32,
    sample: HashSet<u64>,
}

/// Results of one thread.
#[derive(Default)]
struct Gathered {
    /// Sequences, in batches of some megabytes.
    sequences: Vec<PackedSequences>,
    letters: usize,
    distinct: Distinct,
}

impl Distinct {
    #[inline]
    fn add(&mut self, hash: u64) {
        if hash.leading_zeros() < self.zeros {
            return;
        }
        self.sample.insert(hash);
        while self.sample.len() > SAMPLE {
            self.zeros += 1;
            self.sample.retain(|hash| hash.leading_zeros() >= self.zeros);
        }
    }

    fn estimate(&self) -> u64 {
        (self.sample.len() as u64) << self.zeros
    }
}

impl Indexing {
    /// Builds the sequence filter of files.
    pub(super) fn run_sequences(&self, files: &[PathBuf]) -> Result<Index, Error> {
        let settings = |kmers| SequenceFilter::builder(kmers).k(self.k).bits_per_key(self.bits_per_kmer);
        // Checks the settings before anything is read.
        settings(1).layout()?;
        if let Some(path) = files.iter().find(|path| begins_as_index(path)) {
            return Err(Error::NotKmers { path: path.clone() });
        }
        let k = K::new(self.k)?;
        let left_out = self.tables_left_out(k)?;
        let gathered =
            self.each_part(files, self.k as usize, |gathered: &mut Gathered, letters| match k.is_long() {
                true => gathered.take::<u128>(letters, k, &left_out),
                false => gathered.take::<u64>(letters, k, &left_out),
            })?;
        let mut distinct = Distinct::default();
        for other in &gathered {
            distinct.zeros = distinct.zeros.max(other.distinct.zeros);
        }
        for other in &gathered {
            other.distinct.sample.iter().for_each(|&hash| distinct.add(hash));
        }
        let len = distinct.estimate();
        if len == 0 {
            return Err(self.nothing("k-mers", self.k));
        }
        let mut filter = settings(len).build()?;
        for sequences in gathered.into_iter().flat_map(|gathered| gathered.sequences) {
            filter.insert_bulk(&sequences)?;
        }
        Ok(Index { k: self.k, w: 1, len, members: Members::Sequences(filter), front: None })
    }

    /// Builds tables of the k-mers that are to be left out.
    fn tables_left_out(&self, k: K) -> Result<Vec<Table>, Error> {
        let (tables, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.without.iter().partition(|path| Table::is_in(path.as_path()));
        if let Some(path) = others.iter().find(|path| begins_as_index(path)) {
            return Err(Error::NotKmers { path: (*path).clone() });
        }
        let mut left_out = tables.into_iter().map(Table::load).collect::<Result<Vec<Table>, Error>>()?;
        if let Some(table) = left_out.iter().find(|table| table.k() != k) {
            return Err(Error::DifferentK { left: table.k().get(), right: k.get() });
        }
        if !others.is_empty() {
            let files: Vec<PathBuf> = others.into_iter().cloned().collect();
            let settings = Settings::new(k.get())?.threads(rayon::current_num_threads()).backend(BackendChoice::Cpu);
            left_out.push(count_files(&files, &settings)?);
        }
        Ok(left_out)
    }
}

impl Gathered {
    /// Adds the k-mers of letters, except those that are left out.
    fn take<W: Word>(&mut self, letters: &[u8], k: K, left_out: &[Table]) {
        if left_out.is_empty() {
            return self.take_all::<W>(letters, k);
        }
        let window = k.get() as usize;
        for run in letters.split(|&letter| !is_base(letter)).filter(|run| run.len() >= window) {
            let mut kmers = Vec::<W>::with_capacity(run.len());
            Roll::of(k).each(run, |kmer| kmers.push(kmer));
            let mut is_out = vec![false; kmers.len()];
            for table in left_out {
                is_out.iter_mut().zip(table.contains_bulk(&kmers)).for_each(|(is_out, found)| *is_out |= found);
            }
            let mut first = 0;
            for kept in is_out.chunk_by(|left, right| left == right) {
                if !kept[0] {
                    self.take_all::<W>(&run[first..first + kept.len() + window - 1], k);
                }
                first += kept.len();
            }
        }
    }

    fn take_all<W: Word>(&mut self, letters: &[u8], k: K) {
        if self.letters == 0 || self.letters >= BATCH {
            self.sequences.push(PackedSequences::new());
            self.letters = 0;
        }
        if let Some(sequences) = self.sequences.last_mut() {
            sequences.push(letters);
        }
        self.letters += letters.len();
        Roll::of(k).each(letters, |kmer: W| self.distinct.add(mix_spread(kmer.key(0), SPREAD)));
    }
}

/// Whether a filter claims each k-mer, given as by minimizers.
pub(super) fn contains_into<W: Word>(filter: SequenceFilterView<'_>, kmers: &[W], found: &mut [bool]) {
    let (mut sequences, k) = (PackedSequences::new(), filter.layout().k() as usize);
    match short(kmers) {
        Some(kmers) => kmers.iter().for_each(|kmer| sequences.push_packed(std::slice::from_ref(kmer), k)),
        None => kmers.iter().for_each(|kmer| sequences.push_packed(&halves(kmer.wide()), k)),
    }
    let hits = filter.count_bulk(&sequences).expect("lookups in host memory do not fail");
    found.iter_mut().zip(hits).for_each(|(found, hits)| *found = hits.found > 0);
}

/// Returns the words of packed bases of a k-mer.
fn halves(kmer: u128) -> [u64; 2] {
    [kmer as u64, (kmer >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ones_are_counted_or_estimated() {
        for len in [0u64, 1, 1000, 1 << 20, 5_000_000] {
            let mut distinct = Distinct::default();
            (0..len).chain(0..len / 2).for_each(|kmer| distinct.add(mix_spread(kmer, SPREAD)));
            let estimate = distinct.estimate();
            let is_right = if distinct.zeros == 0 { estimate == len } else { estimate.abs_diff(len) < len / 100 };
            assert!(is_right && (distinct.zeros == 0 || len > SAMPLE as u64), "{estimate} of {len}");
        }
    }
}
