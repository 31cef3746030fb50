//! Which reads match a set of minimizers, decided on the device.

use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::sequence::screen::{BLOCK, sequence_decide, sequence_distinct};
use warpset_primitives::DeviceFilter;

use super::room::{Room, Sizes};
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

impl From<u64> for Counts {
    /// Takes apart a number that [`Answers::Counts`] has.
    fn from(both: u64) -> Counts {
        Counts { hits: (both >> 32) as u32, minimizers: both as u32 }
    }
}

/// What is wanted of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// Whether each unit matches: at least `hits`, and at least one, of its different minimizers are in the filter, and at least `share`
    /// of them.
    Decisions {
        /// Hits.
        hits: u64,
        /// From 0 to 1.
        share: f64,
    },
    /// The numbers that decisions go by.
    Counts,
}

/// What [`Screener::finish`] says of each unit.
#[derive(Clone, Copy, Debug)]
pub enum Answers<'a> {
    /// 1 for units that match, 0 for others.
    Decisions(&'a [u8]),
    /// Hits in the upper half, different minimizers in the lower one.
    Counts(&'a [u64]),
}

/// A batch on the device.
#[derive(Clone, Copy, Debug)]
struct Flight {
    sizes: Sizes,
    wanted: Wanted,
    /// Minimizers that there is room for, and that are looked up.
    room: usize,
}

/// Decides which reads match a filter of minimizers, a batch at a time: reads go to the device, decisions come back.
///
/// A screener has a stream of its own, so two of them, each on a thread, overlap copies of one with the work of the
/// other. One thread prepares a batch while the device decides the one before, between [`begin`](Screener::begin) and
/// [`finish`](Screener::finish). Memory is kept from batch to batch: about 5 bytes per base of the largest one on the
/// device, and half a byte of pinned memory on the host.
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
    /// `None` after the device was lost.
    memory: Option<Room>,
    flight: Option<Flight>,
    /// Minimizers of the last batch, and its positions.
    last: Option<(usize, usize)>,
}

impl Screener {
    /// A screener with a stream of its own.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the driver gives no stream.
    pub fn new(device: &Device, minimizers: Minimizers) -> Result<Screener, Error> {
        let stream = device.new_stream()?;
        let memory = Some(Room::new(&stream)?);
        Ok(Screener { stream, minimizers, memory, flight: None, last: None })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// Decides for each unit, which is a read or several that are decided together, whether it matches: at least one of
    /// its different minimizers is in the filter, at least `hits`, and at least `share` of them. Unit `u` begins with word `starts[u]` of
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
        match self.whole(filter, reads, starts, Wanted::Decisions { hits, share })? {
            Answers::Decisions(decisions) => Ok(decisions.iter().map(|&decision| decision != 0).collect()),
            Answers::Counts(_) => Ok(Vec::new()),
        }
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
        match self.whole(filter, reads, starts, Wanted::Counts)? {
            Answers::Counts(counts) => Ok(counts.iter().copied().map(Counts::from).collect()),
            // No units.
            Answers::Decisions(_) => Ok(Vec::new()),
        }
    }

