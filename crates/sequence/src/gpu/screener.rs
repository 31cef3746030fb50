//! Screening of reads by a set of minimizers, on the device.
//!
//! A read matches if enough of its *different* minimizers are in the filter. Steps per batch, all on one stream:
//!
//! ```text
//! packed reads --> minimizers --> lookups in the filter --> different ones per read --> rule
//!                  find_async     has_async                 sequence_distinct           sequence_decide
//! ```
//!
//! The number of minimizers of a batch is known only after they have been found. Memory is sized by an estimate from
//! the batch before, so that the host need not wait in the middle; a batch with more minimizers runs a second time.

use bytemuck::Pod;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::sequence::screen::{BLOCK, sequence_decide, sequence_distinct};
use warpset_primitives::DeviceFilter;

use super::DeviceKmer;
use super::room::{Room, Sizes};
use crate::{Error, Minimizers, Packed};

/// Resident blocks per multiprocessor that walk their input by grid stride.
const RESIDENT: u32 = 8;

/// Filter of minimizers in device memory: [`DeviceFilter`] for slices of `u64`; other types for k-mers of `u128`.
pub trait MinimizerFilter<K = u64> {
    /// Queues the lookup of all k-mers: 1 or 0 for each.
    ///
    /// # Errors
    /// [`Error::Filter`] with the filter's error.
    ///
    /// # Safety
    /// Until `stream` has passed this work, the filter, `kmers` and `answers` stay allocated; nothing writes the filter
    /// or the k-mers, and nothing else accesses the answers.
    unsafe fn has_async(
        &self,
        stream: &Stream,
        kmers: DeviceSlice<'_, K>,
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
        // SAFETY: `contains_async` has the contract of this method, which the caller keeps.
        unsafe { self.contains_async(stream, kmers, answers) }.map_err(|error| Error::Filter(Box::new(error)))
    }
}

/// Packed reads of a batch, to be decided one by one, or several together, such as two mates.
#[derive(Clone, Copy, Debug)]
pub struct Reads<'a> {
    /// Bases of all reads.
    pub packed: &'a Packed,
    /// First word of each read in `packed`: ascending from 0. A read ends where the next one begins, so mates that are
    /// decided together have one start.
    pub starts: &'a [u32],
}

/// Numbers of different minimizers of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// Minimizers that the filter has.
    pub hits: u32,
    /// All minimizers.
    pub minimizers: u32,
}

impl From<u64> for HitCounts {
    /// Splits an item of [`Answers::Counts`].
    fn from(both: u64) -> HitCounts {
        HitCounts { hits: (both >> 32) as u32, minimizers: both as u32 }
    }
}

/// Requested output for a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScreenOutput {
    /// Whether each read matches: at least `hits`, at least one, and at least `share` of its different minimizers are
    /// in the filter.
    Decisions {
        /// Least number of hits.
        hits: u64,
        /// Least share of hits, from 0 to 1.
        share: f64,
    },
    /// Hits and different minimizers of each read.
    Counts,
}

/// Answer of [`Screener::finish`], one item per read.
#[derive(Clone, Copy, Debug)]
pub enum Answers<'a> {
    /// 1 for reads that match, 0 for others.
    Decisions(&'a [u8]),
    /// Hits in the upper half, different minimizers in the lower one: [`HitCounts::from`].
    Counts(&'a [u64]),
}

/// Batch on the device.
#[derive(Clone, Copy, Debug)]
struct Flight {
    sizes: Sizes,
    output: ScreenOutput,
    /// Minimizers that fit into the memory; more of them make the batch run again.
    room: usize,
}

/// Screen of reads by a filter of minimizers, batch by batch: reads go to the device, decisions return.
///
/// A screener has its own stream. Two screeners on two threads overlap the copies of one with the work of the other. A
/// thread can prepare the next batch while the device decides the last one, between [`begin`](Screener::begin) and
/// [`finish`](Screener::finish). Memory is kept from batch to batch: about 5 bytes per base of the largest batch on the
/// device, and half a byte of pinned memory on the host.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_sequence::gpu::{Reads, Screener};
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
/// let mut packed = Packed::new();
/// let starts = [&genome[10..50], b"TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"].map(|read| packed.push(read).start as u32);
/// let mut screener = Screener::new(&device, minimizers)?;
/// let reads = Reads { packed: &packed, starts: &starts };
/// assert_eq!(screener.decide(&filter, reads, 2, 0.01)?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Screener<K = u64> {
    stream: Stream,
    minimizers: Minimizers<K>,
    /// `None` after the device was lost.
    memory: Option<Room<K>>,
    flight: Option<Flight>,
    /// Minimizers and positions of the last batch.
    last: Option<(usize, usize)>,
}

