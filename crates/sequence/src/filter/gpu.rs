//! Filters in device memory: the words of the host's filter, filled and queried by kernels.

use std::fmt;

use warpset_base::filter::LengthMismatch;
use warpset_base::words::{AlignedWords, OutOfMemory};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::sequence::filter as kernels;
use warpset_kernels::sequence::tile::{BLOCK, OWN_WORDS, SHARED_BYTES};
use warpset_simt::GlobalMut;

use super::layout::Layout;
use crate::{Builder, Error};

mod host;
#[cfg(test)]
mod tests;

/// Subject of error messages.
const HERE: &str = "an operation on a sequence filter";
/// Resident blocks per multiprocessor in grid-stride launches.
const RESIDENT: usize = 8;

/// [`crate::SequenceFilter`] in device memory, with equal bytes.
///
/// Methods for host sequences pack them on all threads and copy them to the device. Methods that end in `_device` take
/// letters in device memory, with any letter that is no base between sequences, or packed bases
/// ([`PackedSequences`](crate::PackedSequences)). Methods that end in `_async` also take a stream, and do not wait.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_sequence::SequenceFilter;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut filter = SequenceFilter::builder(100).k(11).on(&device).build()?;
/// filter.insert_bulk(&["ACGTTGCAACGTACGTTACAG"])?;
///
/// let letters = device.from_slice(b"TGCAACGTACGTTA\nAAAAAAAAAAAA")?;
/// let mut found = device.alloc_zeroed::<u32>(1)?; // a bit per letter
/// filter.contains_windows_device(letters.as_slice(), found.as_mut_slice())?;
/// assert_eq!(found.to_vec()?, [0b1111]);
///
/// let on_host = filter.to_host()?; // the same bytes as if it had been filled there
/// assert_eq!(on_host.count(b"TGCAACGTACGTTA").found, 4);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
pub struct SequenceFilter {
    layout: Layout,
    device: Device,
    /// Words of a filter of this layout.
    words: DeviceVec<u64>,
}

/// Settings of a filter in device memory, created by [`Builder::on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder {
    settings: Builder,
    device: Device,
}

impl Builder {
    /// Returns a builder with these settings for filters in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder {
        DeviceBuilder { settings: *self, device: device.clone() }
    }
}

impl DeviceBuilder {
    /// Checks all settings, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`], and [`Error::Gpu`].
    pub fn build(&self) -> Result<SequenceFilter, Error> {
        SequenceFilter::with_layout(&self.device, self.settings.layout()?)
    }

    /// Checks all settings, then builds a filter of the k-mers of these sequences.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), and of [`SequenceFilter::insert_bulk`].
    pub fn build_from<S: crate::Sequences + ?Sized>(&self, sequences: &S) -> Result<SequenceFilter, Error> {
        let mut filter = self.build()?;
        filter.insert_bulk(sequences)?;
        Ok(filter)
    }
}

/// Packed bases in device memory.
#[derive(Clone, Copy)]
struct Packed<'a> {
    bases: DeviceSlice<'a, u64>,
    breaks: DeviceSlice<'a, u32>,
}

impl SequenceFilter {
    /// Creates an empty filter with these parameters.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device has too little memory.
    pub fn with_layout(device: &Device, layout: Layout) -> Result<SequenceFilter, Error> {
        let too_large = |_| OutOfMemory { bytes: layout.words().saturating_mul(8) };
        let words = device.alloc_zeroed(usize::try_from(layout.words()).map_err(too_large)?)?;
        Ok(SequenceFilter { layout, device: device.clone(), words })
    }

