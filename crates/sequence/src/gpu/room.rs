//! Memory of a batch on host and device, reused from batch to batch.

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, PinnedVec, Result, Stream};

use super::{DeviceText, Reads};

/// Layout of a batch in words of 64 bits.
///
/// ```text
/// to the device:    bases (words) | breaks (words / 2) | starts (reads / 2)
/// from the device:  counts (reads) | number of minimizers (1) | decisions (reads / 8)
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Words of packed reads.
    pub(super) words: usize,
    /// Reads, or groups of reads that are decided together.
    pub(super) reads: usize,
}

impl Sizes {
    pub(super) fn of(reads: Reads<'_>) -> Sizes {
        Sizes { words: reads.packed.words(), reads: reads.starts.len() }
    }

    fn breaks_at(self) -> usize {
        self.words
    }

    fn starts_at(self) -> usize {
        self.breaks_at() + self.words.div_ceil(2)
    }

    fn input(self) -> usize {
        self.starts_at() + self.reads.div_ceil(2)
    }

    /// Returns the place of the number of minimizers.
    pub(super) fn count_at(self) -> usize {
        self.reads
    }

    /// Returns the first place of the decisions, one byte each.
    pub(super) fn decisions_at(self) -> usize {
        self.reads + 1
    }

    pub(super) fn output(self) -> usize {
        self.decisions_at() + self.reads.div_ceil(8)
    }
}

/// Bases, breaks and starts, sent to the device in one copy.
#[derive(Debug)]
pub(super) struct Input {
    here: PinnedVec<u64>,
    there: DeviceVec<u64>,
}

/// Memory that grows with the batches.
#[derive(Debug)]
pub(super) struct Room<K> {
    pub(super) input: Input,
    /// Downloaded part of `output`: from the number of minimizers on, or up to it.
    pub(super) results: PinnedVec<u64>,
    pub(super) output: DeviceVec<u64>,
    pub(super) positions: DeviceVec<u32>,
    pub(super) kmers: DeviceVec<K>,
    pub(super) answers: DeviceVec<u8>,
    pub(super) slots: DeviceVec<u32>,
}

/// Reallocates if there are fewer than `len` items, with a quarter more.
fn grow<T: Pod>(stream: &Stream, items: &mut DeviceVec<T>, len: usize) -> Result<()> {
    if items.len() < len {
        // Freed first, so that old and new memory need not fit together.
        *items = stream.alloc_uninit(0)?;
        *items = stream.alloc_zeroed(len + len / 4)?;
    }
    Ok(())
}

fn grow_pinned(device: &Device, items: &mut PinnedVec<u64>, len: usize) -> Result<()> {
    if items.len() < len {
        *items = device.pinned(0)?;
        *items = device.pinned(len + len / 4)?;
    }
    Ok(())
}

impl Input {
    /// Borrows the reads on the device.
    pub(super) fn text(&self, sizes: Sizes) -> Result<DeviceText<'_>> {
        let breaks = self.there.slice(sizes.breaks_at()..sizes.starts_at()).cast::<u32>()?;
        Ok(DeviceText::Packed { bases: self.there.slice(..sizes.words), breaks: breaks.slice(..sizes.words) })
    }

    /// Borrows the starts on the device.
    pub(super) fn starts(&self, sizes: Sizes) -> Result<DeviceSlice<'_, u32>> {
        Ok(self.there.slice(sizes.starts_at()..sizes.input()).cast::<u32>()?.slice(..sizes.reads))
    }
}

impl<K: Pod> Room<K> {
    pub(super) fn new(stream: &Stream) -> Result<Room<K>> {
        let device = stream.device();
        Ok(Room {
            input: Input { here: device.pinned(0)?, there: stream.alloc_uninit(0)? },
            results: device.pinned(0)?,
            output: stream.alloc_uninit(0)?,
            positions: stream.alloc_uninit(0)?,
            kmers: stream.alloc_uninit(0)?,
            answers: stream.alloc_uninit(0)?,
            slots: stream.alloc_uninit(0)?,
        })
    }

    /// Queues the copy of a batch to the device.
    ///
    /// # Safety
    /// The stream has passed all work on this memory. Until the stream has passed the copy, this memory stays allocated
    /// and nothing writes it.
    pub(super) unsafe fn bring(&mut self, stream: &Stream, reads: Reads<'_>) -> Result<Sizes> {
        let (sizes, Reads { packed, starts }) = (Sizes::of(reads), reads);
        let Input { here, there } = &mut self.input;
        grow_pinned(stream.device(), here, sizes.input())?;
        grow_pinned(stream.device(), &mut self.results, sizes.output())?;
        grow(stream, there, sizes.input())?;
        grow(stream, &mut self.output, sizes.output())?;
        here[..sizes.words].copy_from_slice(packed.bases());
        let breaks = &mut here[sizes.breaks_at()..sizes.starts_at()];
        bytemuck::cast_slice_mut(breaks)[..sizes.words].copy_from_slice(packed.breaks());
        let starts_here = &mut here[sizes.starts_at()..sizes.input()];
        bytemuck::cast_slice_mut(starts_here)[..sizes.reads].copy_from_slice(starts);
        // SAFETY: both buffers stay allocated and unwritten until the stream has passed the copy, by the contract.
        unsafe { stream.upload_async(there.slice_mut(..sizes.input()), &here[..sizes.input()])? };
        Ok(sizes)
    }

    /// Grows the memory to `minimizers` minimizers and a table of `places` slots.
    pub(super) fn expect(&mut self, stream: &Stream, minimizers: usize, places: usize) -> Result<()> {
        grow(stream, &mut self.positions, minimizers)?;
        grow(stream, &mut self.kmers, minimizers)?;
        grow(stream, &mut self.answers, minimizers)?;
        grow(stream, &mut self.slots, places)
    }
}

impl<K> Room<K> {
    /// Leaks the pinned memory, which a lost device may still write.
    pub(super) fn leak(self) {
        std::mem::forget((self.input.here, self.results));
    }
}
