//! Sequences in device memory: their minimizers, the screening of reads by them, and [`SequenceFilter`], the device
//! form of [`crate::SequenceFilter`].
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_sequence::gpu::DeviceText;
//! use warpset_sequence::{Minimizers, Packed};
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let minimizers = Minimizers::new(5, 3)?;
//! let letters = device.from_slice(b"ACGTTGCATTNGACCAGT")?;
//! let found = minimizers.find_device(DeviceText::Letters(letters.as_slice()))?;
//! let host = minimizers.find(b"ACGTTGCATTNGACCAGT");
//! assert!(found.kmers().to_vec()?.iter().eq(host.iter().map(|found| &found.kmer)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod room;
mod screener;

use bytemuck::Pod;
use warpset_base::filter::LengthMismatch;
use warpset_core::minimizer::Kmer;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::sequence::minimizers::{
    BLOCK, KMERS, POSITIONS, SHARED_BYTES, sequence_minimizers_letters, sequence_minimizers_packed, tile_windows,
};
use warpset_kernels::sequence::screen::sequence_distinct;
use warpset_primitives::LookBack;
use warpset_simt::{EntryOf, GlobalMut};

pub use crate::filter::gpu::{DeviceBuilder, SequenceFilter};
pub use screener::{Answers, HitCounts, MinimizerFilter, Reads, ScreenOutput, Screener};

use crate::{Error, Minimizers, Packed};

/// Largest number of positions of a text on a device.
pub const MOST_POSITIONS: usize = u32::MAX as usize - (1 << 16);

/// Sequences in device memory.
#[derive(Clone, Copy, Debug)]
pub enum DeviceText<'a> {
    /// Letters: A, C, G, T in either case. Any other letter is a position without a base, and may stand between
    /// sequences.
    Letters(DeviceSlice<'a, u8>),
    /// Packed sequences in the format of [`Packed`], with equal numbers of words of `bases` and `breaks`.
    Packed {
        /// Bases, 32 positions per word, 2 bits each.
        bases: DeviceSlice<'a, u64>,
        /// Positions without a base, 32 per word, one bit each.
        breaks: DeviceSlice<'a, u32>,
    },
}

impl DeviceText<'_> {
    /// Returns the number of positions.
    pub fn positions(&self) -> usize {
        match self {
            DeviceText::Letters(letters) => letters.len(),
            DeviceText::Packed { bases, .. } => 32 * bases.len(),
        }
    }

    fn device(&self) -> &Device {
        match self {
            DeviceText::Letters(letters) => letters.device(),
            DeviceText::Packed { bases, .. } => bases.device(),
        }
    }
}

/// Packed sequences in device memory.
#[derive(Debug)]
pub struct DevicePacked {
    bases: DeviceVec<u64>,
    breaks: DeviceVec<u32>,
}

impl DevicePacked {
    /// Borrows the sequences as a text.
    pub fn text(&self) -> DeviceText<'_> {
        DeviceText::Packed { bases: self.bases.as_slice(), breaks: self.breaks.as_slice() }
    }
}

impl Packed {
    /// Copies the sequences to a device, and waits.
    ///
    /// # Errors
    /// [`Error::Gpu`], such as too little device memory.
    pub fn to_device(&self, device: &Device) -> Result<DevicePacked, Error> {
        let (bases, breaks) = (device.from_slice(self.bases())?, device.from_slice(self.breaks())?);
        Ok(DevicePacked { bases, breaks })
    }
}

/// Numbers of k-mers in device memory: `u64` up to 32 bases, `u128` up to 63.
pub trait DeviceKmer:
    Kmer
    + Pod
    + EntryOf<sequence_minimizers_letters<Self>>
    + EntryOf<sequence_minimizers_packed<Self>>
    + EntryOf<sequence_distinct<Self>>
{
}
impl DeviceKmer for u64 {}
impl DeviceKmer for u128 {}

/// Minimizers in device memory, in the order of the windows, as on the host.
#[derive(Debug)]
pub struct DeviceMinimizers<K = u64> {
    positions: DeviceVec<u32>,
    kmers: DeviceVec<K>,
    len: usize,
}

impl<K: DeviceKmer> DeviceMinimizers<K> {
    /// Returns the number of minimizers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Borrows the position of each minimizer.
    pub fn positions(&self) -> DeviceSlice<'_, u32> {
        self.positions.slice(..self.len)
    }

    /// Borrows the canonical k-mer of each minimizer.
    pub fn kmers(&self) -> DeviceSlice<'_, K> {
        self.kmers.slice(..self.len)
    }
}

