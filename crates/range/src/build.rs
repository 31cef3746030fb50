//! Builds: keys in the order of their codes, then the words, a stretch per task.

use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_base::words::{AlignedWords, zeroed_vec};
use warpset_core::bits::{read_field, write_field};
use warpset_core::hash::mix;
use warpset_core::range::{BLOCK, HINTED, MOST_CODES, Offset, Shape};

use crate::key::sealed::Word;
use crate::{Error, KeyOf, Layout, RangeFilter, RangeKey};

/// Keys per task.
const TASK: usize = 1 << 14;
/// Blocks of upper bits per task, so that numbers of ones of a task are whole words.
const TASK_BLOCKS: usize = 64;
/// Words of a block of upper bits.
const BLOCK_WORDS: usize = BLOCK as usize / 64;

/// Keys of a task.
struct Summary<W> {
    /// Numbers of the least and the largest key.
    ends: (W, W),
    /// Whether each key is larger than the one before.
    ascends: bool,
    /// Number of the first key and of the last.
    first: W,
    last: W,
}

/// Builds the filter of keys in any order.
pub(crate) fn build<K, Q>(codes_per_key: f64, seed: u64, keys: &[Q]) -> Result<RangeFilter<K>, Error>
where
    K: RangeKey + ?Sized,
    Q: KeyOf<K>,
{
    let Some(whole) = summary(keys) else {
        return RangeFilter::from_parts(Layout::empty(seed), AlignedWords::zeroed(0)?);
    };
    let (least, largest) = whole.ends;
    let layout_of =
        |keys: usize, codes_per_key| Layout::of(keys as u64, (least.wide(), largest.wide()), codes_per_key, seed);
    let wanted = layout_of(keys.len(), codes_per_key);
    // Copies may need too many codes, where different keys alone do not.
    let few = MOST_CODES as f64 / (2 * keys.len()) as f64;
    let mut layout = wanted.as_ref().map_or_else(|_| layout_of(keys.len(), few), |layout| Ok(*layout))?;
    let offset = |i: usize| keys[i].word().minus(least);
    if whole.ascends && layout.is_exact() {
        return RangeFilter::from_parts(layout, words_of(&layout.shape, |i| offset(i).low())?);
    }
    let mut codes = codes_of(&layout.shape, keys.len(), offset)?;
    if !whole.ascends
        && let Some(distinct) = without_copies(&layout.shape, &codes, offset)
    {
        layout = layout_of(distinct.len(), codes_per_key)?;
        codes = codes_of(&layout.shape, distinct.len(), |i| distinct[i])?;
    } else {
        wanted?;
    }
    RangeFilter::from_parts(layout, words_of(&layout.shape, |i| codes[i])?)
}

/// Returns the codes of keys in ascending order.
fn codes_of<W: Word>(shape: &Shape, keys: usize, offset: impl Fn(usize) -> W + Sync) -> Result<Vec<u64>, Error> {
    let mut codes = zeroed_vec(keys as u64)?;
    parallel::for_each(codes.chunks_mut(TASK).enumerate(), |(task, codes)| {
        (task * TASK..).zip(codes).for_each(|(i, code)| *code = shape.code(offset(i)));
    });
    sort_by_rank(&mut codes, 64 - (shape.universe - 1).leading_zeros(), |code| code);
    Ok(codes)
}

/// Finds the ends of all keys, and whether they ascend.
fn summary<K: RangeKey + ?Sized, Q: KeyOf<K>>(keys: &[Q]) -> Option<Summary<K::Word>> {
    let parts = parallel::map(keys.chunks(TASK), |keys| {
        let (first, last) = (keys[0].word(), keys[keys.len() - 1].word());
        let mut part = Summary { ends: (first, first), ascends: true, first, last };
        let mut before = first;
        for key in &keys[1..] {
            let word = key.word();
            part.ends = (part.ends.0.min(word), part.ends.1.max(word));
            part.ascends &= before < word;
            before = word;
        }
        part
    });
    parts.into_iter().reduce(|all, part| Summary {
        ends: (all.ends.0.min(part.ends.0), all.ends.1.max(part.ends.1)),
        ascends: all.ascends && part.ascends && all.last < part.first,
        first: all.first,
        last: part.last,
    })
}

/// Returns all keys once each, in any order, if some are equal, given their codes in ascending order.
fn without_copies<W: Word>(shape: &Shape, codes: &[u64], offset: impl Fn(usize) -> W + Sync) -> Option<Vec<W>> {
    // Equal keys have equal codes, and few others have.
    let mut shared: Vec<u64> = codes.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
    shared.dedup();
    if shared.is_empty() {
        return None;
    }
    let is_shared = Members::new(&shared);
    let parts = parallel::map((0..codes.len()).step_by(TASK), |first| {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for offset in (first..codes.len().min(first + TASK)).map(&offset) {
            if is_shared.contains(shape.code(offset)) { together.push(offset) } else { alone.push(offset) }
        }
        (alone, together)
    });
    let (alone, together): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let (mut distinct, mut together) = (alone.concat(), together.concat());
    let before = together.len();
    sort_by_rank(&mut together, W::BITS, |offset| offset);
    together.dedup();
    if together.len() == before {
        return None;
    }
    distinct.append(&mut together);
    Some(distinct)
}

