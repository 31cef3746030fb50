//! Stencils in device memory, and the keys that they select.

use std::ops::Range;

use warpset_base::filter::LengthMismatch;
use warpset_kernels::batch::{results, stencil as kernels};
use warpset_simt::{Global, GlobalMut, LaunchConfig};

use super::keys::sealed;
use super::{Answers, DeviceKeys, Hashing, KernelKeys, KeyClass};
use crate::error::Result;
use crate::{Device, DeviceSlice, DeviceVec, Stream};

/// Selection of a batch's keys on a device: one byte per key, 0 for no, or one bit per key, like the answers of
/// filters. The part beyond the last key is ignored.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_gpu::batch::Stencil;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let (bytes, bits) = (device.from_slice(&[1u8, 0, 1])?, device.from_slice(&[0b101u64])?);
/// assert_eq!((Stencil::from(&bytes).room(), Stencil::from(&bits).room()), (3, 64));
/// # Ok::<(), warpset_gpu::GpuError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Stencil<'a> {
    /// One byte per key.
    Bytes(DeviceSlice<'a, u8>),
    /// One bit per key: bit `i % 64` of word `i / 64` is for key `i`.
    Bits(DeviceSlice<'a, u64>),
}

impl<'a> From<DeviceSlice<'a, u8>> for Stencil<'a> {
    fn from(bytes: DeviceSlice<'a, u8>) -> Self {
        Stencil::Bytes(bytes)
    }
}

impl<'a> From<DeviceSlice<'a, u64>> for Stencil<'a> {
    fn from(words: DeviceSlice<'a, u64>) -> Self {
        Stencil::Bits(words)
    }
}

impl<'a> From<&'a DeviceVec<u8>> for Stencil<'a> {
    fn from(bytes: &'a DeviceVec<u8>) -> Self {
        Stencil::Bytes(bytes.as_slice())
    }
}

impl<'a> From<&'a DeviceVec<u64>> for Stencil<'a> {
    fn from(words: &'a DeviceVec<u64>) -> Self {
        Stencil::Bits(words.as_slice())
    }
}

impl<'a> Stencil<'a> {
    /// Returns the number of keys that the stencil has room for.
    pub fn room(&self) -> usize {
        match self {
            Stencil::Bytes(bytes) => bytes.len(),
            Stencil::Bits(words) => words.len().saturating_mul(64),
        }
    }

