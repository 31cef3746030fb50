//! Builds: keys in the order of their codes, then the words, a stretch per task.

use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_base::words::{AlignedWords, zeroed_vec};
use warpset_core::bits::{lowest, write_field};
use warpset_core::range::{BLOCK, HINTED, Offset, Shape};

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
    let layout_of = |keys: usize| Layout::of(keys as u64, (least.wide(), largest.wide()), codes_per_key, seed);
    let mut layout = layout_of(keys.len())?;
    let offset = |i: usize| keys[i].word().minus(least);
    if whole.ascends && layout.is_exact() {
        return RangeFilter::from_parts(layout, words_of(&layout.shape, |i| offset(i).low())?);
    }
    let mut offsets = zeroed_vec::<K::Word>(keys.len() as u64)?;
    let filled = offsets.chunks_mut(TASK).zip(keys.chunks(TASK));
    parallel::for_each(filled, |(offsets, keys)| {
        offsets.iter_mut().zip(keys).for_each(|(offset, key)| *offset = key.word().minus(least));
    });
    loop {
        let shape = layout.shape;
        sort_by_rank(&mut offsets, 64 - (shape.universe - 1).leading_zeros(), |offset| shape.code(offset));
        if whole.ascends || !remove_copies(&shape, &mut offsets) {
            return RangeFilter::from_parts(layout, words_of(&shape, |i| shape.code(offsets[i]))?);
        }
        layout = layout_of(offsets.len())?;
    }
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

/// Keeps one of equal keys, which are in the order of their codes; returns whether there were any.
fn remove_copies<W: Word>(shape: &Shape, offsets: &mut Vec<W>) -> bool {
    let starts = (0..offsets.len().saturating_sub(1)).step_by(TASK);
    let alike = parallel::map(starts, |start| {
        let part = &offsets[start..offsets.len().min(start + TASK + 1)];
        let mut before = shape.code(part[0]);
        let mut alike = Vec::new();
        for (i, &offset) in (start..).zip(&part[1..]) {
            let code = shape.code(offset);
            if code == before {
                alike.push(i);
            }
            before = code;
        }
        alike
    });
    // Different keys may have one code: equal ones are neighbours only once these are in order.
    for run in alike.concat().chunk_by(|a, b| a + 1 == *b) {
        offsets[run[0]..run[run.len() - 1] + 2].sort_unstable();
    }
    let before = offsets.len();
    if alike.iter().any(|alike| !alike.is_empty()) {
        offsets.dedup();
    }
    offsets.len() < before
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
            write_lower(shape.low_bits, first..(first + TASK).min(shape.keys as usize), &code, lower);
        });
    }
    Ok(words)
}

/// Writes a stretch of upper bits, and the number of ones before each of its blocks.
fn write_upper(shape: &Shape, begin: u64, code: &impl Fn(usize) -> u64, upper: &mut [u64], ranks: &mut [u64]) {
    let one = |index: usize| (code(index) >> shape.low_bits) + index as u64 + 1;
    let (mut first, mut end) = (0, shape.keys as usize);
    while first < end {
        let middle = first.midpoint(end);
        if one(middle) < begin { first = middle + 1 } else { end = middle }
    }
    let mut index = first;
    let mut next = if index < shape.keys as usize { one(index) - begin } else { u64::MAX };
    for (block, words) in (0..).zip(upper.chunks_mut(BLOCK_WORDS)) {
        write_field(ranks, block * u64::from(shape.rank_bits), shape.rank_bits, index as u64);
        for (number, word) in (block * BLOCK_WORDS as u64..).zip(words) {
            while next / 64 == number {
                *word |= 1 << (next % 64);
                index += 1;
                next = if index < shape.keys as usize { one(index) - begin } else { u64::MAX };
            }
        }
    }
}

/// Writes the block of upper bits of each [`HINTED`]th bucket, and the last block after these.
fn write_hints(shape: &Shape, ranks: &[u64], hints: &mut [u64]) {
    let (blocks, count) = (shape.blocks(), shape.hint_count());
    let mut hint = 0;
    for block in 0..blocks {
        let after = block + 1;
        let zeros_after = match after < blocks {
            true => {
                after * BLOCK
                    - warpset_core::bits::read_field(ranks, after * u64::from(shape.rank_bits), shape.rank_bits)
            }
            false => u64::MAX,
        };
        while hint < count && hint * HINTED < zeros_after {
            write_field(hints, hint * u64::from(shape.hint_bits), shape.hint_bits, block);
            hint += 1;
        }
    }
}

/// Writes the lower bits of keys to their words.
fn write_lower(bits: u32, keys: std::ops::Range<usize>, code: &impl Fn(usize) -> u64, lower: &mut [u64]) {
    let (mut word, mut used) = (0, 0);
    let mut to = lower.iter_mut();
    for index in keys {
        let low = code(index) & lowest(bits);
        word |= low << used;
        used += bits;
        if used >= 64 {
            if let Some(to) = to.next() {
                *to = word;
            }
            used -= 64;
            word = if used == 0 { 0 } else { low >> (bits - used) };
        }
    }
    if let Some(to) = to.next() {
        *to = word;
    }
}
