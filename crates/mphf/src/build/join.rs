//! The join of the parts of all partitions to a function.
//!
//! Every part shifts its own words to their place, in parallel; only the words that two parts share are combined with
//! an atomic `or`. Source of the lists: section 5.9.

use super::{Construction, Failure, Parts, work_stealing};
use crate::HashKind;
use crate::bit_vec;
use crate::elias_fano;
use crate::format::{self, Header};
use crate::function::{Parameters, PerfectHash};
use crate::kind::{Bucket, Part};
use rayon::prelude::*;

impl<M: HashKind> Construction<M> {
    /// Joins the parts of all partitions to a function.
    pub(crate) fn join(&self, parts: Parts) -> Result<PerfectHash<M>, Failure> {
        let Parts { parts, buckets, least } = parts;
        let sums = Sums::over(&parts, buckets.as_slice());
        let layout = elias_fano::layout(&sums, &least, elias_fano::log_stride(self.settings.bucket_size));
        let header = Header {
            keys: self.keys,
            seed: self.settings.seed,
            code: self.settings.code,
            largest_bucket: parts.iter().map(|part| part.largest).max().unwrap_or(0),
            bucket_size: self.settings.bucket_size,
            code_bits: sums.all().bits,
            layout,
        };
        // Zeroed in parallel, so that all threads take the page faults.
        let zeros = rayon::iter::repeat_n(0, header.words() as usize);
        let mut words: Vec<u64> = zeros.with_min_len(ZEROED).collect();
        let (head, rest) = words.split_at_mut(format::HEADER_WORDS as usize);
        head.copy_from_slice(&header.to_words());
        let (trees, lists) = bit_vec::shared(rest).split_at(header.code_bits.div_ceil(64) as usize);
        let stretches = elias_fano::stretches(&sums);
        // Several parts per item, since most parts are small.
        let some = parts.len().div_ceil(rayon::current_num_threads() * 8).max(1);
        let work = |space: &mut elias_fano::Space, item| {
            if item < stretches {
                return elias_fano::encode_stretch(&layout, &sums, item, space, lists).ok_or(Failure::Unlucky);
            }
            let from = (item - stretches) * some;
            parts
                .iter()
                .zip(&sums.starts)
                .skip(from)
                .take(some)
                .for_each(|(part, start)| part.bits.copy_to(trees, start.bits));
            Ok(())
        };
        work_stealing::for_each(0..stretches + parts.len().div_ceil(some), work)?;
        let (checksum, ()) = rayon::join(|| format::checksum(&words), || drop((parts, buckets)));
        words[format::COMMON_WORDS - 1] = checksum;
        let parameters = Parameters::trusted(header, &words);
        Ok(PerfectHash::trusted(words, parameters))
    }
}

/// Words that a thread zeroes at a time.
const ZEROED: usize = 1 << 12;

/// Start of a part.
#[derive(Clone, Copy, Default)]
struct Start {
    bucket: usize,
    keys: u64,
    bits: u64,
}

/// Keys and bits before each bucket.
struct Sums<'a> {
    buckets: &'a [Bucket],
    /// Starts of the parts, and the end of the last one.
    starts: Vec<Start>,
}

impl<'a> Sums<'a> {
    fn over(parts: &[Part], buckets: &'a [Bucket]) -> Self {
        let mut starts = vec![Start::default()];
        let mut sum = Start::default();
        for part in parts {
            sum.bucket += part.buckets;
            sum.keys += part.keys;
            sum.bits += part.bits.len();
            starts.push(sum);
        }
        Self { buckets, starts }
    }

    fn all(&self) -> Start {
        self.starts.last().copied().unwrap_or_default()
    }
}

impl elias_fano::Prefixes for Sums<'_> {
    fn len(&self) -> usize {
        self.buckets.len() + 1
    }

    fn read(&self, first: usize, to: &mut [(u64, u64)]) {
        let Some((entry, rest)) = to.split_first_mut() else { return };
        let start = self.starts[self.starts.partition_point(|start| start.bucket <= first) - 1];
        let mut sum = (start.keys, start.bits);
        let mut add = |bucket: &Bucket| {
            sum.0 += u64::from(bucket.keys);
            sum.1 += u64::from(bucket.bits);
            sum
        };
        let (before, after) = self.buckets.split_at(first);
        before[start.bucket..].iter().for_each(|bucket| _ = add(bucket));
        *entry = add(&Bucket::default());
        // Each further entry has one bucket more before it.
        rest.iter_mut().zip(after).for_each(|(entry, bucket)| *entry = add(bucket));
    }
}
