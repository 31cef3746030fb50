//! Byte strings in device memory.

use std::ops::Range;

use bytemuck::Pod;
use warpset_core::hash::string::StringHash;
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::batch::strings::{self, NO_FUNCTION};
use warpset_simt::{Global, GlobalMut, LaunchConfig};

use crate::error::{GpuError, Result};
use crate::{Device, DeviceSlice, DeviceVec, Stream};

/// Strings on a device, borrowed, in the layout of Apache Arrow: string `i` is in `bytes` from offset `i` to offset `i
/// + 1`.
///
/// Kernels hash them in place. Every structure that takes keys on a device takes these too.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_gpu::batch::DeviceStrings;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let bytes = device.from_slice(b"twothreefive")?;
/// let offsets = device.from_slice(&[0u32, 3, 8, 12])?;
/// let primes = DeviceStrings::new(offsets.as_slice(), bytes.as_slice())?;
/// assert_eq!(primes.slice(1..3).len(), 2); // "three" and "five"
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct DeviceStrings<'a> {
    offsets: Offsets<'a>,
    bytes: DeviceSlice<'a, u8>,
}

#[derive(Clone, Copy)]
enum Offsets<'a> {
    Narrow(DeviceSlice<'a, u32>),
    Wide(DeviceSlice<'a, u64>),
}

/// Type of the offsets of strings: `u32`, `u64`, or Arrow's `i32` and `i64`, of which none is negative. Sealed.
pub trait Offset: Pod + sealed::Offset {}

mod sealed {
    use super::*;

    pub trait Offset: Sized {
        #[doc(hidden)]
        fn offsets(slice: DeviceSlice<'_, Self>) -> Result<super::sealed::Any<'_>>;
    }

    /// Offsets of either width.
    pub struct Any<'a>(pub(super) super::Offsets<'a>);
}

macro_rules! offsets {
    ($($offset:ty as $unsigned:ty, $variant:ident;)*) => {$(
        impl Offset for $offset {}
        impl sealed::Offset for $offset {
            fn offsets(slice: DeviceSlice<'_, Self>) -> Result<sealed::Any<'_>> {
                Ok(sealed::Any(Offsets::$variant(slice.cast()?)))
            }
        }
    )*};
}
offsets! {
    u32 as u32, Narrow;
    i32 as u32, Narrow;
    u64 as u64, Wide;
    i64 as u64, Wide;
}

impl<'a> DeviceStrings<'a> {
    /// Wraps the strings between `offsets`, one fewer than there are offsets. Waits for all work on the device, then
    /// checks every offset there.
    ///
    /// # Errors
    /// [`GpuError::MissingOffsets`] if there is no offset, [`GpuError::InvalidOffsets`] at the first string whose
    /// offsets go backwards or beyond the bytes.
    pub fn new<O: Offset>(offsets: DeviceSlice<'a, O>, bytes: DeviceSlice<'a, u8>) -> Result<Self> {
        let strings = Self::unchecked(offsets, bytes)?;
        strings.check()?;
        Ok(strings)
    }

    /// Does the work of [`DeviceStrings::new`] without checking the offsets, for offsets that queued work has yet to
    /// write.
    ///
    /// A string with wrong offsets is cut to the bytes that exist: the structure then stores or looks up another
    /// string, but no memory outside the two slices is read. [`DeviceStrings::check`] finds such offsets.
    ///
    /// # Errors
    /// [`GpuError::MissingOffsets`] if there is no offset.
    pub fn unchecked<O: Offset>(offsets: DeviceSlice<'a, O>, bytes: DeviceSlice<'a, u8>) -> Result<Self> {
        bytes.device().expect_same(offsets.device(), "a batch of strings")?;
        if offsets.is_empty() {
            return Err(GpuError::MissingOffsets);
        }
        Ok(DeviceStrings { offsets: O::offsets(offsets)?.0, bytes })
    }

    /// Whether the offsets ascend and stay within the bytes. Waits for all work on the device.
    ///
    /// # Errors
    /// [`GpuError::InvalidOffsets`] if not.
    pub fn check(&self) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        self.device().synchronize()?;
        let stream = self.device().new_stream()?;
        let mut first_bad = stream.alloc_uninit::<u64>(1)?;
        stream.fill_bytes(&mut first_bad, 0xff)?;
        let (offsets, narrow) = self.offsets();
        // SAFETY: there are `n + 1` offsets, borrowed until the stream has been waited for, in `download`.
        unsafe {
            let (config, len) = (covering(&stream, n), self.bytes.len());
            strings::strings_check { offsets, narrow, len, n, first_bad: first_bad.global_mut() }
                .launch(&stream, config)?;
        }
        let mut index = [0];
        stream.download(&first_bad, &mut index)?;
        if index[0] == u64::MAX {
            Ok(())
        } else {
            Err(GpuError::InvalidOffsets { index: index[0], bytes: self.bytes.len() })
        }
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        match self.offsets {
            Offsets::Narrow(offsets) => offsets.len() - 1,
            Offsets::Wide(offsets) => offsets.len() - 1,
        }
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the device of the strings.
    pub fn device(&self) -> &'a Device {
        self.bytes.device()
    }

    /// Returns some of the strings.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice(&self, range: Range<usize>) -> DeviceStrings<'a> {
        let range = range.start..range.end.checked_add(1).expect("range end overflows");
        let offsets = match self.offsets {
            Offsets::Narrow(offsets) => Offsets::Narrow(offsets.slice(range)),
            Offsets::Wide(offsets) => Offsets::Wide(offsets.slice(range)),
        };
        DeviceStrings { offsets, ..*self }
    }

    /// Copies one string to the host, cut to the bytes that exist. Waits for the device.
    pub(super) fn to_host(self, at: usize) -> Result<Vec<u8>> {
        let mut ends = [0; 2];
        match self.offsets {
            Offsets::Narrow(offsets) => {
                let mut narrow = [0; 2];
                offsets.slice(at..at + 2).copy_to_slice(&mut narrow)?;
                ends = narrow.map(u64::from);
            }
            Offsets::Wide(offsets) => offsets.slice(at..at + 2).copy_to_slice(&mut ends)?,
        }
        let [start, end] = ends.map(|end| end.min(self.bytes.len() as u64) as usize);
        self.bytes.slice(start..end.max(start)).to_vec()
    }

    /// Returns the offsets in the form kernels take, and whether they are narrow.
    fn offsets(&self) -> (Global<u64>, u32) {
        match self.offsets {
            Offsets::Narrow(offsets) => {
                let offsets = offsets.global();
                (Global::from_raw_parts(offsets.as_ptr().cast(), offsets.len().div_ceil(2)), 1)
            }
            Offsets::Wide(offsets) => (offsets.global(), 0),
        }
    }

    /// Queues hashing: XXH64 with `seed` to `hashes`, and with a function of Table 1 to `string_hashes`.
    ///
    /// # Safety
    /// - `hashes` and `string_hashes` have room for one hash per string.
    /// - Until `stream` has passed this work, all of them stay allocated; nothing writes the strings, and nothing else
    ///   accesses the hashes.
    pub(super) unsafe fn hash(
        &self,
        stream: &Stream,
        seed: u64,
        hashes: GlobalMut<u64>,
        function: Option<(StringHash, GlobalMut<u32>)>,
    ) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(()); // the driver rejects a grid of zero blocks
        }
        let (offsets, narrow) = self.offsets();
        let (bytes, len) = (self.bytes.global(), self.bytes.len());
        let lead = (bytes.as_ptr().addr().wrapping_neg() % 4).min(len) as u32;
        let (function, string_hashes) = match function {
            Some((function, hashes)) => (function as u32, hashes),
            None => (NO_FUNCTION, GlobalMut::from_raw_parts(std::ptr::null_mut(), 0)),
        };
        let config = covering(stream, n);
        // SAFETY: there are `n + 1` offsets and `len` bytes; the rest is this function's contract.
        unsafe {
            strings::strings_hash { offsets, narrow, bytes, len, lead, n, seed, hashes, function, string_hashes }
                .launch(stream, config)
        }
    }

    /// Queues hashing by XXH3-128 with `seed`: two words per string.
    ///
    /// # Safety
    /// That of [`DeviceStrings::hash`], with room for two words per string.
    pub(super) unsafe fn hash128(&self, stream: &Stream, seed: u64, hashes: GlobalMut<u64>) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(()); // the driver rejects a grid of zero blocks
        }
        let (offsets, narrow) = self.offsets();
        let (bytes, len) = (self.bytes.global(), self.bytes.len());
        let lead = (bytes.as_ptr().addr().wrapping_neg() % 4).min(len) as u32;
        let config = covering(stream, n);
        // SAFETY: there are `n + 1` offsets and `len` bytes; the rest is this function's contract.
        unsafe {
            strings::strings_hash128 { offsets, narrow, bytes, len, lead, n, seed, hashes }.launch(stream, config)
        }
    }
}

