//! Large copies between host and device by several threads: each moves its chunks through pinned memory of its own, and
//! while one chunk crosses the bus, it fills or empties another. All copies are queued on the caller's stream, so that
//! they come after its work.
//!
//! A copy of ordinary memory goes through one thread of the driver. That thread also takes the page faults of memory
//! that is new, which costs ten times the copy.

use bytemuck::Pod;
use warpset_base::parallel;

use crate::error::Result;
use crate::event::Event;
use crate::{DeviceSlice, DeviceSliceMut, PinnedVec, Stream};

/// Threads, at most.
const THREADS: usize = 8;
/// Bytes of a chunk, at least and at most.
const CHUNK: std::ops::Range<usize> = 1 << 16..1 << 19;
/// Bytes from which on several threads pay.
pub(crate) const LARGE: usize = 1 << 20;

/// Copies each slice to its place on the device, after what `stream` holds now, and waits.
///
/// # Errors
/// A failed copy or allocation; then some places may have been written.
///
/// # Panics
/// If a slice and its place differ in length.
pub fn upload_many<T: Pod>(stream: &Stream, moves: Vec<(&[T], DeviceSliceMut<'_, T>)>) -> Result<()> {
    let bytes: usize = moves.iter().map(|(from, _)| size_of_val(*from)).sum();
    if bytes < LARGE {
        return moves.into_iter().try_for_each(|(from, to)| stream.upload(to, from));
    }
    upload_in_chunks(stream, moves, chunk_of(bytes), threads())
}

/// Copies a slice of at least [`LARGE`] bytes to its place on the device, of the same length, and waits.
///
/// # Errors
/// As for [`upload_many`].
pub(crate) fn upload_large<T: Pod>(stream: &Stream, from: &[T], to: DeviceSliceMut<'_, T>) -> Result<()> {
    let chunk = chunk_of(size_of_val(from));
    upload_in_chunks(stream, vec![(from, to)], chunk, threads())
}

/// Copies at least [`LARGE`] bytes to the host, to a slice of the same length, after what `stream` holds now, and waits.
///
/// # Errors
/// A failed copy or allocation; then a part of `to` may have been written.
pub(crate) fn download_large<T: Pod>(stream: &Stream, from: DeviceSlice<'_, T>, to: &mut [T]) -> Result<()> {
    let chunk = chunk_of(size_of_val(to));
    download_in_chunks(stream, from, to, chunk, threads())
}

/// Bytes of a chunk, so that each thread has several.
fn chunk_of(bytes: usize) -> usize {
    (bytes / (4 * threads())).next_power_of_two().clamp(CHUNK.start, CHUNK.end)
}

fn threads() -> usize {
    rayon::current_num_threads().min(THREADS)
}

fn upload_in_chunks<T: Pod>(
    stream: &Stream,
    moves: Vec<(&[T], DeviceSliceMut<'_, T>)>,
    chunk: usize,
    threads: usize,
) -> Result<()> {
    let mut shares: Vec<Vec<(&[u8], DeviceSliceMut<'_, u8>)>> = (0..threads).map(|_| Vec::new()).collect();
    let mut next = (0..threads).cycle();
    for (from, to) in moves {
        assert_eq!(from.len(), to.len(), "a slice and its place on the device");
        let mut rest = to.cast::<u8>()?;
        for from in bytemuck::cast_slice::<T, u8>(from).chunks(chunk) {
            let (to, after) = rest.split_at_mut(from.len());
            rest = after;
            shares[next.next().unwrap_or(0)].push((from, to));
        }
    }
    on_threads(shares, |share| {
        let mut lanes = [Lane::new(stream, chunk)?, Lane::new(stream, chunk)?];
        for (i, (from, to)) in share.into_iter().enumerate() {
            let lane = &mut lanes[i % 2];
            lane.wait()?;
            lane.bytes()[..from.len()].copy_from_slice(from);
            lane.work = Work::Unmarked;
            let from = &bytemuck::cast_slice::<u64, u8>(&lane.pinned)[..from.len()];
            // SAFETY: the pinned memory is the lane's, which waits before it fills it again or gives it up.
            unsafe { stream.upload_async(to, from)? };
            lane.mark()?;
        }
        lanes.iter_mut().try_for_each(Lane::wait)
    })
}

fn download_in_chunks<T: Pod>(
    stream: &Stream,
    from: DeviceSlice<'_, T>,
    to: &mut [T],
    chunk: usize,
    threads: usize,
) -> Result<()> {
    assert_eq!(from.len(), to.len(), "a slice on the device and its place");
    let from = from.cast::<u8>()?;
    let to = bytemuck::cast_slice_mut::<T, u8>(to);
    let share = to.len().div_ceil(threads).next_multiple_of(chunk).max(chunk);
    let shares: Vec<(usize, &mut [u8])> = to.chunks_mut(share).enumerate().map(|(i, to)| (i * share, to)).collect();
    on_threads(shares, |(begin, to)| {
        let mut lanes = [Lane::new(stream, chunk)?, Lane::new(stream, chunk)?];
        let mut at = begin;
        let mut before: Option<&mut [u8]> = None;
        for (i, to) in to.chunks_mut(chunk).enumerate() {
            let [lane, other] = if i % 2 == 0 { lanes.each_mut() } else { swapped(lanes.each_mut()) };
            lane.work = Work::Unmarked;
            let place = from.slice(at..at + to.len());
            at += to.len();
            let pinned = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut lane.pinned)[..to.len()];
            // SAFETY: the pinned memory is the lane's, which waits before anyone reads it.
            unsafe { stream.download_async(place, pinned)? };
            lane.mark()?;
            if let Some(before) = before.replace(to) {
                other.hand_over(before)?;
            }
        }
        match before {
            Some(last) => lanes[(at - begin).div_ceil(chunk).saturating_sub(1) % 2].hand_over(last),
            None => Ok(()),
        }
    })
}

fn swapped<T>([a, b]: [T; 2]) -> [T; 2] {
    [b, a]
}

/// Runs `work` on each share, on the threads of the current pool, which are there already; the first error counts.
fn on_threads<S: Send>(shares: Vec<S>, work: impl Fn(S) -> Result<()> + Sync) -> Result<()> {
    parallel::try_for_each(shares, work)
}

/// A chunk of pinned memory, and the end of the last copy that uses it.
struct Lane<'s> {
    stream: &'s Stream,
    pinned: PinnedVec<u64>,
    copied: Event,
    work: Work,
}

/// What may still use a lane's memory.
enum Work {
    /// Nothing.
    Done,
    /// A copy whose end the lane's event marks.
    Marked,
    /// A copy that may have been queued, with no mark after it.
    Unmarked,
}

impl<'s> Lane<'s> {
    fn new(stream: &'s Stream, chunk: usize) -> Result<Self> {
        let device = stream.device();
        let (pinned, copied) = (PinnedVec::kept(device, chunk.div_ceil(8))?, device.new_event()?);
        Ok(Lane { stream, pinned, copied, work: Work::Done })
    }

    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.pinned)
    }

    /// Marks the end of the copy that was queued last.
    fn mark(&mut self) -> Result<()> {
        self.copied.record(self.stream)?;
        self.work = Work::Marked;
        Ok(())
    }

    /// Waits until nothing uses the pinned memory.
    fn wait(&mut self) -> Result<()> {
        match self.work {
            Work::Done => {}
            Work::Marked => self.copied.synchronize()?,
            Work::Unmarked => self.stream.synchronize()?,
        }
        self.work = Work::Done;
        Ok(())
    }

    /// Waits, and copies what has arrived.
    fn hand_over(&mut self, to: &mut [u8]) -> Result<()> {
        self.wait()?;
        to.copy_from_slice(&self.bytes()[..to.len()]);
        Ok(())
    }
}

