//! Large copies between host and device by several threads, through pinned memory. They come after the work of the
//! caller's stream, and have all ended when a call returns, so that frees in the order of that stream stay in order.
//!
//! Uploads are [`upload`]'s. Of a download each thread takes chunks, on two streams of its own ([`Lane`]): while one
//! chunk crosses the bus, it empties another.
//!
//! A copy of ordinary memory goes through one thread of the driver. That thread also takes the page faults of memory
//! that is new, which costs ten times the copy.

use bytemuck::Pod;
use warpset_base::parallel;

use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::lane::Lane;
use crate::upload::{Shape, upload};
use crate::{DeviceSlice, DeviceSliceMut, Stream};

/// Threads that download, at most.
const THREADS: usize = 8;
/// Bytes of a chunk, at least and at most.
const CHUNK: std::ops::Range<usize> = 1 << 16..1 << 20;
/// Bytes that a thread puts into pinned memory at a time for an upload, and the number of such pieces in 16 MiB.
const PIECE: usize = 1 << 16;
const SLOTS: usize = 1 << 8;
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
    upload_parts(stream, vec![moves], |_| Ok(()))
}

/// Copies several parts as [`upload_many`] does, one after the other. Once all of a part is on its way, `then` is
/// called with its places. Work that it queues on `stream` comes after the part, and overlaps the copies of the next
/// ones. Waits for all copies.
///
/// # Errors
/// A failed copy or allocation, or what `then` returns; some places may have been written by then.
///
/// # Panics
/// If a slice and its place differ in length.
pub fn upload_parts<'d, T: Pod, E: From<GpuError>>(
    stream: &Stream,
    parts: Vec<Vec<(&[T], DeviceSliceMut<'d, T>)>>,
    then: impl FnMut(Vec<DeviceSliceMut<'d, T>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let bytes: usize = parts.iter().flatten().map(|(from, _)| size_of_val(*from)).sum();
    upload_in_shape(stream, parts, Shape { piece: PIECE, slots: SLOTS, threads: uploading(bytes) }, then)
}

/// Calls [`upload`] for the bytes of the items, and passes on the error of `then`.
fn upload_in_shape<'d, T: Pod, E: From<GpuError>>(
    stream: &Stream,
    parts: Vec<Vec<(&[T], DeviceSliceMut<'d, T>)>>,
    shape: Shape,
    mut then: impl FnMut(Vec<DeviceSliceMut<'d, T>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut bytes = Vec::new();
    for moves in parts {
        let mut part = Vec::new();
        for (from, to) in moves {
            part.push((bytemuck::cast_slice(from), to.cast()?));
        }
        bytes.push(part);
    }
    let mut done = Ok(());
    upload(stream, bytes, shape, &mut |places| {
        let places: Result<_> = places.into_iter().map(DeviceSliceMut::cast).collect();
        done = places.map_err(E::from).and_then(&mut then);
        done.is_ok()
    })?;
    done
}

/// Copies a slice of at least [`LARGE`] bytes to its place on the device, of the same length, and waits.
///
/// # Errors
/// As for [`upload_many`].
pub(crate) fn upload_large<T: Pod>(stream: &Stream, from: &[T], to: DeviceSliceMut<'_, T>) -> Result<()> {
    upload_parts(stream, vec![vec![(from, to)]], |_| Ok(()))
}

/// Copies at least [`LARGE`] bytes to the host, to a slice of that length, after the work of `stream`, and waits.
///
/// # Errors
/// A failed copy or allocation; then a part of `to` may have been written.
pub(crate) fn download_large<T: Pod>(stream: &Stream, from: DeviceSlice<'_, T>, to: &mut [T]) -> Result<()> {
    let chunk = chunk_of(size_of_val(to));
    download_in_chunks(stream, from, to, chunk, threads())
}

/// Returns the bytes of a chunk, so that each thread has several.
fn chunk_of(bytes: usize) -> usize {
    (bytes / (4 * threads())).next_power_of_two().clamp(CHUNK.start, CHUNK.end)
}

fn threads() -> usize {
    rayon::current_num_threads().min(THREADS)
}

/// Returns the number of threads for an upload of `bytes` bytes. Waking a thread takes a part of a short upload. A long
/// one is read from memory, not from caches, at 5 GB/s per thread.
fn uploading(bytes: usize) -> usize {
    let wanted = match bytes >> 20 {
        ..32 => 6,
        32..128 => 8,
        128.. => 12,
    };
    rayon::current_num_threads().min(wanted)
}

/// Makes two lanes for chunks of `chunk` bytes, which start after `ready`.
fn lanes(stream: &Stream, ready: &Event, chunk: usize) -> Result<[Lane; 2]> {
    let lane = || -> Result<Lane> {
        let lane = Lane::new(stream.device(), chunk.div_ceil(8), 0)?;
        lane.stream().wait(ready)?;
        Ok(lane)
    };
    Ok([lane()?, lane()?])
}

/// Marks the end of the work that `stream` holds now.
fn end_of(stream: &Stream) -> Result<Event> {
    let ready = stream.device().new_event()?;
    ready.record(stream)?;
    Ok(ready)
}

fn download_in_chunks<T: Pod>(
    stream: &Stream,
    from: DeviceSlice<'_, T>,
    to: &mut [T],
    chunk: usize,
    threads: usize,
) -> Result<()> {
    assert_eq!(from.len(), to.len(), "a slice on the device and its place");
    from.memory().prepare_for(stream, "a copy from the device")?;
    let ready = end_of(stream)?;
    let from = from.cast::<u8>()?;
    let to = bytemuck::cast_slice_mut::<T, u8>(to);
    let share = to.len().div_ceil(threads).next_multiple_of(chunk).max(chunk);
    let shares: Vec<(usize, &mut [u8])> = to.chunks_mut(share).enumerate().map(|(i, to)| (i * share, to)).collect();
    parallel::try_for_each(shares, |(mut at, to)| -> Result<()> {
        let mut lanes = lanes(stream, &ready, chunk)?;
        // Destination of the copy on each lane.
        let mut places = [None, None];
        for (i, to) in to.chunks_mut(chunk).enumerate() {
            hand_over(&mut lanes[i % 2], &mut places[i % 2])?;
            // SAFETY: the memory is allocated when `ready` has passed, and borrowed until all lanes have been waited
            // for.
            unsafe { lanes[i % 2].fetch_from(from.slice(at..at + to.len()))? };
            at += to.len();
            places[i % 2] = Some(to);
        }
        lanes.iter_mut().zip(&mut places).try_for_each(|(lane, place)| hand_over(lane, place))
    })
}

/// Waits for a lane, and copies the arrived bytes to their destination.
fn hand_over(lane: &mut Lane, place: &mut Option<&mut [u8]>) -> Result<()> {
    if let Some(to) = place.take() {
        to.copy_from_slice(&lane.host()?[..to.len()]);
    }
    Ok(())
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
                for (threads, slots) in [(1, 1), (1, 100), (3, 2), (3, 7)] {
                    for chunk in [8, 128, 1 << 20] {
                        let shape = Shape { piece: chunk, slots, threads };
                        let mut there = device.alloc_uninit::<u32>(all.len()).unwrap();
                        let mut rest = there.as_mut_slice();
                        let mut moves = Vec::new();
                        for items in &items {
                            let (to, after) = rest.split_at_mut(items.len());
                            rest = after;
                            moves.push((&items[..], to));
                        }
                        let mut arrived = Vec::new();
                        let parts: Vec<Vec<_>> = moves.into_iter().map(|one| vec![one]).collect();
                        let then = |places: Vec<DeviceSliceMut<'_, u32>>| {
                            let [place] = &places[..] else { panic!("a place for each move") };
                            arrived.push(place.as_slice().to_vec()?);
                            Ok::<_, GpuError>(())
                        };
                        upload_in_shape(&stream, parts, shape, then).unwrap();
                        assert!(arrived == items, "{lens:?} {shape:?}");
                        assert!(there.to_vec().unwrap() == all, "{lens:?} {shape:?}");
                        let mut back = vec![0u32; all.len()];
                        download_in_chunks(&stream, there.as_slice(), &mut back, chunk, threads).unwrap();
                        assert!(back == all, "{lens:?} {shape:?}");
                    }
                }
            }
        }
    }

    /// Copies enough bytes for several threads, after work that is queued on the stream.
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
            assert!(there.follows(&stream));
            assert!(there.to_vec().unwrap() == items);
        }
    }
}
