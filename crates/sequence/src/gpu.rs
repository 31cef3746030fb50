//! Sequences in device memory: their minimizers, decisions on reads by them, and [`SequenceFilter`], which is
//! [`crate::SequenceFilter`] there.
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

use warpset_base::filter::LengthMismatch;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::sequence::minimizers::{
    BLOCK, KMERS, POSITIONS, SHARED_BYTES, sequence_minimizers_letters, sequence_minimizers_packed, tile_windows,
};
use warpset_primitives::LookBack;
use warpset_simt::GlobalMut;

pub use crate::filter::gpu::{DeviceBuilder, SequenceFilter};
pub use screener::{Answers, HitCounts, MinimizerFilter, Reads, ScreenOutput, Screener};

use crate::{Error, Minimizers, Packed};

/// Positions that a text on a device may have.
pub const MOST_POSITIONS: usize = u32::MAX as usize - (1 << 16);

/// Sequences in device memory.
#[derive(Clone, Copy, Debug)]
pub enum DeviceText<'a> {
    /// Letters: A, C, G, T in either case. Any other letter is a position without a base, and may stand between
    /// sequences.
    Letters(DeviceSlice<'a, u8>),
    /// What [`Packed`] has: `bases` and as many `breaks`.
    Packed {
        /// 32 positions per word, 2 bits each.
        bases: DeviceSlice<'a, u64>,
        /// 32 positions per word, a bit each, set where there is no base.
        breaks: DeviceSlice<'a, u32>,
    },
}

impl DeviceText<'_> {
    /// Number of positions.
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
    /// The sequences, to be passed on.
    pub fn text(&self) -> DeviceText<'_> {
        DeviceText::Packed { bases: self.bases.as_slice(), breaks: self.breaks.as_slice() }
    }
}

impl Packed {
    /// Copies the sequences to a device, and waits.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<DevicePacked, Error> {
        let (bases, breaks) = (device.from_slice(self.bases())?, device.from_slice(self.breaks())?);
        Ok(DevicePacked { bases, breaks })
    }
}

/// Minimizers in device memory, ascending by position.
#[derive(Debug)]
pub struct DeviceMinimizers {
    positions: DeviceVec<u32>,
    kmers: DeviceVec<u64>,
    len: usize,
}

impl DeviceMinimizers {
    /// Number of minimizers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position of each.
    pub fn positions(&self) -> DeviceSlice<'_, u32> {
        self.positions.slice(..self.len)
    }

    /// The canonical k-mer of each.
    pub fn kmers(&self) -> DeviceSlice<'_, u64> {
        self.kmers.slice(..self.len)
    }
}

impl Minimizers {
    /// The minimizers of sequences in device memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::LengthMismatch`] if packed sequences have more bases than breaks, or fewer;
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn find_device(&self, text: DeviceText<'_>) -> Result<DeviceMinimizers, Error> {
        text.device().waiting(|stream| self.find_on(stream, text))
    }

    /// The minimizers of sequences in device memory: waits for the stream.
    pub(crate) fn find_on(&self, stream: &Stream, text: DeviceText<'_>) -> Result<DeviceMinimizers, Error> {
        // Of random bases, two in `w + 1` k-mers are minimizers. Where there are more, they are found again.
        let expected = 2 * text.positions() / (self.scheme().w as usize + 1);
        let mut room = (expected + expected / 4 + 256).min(text.positions());
        loop {
            let (mut positions, mut kmers) = (stream.alloc_uninit(room)?, stream.alloc_uninit(room)?);
            let mut count = stream.alloc_zeroed(1)?;
            let (to_positions, to_kmers) = (positions.as_mut_slice(), kmers.as_mut_slice());
            // SAFETY: the outputs are this call's own; everything lives until the count has come back.
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

    /// Queues the search for minimizers: their positions and canonical k-mers, ascending by position, and their number,
    /// which may be more than there is room for; what has no room is left out. An empty slice asks for no positions, or
    /// no k-mers; if neither is empty, the shorter one counts.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::LengthMismatch`] if packed sequences have more bases than breaks, or fewer, or
    /// `count` is empty; memory of another device; [`Error::Gpu`] if there is no memory for the launch.
    ///
    /// # Safety
    /// Until `stream` has passed this work, all slices stay allocated; nothing writes the text, and nothing else
    /// accesses the outputs.
    pub unsafe fn find_async(
        &self,
        stream: &Stream,
        text: DeviceText<'_>,
        mut positions: DeviceSliceMut<'_, u32>,
        mut kmers: DeviceSliceMut<'_, u64>,
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
        // SAFETY: the grid covers the positions; there is a look-back word per block; the outputs have room; the rest
        // is the caller's promise.
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