    /// Copies a filter from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, filter: &crate::SequenceFilter) -> Result<SequenceFilter, Error> {
        filter.view().to_device(device)
    }

    /// Copies the filter to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails, [`Error::OutOfMemory`] if the host has too little memory.
    pub fn to_host(&self) -> Result<crate::SequenceFilter, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?;
        self.words.copy_to_slice(words.as_mut_slice())?;
        Ok(crate::SequenceFilter::from_parts(self.layout, words))
    }

    /// Copies the filter on its device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn try_clone(&self) -> Result<SequenceFilter, Error> {
        let words = self.device.waiting(|stream| {
            let mut words = stream.alloc_uninit(self.words.len())?;
            stream.copy(&mut words, &self.words)?;
            Ok::<_, Error>(words)
        })?;
        Ok(SequenceFilter { layout: self.layout, device: self.device.clone(), words })
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the device of the filter.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Borrows the words on the device: the memory image of all backends.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// Returns the bytes of device memory that the words take.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of device memory per k-mer if the filter holds `kmers` k-mers.
    pub fn bits_per_key(&self, kmers: u64) -> f64 {
        8.0 * self.memory_bytes() as f64 / kmers as f64
    }

    /// Returns the theoretical false-positive rate after insertion of `kmers` different k-mers of random sequences.
    pub fn expected_fpr(&self, kmers: u64) -> f64 {
        self.layout.expected_fpr(kmers)
    }

    /// Returns the theoretical fraction of bits that are set after insertion of `kmers` different k-mers of random
    /// sequences.
    pub fn predicted_fill(&self, kmers: u64) -> f64 {
        self.layout.predicted_fill(kmers)
    }

    /// Removes all k-mers and keeps the memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        Ok(self.words.fill_bytes(0)?)
    }

    /// Adds all k-mers of `other`, a filter with the same parameters on the same device. The result equals a filter of
    /// both inputs.
    ///
    /// # Errors
    /// [`Error::Incompatible`] names the first parameter that differs; [`Error::Gpu`].
    pub fn merge(&mut self, other: &SequenceFilter) -> Result<(), Error> {
        self.device.clone().waiting(|stream| {
            // SAFETY: this function borrows both filters until `wait` has passed the stream.
            unsafe { self.merge_async(stream, other) }
        })
    }

    /// Queues [`merge`](Self::merge).
    ///
    /// # Errors
    /// The errors of [`merge`](Self::merge).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - both filters stay allocated;
    /// - nothing else accesses this one, and nothing writes the other.
    pub unsafe fn merge_async(&mut self, stream: &Stream, other: &SequenceFilter) -> Result<(), Error> {
        self.layout.expect_same(&other.layout)?;
        self.device.expect_all_here([&other.device, stream.device()], HERE)?;
        let n = self.words.len();
        let (words, other) = (self.words.global_mut(), other.words.global());
        // SAFETY: `expect_same` has checked that the layouts, and so the lengths, are equal; the caller keeps both
        // filters.
        unsafe { kernels::sequence_or { words, other, n }.launch(stream, self.grid(n, BLOCK as usize))? };
        Ok(())
    }

    /// Inserts the k-mers of letters in device memory. A letter that is no base, such as a line end, ends a sequence.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails, or for memory of another device.
    pub fn insert_device(&mut self, letters: DeviceSlice<'_, u8>) -> Result<(), Error> {
        self.device.clone().waiting(|stream| {
            // SAFETY: this function borrows filter and letters until the stream has been waited for.
            unsafe { self.insert_async(stream, letters) }
        })
    }

    /// Queues [`insert_device`](Self::insert_device).
    ///
    /// # Errors
    /// The errors of [`insert_device`](Self::insert_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - filter and letters stay allocated, and nothing writes the letters;
    /// - only insertions access the filter.
    pub unsafe fn insert_async(&mut self, stream: &Stream, letters: DeviceSlice<'_, u8>) -> Result<(), Error> {
        self.device.expect_all_here([letters.device(), stream.device()], HERE)?;
        let (blocks, shape, n) = (self.layout.blocks(), self.layout.shape(), letters.len());
        if n > 0 {
            let (words, letters) = (self.words.global_mut().cast(), letters.global());
            let aligned = is_aligned(letters.as_ptr());
            let config = tiles(n.div_ceil(32));
            // SAFETY: the words are those of the layout; the caller keeps filter and letters.
            unsafe {
                kernels::sequence_insert_letters { words, blocks, shape, letters, n, aligned }
                    .launch(stream, config)?;
            }
        }
        Ok(())
    }

    /// Inserts the k-mers of packed bases in device memory, 32 positions per word: bases in the format of
    /// [`PackedSequences`](crate::PackedSequences), and one bit per position, set where there is no base and a sequence
    /// ends.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there are as many words of breaks as of bases; [`Error::Gpu`] if the device
    /// fails, or for memory of another device.
    pub fn insert_packed_device(
        &mut self,
        bases: DeviceSlice<'_, u64>,
        breaks: DeviceSlice<'_, u32>,
    ) -> Result<(), Error> {
        self.device.clone().waiting(|stream| {
            // SAFETY: this function borrows filter and bases until the stream has been waited for.
            unsafe { self.insert_packed_async(stream, bases, breaks) }
        })
    }

    /// Queues [`insert_packed_device`](Self::insert_packed_device).
    ///
    /// # Errors
    /// The errors of [`insert_packed_device`](Self::insert_packed_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - filter, bases and breaks stay allocated, and nothing writes bases and breaks;
    /// - only insertions access the filter.
    pub unsafe fn insert_packed_async(
        &mut self,
        stream: &Stream,
        bases: DeviceSlice<'_, u64>,
        breaks: DeviceSlice<'_, u32>,
    ) -> Result<(), Error> {
        let packed = Packed { bases, breaks };
        self.check_packed(stream, packed)?;
        let (blocks, shape, n) = (self.layout.blocks(), self.layout.shape(), bases.len());
        if n > 0 {
            let words = self.words.global_mut().cast();
            let (bases, breaks) = (bases.global(), breaks.global());
            let config = tiles(n);
            // SAFETY: the words are those of the layout; bases and breaks have equal lengths, as checked above; the
            // caller keeps filter and bases.
            unsafe {
                kernels::sequence_insert_packed { words, blocks, shape, bases, breaks, n }.launch(stream, config)?;
            }
        }
        Ok(())
    }

    /// Tests each letter in device memory for a k-mer that begins there and may be in the filter: bit `i % 32` of word
    /// `i / 32` for letter `i`. Bits past the last letter are cleared.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `found` has no bit for a letter; [`Error::Gpu`] if the device fails, or for memory
    /// of another device.
    pub fn contains_windows_device(
        &self,
        letters: DeviceSlice<'_, u8>,
        found: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        self.device.waiting(|stream| {
            // SAFETY: this function borrows all arguments until the stream has been waited for.
            unsafe { self.contains_windows_async(stream, letters, found) }
        })
    }

    /// Queues [`contains_windows_device`](Self::contains_windows_device).
    ///
    /// # Errors
    /// The errors of [`contains_windows_device`](Self::contains_windows_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - filter, letters and answers stay allocated, and nothing else accesses the answers;
    /// - nothing writes the filter or the letters.
    pub unsafe fn contains_windows_async(
        &self,
        stream: &Stream,
        letters: DeviceSlice<'_, u8>,
        mut found: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        self.device.expect_all_here([letters.device(), found.device(), stream.device()], HERE)?;
        let (blocks, shape, n) = (self.layout.blocks(), self.layout.shape(), letters.len());
        expect_room(n.div_ceil(32), found.len())?;
        if n > 0 {
            let (words, letters) = (self.words.global().cast(), letters.global());
            let aligned = is_aligned(letters.as_ptr());
            let found = found.global_mut();
            let config = tiles(n.div_ceil(32));
            // SAFETY: the words are those of the layout, and `found` has a bit per letter, as checked above. The kernel
            // does not write `kmers`, since `with_kmers` is 0. The caller keeps filter, letters and answers.
            unsafe {
                kernels::sequence_contains_letters {
                    words,
                    blocks,
                    shape,
                    letters,
                    n,
                    aligned,
                    found,
                    kmers: found,
                    with_kmers: 0,
                }
                .launch(stream, config)?;
            }
        }
        Ok(())
    }

    /// Tests each position of packed bases in device memory for a k-mer that begins there and may be in the filter: one
    /// bit per position.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there are as many words of breaks as of bases, and of answers at least as many;
    /// [`Error::Gpu`] if the device fails, or for memory of another device.
    pub fn contains_windows_packed_device(
        &self,
        bases: DeviceSlice<'_, u64>,
        breaks: DeviceSlice<'_, u32>,
        found: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        self.device.waiting(|stream| {
            // SAFETY: this function borrows all arguments until the stream has been waited for.
            unsafe { self.contains_windows_packed_async(stream, bases, breaks, found) }
        })
    }

    /// Queues [`contains_windows_packed_device`](Self::contains_windows_packed_device).
    ///
    /// # Errors
    /// The errors of [`contains_windows_packed_device`](Self::contains_windows_packed_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - filter, bases, breaks and answers stay allocated, and nothing else accesses the answers;
    /// - nothing writes the filter, the bases or the breaks.
    pub unsafe fn contains_windows_packed_async(
        &self,
        stream: &Stream,
        bases: DeviceSlice<'_, u64>,
        breaks: DeviceSlice<'_, u32>,
        mut found: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        let packed = Packed { bases, breaks };
        self.device.expect_same(found.device(), HERE)?;
        self.check_packed(stream, packed)?;
        expect_room(bases.len(), found.len())?;
        // SAFETY: bases, breaks and answers have a word for each word of bases, as checked above; the caller keeps all
        // of them.
        unsafe { self.queue_packed(stream, packed, found.global_mut(), None) }
    }

    /// Queues the answers to packed bases and, in `kmers`, the positions at which k-mers begin.
    ///
    /// # Safety
    /// - `packed` has equal numbers of words of breaks and bases; `found` and `kmers` are valid for as many.
    /// - The contract of [`contains_windows_packed_async`](Self::contains_windows_packed_async), also for `kmers`.
    unsafe fn queue_packed(
        &self,
        stream: &Stream,
        packed: Packed<'_>,
        found: GlobalMut<u32>,
        kmers: Option<GlobalMut<u32>>,
    ) -> Result<(), Error> {
        let (blocks, shape, n) = (self.layout.blocks(), self.layout.shape(), packed.bases.len());
        if n > 0 {
            let words = self.words.global().cast();
            let (bases, breaks) = (packed.bases.global(), packed.breaks.global());
            let (with_kmers, kmers) = (u32::from(kmers.is_some()), kmers.unwrap_or(found));
            let config = tiles(n);
            // SAFETY: the words are those of the layout; the rest is the contract of this function.
            unsafe {
                kernels::sequence_contains_packed { words, blocks, shape, bases, breaks, n, found, kmers, with_kmers }
                    .launch(stream, config)?;
            }
        }
        Ok(())
    }

    fn check_packed(&self, stream: &Stream, packed: Packed<'_>) -> Result<(), Error> {
        let Packed { bases, breaks } = packed;
        self.device.expect_all_here([bases.device(), breaks.device(), stream.device()], HERE)?;
        Ok(warpset_base::filter::same_length(bases.len(), breaks.len())?)
    }

    /// Returns a grid for `items` items with at most `RESIDENT` blocks per multiprocessor.
    fn grid(&self, items: usize, block_items: usize) -> LaunchConfig {
        let resident = self.device.properties().multiprocessors as usize * RESIDENT;
        LaunchConfig::new(items.div_ceil(block_items).clamp(1, resident) as u32, BLOCK)
    }
}

/// Returns a grid with one thread block per tile of `words` words of 32 positions.
fn tiles(words: usize) -> LaunchConfig {
    LaunchConfig { shared_bytes: SHARED_BYTES, ..LaunchConfig::new(words.div_ceil(OWN_WORDS) as u32, BLOCK) }
}

/// Whether 16-byte loads are aligned.
fn is_aligned(letters: *const u8) -> u32 {
    u32::from((letters as usize).is_multiple_of(16))
}

fn expect_room(needed: usize, found: usize) -> Result<(), LengthMismatch> {
    warpset_gpu::batch::expect_room(needed, found)
}

impl crate::SequenceFilter {
    /// Copies the filter to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<SequenceFilter, Error> {
        SequenceFilter::from_host(device, self)
    }
}

impl crate::SequenceFilterView<'_> {
    /// Copies the filter to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<SequenceFilter, Error> {
        let words = device.from_slice(self.words())?;
        Ok(SequenceFilter { layout: *self.layout(), device: device.clone(), words })
    }
}

impl fmt::Debug for SequenceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::SequenceFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}
