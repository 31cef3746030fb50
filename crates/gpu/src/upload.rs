//! Large copies to the device: threads fill a ring of pinned memory piece by piece, and the caller's thread sends
//! filled pieces across the bus. The other threads call no function of the driver, which serialises its callers. After
//! each copy the bus is idle for 2.5 us, the time of 128 KiB: so while copies are on their way the next one grows.

use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use warpset_base::parallel;

use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::lane::Lane;
use crate::{DeviceSliceMut, Stream};

/// Host bytes and their place on the device, of the same length.
pub(crate) type Move<'h, 'd> = (&'h [u8], DeviceSliceMut<'d, u8>);

/// Copies that are queued at a time: while one crosses the bus, the next one waits.
const QUEUED: usize = 2;
/// Limit like [`QUEUED`], of copies that stay short however long they wait.
const MOST_QUEUED: usize = 16;
/// Pieces that are worth a copy behind another one, unless no more lie beside them.
const TOGETHER: usize = 4;
/// Number of other threads that fill the bus; then the caller's thread only sends, and is ready when a copy ends.
const ENOUGH: usize = 5;

/// Sizes of an upload's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes that a thread copies at a time.
    pub(crate) piece: usize,
    /// Pieces that pinned memory has room for, at most.
    pub(crate) slots: usize,
    /// Threads that fill it, the caller's among them.
    pub(crate) threads: usize,
}

/// A piece on its way.
struct Piece<'h> {
    from: &'h [u8],
    /// Destination, in bytes from the begin of its move's place.
    to: usize,
    /// The number of its move, and the piece at which that ends.
    of: usize,
    end: usize,
}

/// Data shared by the threads: pieces, in the order in which they go. Piece `i` goes through slot `i % slots`.
struct Filling<'h> {
    pieces: Vec<Piece<'h>>,
    slots: usize,
    /// Bytes of a slot.
    size: usize,
    /// Address of the slots, once they are allocated; threads wake up meanwhile.
    memory: OnceLock<Memory>,
    /// The first piece that no thread has begun.
    next: AtomicUsize,
    /// Number of pieces that have crossed the bus; they are the first ones.
    crossed: AtomicUsize,
    /// One flag per piece: whether it has been filled in.
    is_there: Vec<AtomicBool>,
    /// Threads that have started to help.
    helping: AtomicUsize,
}

/// The first byte of pinned memory.
struct Memory(NonNull<u8>);

// SAFETY: a slot is written by the one thread that has begun its piece, and read after that thread has set the piece's
// flag.
unsafe impl Send for Memory {}
// SAFETY: threads access disjoint slots: a slot belongs to the thread that has begun its piece, until that thread sets
// the piece's flag.
unsafe impl Sync for Memory {}

impl Filling<'_> {
    /// Fills in the next piece, if there is one and its slot is free.
    fn fill_next(&self) -> bool {
        let Some(memory) = self.memory.get() else { return false };
        let free = self.pieces.len().min(self.crossed.load(Ordering::Acquire) + self.slots);
        let begun = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |i| (i < free).then_some(i + 1));
        let Ok(i) = begun else { return false };
        // SAFETY: the slot has room for any piece. Its earlier contents have crossed the bus, and no other thread has
        // begun this piece.
        unsafe { copy_past_caches(self.pieces[i].from, self.slot(memory, i)) };
        self.is_there[i].store(true, Ordering::Release);
        true
    }

    /// Fills in pieces until all have been begun.
    fn fill(&self) {
        self.helping.fetch_add(1, Ordering::Relaxed);
        let mut tries = 0;
        while self.next.load(Ordering::Relaxed) < self.pieces.len() {
            tries = if self.fill_next() { 0 } else { pause(tries) };
        }
    }

    /// Returns the begin of the slot of piece `i`.
    fn slot(&self, memory: &Memory, i: usize) -> NonNull<u8> {
        // SAFETY: the memory has room for all slots.
        unsafe { memory.0.add(i % self.slots * self.size) }
    }

    /// Returns the end of the pieces from `i` on that are contiguous both in their slots and at their destination.
    fn end_of_run(&self, i: usize) -> usize {
        self.pieces[i].end.min((i / self.slots + 1) * self.slots)
    }
}