/// A lane that ends while a copy is under way, as on an error, waits for it.
impl Drop for Lane<'_> {
    fn drop(&mut self) {
        match self.wait() {
            Ok(()) => self.pinned.keep(),
            Err(_) => self.pinned.leak(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::devices;

    #[test]
    fn copies_arrive_whole_and_in_place() {
        for device in devices(8) {
            let stream = device.new_stream().unwrap();
            for lens in [&[0usize][..], &[1], &[7, 0, 1000], &[512, 512], &[4096, 3, 511, 513]] {
                let items: Vec<Vec<u32>> =
                    lens.iter().map(|&len| (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect()).collect();
                let all = items.concat();
                for threads in [1, 3] {
                    for chunk in [8, 128, 1 << 20] {
                        let mut there = device.alloc_uninit::<u32>(all.len()).unwrap();
                        let mut rest = there.as_mut_slice();
                        let mut moves = Vec::new();
                        for items in &items {
                            let (to, after) = rest.split_at_mut(items.len());
                            rest = after;
                            moves.push((&items[..], to));
                        }
                        upload_in_chunks(&stream, moves, chunk, threads).unwrap();
                        assert!(there.to_vec().unwrap() == all, "{lens:?} {threads} {chunk}");
                        let mut back = vec![0u32; all.len()];
                        download_in_chunks(&stream, there.as_slice(), &mut back, chunk, threads).unwrap();
                        assert!(back == all, "{lens:?} {threads} {chunk}");
                    }
                }
            }
        }
    }

    /// Large enough for several threads, and after work that is queued on the stream.
    #[test]
    fn large_copies_come_after_the_streams_work() {
        for device in devices(9) {
            let stream = device.new_stream().unwrap();
            let len = LARGE / 8 + 12_345;
            let mut there = stream.alloc_uninit::<u64>(len).unwrap();
            stream.fill_bytes(&mut there, 7).unwrap();
            let mut back = vec![0; len];
            stream.download(&there, &mut back).unwrap();
            assert!(back.iter().all(|&word| word == 0x0707_0707_0707_0707));
            let items: Vec<u64> = (0..len as u64).collect();
            stream.upload(&mut there, &items).unwrap();
            assert!(there.to_vec().unwrap() == items);
        }
    }
}
