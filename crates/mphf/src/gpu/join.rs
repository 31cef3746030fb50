//! The join of the devices' results to one function, on the first of them.

use std::ops::Range;

use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::recsplit::join::{recsplit_add, recsplit_join};
use warpset_simt::GlobalMut;

use super::buckets::covering;
use super::lists::{Last, Sums};
use super::plan::AttemptError;
use super::{DeviceHashKind, EncodedBuckets, PerfectHash};
use crate::Error;
use crate::build::{Failure, Settings};
use crate::elias_fano::{self, Least};
use crate::format::{HEADER_WORDS, Header};
use crate::function::Parameters;

/// Result of one device: the codes of its buckets.
pub(super) struct DevicePart<F> {
    /// Bits of each range, counted from the first one of the part. The first word begins with the last bits of the
    /// range before.
    pub(super) pieces: Vec<(Range<u64>, DeviceVec<u64>)>,
    /// Codes that are not bits yet, instead of pieces, if one device had one range.
    pub(super) found: Option<F>,
    /// Sums over the buckets of the part.
    pub(super) sums: Sums,
    /// Least number of bits of a bucket by its number of keys.
    pub(super) least: Vec<u64>,
    pub(super) largest: u32,
    pub(super) keys: u64,
    pub(super) bits: u64,
}

/// Joins the results for all buckets, in their order, to a function of `keys` keys, on the device of `stream`. `mark`
/// ends a stage.
pub(super) fn join<M: DeviceHashKind>(
    settings: &Settings<M>,
    keys: u64,
    stream: &Stream,
    mut built: Vec<DevicePart<M::Found>>,
    mark: impl Fn(&'static str) -> Result<(), Error>,
) -> Result<PerfectHash<M>, AttemptError> {
    let joined = if built.len() > 1 { Some(sums(stream, &built)?) } else { None };
    let bits = built.iter().map(|built| built.bits).sum();
    let mut least = Least::default();
    built.iter_mut().for_each(|built| least.merge(&Least::of(std::mem::take(&mut built.least))));
    let sums = joined.as_ref().unwrap_or(&built[0].sums);
    let last = Last { entries: sums.keys.len(), sums: (keys, bits) };
    let layout = elias_fano::layout(&last, &least, elias_fano::log_stride(settings.bucket_size));
    let header = Header {
        keys,
        seed: settings.seed,
        code: settings.code,
        largest_bucket: built.iter().map(|built| built.largest).max().unwrap_or(0),
        bucket_size: settings.bucket_size,
        code_bits: bits,
        layout,
    };
    let mut words = stream.device().alloc_uninit::<u64>(header.words() as usize)?;
    stream.fill_bytes(&mut words, 0)?;
    mark("layout")?;
    let trees = HEADER_WORDS as usize;
    let lists = trees + bits.div_ceil(64) as usize;
    let mut base = 0;
    for built in &built {
        for (bits, piece) in &built.pieces {
            let at = base + bits.start / 64 * 64;
            if base == 0 {
                let first = trees + (at / 64) as usize;
                stream.copy(words.slice_mut(first..first + piece.len()), piece.as_slice())?;
                continue;
            }
            // SAFETY: the bits of all pieces are within those of the trees, and memory is freed in the order of the
            // stream.
            unsafe { queue_bits(stream, piece, at, words.global_mut().at(trees))? };
        }
        base += built.bits;
    }
    // SAFETY: the sums are those of the layout, and there are words for it; all of it is waited for below, also after
    // an error.
    let queued = unsafe { sums.queue_lists(stream, &layout, words.global_mut().at(lists)) };
    mark("lists")?;
    let written = match &built[..] {
        // SAFETY: these are the bits of all buckets, and their words are zero.
        [DevicePart { found: Some(found), .. }] => unsafe {
            found.queue_words(stream, sums.bits.as_slice(), 0, words.global_mut().at(trees))
        },
        _ => Ok(()),
    };
    mark("encoding")?;
    let mut overflow = [0];
    let queued = queued.and_then(|flag| Ok(stream.download(&flag, &mut overflow)?));
    stream.synchronize()?;
    queued.and(written)?;
    if overflow[0] != 0 {
        return Err(AttemptError::Seed(Failure::Unlucky));
    }
    stream.upload(words.slice_mut(..trees), &header.to_words())?;
    let parameters =
        Parameters::new(header, |to| stream.download(words.slice(header.lists_at() as usize..words.len()), to))?;
    Ok(PerfectHash::from_parts(stream.device(), words, parameters)?)
}

/// Computes the sums over all buckets.
fn sums<F>(stream: &Stream, built: &[DevicePart<F>]) -> Result<Sums, Error> {
    let buckets = |built: &DevicePart<F>| built.sums.keys.len() - 1;
    let mut all = Sums::new(stream, built.iter().map(buckets).sum())?;
    let (mut before, mut first) = ((0, 0), 1);
    for built in built {
        let end = first + buckets(built);
        let sums = &built.sums;
        for (to, from, base) in [(&mut all.keys, &sums.keys, before.0), (&mut all.bits, &sums.bits, before.1)] {
            let mut to = to.slice_mut(first..end);
            stream.copy(&mut to, from.slice(1..))?;
            let (n, sums) = (end - first, to.global_mut());
            // SAFETY: the sums stay allocated until the stream has passed this work, and nothing else uses them.
            unsafe { recsplit_add { sums, n, base }.launch(stream, covering(stream.device(), n))? };
        }
        before = (before.0 + built.keys, before.1 + built.bits);
        first = end;
    }
    Ok(all)
}

/// Queues an `or` of the bits of `from`, on any device, to those of `words` from `at` on.
///
/// # Safety
/// `words` are valid for these bits, and stay so until `stream` has passed this work; nothing else accesses them.
pub(super) unsafe fn queue_bits(
    stream: &Stream,
    from: &DeviceVec<u64>,
    at: u64,
    words: GlobalMut<u64>,
) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    let mut here = stream.alloc_uninit(from.len())?;
    stream.copy(&mut here, from)?;
    let (n, from) = (here.len(), here.global());
    // SAFETY: the copy is freed in the order of the stream; the rest is this function's contract.
    unsafe { recsplit_join { from, n, at, words }.launch(stream, covering(stream.device(), n))? };
    Ok(())
}
