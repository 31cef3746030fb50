//! The last accesses of every word that a launch touches.
//!
//! A cell describes four bytes, or one byte on pages that have seen narrower accesses. It holds the last write and the
//! reads since.
use super::clock::Time;
use super::fault::CallSite;
use std::collections::HashMap;
use std::panic::Location;

/// Bytes of a page.
const PAGE: usize = 1024;

/// Pages that are found without the map.
const CACHED: usize = 64;

/// Warps that a word remembers as readers; more are forgotten, which can hide a race.
const MOST_READERS: usize = 40;

/// An access: who, when, where, and whether it was atomic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub thread: u32,
    /// Twice the time, plus one if atomic; 0 for none.
    stamp: u32,
    place: i32,
}

/// In a cell's read record: `thread` is the index of a set of readers.
const SET: u32 = u32::MAX;

impl Record {
    pub fn new(thread: u32, time: Time, atomic: bool, place: CallSite) -> Self {
        Self { thread, stamp: time << 1 | u32::from(atomic), place: encode(place) }
    }

    pub fn exists(self) -> bool {
        self.stamp != 0
    }

    pub fn time(self) -> Time {
        self.stamp >> 1
    }

    pub fn atomic(self) -> bool {
        self.stamp & 1 == 1
    }

    pub fn place(self) -> Option<CallSite> {
        decode(self.place)
    }

    fn is_set(self) -> bool {
        self.stamp == SET
    }
}

static ANCHOR: u8 = 0;

/// Encodes a source location in four bytes: the distance of its data from one of our statics.
fn encode(place: CallSite) -> i32 {
    let address = (&raw const *place).expose_provenance();
    i32::try_from(address.wrapping_sub((&raw const ANCHOR).addr()) as isize).unwrap_or(0)
}

