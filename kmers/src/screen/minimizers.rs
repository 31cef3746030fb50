//! Decisions by the minimizers of an index, on the CPU.
//!
//! All minimizers of a batch are found first. Then they are looked up in rounds: the first few of each read, then more
//! and more of the reads that are not decided. So reads that match cost a few lookups, and each round has enough
//! lookups to hide the latency of memory.
//!
//! For long reads only the beginning is processed at first. A read has at most one minimizer per window, so hits that
//! would suffice with one minimizer per window suffice in any case. Only reads with fewer hits are processed to their
//! end.

use warpset_core::minimizer::Kmer;
use warpset_sequence::Minimizers;

use super::batch::Batch;
use super::decide::{AtOnce, Decider, Decision, Immediate, Worker};
use super::rule::Rule;
use crate::word::Word;
use crate::{Error, Index};

/// Minimizers per lookup call.
const LOOKUPS: usize = 1 << 12;
/// Least lookups per read in the first round, and their growth per further round.
const FIRST: usize = 2;
const MORE: usize = 8;
/// Number of hits up to which a new one is compared with all others.
const FEW: u64 = 64;

/// Decider by the minimizers of an index.
pub(crate) struct ByMinimizers<'a> {
    pub(crate) index: &'a Index,
    pub(crate) rule: Rule,
    /// Number of bases of each read to look at.
    pub(crate) prefix: usize,
    /// Whether hits and minimizers are counted completely.
    pub(crate) counts: bool,
}

/// Read, or pair of reads, that is being decided.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Range of its minimizers. The first `hits` of them are in the index; while they are few, they are different.
    begin: usize,
    end: usize,
    /// Start of the minimizers that have not been looked up.
    at: usize,
    hits: u64,
    /// Hits that suffice even if none of its minimizers are equal.
    needed: u64,
    /// Letters of its first read that these minimizers cover; 0 if they are all minimizers of the unit.
    part: usize,
}

struct Finder<'a, W> {
    by: &'a ByMinimizers<'a>,
    minimizers: Minimizers<W>,
    kmers: Vec<W>,
    /// End of the minimizers of each sequence.
    ends: Vec<usize>,
    units: Vec<Unit>,
    /// Undecided units, with the number of their minimizers in this round.
    open: Vec<(usize, usize)>,
    asked: Vec<W>,
    found: Vec<bool>,
    scratch: Vec<W>,
}

impl Decider for ByMinimizers<'_> {
    fn worker(&self, _: bool) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(match self.index.k().is_long() {
            true => Box::new(Immediate::new(Finder::<u128>::new(self)?)),
            false => Box::new(Immediate::new(Finder::<u64>::new(self)?)),
        })
    }
}

impl<W: Word> AtOnce for Finder<'_, W> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) {
        self.find(batch);
        self.look_up();
        if self.find_rest(batch) {
            self.look_up();
        }
        let (rule, counts) = (self.by.rule, self.by.counts);
        for unit in &self.units {
            let mut total = (unit.end - unit.begin) as u64;
            if unit.part > 0 {
                // Decided by its beginning: it matches, whatever follows.
                decisions.push(Decision::new(true, unit.hits, total));
                continue;
            }
            let is_open = unit.hits >= rule.hits() && unit.hits < rule.needed(total);
            if counts || is_open {
                total = distinct(&self.kmers[unit.begin..unit.end], &mut self.scratch);
            }
            decisions.push(Decision::new(rule.matches(unit.hits, total), unit.hits, total));
        }
    }
}

