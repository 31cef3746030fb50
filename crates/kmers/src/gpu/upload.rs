//! Packed bases on their way to the device: several threads copy them into pinned memory, from which they go on while the
//! next ones are copied.

use std::panic::resume_unwind;
use std::thread;

use warpset_gpu::{DeviceSliceMut, DeviceVec, Pending, Stream};

use super::Packed;
use crate::Error;

/// Threads that copy.
const THREADS: usize = 4;
/// Words of pinned memory that go at a time.
const CHUNK: usize = if cfg!(test) { 1 << 3 } else { 1 << 17 };

/// A part and its places on the device.
struct Move<'p, 'd, T> {
    from: &'p [T],
    to: DeviceSliceMut<'d, T>,
}

/// The bases and the breaks of all parts one after the other, each with one word more, which is all breaks. Waits.
pub(super) fn upload(stream: &Stream, parts: &[Packed], words: usize) -> Result<(DeviceVec<u64>, DeviceVec<u32>), Error> {
    let (mut bases, mut breaks) = (stream.alloc_uninit::<u64>(words + 1)?, stream.alloc_uninit::<u32>(words + 1)?);
    stream.fill_bytes(bases.slice_mut(words..), 0)?;
    stream.fill_bytes(breaks.slice_mut(words..), 0xff)?;
    let base_moves = moves(parts.iter().map(Packed::bases), bases.slice_mut(..words), CHUNK);
    let break_moves = moves(parts.iter().map(Packed::breaks), breaks.slice_mut(..words), 2 * CHUNK);
    let threads = THREADS.min(words.div_ceil(CHUNK));
    thread::scope(|scope| {
        let spawn = |(bases, breaks)| scope.spawn(move || move_all(stream, bases, breaks));
        let shares = shares(base_moves, threads).into_iter().zip(shares(break_moves, threads));
        let threads: Vec<_> = shares.map(spawn).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })?;
    Ok((bases, breaks))
}

/// Pieces of at most `chunk` items, each with its place.
fn moves<'p, 'd, T: bytemuck::Pod>(
    parts: impl Iterator<Item = &'p [T]>,
    to: DeviceSliceMut<'d, T>,
    chunk: usize,
) -> Vec<Move<'p, 'd, T>> {
    let mut rest = to;
    let mut moves = Vec::new();
    for from in parts.flat_map(|part| part.chunks(chunk)) {
        let (to, after) = rest.split_at_mut(from.len());
        rest = after;
        moves.push(Move { from, to });
    }
    moves
}

/// Dealt out to that many threads.
fn shares<M>(moves: Vec<M>, threads: usize) -> Vec<Vec<M>> {
    let mut shares: Vec<Vec<M>> = (0..threads).map(|_| Vec::new()).collect();
    moves.into_iter().enumerate().for_each(|(i, one)| shares[i % threads].push(one));
    shares
}

/// One thread's share.
fn move_all(stream: &Stream, bases: Vec<Move<'_, '_, u64>>, breaks: Vec<Move<'_, '_, u32>>) -> Result<(), Error> {
    let copies = stream.device().new_stream()?;
    // The memory has been allocated and filled in the order of the other stream.
    copies.wait_for(stream)?;
    move_share(&copies, bases, CHUNK)?;
    move_share(&copies, breaks, 2 * CHUNK)
}

fn move_share<T: bytemuck::Pod>(stream: &Stream, moves: Vec<Move<'_, '_, T>>, chunk: usize) -> Result<(), Error> {
    let mut lanes: [Option<Pending<T>>; 2] = [None, None];
    for (i, Move { from, to }) in moves.into_iter().enumerate() {
        let lane = &mut lanes[i % 2];
        let mut pinned = match lane.take() {
            Some(pending) => pending.wait()?,
            None => stream.device().pinned(chunk)?,
        };
        pinned[..from.len()].copy_from_slice(from);
        *lane = Some(stream.upload_pinned(to, pinned)?);
    }
    lanes.into_iter().flatten().try_for_each(|pending| pending.wait().map(drop).map_err(Error::from))
}
