//! Whether a batch fits, whatever its fingerprints are.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_gpu::Stream;

use crate::Error;
use crate::standard::gpu::Filter;
use crate::standard::with_slots;

impl Filter {
    /// Whether this many fingerprints fit whatever they are. Waits.
    pub(super) fn surely_fits(&self, stream: &Stream, keys: u64) -> Result<bool, Error> {
        let layout = &self.layout;
        if self.items.saturating_add(keys) > layout.limit {
            return Ok(false);
        }
        // What lies after the slots of the quotients; where there are fewer than 64 of them, all.
        let first_block = layout.quotients() / 64;
        let from = first_block * layout.block_words();
        let mut tail = vec![0; (layout.words() - from) as usize];
        stream.download(self.words.slice(from as usize..), &mut tail)?;
        let (first, len) = (first_block * 64, layout.slots() - first_block * 64);
        let empty = with_slots!(layout, tail.as_slice(), len, |slots| slots.empty_from(layout.quotients() - first));
        Ok(first + empty + keys < layout.slots())
    }
}
