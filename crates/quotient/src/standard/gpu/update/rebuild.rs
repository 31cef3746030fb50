//! Filters written anew, from their own fingerprints and an ascending batch.

use warpset_core::quotient::combine::Rule;
use warpset_gpu::{DeviceSlice, LaunchConfig, Stream};
use warpset_kernels::quotient_update::rebuild::{self, SHARED_BYTES, THREADS, TILE_BLOCKS};

use super::Change;
use super::widths::{Anew, Width};
use crate::Error;
use crate::standard::gpu::StandardQuotientFilter;
use crate::standard::gpu::fingerprints::parameters;

impl StandardQuotientFilter {
    /// In one pass, to other words. Waits, because only the result shows whether it fits.
    pub(super) fn rebuild<W: Width>(
        &mut self,
        stream: &Stream,
        batch: DeviceSlice<'_, W>,
        change: Change,
    ) -> Result<(), Error> {
        let layout = &self.layout;
        let rule = match change {
            Change::Remove => Rule::Difference,
            Change::Insert if layout.keeps_duplicates() => Rule::Sum,
            Change::Insert => Rule::Union,
        };
        let mut words = stream.alloc_zeroed::<u64>(self.words.len())?;
        let tiles = layout.quotients().div_ceil(64).div_ceil(TILE_BLOCKS) as usize;
        let look_back_words = rebuild::look_back_words(tiles);
        let mut scratch = stream.alloc_zeroed::<u64>(look_back_words + 4)?;
        let look_back = scratch.global_mut();
        let anew = Anew {
            old: self.words.global(),
            slots: layout.slots(),
            parameters: parameters(layout),
            rule,
            look_back,
            ticket: look_back.at(look_back_words).cast(),
            words: words.global_mut(),
            totals: look_back.at(look_back_words + 2),
        };
        let config = LaunchConfig::new(tiles as u32, THREADS).shared(SHARED_BYTES);
        // SAFETY: the filter is sound and borrowed; the words are those of its layout, zero, and nobody else's, as is the
        // scratch memory; the batch is ascending, and lives until the copy has been waited for.
        unsafe { W::write_anew(stream, config, batch.global(), anew)? };
        let mut totals = [0; 2];
        stream.download(scratch.slice(look_back_words + 2..), &mut totals)?;
        let [items, end] = totals;
        if items > layout.limit {
            return Err(Error::Full { items, limit: layout.limit });
        }
        let usable = layout.slots() - 1;
        if end > usable {
            return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
        }
        self.words = words;
        self.items = items;
        Ok(())
    }
}