    fn whole<F: MinimizerFilter>(
        &mut self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
        wanted: Wanted,
    ) -> Result<Answers<'_>, Error> {
        // SAFETY: the filter is borrowed until the batch is finished; an error has waited.
        unsafe { self.begin(filter, reads, starts, wanted)? };
        self.finish(filter)
    }

    /// Sends a batch to the device, as for [`decide`](Screener::decide), and returns before it is decided. Reads and
    /// starts have been copied then. A batch that was begun before and not finished is forgotten.
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide); nothing is on its way then.
    ///
    /// # Safety
    /// The filter stays allocated, and nothing writes it, until [`finish`](Screener::finish) has returned, the next
    /// batch is begun, or the screener is dropped.
    pub unsafe fn begin<F: MinimizerFilter>(
        &mut self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
        wanted: Wanted,
    ) -> Result<(), Error> {
        self.wait()?;
        let is_sound = starts.is_sorted()
            && starts.first().is_none_or(|&first| first == 0)
            && starts.last().is_none_or(|&last| last as usize <= reads.words());
        if !is_sound {
            return Err(Error::InvalidUnits { words: reads.words() });
        }
        let positions = 32 * reads.words();
        if positions > super::MOST_POSITIONS {
            return Err(Error::TooLong { positions, most: super::MOST_POSITIONS });
        }
        if starts.is_empty() {
            return Ok(());
        }
        let room = self.expected(positions);
        // SAFETY: nothing was on its way any more; the rest is the caller's promise.
        let queued = unsafe { self.send(filter, reads, starts, (wanted, room)) };
        if queued.is_err() {
            // That it failed has been said.
            let _ = self.wait();
        }
        queued
    }

    /// Brings a batch to the device and queues all work on it. After an error something may be on its way.
    ///
    /// # Safety
    /// The conditions of [`begin`](Screener::begin), and nothing is on its way.
    unsafe fn send<F: MinimizerFilter>(
        &mut self,
        filter: &F,
        reads: &Packed,
        starts: &[u32],
        (wanted, room): (Wanted, usize),
    ) -> Result<(), Error> {
        let sizes = Sizes { words: reads.words(), units: starts.len() };
        let flight = Flight { sizes, wanted, room };
        self.flight = Some(flight);
        // SAFETY: the memory is kept until the stream has been waited for; the rest is the caller's promise.
        unsafe {
            memory(&mut self.memory, &self.stream)?.bring(&self.stream, reads, starts)?;
            self.queue(filter, flight)
        }
    }

    /// Waits for the batch that was begun, and says what came of each unit; no units if none was begun. The filter is
    /// the one that it was begun with.
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide).
    pub fn finish<F: MinimizerFilter>(&mut self, filter: &F) -> Result<Answers<'_>, Error> {
        let Some(mut flight) = self.flight else { return Ok(Answers::Decisions(&[])) };
        let Sizes { words, units } = flight.sizes;
        loop {
            self.wait()?;
            let results = &memory(&mut self.memory, &self.stream)?.results;
            let count = results[if flight.wanted == Wanted::Counts { units } else { 0 }] as usize;
            self.last = Some((count, 32 * words));
            if count <= flight.room {
                break;
            }
            // More than the batches before had: again, with room for all of them.
            flight.room = count;
            // SAFETY: the batch is on the device; this call waits for all of it, whatever happens.
            if let Err(error) = unsafe { self.queue(filter, flight) } {
                let _ = self.wait();
                return Err(error);
            }
        }
        let results = &memory(&mut self.memory, &self.stream)?.results;
        Ok(match flight.wanted {
            Wanted::Decisions { .. } => Answers::Decisions(&bytemuck::cast_slice(&results[1..])[..units]),
            Wanted::Counts => Answers::Counts(&results[..units]),
        })
    }

    /// Waits until nothing is on its way any more.
    fn wait(&mut self) -> Result<(), Error> {
        if self.flight.take().is_some()
            && let Err(error) = self.stream.synchronize()
        {
            // The device may still access pinned memory.
            if let Some(memory) = self.memory.take() {
                memory.leak();
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// How many minimizers there will be at most in so many positions: as many as in the last batch, and a few more; of
    /// random bases, two in `w + 1` k-mers and a quarter more.
    fn expected(&self, positions: usize) -> usize {
        let expected = match self.last {
            Some((count, before)) if before > 0 => {
                let now = (count as u128 * positions as u128 / before as u128) as usize;
                now + now / 16
            }
            _ => 2 * positions / (self.minimizers.scheme().w as usize + 1) * 5 / 4,
        };
        (expected + 256).min(positions)
    }

    /// Queues all work on a batch that is on the device.
    ///
    /// # Safety
    /// The filter stays allocated and is not written until the stream has passed this work.
    unsafe fn queue<F: MinimizerFilter>(&mut self, filter: &F, flight: Flight) -> Result<(), Error> {
        self.flight = Some(flight);
        let Flight { sizes, wanted, room } = flight;
        let (units, places) = (sizes.units, (2 * room).next_power_of_two());
        let resident = (self.stream.device().properties().multiprocessors * RESIDENT) as usize;
        // No larger than fits on the device several times.
        let grid = |items: usize| LaunchConfig::new(items.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK);
        let (stream, memory) = (&self.stream, memory(&mut self.memory, &self.stream)?);
        memory.expect(stream, room, places)?;
        let Room { input, results, output, positions, kmers, answers, slots } = memory;
        stream.fill_bytes(output.slice_mut(..sizes.decisions_at()), 0)?;
        let (text, starts) = (input.text(sizes)?, input.starts(sizes)?);
        // SAFETY: a count and a decision per unit; room for as many minimizers as are asked for, of which the kernel
        // looks at those that were found; starts have been looked at; twice as many slots as minimizers, all free. The
        // memory is this screener's, which waits before it goes; the filter is the caller's promise.
        unsafe {
            let count = output.slice_mut(sizes.count_at()..sizes.decisions_at());
            self.minimizers.find_async(stream, text, positions.slice_mut(..room), kmers.slice_mut(..room), count)?;
            if room > 0 {
                filter.has_async(stream, kmers.slice(..room), answers.slice_mut(..room))?;
                stream.fill_bytes(slots.slice_mut(..places), 0xff)?;
                let kernel = sequence_distinct {
                    kmers: kmers.global(),
                    positions: positions.global(),
                    hits: answers.global(),
                    count: output.slice(sizes.count_at()..).global(),
                    room,
                    starts: starts.global(),
                    units: units as u32,
                    slots: slots.global_mut(),
                    mask: places as u64 - 1,
                    counts: output.global_mut(),
                };
                kernel.launch(stream, grid(room))?;
            }
            match wanted {
                Wanted::Decisions { hits, share } => {
                    let to = output.global_mut().at(sizes.decisions_at()).cast();
                    let kernel = sequence_decide { counts: output.global(), units, hits, share, decisions: to };
                    kernel.launch(stream, grid(units))?;
                    let found = output.slice(sizes.count_at()..sizes.output());
                    stream.download_async(found, &mut results[..found.len()])?;
                }
                Wanted::Counts => {
                    let found = output.slice(..sizes.decisions_at());
                    stream.download_async(found, &mut results[..found.len()])?;
                }
            }
        }
        Ok(())
    }
}

/// The memory; new, if it was left to a device that was lost.
fn memory<'m>(memory: &'m mut Option<Room>, stream: &Stream) -> Result<&'m mut Room, Error> {
    match memory {
        Some(memory) => Ok(memory),
        none => Ok(none.insert(Room::new(stream)?)),
    }
}

impl Drop for Screener {
    fn drop(&mut self) {
        // Memory that a lost device may access has been left to it.
        let _ = self.wait();
    }
}