/// Lets no thread begin a piece any more.
struct End<'f, 'h>(&'f Filling<'h>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.0.next.store(self.0.pieces.len(), Ordering::Relaxed);
    }
}

/// Waits a moment, and counts the calls.
fn pause(tries: u32) -> u32 {
    if tries < 1000 {
        std::hint::spin_loop()
    } else {
        std::thread::yield_now()
    }
    tries.saturating_add(1)
}

/// Copies by stores that bypass the caches: writing to cached lines that the device has read, or that another processor
/// has written, takes several times longer.
///
/// # Safety
/// `to` is valid for `from.len()` writes, and does not overlap `from`.
unsafe fn copy_past_caches(from: &[u8], to: NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    let done = {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        const LINE: usize = 64;
        let lines = if to.addr().get().is_multiple_of(LINE) { from.len() / LINE } else { 0 };
        for at in (0..lines * LINE).step_by(LINE) {
            // SAFETY: both have a line here, and that of `to` is aligned.
            unsafe {
                let (from, to) = (from.as_ptr().add(at).cast::<__m128i>(), to.as_ptr().add(at).cast::<__m128i>());
                let (first, second) = (_mm_loadu_si128(from), _mm_loadu_si128(from.add(1)));
                let (third, fourth) = (_mm_loadu_si128(from.add(2)), _mm_loadu_si128(from.add(3)));
                _mm_stream_si128(to, first);
                _mm_stream_si128(to.add(1), second);
                _mm_stream_si128(to.add(2), third);
                _mm_stream_si128(to.add(3), fourth);
            }
        }
        // SAFETY: it orders these stores before later ones, which they are not by themselves, and accesses nothing.
        unsafe { _mm_sfence() };
        lines * LINE
    };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let done = 0;
    let rest = &from[done..];
    // SAFETY: `to` is valid for the bytes of `from`, by this function's contract, and `rest` is the part from `done`
    // on.
    unsafe { to.add(done).copy_from_nonoverlapping(NonNull::from(rest).cast(), rest.len()) };
}

/// Copies parts to their places after the work that `stream` holds now, one part after the other, and waits for the
/// copies. Once all of a part is on its way, calls `then` with its places: work that `then` queues on `stream` comes
/// after the copies of that part. If `then` returns `false`, no further part is sent. Not generic, so that it is
/// compiled here and not in each program.
pub(crate) fn upload<'d>(
    stream: &Stream,
    parts: Vec<Vec<Move<'_, 'd>>>,
    shape: Shape,
    then: &mut dyn FnMut(Vec<DeviceSliceMut<'d, u8>>) -> bool,
) -> Result<()> {
    let mut pieces = Vec::new();
    let mut places = Vec::new();
    let mut of = 0;
    for moves in parts {
        let mut part = Vec::new();
        for (from, to) in moves {
            assert_eq!(from.len(), to.len(), "a slice and its place on the device");
            to.memory().prepare_for(stream, "a copy to the device")?;
            let from = from.chunks(shape.piece);
            let end = pieces.len() + from.len();
            pieces.extend(from.enumerate().map(|(i, from)| Piece { from, to: i * shape.piece, of, end }));
            part.push(to);
            of += 1;
        }
        places.push((pieces.len(), part));
    }
    let slots = shape.slots.min(pieces.len()).max(1);
    let filling = Filling {
        slots,
        size: shape.piece,
        memory: OnceLock::new(),
        next: AtomicUsize::new(0),
        crossed: AtomicUsize::new(0),
        is_there: pieces.iter().map(|_| AtomicBool::new(false)).collect(),
        helping: AtomicUsize::new(0),
        pieces,
    };
    // It is given up after all threads have ended.
    let mut used = None;
    let helpers = shape.threads.min(filling.pieces.len()).saturating_sub(1);
    parallel::beside(helpers, &|| filling.fill(), || {
        let _end = End(&filling);
        let lane = used.insert(Lane::new(stream.device(), (slots * shape.piece).div_ceil(8), 0)?);
        lane.is_busy = true;
        lane.stream.wait_for(stream)?;
        let memory = filling.memory.get_or_init(|| Memory(NonNull::from(&mut lane.host[..]).cast()));
        let mut sender = Sender {
            filling: &filling,
            memory,
            stream: &lane.stream,
            sent: 0,
            queued: VecDeque::new(),
            idle: Vec::new(),
        };
        let (mut of, mut before) = (0, None);
        for (end, mut part) in places {
            // The bus has work again before the part that has been sent is worked on.
            sender.send(end, of, &mut part, 1)?;
            if !before.take().is_none_or(&mut *then) {
                return Ok(());
            }
            sender.send(end, of, &mut part, usize::MAX)?;
            of += part.len();
            stream.wait_for(&lane.stream)?;
            before = Some(part);
        }
        let _ = before.is_none_or(then); // no part is left either way
        Ok::<_, GpuError>(())
    })?;
    used.as_mut().map_or(Ok(()), Lane::wait)
}