    /// Returns the device of the stencil.
    pub fn device(&self) -> &'a Device {
        match self {
            Stencil::Bytes(bytes) => bytes.device(),
            Stencil::Bits(words) => words.device(),
        }
    }

    /// Reports an error unless the stencil is for at least `keys` keys.
    ///
    /// # Errors
    /// [`LengthMismatch`].
    pub fn expect_for(&self, keys: usize) -> Result<(), LengthMismatch> {
        LengthMismatch::unless_room("keys that the stencil is for", keys, self.room())
    }

    /// Returns the part for the keys of a range that starts at a multiple of 64 and ends within the stencil's room.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Stencil<'a> {
        match self {
            Stencil::Bytes(bytes) => Stencil::Bytes(bytes.slice(range)),
            Stencil::Bits(words) => Stencil::Bits(words.slice(range.start / 64..range.end.div_ceil(64))),
        }
    }

    /// Queues a kernel that sets the answers to `n` keys to no where the stencil does not select the key.
    ///
    /// # Errors
    /// The driver's error of the launch.
    ///
    /// # Safety
    /// - `answers` are those to `n` keys, bytes or bits; the stencil covers `n` keys.
    /// - Until `stream` has passed this work, both stay allocated; nothing writes the stencil, and nothing else
    ///   accesses the answers.
    pub unsafe fn apply(&self, stream: &Stream, answers: Answers, n: usize) -> Result<()> {
        if n == 0 {
            return Ok(()); // the driver rejects a grid of zero blocks
        }
        let Answers { words: answers, form } = answers;
        // SAFETY: the stencil covers the `n` keys of `answers`, and both stay allocated: this function's contract.
        unsafe {
            match self {
                Stencil::Bits(bits) if form == results::BITS => {
                    let (words, resident) = (n.div_ceil(64), stream.device().properties().multiprocessors * 8);
                    let grid = LaunchConfig::covering(words, kernels::BLOCK).grid.x.min(resident);
                    kernels::stencil_and { answers, stencil: bits.global(), words }
                        .launch(stream, LaunchConfig::new(grid, kernels::BLOCK))
                }
                _ => {
                    let ((stencil, stencil_form), config) = (self.for_kernels(n), one_thread_per_key(n));
                    kernels::stencil_apply { answers, form, stencil, stencil_form, n }.launch(stream, config)
                }
            }
        }
    }

    /// Queues a kernel that sets the words of `n` keys to `value` where the stencil does not select the key.
    ///
    /// # Errors
    /// The driver's error of the launch.
    ///
    /// # Safety
    /// - `words` is valid for `n` words; the stencil covers `n` keys.
    /// - Until `stream` has passed this work, both stay allocated; nothing writes the stencil, and nothing else
    ///   accesses the words.
    pub unsafe fn fill(&self, stream: &Stream, words: GlobalMut<u64>, value: u64, n: usize) -> Result<()> {
        if n == 0 {
            return Ok(()); // the driver rejects a grid of zero blocks
        }
        let ((stencil, stencil_form), config) = (self.for_kernels(n), one_thread_per_key(n));
        // SAFETY: the contract of this function.
        unsafe { kernels::stencil_fill { words, value, stencil, stencil_form, n }.launch(stream, config) }
    }

    /// Returns the first bytes or bits, for `n` keys, and their form.
    fn for_kernels(&self, n: usize) -> (Global<u64>, u32) {
        match self {
            Stencil::Bits(bits) => (bits.global(), results::BITS),
            Stencil::Bytes(bytes) => {
                (Global::from_raw_parts(bytes.global().as_ptr().cast(), n.div_ceil(8)), results::BYTES)
            }
        }
    }
}

fn one_thread_per_key(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(kernels::BLOCK as usize) as u32, kernels::BLOCK)
}

/// Keys as kernels take them, by their words.
#[derive(Clone, Copy)]
pub enum KeyWords<'a> {
    /// Integers of 32 bits.
    Narrow(DeviceSlice<'a, u32>),
    /// Integers or hashes of 64 bits.
    Wide(DeviceSlice<'a, u64>),
}

/// Keys that were copied out of a batch for one structure, integers as they were and strings by their hashes; see
/// [`SelectedKeys::as_keys`].
pub struct SelectedKeys {
    words: SelectedWords,
    class: KeyClass,
    string_hashes: Option<DeviceVec<u32>>,
    len: usize,
}

enum SelectedWords {
    Narrow(DeviceVec<u32>),
    Wide(DeviceVec<u64>),
}

/// Compacts the words of selected keys into `to`, starting at `at`, where there is room for all; waits, and returns
/// their number.
pub trait SelectWords<E> {
    /// Selects words of 32 bits.
    ///
    /// # Errors
    /// The errors of the selection.
    fn narrow(
        &mut self,
        words: DeviceSlice<'_, u32>,
        stencil: Stencil<'_>,
        to: &mut DeviceVec<u32>,
        at: usize,
    ) -> Result<usize, E>;

    /// Selects words of 64 bits.
    ///
    /// # Errors
    /// The errors of the selection.
    fn wide(
        &mut self,
        words: DeviceSlice<'_, u64>,
        stencil: Stencil<'_>,
        to: &mut DeviceVec<u64>,
        at: usize,
    ) -> Result<usize, E>;
}

impl SelectedKeys {
    /// Gathers the keys of a batch that a stencil selects, in the form of a structure with this hashing.
    ///
    /// Takes as much memory as the keys do, or their hashes.
    ///
    /// # Errors
    /// A failed allocation or launch, and the errors of the selection.
    ///
    /// # Safety
    /// - The stencil covers all keys and is on their device, which is the stream's too.
    /// - Until `stream` has been waited for, keys and stencil stay allocated, and nothing writes them.
    pub unsafe fn new<K: DeviceKeys, E: From<crate::GpuError>>(
        stream: &Stream,
        keys: K,
        hashing: &Hashing,
        stencil: Stencil<'_>,
        mut select: impl SelectWords<E>,
    ) -> Result<SelectedKeys, E> {
        let (n, mut len, mut class) = (keys.count(), 0, KeyClass::Hashes);
        let mut words = match keys.part(0..0).is_narrow() {
            true => SelectedWords::Narrow(stream.alloc_uninit(n)?),
            false => SelectedWords::Wide(stream.alloc_uninit(n)?),
        };
        let has_strings = hashing.string_hash().is_some();
        let mut string_hashes = if has_strings { Some(stream.alloc_uninit(n)?) } else { None };
        let at_a_time = keys.at_a_time(hashing);
        for first in (0..n).step_by(at_a_time) {
            let range = first..n.min(first + at_a_time);
            let (part, stencil) = (keys.part(range.clone()), stencil.part(range));
            // SAFETY: `part` is a range of `keys`, which stay allocated by this function's contract; scratch is freed
            // in stream order.
            let hashed = unsafe { part.kernel_keys(hashing, stream)? };
            class = hashed.keys.kind.class;
            if let (Some(to), Some(from)) = (&mut string_hashes, hashed.string_hash_slice()) {
                select.narrow(from, stencil, to, len)?;
            }
            len += match (&mut words, part.words(&hashed)?) {
                (SelectedWords::Narrow(to), KeyWords::Narrow(from)) => select.narrow(from, stencil, to, len)?,
                (SelectedWords::Wide(to), KeyWords::Wide(from)) => select.wide(from, stencil, to, len)?,
                _ => unreachable!("keys of one batch are of one width"),
            };
        }
        Ok(SelectedKeys { words, class, string_hashes, len })
    }

    /// Returns the selected keys, for an operation of the structure they were selected for.
    pub fn as_keys(&self) -> SelectedSlice<'_> {
        SelectedSlice { from: self, first: 0, len: self.len }
    }
}