impl<K: DeviceKmer> Minimizers<K> {
    /// Finds the minimizers of sequences in device memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::LengthMismatch`] if the numbers of bases and breaks of packed sequences differ;
    /// [`Error::Gpu`], such as too little device memory.
    pub fn find_device(&self, text: DeviceText<'_>) -> Result<DeviceMinimizers<K>, Error> {
        text.device().waiting(|stream| self.find_on(stream, text))
    }

    /// Finds the minimizers of sequences in device memory. Waits for the stream.
    pub(crate) fn find_on(&self, stream: &Stream, text: DeviceText<'_>) -> Result<DeviceMinimizers<K>, Error> {
        // Random bases have two minimizers in `w + 1` k-mers. If there are more, the search runs again with larger
        // outputs.
        let expected = 2 * text.positions() / (self.scheme().w as usize + 1);
        let mut room = (expected + expected / 4 + 256).min(text.positions());
        loop {
            let (mut positions, mut kmers) = (stream.alloc_uninit(room)?, stream.alloc_uninit(room)?);
            let mut count = stream.alloc_zeroed(1)?;
            let (to_positions, to_kmers) = (positions.as_mut_slice(), kmers.as_mut_slice());
            // SAFETY: the outputs belong to this call, and are not freed before the stream has been waited for; `text`
            // is borrowed as long.
            let queued = unsafe { self.find_async(stream, text, to_positions, to_kmers, count.as_mut_slice()) };
            let mut len = [0u64];
            queued.and_then(|()| Ok(stream.download(&count, &mut len)?))?;
            let len = len[0] as usize;
            if len <= room {
                return Ok(DeviceMinimizers { positions, kmers, len });
            }
            room = len;
        }
    }

    /// Queues the search for minimizers. Outputs: positions and canonical k-mers in the order of the windows, and the
    /// number of minimizers, which may exceed the length of the outputs; minimizers beyond that are left out. An empty
    /// slice requests no positions, or no k-mers. If neither is empty, the shorter one limits both.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::LengthMismatch`] if the numbers of bases and breaks of packed sequences differ, or
    /// `count` is empty; [`Error::Gpu`] for memory of another device, or if there is no memory for the launch.
    ///
    /// # Safety
    /// Until `stream` has passed this work, all slices stay allocated; nothing writes the text, and nothing else
    /// accesses the outputs.
    pub unsafe fn find_async(
        &self,
        stream: &Stream,
        text: DeviceText<'_>,
        mut positions: DeviceSliceMut<'_, u32>,
        mut kmers: DeviceSliceMut<'_, K>,
        mut count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let scheme = self.scheme();
        let n = text.positions();
        if n > MOST_POSITIONS {
            return Err(Error::TooLong { positions: n, most: MOST_POSITIONS });
        }
        LengthMismatch::unless_room("numbers of minimizers", 1, count.len())?;
        if let DeviceText::Packed { bases, breaks } = text {
            LengthMismatch::unless_equal("breaks of packed bases", bases.len(), breaks.len())?;
        }
        let there = [text.device(), positions.device(), kmers.device(), count.device()];
        stream.device().expect_all_here(there, "the search for minimizers")?;
        if n == 0 {
            return Ok(stream.fill_bytes(count.slice_mut(..1), 0)?);
        }
        let (wanted, room) = match (positions.len(), kmers.len()) {
            (0, room) => (KMERS, room),
            (room, 0) => (POSITIONS, room),
            (one, other) => (POSITIONS | KMERS, one.min(other)),
        };
        let blocks = n.div_ceil(tile_windows(scheme));
        let config = LaunchConfig::new(blocks as u32, BLOCK).shared(SHARED_BYTES);
        let mut look_back = LookBack::new(stream, blocks)?;
        let (words, ticket): (_, GlobalMut<u32>) = (look_back.words(), look_back.ticket());
        let (positions, kmers, count) = (positions.global_mut(), kmers.global_mut(), count.global_mut());
        // SAFETY: the grid covers the positions, and `look_back` has a word per block. `wanted` leaves out empty
        // outputs, and `room` is at most the length of the others. The caller keeps text and outputs.
        unsafe {
            match text {
                DeviceText::Letters(letters) => sequence_minimizers_letters {
                    letters: letters.global(),
                    n,
                    is_aligned: (letters.global().as_ptr().addr() % 8 == 0).into(),
                    scheme,
                    look_back: words,
                    ticket,
                    positions,
                    kmers,
                    wanted,
                    room,
                    count,
                }
                .launch(stream, config)?,
                DeviceText::Packed { bases, breaks } => sequence_minimizers_packed {
                    bases: bases.global(),
                    breaks: breaks.global(),
                    words: bases.len(),
                    scheme,
                    look_back: words,
                    ticket,
                    positions,
                    kmers,
                    wanted,
                    room,
                    count,
                }
                .launch(stream, config)?,
            }
        }
        Ok(())
    }
}
