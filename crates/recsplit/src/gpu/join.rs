//! Joining what devices have built to one function, on the first of them.

use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::recsplit::join::{recsplit_add, recsplit_join};
use warpset_simt::GlobalMut;

use super::RecSplit;
use super::buckets::covering;
use super::build::Stopped;
use super::lists::{Last, Sums};
use super::share::{Attempt, Built};
use super::source::Source;
use crate::Error;
use crate::build::Failure;
use crate::elias_fano::{self, Least};
use crate::format::{HEADER_WORDS, Header};

impl<K: Source> Attempt<'_, K> {
    /// The function that has what was built for all shares, in their order.
    pub(super) fn join(&self, mut built: Vec<Built>) -> Result<RecSplit, Stopped> {
        let (settings, stream, keys) = (&self.settings, &self.streams[0], self.keys());
        let joined = if built.len() > 1 { Some(self.sums(&built)?) } else { None };
        let bits = built.iter().map(|built| built.bits).sum();
        let mut least = Least::default();
        built.iter_mut().for_each(|built| least.merge(&Least::of(std::mem::take(&mut built.least))));
        let sums = joined.as_ref().unwrap_or(&built[0].sums);
        let last = Last { entries: sums.keys.len(), sums: (keys, bits) };
        let layout = elias_fano::layout(&last, &least, elias_fano::log_stride(settings.bucket_size));
        let header = Header {
            keys,
            seed: settings.seed,
            shape: settings.shape,
            remix: settings.remix,
            largest_bucket: built.iter().map(|built| built.largest).max().unwrap_or(0),
            bucket_size: settings.bucket_size,
            tree_bits: bits,
            layout,
        };
        let mut words = stream.device().alloc_uninit::<u64>(header.words() as usize)?;
        stream.fill_bytes(&mut words, 0)?;
        self.mark(stream, "layout")?;
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
                // SAFETY: the bits of all pieces are within those of the trees, and memory is freed in the order of the stream.
                unsafe { queue_bits(stream, piece, at, words.global_mut().at(trees))? };
            }
            base += built.bits;
        }
        // SAFETY: the sums are those of the layout, for which there are words; all of it is waited for below, on an error too.
        let queued = unsafe { sums.queue_lists(stream, &layout, words.global_mut().at(lists)) };
        self.mark(stream, "lists")?;
        let written = match &built[..] {
            // SAFETY: these are the bits of all buckets, for which the words are zero.
            [Built { found: Some(found), .. }] => unsafe {
                found.queue_words(stream, sums.bits.as_slice(), 0, words.global_mut().at(trees))
            },
            _ => Ok(()),
        };
        self.mark(stream, "encoding")?;
        let mut overflow = [0];
        let queued = queued.and_then(|flag| Ok(stream.download(&flag, &mut overflow)?));
        stream.synchronize()?;
        queued.and(written)?;
        if overflow[0] != 0 {
            return Err(Stopped::Seed(Failure::Unlucky));
        }
        stream.upload(words.slice_mut(..trees), &header.to_words())?;
        Ok(RecSplit::from_parts(stream.device(), words, header)?)
    }

    /// The sums over all buckets.
    fn sums(&self, built: &[Built]) -> Result<Sums, Error> {
        let stream = &self.streams[0];
        let mut all = Sums::new(stream, self.share_of(built.len() - 1).end as usize)?;
        let mut before = (0, 0);
        for (place, built) in built.iter().enumerate() {
            let share = self.share_of(place);
            let (first, end) = (share.start as usize + 1, share.end as usize + 1);
            let sums = &built.sums;
            for (to, from, base) in [(&mut all.keys, &sums.keys, before.0), (&mut all.bits, &sums.bits, before.1)] {
                let mut to = to.slice_mut(first..end);
                stream.copy(&mut to, from.slice(1..))?;
                let (n, sums) = (end - first, to.global_mut());
                // SAFETY: the sums stay until the stream has passed this work, and nothing else uses them.
                unsafe { recsplit_add { sums, n, base }.launch(stream, covering(stream.device(), n))? };
            }
            before = (before.0 + built.keys, before.1 + built.bits);
        }
        Ok(all)
    }
}

/// Queues that the bits of `from`, on any device, are or-ed to those of `words` from `at` on.
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
    // SAFETY: the copy is freed in the order of the stream; the rest is the caller's promise.
    unsafe { recsplit_join { from, n, at, words }.launch(stream, covering(stream.device(), n))? };
    Ok(())
}