fn decode(place: i32) -> Option<CallSite> {
    if place == 0 {
        return None;
    }
    let address = (&raw const ANCHOR).addr().wrapping_add_signed(place as isize);
    // SAFETY: `encode` made the number from a reference to exactly this static location,
    // and exposed its provenance.
    Some(unsafe { &*std::ptr::with_exposed_provenance::<Location<'static>>(address) })
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Record,
    read: Record,
}

/// Lanes of one warp that read at the same time and place.
#[derive(Clone, Copy, Debug)]
struct Readers {
    first_thread: u32,
    lanes: u32,
    stamp: u32,
    place: i32,
}

#[derive(Debug)]
struct Page {
    /// Bytes per cell: 4 or 1.
    grain: usize,
    cells: Vec<Cell>,
}

/// All cells of a launch.
#[derive(Debug)]
pub struct Shadow {
    pages: Vec<Page>,
    index: HashMap<usize, u32>,
    /// Page number plus one, and its position in `pages`.
    cache: [(usize, u32); CACHED],
    sets: Vec<Vec<Readers>>,
    free_sets: Vec<u32>,
}

impl Shadow {
    pub fn new() -> Self {
        Self {
            pages: Vec::new(),
            index: HashMap::new(),
            cache: [(0, 0); CACHED],
            sets: Vec::new(),
            free_sets: Vec::new(),
        }
    }

    #[inline]
    fn page(&mut self, number: usize) -> usize {
        let cached = &mut self.cache[number % CACHED];
        if cached.0 != number + 1 {
            let at = *self.index.entry(number).or_insert_with(|| {
                self.pages.push(Page { grain: 4, cells: vec![Cell::default(); PAGE / 4] });
                self.pages.len() as u32 - 1
            });
            *cached = (number + 1, at);
        }
        cached.1 as usize
    }

    /// Records an access to `size` bytes and calls `ordered(earlier)` for each earlier
    /// access of another thread that conflicts with it; the first that is not ordered is the result.
    ///
    /// `warp_lane` splits a thread's number into the first of its warp and the lane.
    #[inline]
    pub fn access(
        &mut self,
        address: usize,
        size: usize,
        write: bool,
        mine: Record,
        warp_lane: (u32, u32),
        ordered: impl Fn(Record) -> bool,
    ) -> Result<(), (Record, bool)> {
        let mut at = address;
        let end = address + size;
        while at < end {
            let page = self.page(at / PAGE);
            if self.pages[page].grain == 4 && !(address | size).is_multiple_of(4) {
                self.split(page);
            }
            let grain = self.pages[page].grain;
            let cell = at % PAGE / grain;
            if write {
                self.write(page, cell, mine, &ordered)?;
            } else {
                self.read(page, cell, mine, warp_lane, &ordered)?;
            }
            at += grain;
        }
        Ok(())
    }

    /// Forgets all accesses to a range.
    pub fn forget(&mut self, address: usize, bytes: usize) {
        let end = address + bytes;
        for number in address / PAGE..end.div_ceil(PAGE) {
            let Some(&page) = self.index.get(&number) else { continue };
            let page = &mut self.pages[page as usize];
            let (first, last) = (address.max(number * PAGE), end.min((number + 1) * PAGE));
            let (grain, begin) = (page.grain, number * PAGE);
            for cell in &mut page.cells[(first - begin) / grain..(last - begin).div_ceil(grain)] {
                if cell.read.is_set() {
                    self.sets[cell.read.thread as usize].clear();
                    self.free_sets.push(cell.read.thread);
                }
                *cell = Cell::default();
            }
        }
    }

    fn split(&mut self, page: usize) {
        // A set of readers belongs to one cell; the others get its last entry.
        let sets = &self.sets;
        let page = &mut self.pages[page];
        page.grain = 1;
        page.cells = page
            .cells
            .iter()
            .flat_map(|cell| {
                let mut copy = *cell;
                if cell.read.is_set() {
                    copy.read = sets[cell.read.thread as usize].last().map_or(Record::default(), Readers::record);
                }
                [*cell, copy, copy, copy]
            })
            .collect();
    }

    #[inline]
    fn write(
        &mut self,
        page: usize,
        cell: usize,
        mine: Record,
        ordered: &impl Fn(Record) -> bool,
    ) -> Result<(), (Record, bool)> {
        let cell = &mut self.pages[page].cells[cell];
        let conflicts = |theirs: Record| theirs.exists() && !(theirs.atomic() && mine.atomic()) && !ordered(theirs);
        if conflicts(cell.write) {
            return Err((cell.write, true));
        }
        if cell.read.is_set() {
            let set = cell.read.thread;
            for readers in &self.sets[set as usize] {
                if let Some(theirs) = readers.each().find(|&theirs| conflicts(theirs)) {
                    return Err((theirs, false));
                }
            }
            self.sets[set as usize].clear();
            self.free_sets.push(set);
        } else if conflicts(cell.read) {
            return Err((cell.read, false));
        }
        *cell = Cell { write: mine, read: Record::default() };
        Ok(())
    }

    #[inline]
    fn read(
        &mut self,
        page: usize,
        cell: usize,
        mine: Record,
        (first_thread, lane): (u32, u32),
        ordered: &impl Fn(Record) -> bool,
    ) -> Result<(), (Record, bool)> {
        let cell = &mut self.pages[page].cells[cell];
        let theirs = cell.write;
        if theirs.exists() && !(theirs.atomic() && mine.atomic()) && !ordered(theirs) {
            return Err((theirs, true));
        }
        if !cell.read.is_set() {
            if !cell.read.exists() || cell.read.thread == mine.thread || ordered(cell.read) {
                cell.read = mine;
                return Ok(());
            }
            // A second reader that is not ordered with the first: both are kept.
            let set = self.free_sets.pop().unwrap_or_else(|| {
                self.sets.push(Vec::new());
                self.sets.len() as u32 - 1
            });
            let first = cell.read;
            let offset = first.thread.wrapping_sub(first_thread);
            let (warp, lanes) = if offset < 32 { (first_thread, 1 << offset) } else { (first.thread, 1) };
            self.sets[set as usize].push(Readers { first_thread: warp, lanes, stamp: first.stamp, place: first.place });
            cell.read = Record { thread: set, stamp: SET, place: 0 };
        }
        let set = &mut self.sets[cell.read.thread as usize];
        let same = |r: &&mut Readers| r.first_thread == first_thread && r.stamp == mine.stamp;
        if let Some(readers) = set.iter_mut().rev().find(same) {
            readers.lanes |= 1 << lane;
            return Ok(());
        }
        if set.len() == MOST_READERS {
            set.remove(0);
        }
        set.push(Readers { first_thread, lanes: 1 << lane, stamp: mine.stamp, place: mine.place });
        Ok(())
    }
}

impl Readers {
    fn each(&self) -> impl Iterator<Item = Record> + '_ {
        let lanes = self.lanes;
        (0..32).filter(move |lane| lanes >> lane & 1 == 1).map(|lane| Record {
            thread: self.first_thread + lane,
            stamp: self.stamp,
            place: self.place,
        })
    }

    fn record(&self) -> Record {
        self.each().next().unwrap_or_default()
    }
}