/// Some of [`SelectedKeys`].
#[derive(Clone, Copy)]
pub struct SelectedSlice<'a> {
    from: &'a SelectedKeys,
    first: usize,
    len: usize,
}

impl DeviceKeys for SelectedSlice<'_> {}

impl sealed::OnDevice for SelectedSlice<'_> {
    fn count(&self) -> usize {
        self.len
    }
    fn device(&self) -> &Device {
        match &self.from.words {
            SelectedWords::Narrow(words) => words.device(),
            SelectedWords::Wide(words) => words.device(),
        }
    }
    fn part(&self, range: Range<usize>) -> Self {
        SelectedSlice { first: self.first + range.start, len: range.len(), ..*self }
    }
}

impl sealed::DeviceKeys for SelectedSlice<'_> {
    fn at_a_time(&self, _hashing: &Hashing) -> usize {
        self.len.max(1)
    }
    unsafe fn kernel_keys(&self, hashing: &Hashing, stream: &Stream) -> Result<KernelKeys> {
        let SelectedKeys { class, string_hashes, .. } = self.from;
        let range = self.first..self.first + self.len;
        let keys = match &self.from.words {
            SelectedWords::Narrow(words) => hashing.key_slice(*class, words.slice(range.clone()).global()),
            SelectedWords::Wide(words) => hashing.key_slice(*class, words.slice(range.clone()).global()),
        };
        let string_hashes = match string_hashes {
            Some(all) => {
                let mut hashes = stream.alloc_uninit(self.len)?;
                stream.copy(&mut hashes, all.slice(range))?;
                Some(hashes)
            }
            None => None,
        };
        Ok(KernelKeys::new(keys, string_hashes))
    }
    fn is_narrow(&self) -> bool {
        matches!(self.from.words, SelectedWords::Narrow(_))
    }
    fn words<'k>(&'k self, _hashed: &'k KernelKeys) -> Result<KeyWords<'k>> {
        let range = self.first..self.first + self.len;
        Ok(match &self.from.words {
            SelectedWords::Narrow(words) => KeyWords::Narrow(words.slice(range)),
            SelectedWords::Wide(words) => KeyWords::Wide(words.slice(range)),
        })
    }
}