impl<'a, W: Word> Finder<'a, W> {
    fn new(by: &'a ByMinimizers<'a>) -> Result<Finder<'a, W>, Error> {
        Ok(Finder {
            by,
            minimizers: by.index.minimizers()?,
            kmers: Vec::new(),
            ends: Vec::new(),
            units: Vec::new(),
            open: Vec::new(),
            asked: Vec::new(),
            found: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Finds the minimizers of all units.
    fn find(&mut self, batch: &Batch) {
        self.kmers.clear();
        self.units.clear();
        self.open.clear();
        self.ends.clear();
        let (mut texts, mut of_units): (Vec<&[u8]>, _) = (Vec::new(), Vec::with_capacity(batch.units()));
        for unit in 0..batch.units() {
            let (part, windows) = self.beginning(batch, unit);
            match (part, batch.letters_of_unit(unit).next()) {
                (1.., Some(letters)) => texts.push(&letters[..part]),
                _ => texts
                    .extend(batch.letters_of_unit(unit).map(|letters| &letters[..letters.len().min(self.by.prefix)])),
            }
            of_units.push((texts.len(), part, windows));
        }
        self.minimizers.kmers_bulk_into(&texts, &mut self.kmers, &mut self.ends);
        let mut next = 0;
        for (unit, (texts, part, windows)) in of_units.into_iter().enumerate() {
            let begin = next;
            let end = texts.checked_sub(1).map_or(0, |last| self.ends[last]);
            next = end;
            let total = if part > 0 { windows } else { (end - begin) as u64 };
            let needed = if self.by.counts { u64::MAX } else { self.by.rule.needed(total) };
            self.units.push(Unit { begin, end, at: begin, hits: 0, needed, part });
            // With fewer minimizers than the hits it needs, a unit cannot match.
            if begin < end && (self.by.counts || (end - begin) as u64 >= self.by.rule.hits()) {
                self.open.push((unit, 0));
            }
        }
    }

    /// Returns the letters of the first read of a unit whose minimizers may decide it, 0 if all are needed; and the
    /// windows of the unit.
    fn beginning(&self, batch: &Batch, unit: usize) -> (usize, u64) {
        let scheme = self.minimizers.scheme();
        let window = scheme.window() as usize;
        let lengths = || batch.letters_of_unit(unit).map(|letters| letters.len().min(self.by.prefix));
        let windows = lengths().map(|len| (len + 1).saturating_sub(window) as u64).sum();
        if self.by.counts {
            return (0, windows);
        }
        // Two minimizers in w + 1 k-mers, and a quarter more, because some are equal or have errors.
        let kmers = self.by.rule.needed(windows).saturating_mul(u64::from(scheme.w + 1) * 5 / 8);
        let part = usize::try_from(kmers).unwrap_or(usize::MAX).saturating_add(4 * window);
        let is_worth_it = lengths().next().is_some_and(|len| part < len / 2);
        (if is_worth_it { part } else { 0 }, windows)
    }

    /// Finds the other minimizers of units that their beginnings did not decide. Returns whether there are such units.
    fn find_rest(&mut self, batch: &Batch) -> bool {
        let overlap = self.minimizers.scheme().window() as usize - 1;
        let (mut texts, mut of_units): (Vec<&[u8]>, _) = (Vec::new(), Vec::new());
        for (i, unit) in self.units.iter().enumerate().filter(|(_, unit)| unit.part > 0 && unit.hits < unit.needed) {
            let mut first = unit.part - overlap;
            for letters in batch.letters_of_unit(i) {
                texts.push(&letters[std::mem::take(&mut first)..letters.len().min(self.by.prefix)]);
            }
            of_units.push((i, texts.len()));
        }
        self.ends.clear();
        let mut rest = std::mem::take(&mut self.scratch);
        rest.clear();
        self.minimizers.kmers_bulk_into(&texts, &mut rest, &mut self.ends);
        let mut next = 0;
        for (i, texts) in of_units {
            let Unit { begin, end, at, hits, .. } = self.units[i];
            let moved = self.kmers.len();
            self.kmers.extend_from_within(begin..end);
            self.kmers.extend_from_slice(&rest[next..self.ends[texts - 1]]);
            next = self.ends[texts - 1];
            let (end, at) = (self.kmers.len(), moved + (at - begin));
            let needed = self.by.rule.needed((end - moved) as u64);
            self.units[i] = Unit { begin: moved, end, at, hits, needed, part: 0 };
            if at < end && hits < needed {
                self.open.push((i, 0));
            }
        }
        self.scratch = rest;
        !self.open.is_empty()
    }

    /// Looks up minimizers in rounds, until all units are decided or all of their minimizers have been looked up.
    fn look_up(&mut self) {
        let mut round = 0;
        while !self.open.is_empty() {
            self.ask(round);
            self.take();
            round += 1;
        }
    }

    /// Looks up the next minimizers of all undecided units.
    fn ask(&mut self, round: u32) {
        self.asked.clear();
        for (unit, asked) in &mut self.open {
            let unit = &self.units[*unit];
            let first = FIRST.max((unit.needed - unit.hits).saturating_mul(5).min(1 << 20) as usize / 4);
            let rest = unit.end - unit.at;
            // Without another hit among these, the last ones cannot suffice, and need not be looked up.
            let spared = (unit.part == 0 && !self.by.counts).then(|| self.by.rule.hits().saturating_sub(unit.hits + 1));
            let worth = rest.saturating_sub(spared.map_or(0, |spared| usize::try_from(spared).unwrap_or(usize::MAX)));
            *asked = first.saturating_mul(MORE.saturating_pow(round)).min(worth.max(1)).min(rest);
            self.asked.extend_from_slice(&self.kmers[unit.at..unit.at + *asked]);
        }
        self.found.resize(self.asked.len(), false);
        for (asked, found) in self.asked.chunks(LOOKUPS).zip(self.found.chunks_mut(LOOKUPS)) {
            self.by.index.contains_into(asked, found);
        }
    }

    /// Counts the hits, and keeps the units that are still undecided.
    fn take(&mut self) {
        let mut begin = 0;
        let Finder { by, units, kmers, found, open, .. } = self;
        open.retain(|&(unit, asked)| {
            let unit = &mut units[unit];
            let found = &found[begin..begin + asked];
            begin += asked;
            // Most reads that do not match have no hit at all, which is checked for many answers at a time.
            let hits = if found.contains(&true) { found } else { &[] };
            for (i, _) in hits.iter().enumerate().filter(|(_, found)| **found) {
                let (at, hits) = (unit.at + i, unit.begin + unit.hits as usize);
                if unit.needed > FEW || !kmers[unit.begin..hits].contains(&kmers[at]) {
                    // The k-mer at this place has been looked up, and is no hit.
                    kmers.swap(hits, at);
                    unit.hits += 1;
                    if unit.hits >= unit.needed && unit.needed <= FEW {
                        return false;
                    }
                }
            }
            unit.at += asked;
            let is_last = unit.at == unit.end;
            if unit.needed > FEW && (is_last || unit.hits >= unit.needed) {
                unit.hits = different_first(&mut kmers[unit.begin..unit.begin + unit.hits as usize]);
            }
            // After its beginning only, the rest of a read may still have hits.
            let may_match = by.counts || unit.part > 0 || unit.hits + (unit.end - unit.at) as u64 >= by.rule.hits();
            !is_last && unit.hits < unit.needed && may_match
        });
    }
}

/// Moves one k-mer of each kind to the front, and returns their number; all k-mers stay.
fn different_first<W: Kmer>(kmers: &mut [W]) -> u64 {
    kmers.sort_unstable();
    let mut kinds = 0;
    for i in 0..kmers.len() {
        if kinds == 0 || kmers[kinds - 1] != kmers[i] {
            kmers.swap(kinds, i);
            kinds += 1;
        }
    }
    kinds as u64
}

/// Counts different k-mers.
fn distinct<W: Kmer>(kmers: &[W], scratch: &mut Vec<W>) -> u64 {
    scratch.clear();
    scratch.extend_from_slice(kmers);
    scratch.sort_unstable();
    scratch.dedup();
    scratch.len() as u64
}
