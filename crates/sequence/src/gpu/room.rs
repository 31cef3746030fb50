//! Memory of a batch on the host and on the device, kept from one batch to the next.

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, PinnedVec, Result, Stream};

use super::DeviceText;
use crate::Packed;

/// Where the parts of a batch are, in words: bases, breaks and starts of what goes to the device; counts, the number of
/// minimizers and decisions of what comes back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Words of packed reads.
    pub(super) words: usize,
    pub(super) units: usize,
}

impl Sizes {
    fn breaks_at(self) -> usize {
        self.words
    }

    fn starts_at(self) -> usize {
        self.breaks_at() + self.words.div_ceil(2)
    }

    fn input(self) -> usize {
        self.starts_at() + self.units.div_ceil(2)
    }

    /// Where the number of minimizers is.
    pub(super) fn count_at(self) -> usize {
        self.units
    }

    /// Where decisions are, a byte each.
    pub(super) fn decisions_at(self) -> usize {
        self.units + 1
    }

    pub(super) fn output(self) -> usize {
        self.decisions_at() + self.units.div_ceil(8)
    }
}

/// What goes to the device: bases, breaks and starts, in one copy.
#[derive(Debug)]
pub(super) struct Input {
    here: PinnedVec<u64>,
    there: DeviceVec<u64>,
}

/// Memory that grows with the batches.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) input: Input,
    /// What has come back: from the number of minimizers on, or up to it.
    pub(super) results: PinnedVec<u64>,
    pub(super) output: DeviceVec<u64>,
    pub(super) positions: DeviceVec<u32>,
    pub(super) kmers: DeviceVec<u64>,
    pub(super) answers: DeviceVec<u8>,
    pub(super) slots: DeviceVec<u32>,
}

/// Makes room for `len` items, a quarter more where there was too little.
fn grow<T: Pod>(stream: &Stream, items: &mut DeviceVec<T>, len: usize) -> Result<()> {
    if items.len() < len {
        // What was there goes first, so that both need not fit.
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
    /// The reads, on the device.
    pub(super) fn text(&self, sizes: Sizes) -> Result<DeviceText<'_>> {
        let breaks = self.there.slice(sizes.breaks_at()..sizes.starts_at()).cast::<u32>()?;
        Ok(DeviceText::Packed { bases: self.there.slice(..sizes.words), breaks: breaks.slice(..sizes.words) })
    }

    /// The starts, on the device.
    pub(super) fn starts(&self, sizes: Sizes) -> Result<DeviceSlice<'_, u32>> {
        Ok(self.there.slice(sizes.starts_at()..sizes.input()).cast::<u32>()?.slice(..sizes.units))
    }
}

impl Room {
    pub(super) fn new(stream: &Stream) -> Result<Room> {
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

    /// Copies a batch to the device, and returns before it is there.
    ///
    /// # Safety
    /// The stream has passed all work on this memory. The memory lives until the stream has passed the copy, and
    /// nothing else is written into it.
    pub(super) unsafe fn bring(&mut self, stream: &Stream, reads: &Packed, starts: &[u32]) -> Result<Sizes> {
        let sizes = Sizes { words: reads.words(), units: starts.len() };
        let Input { here, there } = &mut self.input;
        grow_pinned(stream.device(), here, sizes.input())?;
        grow_pinned(stream.device(), &mut self.results, sizes.output())?;
        grow(stream, there, sizes.input())?;
        grow(stream, &mut self.output, sizes.output())?;
        here[..sizes.words].copy_from_slice(reads.bases());
        let breaks = &mut here[sizes.breaks_at()..sizes.starts_at()];
        bytemuck::cast_slice_mut(breaks)[..sizes.words].copy_from_slice(reads.breaks());
        let starts_here = &mut here[sizes.starts_at()..sizes.input()];
        bytemuck::cast_slice_mut(starts_here)[..sizes.units].copy_from_slice(starts);
        // SAFETY: the caller's promise.
        unsafe { stream.upload_async(there.slice_mut(..sizes.input()), &here[..sizes.input()])? };
        Ok(sizes)
    }

    /// Makes room for minimizers, and for a table of them with `places` slots.
    pub(super) fn expect(&mut self, stream: &Stream, minimizers: usize, places: usize) -> Result<()> {
        grow(stream, &mut self.positions, minimizers)?;
        grow(stream, &mut self.kmers, minimizers)?;
        grow(stream, &mut self.answers, minimizers)?;
        grow(stream, &mut self.slots, places)
    }

    /// Leaves pinned memory to a device that is lost, and may still write it.
    pub(super) fn leak(self) {
        std::mem::forget((self.input.here, self.results));
    }
}