/// Set of codes that may hold others too.
struct Members {
    bits: Vec<u64>,
    shift: u32,
}

impl Members {
    fn new(codes: &[u64]) -> Members {
        // A twentieth of the bits are set.
        let log = (20 * codes.len()).next_power_of_two().ilog2().max(6);
        let mut members = Members { bits: vec![0; 1 << (log - 6)], shift: 64 - log };
        for &code in codes {
            let bit = members.bit_of(code);
            members.bits[bit / 64] |= 1 << (bit % 64);
        }
        members
    }

    fn bit_of(&self, code: u64) -> usize {
        (mix(code, 0) >> self.shift) as usize
    }

    fn contains(&self, code: u64) -> bool {
        let bit = self.bit_of(code);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}

/// Writes the words of a filter, given its codes in order.
fn words_of(shape: &Shape, code: impl Fn(usize) -> u64 + Sync) -> Result<AlignedWords<u64>, Error> {
    let mut words = AlignedWords::zeroed(shape.words)?.in_huge_pages();
    let mut rest = words.as_mut_slice();
    let mut part = |end: u64, begin: u64| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(((end - begin) / 64) as usize);
        rest = after;
        part
    };
    let upper = part(shape.ranks, 0);
    let ranks = part(shape.hints, shape.ranks);
    let hints = part(shape.lower, shape.hints);
    let lower = rest;
    let tasks = upper.chunks_mut(TASK_BLOCKS * BLOCK_WORDS).zip(ranks.chunks_mut(shape.rank_bits as usize));
    parallel::for_each(tasks.enumerate(), |(task, (upper, ranks))| {
        write_upper(shape, task as u64 * TASK_BLOCKS as u64 * BLOCK, &code, upper, ranks);
    });
    write_hints(shape, ranks, hints);
    if shape.low_bits > 0 {
        let tasks = lower.chunks_mut(TASK / 64 * shape.low_bits as usize);
        parallel::for_each(tasks.enumerate(), |(task, lower)| {
            let first = task * TASK;
            write_lower(shape, first..(first + TASK).min(shape.keys as usize), &code, lower);
        });
    }
    Ok(words)
}

/// Writes a stretch of upper bits, and the number of ones before each of its blocks.
fn write_upper(shape: &Shape, begin: u64, code: &impl Fn(usize) -> u64, upper: &mut [u64], ranks: &mut [u64]) {
    let one = |index: usize| shape.one(index as u64, code(index));
    let (mut first, mut end) = (0, shape.keys as usize);
    while first < end {
        let middle = first.midpoint(end);
        if one(middle) < begin { first = middle + 1 } else { end = middle }
    }
    let (mut number, mut word) = (0, 0);
    for index in first..shape.keys as usize {
        let at = (one(index) - begin) as usize;
        if at / 64 != number {
            upper[number] = word;
            (number, word) = (at / 64, 0);
            if number >= upper.len() {
                break;
            }
        }
        word |= 1 << (at % 64);
    }
    if number < upper.len() {
        upper[number] = word;
    }
    let mut ones = first as u64;
    for (block, words) in (0..).zip(upper.chunks(BLOCK_WORDS)) {
        write_field(ranks, block * u64::from(shape.rank_bits), shape.rank_bits, ones);
        ones += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    }
}

/// Writes the block of upper bits of each [`HINTED`]th bucket, and the last block after these.
fn write_hints(shape: &Shape, ranks: &[u64], hints: &mut [u64]) {
    let (blocks, count) = (shape.blocks(), shape.hint_count());
    let mut hint = 0;
    for block in 0..blocks {
        let after = block + 1;
        let zeros_after = match after < blocks {
            true => after * BLOCK - read_field(ranks, after * u64::from(shape.rank_bits), shape.rank_bits),
            false => u64::MAX,
        };
        while hint < count && hint * HINTED < zeros_after {
            write_field(hints, hint * u64::from(shape.hint_bits), shape.hint_bits, block);
            hint += 1;
        }
    }
}

/// Writes the lower bits of keys to their words.
fn write_lower(shape: &Shape, keys: std::ops::Range<usize>, code: &impl Fn(usize) -> u64, lower: &mut [u64]) {
    let (mut word, mut used) = (0, 0);
    let mut to = lower.iter_mut();
    for index in keys {
        let low = shape.low_of(code(index));
        word |= low << used;
        used += shape.low_bits;
        if used >= 64 {
            if let Some(to) = to.next() {
                *to = word;
            }
            used -= 64;
            word = if used == 0 { 0 } else { low >> (shape.low_bits - used) };
        }
    }
    if let Some(to) = to.next() {
        *to = word;
    }
}
