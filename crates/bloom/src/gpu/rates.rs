//! Rates of false positives, computed on the device: only a few bytes are copied to the host.

use warpset_core::hash::spread_seed;
use warpset_gpu::DeviceVec;
use warpset_gpu::batch::Answers;
use warpset_kernels::bloom::words as kernels;
use warpset_primitives::DeviceFilter;

use super::kernels::RateOf;
use super::{Bloom, DeviceLayout};
use crate::{Error, Hashed, rates};

/// Samples that one launch looks up.
const SAMPLES: usize = 1 << 22;
/// Blocks per warp; a warp sums their rates, and the host adds the sums of all warps in order.
const PART: usize = 1 << 10;

impl<L: DeviceLayout> Bloom<L> {
    /// Returns the current rate of false positives, from the number of ones in each block. Waits for all work on the
    /// device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn fpr(&self) -> Result<f64, Error> {
        let stream = self.synchronised_stream()?;
        let blocks = self.layout.blocks() as usize;
        let sum: f64 = match self.layout.rate_of() {
            RateOf::Block(shape) => {
                let mut sums: DeviceVec<f64> = stream.alloc_uninit(blocks.div_ceil(PART))?;
                let config = self.covering(sums.len() * 32);
                // SAFETY: the words are blocks of this shape; the filter is borrowed until the stream has been waited
                // for.
                unsafe {
                    let (words, sums) = (self.words.global(), sums.global_mut());
                    kernels::words_block_rates { words, shape, blocks, part: PART, sums }.launch(&stream, config)?;
                }
                let mut on_host = vec![0.0; sums.len()];
                stream.download(&sums, &mut on_host)?;
                on_host.iter().sum()
            }
            RateOf::Bucket(shape) => {
                let rate = |ones: u32| (ones as f64 / shape.bits as f64).powi(shape.hashes as i32);
                self.bucket_ones.to_vec()?.into_iter().map(rate).sum()
            }
        };
        Ok(self.layout.query_rate(sum / blocks as f64))
    }

    /// Returns the fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain: the
    /// number that [`cpu::Bloom::measured_fpr`](crate::cpu::Bloom::measured_fpr) gives. Waits for all work on the
    /// device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        let spread = spread_seed(seed);
        let stream = self.synchronised_stream()?;
        let most = samples.min(SAMPLES as u64) as usize;
        let mut hashes = stream.alloc_uninit::<u64>(most)?;
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        let mut first = 0;
        while first < samples {
            let n = (samples - first).min(most as u64) as usize;
            let answers = Answers::count(count.as_mut_slice())?;
            // SAFETY: there is room for `n` hashes and one count; the filter is borrowed until the stream has been
            // waited for, in `download`.
            unsafe {
                let to = hashes.global_mut();
                kernels::words_sample_hashes { hashes: to, n, first, spread }.launch(&stream, self.covering(n))?;
                self.answer_async(&stream, hashes.slice(..n).cast::<Hashed>()?, &[], answers)?;
            }
            first += n as u64;
        }
        let mut hits = [0];
        stream.download(&count, &mut hits)?;
        Ok(hits[0] as f64 / samples.max(1) as f64)
    }

    /// Halves the filter while its number of blocks is even and [`Bloom::fpr`] stays at or below `fpr`; returns the
    /// number of halvings. See [`cpu::Bloom::shrink_to_fpr`](crate::cpu::Bloom::shrink_to_fpr).
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::Gpu`].
    pub fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error> {
        rates::check_fpr(fpr)?;
        let mut halvings = 0;
        while self.layout.blocks() > 1 && self.layout.blocks().is_multiple_of(2) {
            let smaller = self.folded(2)?;
            if smaller.fpr()? > fpr {
                break;
            }
            *self = smaller;
            halvings += 1;
        }
        Ok(halvings)
    }
}