impl<K: DeviceKmer> Screener<K> {
    /// Creates a screener with its own stream.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the driver creates no stream.
    pub fn new(device: &Device, minimizers: Minimizers<K>) -> Result<Screener<K>, Error> {
        let stream = device.new_stream()?;
        let memory = Some(Room::new(&stream)?);
        Ok(Screener { stream, minimizers, memory, flight: None, last: None })
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// Decides for each read whether it matches: at least one of its different minimizers is in the filter, at least
    /// `hits`, and at least `share` of them. Reads without minimizers do not match.
    ///
    /// # Errors
    /// [`Error::InvalidStarts`] unless starts ascend from 0 and stay within the packed words; [`Error::TooLong`];
    /// errors of the filter; [`Error::Gpu`], such as too little device memory.
    pub fn decide<F: MinimizerFilter<K> + ?Sized>(
        &mut self,
        filter: &F,
        reads: Reads<'_>,
        hits: u64,
        share: f64,
    ) -> Result<Vec<bool>, Error> {
        match self.whole(filter, reads, ScreenOutput::Decisions { hits, share })? {
            Answers::Decisions(decisions) => Ok(decisions.iter().map(|&decision| decision != 0).collect()),
            Answers::Counts(_) => Ok(Vec::new()),
        }
    }

    /// Counts the different minimizers of each read, and those in the filter.
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide).
    pub fn count<F: MinimizerFilter<K> + ?Sized>(
        &mut self,
        filter: &F,
        reads: Reads<'_>,
    ) -> Result<Vec<HitCounts>, Error> {
        match self.whole(filter, reads, ScreenOutput::Counts)? {
            Answers::Counts(counts) => Ok(counts.iter().copied().map(HitCounts::from).collect()),
            // No reads.
            Answers::Decisions(_) => Ok(Vec::new()),
        }
    }