/// Queues the string hashes of integers: of the eight bytes of their values.
///
/// # Safety
/// - `keys` are at least `n` integers, and `to` is valid for `n` hashes.
/// - Until `stream` has passed this work, both stay allocated; nothing writes the keys, and nothing else accesses the
///   hashes.
pub(super) unsafe fn hash_integers(
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    function: StringHash,
    to: GlobalMut<u32>,
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let KeySlice { keys, kind, .. } = keys;
    let config = covering(stream, n);
    // SAFETY: both arrays have `n` elements and stay allocated, by this function's contract.
    unsafe {
        strings::strings_hash_integers { keys, kind, n, function: function as u32, string_hashes: to }
            .launch(stream, config)
    }
}

/// Returns a launch of as many blocks as fit at once, for kernels with a grid-stride loop.
fn covering(stream: &Stream, n: usize) -> LaunchConfig {
    let resident = stream.device().properties().multiprocessors * 8;
    LaunchConfig::new(LaunchConfig::covering(n, strings::BLOCK).grid.x.min(resident), strings::BLOCK)
}

/// Strings that own their device memory.
pub struct StringVec {
    offsets: DeviceVec<u64>,
    bytes: DeviceVec<u8>,
}

impl StringVec {
    /// Copies strings to a device.
    ///
    /// # Errors
    /// The driver's error of an allocation or a copy.
    pub fn from_slice<S: AsRef<[u8]>>(device: &Device, strings: &[S]) -> Result<StringVec> {
        let mut offsets = Vec::with_capacity(strings.len() + 1);
        let mut bytes = Vec::with_capacity(strings.iter().map(|s| s.as_ref().len()).sum());
        offsets.push(0);
        for string in strings {
            bytes.extend_from_slice(string.as_ref());
            offsets.push(bytes.len() as u64);
        }
        Ok(StringVec { offsets: device.from_slice(&offsets)?, bytes: device.from_slice(&bytes)? })
    }

    /// Returns the strings.
    pub fn as_strings(&self) -> DeviceStrings<'_> {
        DeviceStrings { offsets: Offsets::Wide(self.offsets.as_slice()), bytes: self.bytes.as_slice() }
    }
}