/// The side of the caller's thread.
struct Sender<'f, 'h> {
    filling: &'f Filling<'h>,
    memory: &'f Memory,
    stream: &'f Stream,
    /// Pieces whose copies have been queued.
    sent: usize,
    /// Copies that have not been seen to end: the event after each, and the end of its pieces.
    queued: VecDeque<(Event, usize)>,
    /// Events for later copies.
    idle: Vec<Event>,
}

impl Sender<'_, '_> {
    /// Sends the pieces before `end`, in `most` copies at most. They belong to `places`, those of the moves from number
    /// `first` on.
    fn send(&mut self, end: usize, first: usize, places: &mut [DeviceSliceMut<'_, u8>], most: usize) -> Result<()> {
        let filling = self.filling;
        let (mut there, mut tries, mut copies) = (self.sent, 0, 0);
        while self.sent < end && copies < most {
            let run = filling.end_of_run(self.sent);
            there = there.max(self.sent);
            while there < run && filling.is_there[there].load(Ordering::Acquire) {
                there += 1;
            }
            let least = if self.queued.is_empty() { 1 } else { TOGETHER.min(run - self.sent) };
            let is_short = run - self.sent < TOGETHER;
            let most_queued = if is_short { MOST_QUEUED } else { QUEUED };
            if self.queued.len() < most_queued && there - self.sent >= least {
                self.queue(self.sent..there, &mut places[filling.pieces[self.sent].of - first])?;
                copies += 1;
            } else if !self.note_crossed()? && (self.is_helped() || !filling.fill_next()) {
                tries = pause(tries);
                continue;
            }
            tries = 0;
        }
        Ok(())
    }

    /// Whether others fill the bus.
    fn is_helped(&self) -> bool {
        self.filling.helping.load(Ordering::Relaxed) >= ENOUGH
    }

    /// Queues the copy of pieces that lie side by side.
    fn queue(&mut self, pieces: Range<usize>, place: &mut DeviceSliceMut<'_, u8>) -> Result<()> {
        let filling = self.filling;
        let (first, last) = (&filling.pieces[pieces.start], &filling.pieces[pieces.end - 1]);
        let to = first.to..last.to + last.from.len();
        let from = NonNull::slice_from_raw_parts(filling.slot(self.memory, pieces.start), to.len());
        // SAFETY: the pieces have been filled in, and nothing writes to their slots before they have crossed the bus.
        // The place is allocated when the stream, which waits for its owner, reaches the copy. The caller waits for the
        // lane before the borrow of the place ends and before the lane is dropped.
        unsafe { self.stream.upload_unordered(place.slice_mut(to), from.as_ref())? };
        self.sent = pieces.end;
        let event = self.idle.pop().map_or_else(|| self.stream.device().new_event(), Ok)?;
        event.record(self.stream)?;
        self.queued.push_back((event, pieces.end));
        Ok(())
    }

    /// Frees the slots of pieces that have crossed the bus; returns whether there were any.
    fn note_crossed(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some((event, _)) = self.queued.front() {
            if !event.is_done()? {
                break;
            }
            if let Some((event, end)) = self.queued.pop_front() {
                self.filling.crossed.store(end, Ordering::Release);
                self.idle.push(event);
            }
            any = true;
        }
        Ok(any)
    }
}