    /// Sends a batch and waits for its answers.
    fn whole<F: MinimizerFilter<K> + ?Sized>(
        &mut self,
        filter: &F,
        reads: Reads<'_>,
        output: ScreenOutput,
    ) -> Result<Answers<'_>, Error> {
        // SAFETY: this function borrows the filter until `finish` has returned. If `begin` fails, it has waited for the
        // stream.
        unsafe { self.begin(filter, reads, output)? };
        self.finish(filter)
    }

    /// Sends a batch to the device, as for [`decide`](Screener::decide), and returns before it is decided. By then the
    /// reads have been copied. The answers of a batch that was begun and not finished are lost.
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide); the stream is idle then.
    ///
    /// # Safety
    /// The filter stays allocated, and nothing writes it, until [`finish`](Screener::finish) has returned, the next
    /// batch is begun, or the screener is dropped.
    pub unsafe fn begin<F: MinimizerFilter<K> + ?Sized>(
        &mut self,
        filter: &F,
        reads: Reads<'_>,
        output: ScreenOutput,
    ) -> Result<(), Error> {
        self.wait()?;
        let Reads { packed, starts } = reads;
        let is_sound = starts.is_sorted()
            && starts.first().is_none_or(|&first| first == 0)
            && starts.last().is_none_or(|&last| last as usize <= packed.words());
        if !is_sound {
            return Err(Error::InvalidStarts { words: packed.words() });
        }
        let positions = 32 * packed.words();
        if positions > super::MOST_POSITIONS {
            return Err(Error::TooLong { positions, most: super::MOST_POSITIONS });
        }
        if starts.is_empty() {
            return Ok(());
        }
        let room = self.expected(positions);
        // SAFETY: `wait` left the stream idle; the caller keeps the filter as `send` demands.
        let queued = unsafe { self.send(filter, reads, (output, room)) };
        if queued.is_err() {
            // The first error is the one to report.
            let _ = self.wait();
        }
        queued
    }

    /// Copies a batch to the device and queues all work on it. After an error some of the work may be queued.
    ///
    /// # Safety
    /// The contract of [`begin`](Screener::begin), and the stream is idle.
    unsafe fn send<F: MinimizerFilter<K> + ?Sized>(
        &mut self,
        filter: &F,
        reads: Reads<'_>,
        (output, room): (ScreenOutput, usize),
    ) -> Result<(), Error> {
        let sizes = Sizes::of(reads);
        let flight = Flight { sizes, output, room };
        self.flight = Some(flight);
        // SAFETY: the stream is idle, by the contract. `self.flight` is set, so that every later use of the memory, and
        // `drop`, waits for the stream first. The caller keeps the filter as `queue` demands.
        unsafe {
            memory(&mut self.memory, &self.stream)?.bring(&self.stream, reads)?;
            self.queue(filter, flight)
        }
    }

    /// Waits for the batch that was begun, and returns one answer per read; none if no batch was begun. `filter` must
    /// be the one of [`begin`](Screener::begin).
    ///
    /// # Errors
    /// The errors of [`decide`](Screener::decide).
    pub fn finish<F: MinimizerFilter<K> + ?Sized>(&mut self, filter: &F) -> Result<Answers<'_>, Error> {
        let Some(mut flight) = self.flight else { return Ok(Answers::Decisions(&[])) };
        let Sizes { words, reads } = flight.sizes;
        loop {
            self.wait()?;
            let results = &memory(&mut self.memory, &self.stream)?.results;
            let count = results[if flight.output == ScreenOutput::Counts { reads } else { 0 }] as usize;
            self.last = Some((count, 32 * words));
            if count <= flight.room {
                break;
            }
            // More minimizers than estimated: run again with room for all of them.
            flight.room = count;
            // SAFETY: the batch is on the device, and this function borrows the filter until it has waited for the
            // stream, also after an error.
            if let Err(error) = unsafe { self.queue(filter, flight) } {
                let _ = self.wait();
                return Err(error);
            }
        }
        let results = &memory(&mut self.memory, &self.stream)?.results;
        Ok(match flight.output {
            ScreenOutput::Decisions { .. } => Answers::Decisions(&bytemuck::cast_slice(&results[1..])[..reads]),
            ScreenOutput::Counts => Answers::Counts(&results[..reads]),
        })
    }

    /// Estimates the minimizers in `positions` positions from above: the density of the last batch plus 1/16, or for
    /// the first batch that of random bases, 2 in `w + 1` k-mers, plus 1/4.
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
    /// The filter stays allocated, and nothing writes it, until the stream has passed this work.
    unsafe fn queue<F: MinimizerFilter<K> + ?Sized>(&mut self, filter: &F, flight: Flight) -> Result<(), Error> {
        self.flight = Some(flight);
        let Flight { sizes, output: wanted, room } = flight;
        let (reads, places) = (sizes.reads, (2 * room).next_power_of_two());
        let resident = (self.stream.device().properties().multiprocessors * RESIDENT) as usize;
        // At most `RESIDENT` blocks per multiprocessor.
        let grid = |items: usize| LaunchConfig::new(items.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK);
        let (stream, memory) = (&self.stream, memory(&mut self.memory, &self.stream)?);
        memory.expect(stream, room, places)?;
        let Room { input, results, output, positions, kmers, answers, slots } = memory;
        stream.fill_bytes(output.slice_mut(..sizes.decisions_at()), 0)?;
        let (text, starts) = (input.text(sizes)?, input.starts(sizes)?);
        // SAFETY: `Sizes` lays out one count and one decision per read. Positions, k-mers and answers have `room`
        // items, and kernels read at most the number found, cut to `room`. `begin` checked the starts. The table has at
        // least `2 * room` slots, all set to free. The buffers belong to this screener, which waits for the stream
        // before they are freed; the caller keeps the filter.
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
                    units: reads as u32,
                    slots: slots.global_mut(),
                    mask: places as u64 - 1,
                    counts: output.global_mut(),
                };
                kernel.launch(stream, grid(room))?;
            }
            match wanted {
                ScreenOutput::Decisions { hits, share } => {
                    let to = output.global_mut().at(sizes.decisions_at()).cast();
                    let kernel = sequence_decide { counts: output.global(), units: reads, hits, share, decisions: to };
                    kernel.launch(stream, grid(reads))?;
                    let found = output.slice(sizes.count_at()..sizes.output());
                    stream.download_async(found, &mut results[..found.len()])?;
                }
                ScreenOutput::Counts => {
                    let found = output.slice(..sizes.decisions_at());
                    stream.download_async(found, &mut results[..found.len()])?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the memory, or new memory after the device was lost.
fn memory<'m, K: Pod>(memory: &'m mut Option<Room<K>>, stream: &Stream) -> Result<&'m mut Room<K>, Error> {
    match memory {
        Some(memory) => Ok(memory),
        none => Ok(none.insert(Room::new(stream)?)),
    }
}

impl<K> Screener<K> {
    /// Waits until the stream is idle.
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
}

impl<K> Drop for Screener<K> {
    fn drop(&mut self) {
        // After an error `wait` has leaked the memory that a lost device may still access.
        let _ = self.wait();
    }
}
