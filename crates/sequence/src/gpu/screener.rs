//! Which reads match a set of minimizers, decided on the device.

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::sequence::screen::{BLOCK, sequence_decide, sequence_distinct};
use warpset_primitives::DeviceFilter;

use crate::{Error, Minimizers, Packed};

/// Resident blocks per multiprocessor that walk their input by grid stride.
const RESIDENT: u32 = 8;

/// A filter in device memory that minimizers can be looked up in: [`DeviceFilter`] for slices of `u64`.
pub trait MinimizerFilter {
    /// Queues the lookup of all k-mers: 1 or 0 for each.
    ///
    /// # Errors
    /// [`Error::Filter`] with what the filter says.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `kmers` and `answers` stay allocated; nothing writes the filter
    /// or the k-mers, and nothing else accesses the answers.
    unsafe fn has_async(
        &self,
        stream: &Stream,
        kmers: DeviceSlice<'_, u64>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error>;
}

impl<F, E> MinimizerFilter for F
where
    F: for<'a> DeviceFilter<DeviceSlice<'a, u64>, Error = E>,
    E: std::error::Error + Send + Sync + 'static,
{
    unsafe fn has_async(
        &self,
        stream: &Stream,
        kmers: DeviceSlice<'_, u64>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_async(stream, kmers, answers) }.map_err(|error| Error::Filter(Box::new(error)))
    }
}

/// What was counted of a read, or of a pair of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Different minimizers that the filter has.
    pub hits: u32,
    /// Different minimizers.
    pub minimizers: u32,
}

/// Decides which reads match a filter of minimizers, a batch at a time: reads go to the device, decisions come back.
///
/// A screener has a stream of its own, so two of them, each on a thread, overlap copies of one with the work of the
/// other. A batch takes about 3 bytes of device memory per base while it is decided.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_sequence::gpu::Screener;
/// use warpset_sequence::{Minimizers, Packed};
/// use warpset_static::StaticSet;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let minimizers = Minimizers::deacon(7, 5)?;
/// let genome = b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG";
/// let mut kmers = Vec::new();
/// minimizers.kmers_into(genome, &mut kmers);
/// let filter = StaticSet::<u64>::builder().on(&device).build_from(&kmers)?;
///
/// let mut reads = Packed::new();
/// let starts = [&genome[10..50], b"TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"].map(|read| reads.push(read).start as u32);
/// let mut screener = Screener::new(&device, minimizers)?;
/// assert_eq!(screener.decide(&filter, &reads, &starts, 2, 0.01)?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Screener {
    stream: Stream,
    minimizers: Minimizers,
}

impl Screener {
    /// A screener with a stream of its own.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the driver gives no stream.
    pub fn new(device: &Device, minimizers: Minimizers) -> Result<Screener, Error> {
        Ok(Screener { stream: device.new_stream()?, minimizers })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// For each unit, which is a read or several that are decided together, whether it matches: at least `hits` of its
    /// different minimizers are in the filter, and at least `share` of them. Unit `u` begins with word `starts[u]` of
    /// the packed reads, the first one with word 0, and ends where the next one begins. Units without minimizers do not
    /// match.
    ///
    /// # Errors
    /// [`Error::InvalidUnits`] unless starts ascend from 0 and stay within the reads; [`Error::TooLong`];
    /// errors of the filter; [`Error::Gpu`]: too little device memory, say.
    pub fn decide<F: MinimizerFilter>(
        &mut self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
        hits: u64,
        share: f64,
    ) -> Result<Vec<bool>, Error> {
        let Some(counts) = self.counted(filter, reads, starts)? else { return Ok(Vec::new()) };
        let stream = &self.stream;
        let mut decisions = stream.alloc_uninit::<u8>(starts.len())?;
        let (units, to) = (starts.len(), decisions.global_mut());
        let kernel = sequence_decide { counts: counts.global(), units, hits, share, decisions: to };
        // SAFETY: a count and a decision per unit, both freed in the order of the stream.
        unsafe { kernel.launch(stream, self.grid(units))? };
        let decisions = self.downloaded(&decisions)?;
        Ok(decisions.into_iter().map(|decision| decision != 0).collect())
    }

    /// What [`decide`](Screener::decide) goes by: for each unit its different minimizers, and those in the filter.
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide).
    pub fn count<F: MinimizerFilter>(
        &mut self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
    ) -> Result<Vec<Counts>, Error> {
        let Some(counts) = self.counted(filter, reads, starts)? else { return Ok(Vec::new()) };
        let counts = self.downloaded(&counts)?;
        Ok(counts.into_iter().map(|both| Counts { hits: (both >> 32) as u32, minimizers: both as u32 }).collect())
    }

    /// For each unit the number of its different minimizers, and above it of those in the filter; `None` of no units.
    fn counted<F: MinimizerFilter>(
        &self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
    ) -> Result<Option<DeviceVec<u64>>, Error> {
        let stream = &self.stream;
        let is_sound = starts.is_sorted()
            && starts.first().is_none_or(|&first| first == 0)
            && starts.last().is_none_or(|&last| last as usize <= reads.words());
        if !is_sound {
            return Err(Error::InvalidUnits { words: reads.words() });
        }
        if starts.is_empty() {
            return Ok(None);
        }
        let mut counts = stream.alloc_zeroed::<u64>(starts.len())?;
        let text = reads.copied(stream)?;
        let found = self.minimizers.find_on(stream, text.text())?;
        drop(text);
        if found.is_empty() {
            return Ok(Some(counts));
        }
        let n = found.len();
        let mut answers = stream.alloc_uninit::<u8>(n)?;
        // SAFETY: keys and answers are this call's own, and freed in the order of the stream.
        unsafe { filter.has_async(stream, found.kmers(), answers.as_mut_slice())? };
        self.distinct(&found, &answers, starts, &mut counts)?;
        Ok(Some(counts))
    }

    /// Queues the counting of different minimizers.
    fn distinct(
        &self,
        found: &super::DeviceMinimizers,
        answers: &DeviceVec<u8>,
        starts: &[u32],
        counts: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        let (stream, n) = (&self.stream, found.len());
        let places = (2 * n).next_power_of_two();
        let starts_there = stream.from_slice(starts)?;
        let mut slots = stream.alloc_uninit::<u32>(places)?;
        stream.fill_bytes(&mut slots, 0xff)?;
        let kernel = sequence_distinct {
            kmers: found.kmers().global(),
            positions: found.positions().global(),
            hits: answers.global(),
            n,
            starts: starts_there.global(),
            units: starts.len() as u32,
            slots: slots.global_mut(),
            mask: places as u64 - 1,
            counts: counts.global_mut(),
        };
        // SAFETY: `n` items each, fewer than 2^32 as positions are; starts have been looked at; twice as many slots as
        // minimizers, all free; a count per unit. All is freed in the order of the stream.
        unsafe { kernel.launch(stream, self.grid(n))? };
        Ok(())
    }

    /// A grid for that many items, no larger than fits on the device several times.
    fn grid(&self, items: usize) -> LaunchConfig {
        let resident = (self.device().properties().multiprocessors * RESIDENT) as usize;
        LaunchConfig::new(items.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK)
    }

    fn downloaded<T: Pod>(&self, items: &DeviceVec<T>) -> Result<Vec<T>, Error> {
        let mut host = vec![T::zeroed(); items.len()];
        self.stream.download(items, &mut host)?;
        Ok(host)
    }
}
