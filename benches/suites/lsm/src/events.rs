//! A real job: events with time stamps, kept for a while, corrected, dropped when they are old, and asked for by time.
//!
//! A key is `milliseconds << 24 | sequence number`, so the order of keys is the order of time. Every step is one
//! second: one update inserts the events that arrived (some of them late), overwrites some that are there, and removes
//! what is older than the window; then spans of time are listed and counted, and single events are looked up. A second
//! dictionary counts the events of each source, few of which send most, by updates that combine. `BTreeMap` does the
//! same, and every answer of every step is compared with its answer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use bench_frame::input::keys::mix64;
use warpset::gpu::Device;
use warpset::lsm::{Error, Lsm, OrderedMap, Ranges, gpu};

use super::SEED;
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_frame::table::{grid, rate};
use bench_record::Record;

/// Low bits of a key that number the events of a millisecond.
const SEQUENCE_BITS: u32 = 24;
/// Milliseconds of a step.
const STEP: u64 = 1000;
/// Spans that are listed in each step, and their length in milliseconds.
const LISTED: (u64, u64) = (256, 2);
/// Spans that are counted, and their length.
const COUNTED: (u64, u64) = (64, 50);
/// Events that are looked up in each step.
const LOOKUPS: usize = 1 << 12;
/// One event of this many arrives late, but never so late that it would be dropped at once.
const LATE: u64 = 16;
/// One element of this many in an update corrects an event of the window.
const CORRECTED: u64 = 8;

/// Size of the job.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Steps that are measured.
    steps: u64,
    /// Events and corrections of a step.
    arriving: u64,
    /// Steps that an event is kept for.
    window: u64,
}

impl Size {
    fn of(effort: Effort, device: Option<&Device>) -> Size {
        match (device.is_some_and(Device::is_emulator), effort) {
            (true, _) => Size { steps: 4, arriving: 256, window: 2 },
            (_, Effort::Quick) => Size { steps: 12, arriving: 1 << 15, window: 8 },
            (_, Effort::Standard) => Size { steps: 32, arriving: 1 << 16, window: 16 },
            (_, Effort::Full) => Size { steps: 48, arriving: 1 << 18, window: 32 },
        }
    }
}

/// Events of one step.
struct Second {
    keys: Vec<u64>,
    values: Vec<u64>,
    /// Events with smaller keys are dropped.
    cutoff: u64,
    listed: Vec<Range<u64>>,
    counted: Vec<Range<u64>>,
    asked: Vec<u64>,
    /// The source of each new event, by Zipf's law.
    sources: Vec<u64>,
}

/// Answers of a dictionary in one step.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    dropped: Vec<u64>,
    /// Begin of each listed span, and its events.
    offsets: Vec<u64>,
    keys: Vec<u64>,
    values: Vec<u64>,
    counts: Vec<u64>,
    found: Vec<Option<u64>>,
    /// Events sent by the first sources.
    sent: Vec<Option<u64>>,
}

/// Seconds that the parts of a step took: the update with what it drops, lists, counts, lookups, increments.
type Spent = [f64; 5];
const PARTS: [&str; 5] = ["update", "range", "count", "get", "increment"];

/// Sources of events.
const SOURCES: f64 = 65_536.0;
/// Number of sources to look up in each step: the busiest.
const WATCHED: u64 = 256;

/// Counters of sources, on the host or on a device.
trait Counters: OrderedMap<u64, u64> {
    fn increment(&mut self, sources: &[u64]) -> Result<(), Error>;
}
impl Counters for Lsm<u64, u64> {
    fn increment(&mut self, sources: &[u64]) -> Result<(), Error> {
        self.increment_bulk(sources)
    }
}
impl Counters for gpu::Lsm<u64, u64> {
    fn increment(&mut self, sources: &[u64]) -> Result<(), Error> {
        self.increment_bulk(sources)
    }
}

/// Makes the events of the job, step by step, from the size alone.
fn seconds(size: Size) -> Vec<Second> {
    let mut state = SEED;
    let mut below = move |n: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mix64(state)) * u128::from(n)) >> 64) as u64
    };
    let key = |time: u64, sequence: u64| time << SEQUENCE_BITS | sequence & ((1 << SEQUENCE_BITS) - 1);
    let mut known: Vec<u64> = Vec::new();
    let mut sequence = 0;
    let step = |step: u64| {
        let begin = (size.window + step) * STEP;
        let oldest = begin + STEP - size.window * STEP;
        let mut keys = Vec::with_capacity(size.arriving as usize);
        for i in 0..size.arriving {
            let in_window = |key: &u64| key >> SEQUENCE_BITS >= oldest;
            let earlier = known.get(below(known.len().max(1) as u64) as usize).copied().filter(in_window);
            if let (true, Some(earlier)) = (i % CORRECTED == CORRECTED - 1, earlier) {
                keys.push(earlier);
                continue;
            }
            let late = if below(LATE) == 0 { below((size.window - 1) * STEP) } else { 0 };
            let time = begin + i * STEP / size.arriving - late;
            sequence += 1;
            keys.push(key(time, sequence));
        }
        // Events that arrive late enough are dropped with the next step.
        known.extend_from_slice(&keys);
        if step >= size.window {
            known.drain(..known.len() / (size.window as usize + 1));
        }
        let mut spans = |(count, length): (u64, u64)| -> Vec<Range<u64>> {
            let starts = (0..count).map(|_| oldest + below(size.window * STEP - length));
            starts.map(|start| key(start, 0)..key(start + length, 0)).collect()
        };
        let (listed, counted) = (spans(LISTED), spans(COUNTED));
        let asked = (0..LOOKUPS).map(|i| known[below(known.len() as u64) as usize] ^ (i % 2) as u64).collect();
        let values = (0..keys.len() as u64).map(|i| step << 32 | i).collect();
        // Source k with a probability in proportion to 1 / k.
        let sources =
            keys.iter().map(|&key| SOURCES.powf((mix64(key ^ SEED) >> 11) as f64 / (1u64 << 53) as f64) as u64);
        let sources = sources.collect();
        Second { keys, values, cutoff: key(oldest, 0), listed, counted, asked, sources }
    };
    (0..size.steps + size.window).map(step).collect()
}

/// Runs `work` and returns its result with the seconds that it took.
fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, f64)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed().as_secs_f64()))
}

/// Pieces that the dropped second is listed in, so that threads and warps share it.
const PIECES: u64 = 64;

/// Runs one step of a dictionary: lists events that are too old, and removes them with the update that inserts the new
/// ones.
fn in_dictionary(
    of: &mut impl OrderedMap<u64, u64>,
    counters: &mut impl Counters,
    second: &Second,
) -> anyhow::Result<(Answers, Spent)> {
    let (dropped, update) = timed(|| {
        // Everything older went with the step before.
        let (last, width) = (second.cutoff.saturating_sub(STEP << SEQUENCE_BITS), (STEP << SEQUENCE_BITS) / PIECES);
        let ends = |i: u64| if i == PIECES { second.cutoff } else { last + i * width };
        let pieces: Vec<_> = (0..PIECES).map(|i| ends(i)..ends(i + 1)).collect();
        let dropped = of.range_bulk(&pieces)?.keys;
        let keys = [&second.keys[..], &dropped].concat();
        let values = [&second.values[..], &vec![0; dropped.len()]].concat();
        let removed = [vec![false; second.keys.len()], vec![true; dropped.len()]].concat();
        of.update_bulk(&keys, &values, &removed)?;
        Ok(dropped)
    })?;
    let (listed, range) = timed(|| Ok(of.range_bulk(&second.listed)?))?;
    let (counts, count) = timed(|| Ok(of.count_range_bulk(&second.counted)?))?;
    let (found, get) = timed(|| Ok(of.get_bulk(&second.asked)?))?;
    let ((), increment) = timed(|| Ok(counters.increment(&second.sources)?))?;
    let sent = counters.get_bulk(&(0..WATCHED).collect::<Vec<_>>())?;
    let Ranges { offsets, keys, values } = listed;
    Ok((Answers { dropped, offsets, keys, values, counts, found, sent }, [update, range, count, get, increment]))
}

/// Runs one step of the standard library's map.
fn in_map(
    map: &mut BTreeMap<u64, u64>,
    counters: &mut BTreeMap<u64, u64>,
    second: &Second,
) -> anyhow::Result<(Answers, Spent)> {
    let (dropped, update) = timed(|| {
        let mut dropped = Vec::new();
        while let Some(first) = map.first_entry().filter(|first| *first.key() < second.cutoff) {
            dropped.push(first.remove_entry().0);
        }
        map.extend(second.keys.iter().copied().zip(second.values.iter().copied()));
        Ok(dropped)
    })?;
    let mut answers = Answers { dropped, ..Answers::default() };
    let ((), range) = timed(|| {
        for span in &second.listed {
            answers.offsets.push(answers.keys.len() as u64);
            map.range(span.clone()).for_each(|(&key, &value)| {
                answers.keys.push(key);
                answers.values.push(value);
            });
        }
        answers.offsets.push(answers.keys.len() as u64);
        Ok(())
    })?;
    let (counts, count) =
        timed(|| Ok(second.counted.iter().map(|span| map.range(span.clone()).count() as u64).collect()))?;
    let (found, get) = timed(|| Ok(second.asked.iter().map(|key| map.get(key).copied()).collect()))?;
    answers.counts = counts;
    answers.found = found;
    let ((), increment) = timed(|| {
        second.sources.iter().for_each(|&source| *counters.entry(source).or_insert(0) += 1);
        Ok(())
    })?;
    answers.sent = (0..WATCHED).map(|source| counters.get(&source).copied()).collect();
    Ok((answers, [update, range, count, get, increment]))
}

/// Runs all steps. Returns the answers if none are expected, the time of the parts once the window is full, and whether
/// the answers were the expected ones.
fn run(
    size: Size,
    seconds: &[Second],
    expected: Option<&[Answers]>,
    mut step: impl FnMut(&Second) -> anyhow::Result<(Answers, Spent)>,
) -> anyhow::Result<(Vec<Answers>, Spent, bool)> {
    let (mut all, mut spent, mut right) = (Vec::new(), Spent::default(), true);
    for (i, second) in seconds.iter().enumerate() {
        let (answers, times) = step(second)?;
        if i as u64 >= size.window {
            spent.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
        match expected {
            Some(expected) => right &= answers == expected[i],
            None => all.push(answers),
        }
    }
    Ok((all, spent, right))
}

/// Makes the step of the job on the CPU or on a device.
pub fn step(target: Target, effort: Effort) -> Step {
    Step::new(format!("lsm: a window over events on {}", target.name()), move |session| {
        measure(session, &target, effort)
    })
}

fn measure(session: &mut Session, target: &Target, effort: Effort) -> anyhow::Result<()> {
    let device = match target {
        Target::Cpu => None,
        Target::Gpu(device) => Some(device),
    };
    let size = Size::of(effort, device);
    let seconds = seconds(size);
    let (mut map, mut counted) = (BTreeMap::new(), BTreeMap::new());
    let (expected, of_map, _) = run(size, &seconds, None, |second| in_map(&mut map, &mut counted, second))?;
    let some = expected.iter().map(|a| (a.dropped.len(), a.keys.len(), a.found.iter().flatten().count()));
    let some = some.fold((0, 0, 0), |sum, a| (sum.0 + a.0, sum.1 + a.1, sum.2 + a.2));
    anyhow::ensure!(some.0 > 0 && some.1 > 0 && some.2 > 0, "the job asks for nothing: {some:?}");

    let mut lines = Vec::new();
    let builder = Lsm::<u64, u64>::builder();
    if let Some(device) = device {
        let (mut lsm, mut counters) = (builder.on(device).build()?, builder.on(device).build()?);
        // The first turn pays for the kernels.
        let first = &seconds[..seconds.len().min(3)];
        run(size, first, Some(&expected), |second| in_dictionary(&mut lsm, &mut counters, second))?;
        lsm.clear()?;
        counters.clear()?;
        let step = |second: &Second| in_dictionary(&mut lsm, &mut counters, second);
        let (_, spent, right) = run(size, &seconds, Some(&expected), step)?;
        lines.push(add(session, target, Threads::All, size, ("lsm", false), spent, right));
    } else {
        for &threads in session.threads(true) {
            let (mut lsm, mut counters) = (builder.build()?, builder.build()?);
            let step = |second: &Second| in_dictionary(&mut lsm, &mut counters, second);
            let (_, spent, right) = session.pool(threads).install(|| run(size, &seconds, Some(&expected), step))?;
            lines.push(add(session, target, threads, size, ("lsm", false), spent, right));
        }
        lines.push(add(session, target, Threads::One, size, ("BTreeMap", true), of_map, true));
    }
    let header = ["dictionary", "on", "updates/s", "spans listed/s", "spans counted/s", "lookups/s", "increments/s"];
    let title = format!(
        "A window of {} s over {} events per second: corrections, removals, spans of time, counters of sources; every answer compared with BTreeMap's.",
        size.window, size.arriving
    );
    session.print(&grid(&title, header.map(String::from).into(), lines));
    Ok(())
}

/// Adds the rows, and returns the line of the table.
fn add(
    session: &mut Session,
    target: &Target,
    threads: Threads,
    size: Size,
    (name, peer): (&str, bool),
    spent: Spent,
    right: bool,
) -> Vec<String> {
    let of_step = [size.arriving, LISTED.0, COUNTED.0, LOOKUPS as u64, size.arriving];
    let on = match target {
        Target::Cpu => format!("{}, threads: {}", target.name(), session.pool(threads).current_num_threads()),
        Target::Gpu(_) => target.name().into(),
    };
    let mut line = vec![name.to_owned(), on];
    for ((part, of_step), seconds) in PARTS.iter().zip(of_step).zip(spent) {
        let n = (of_step * size.steps) as usize;
        let row = Record::new("lsm", part, n).by(name, peer).param("input", "events in a window").param("key", "u64");
        let row = row.param("window", size.window * size.arriving).time(seconds);
        line.push(row.items_per_second.map_or_else(String::new, rate));
        session.add(target, threads, row, right);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_slides_and_every_answer_is_right() {
        let emulator = Target::Gpu(Device::emulator(Default::default()));
        let rows = Session::rows_of(vec![step(Target::Cpu, Effort::Quick), step(emulator, Effort::Quick)]);
        let ours: Vec<&Record> = rows.iter().filter(|row| row.text("variant") == Some("lsm")).collect();
        assert!(ours.len() >= 8 && ours.iter().all(|row| row.checked), "{ours:?}");
        for part in PARTS {
            assert!(ours.iter().any(|row| row.operation == part && row.peer_ratio.is_some()), "{part}");
        }
    }

    #[test]
    fn wrong_answers_are_seen() {
        let size = Size { steps: 3, arriving: 64, window: 2 };
        let seconds = seconds(size);
        let (mut map, mut counted) = (BTreeMap::new(), BTreeMap::new());
        let (mut expected, ..) = run(size, &seconds, None, |second| in_map(&mut map, &mut counted, second)).unwrap();
        assert_eq!(seconds.len(), 5);
        // Once the window is full, each step drops about as much as it brings.
        assert!(expected[3..].iter().all(|answers| answers.dropped.len() > 32));
        let again = |expected: &[Answers]| {
            let builder = Lsm::builder().batch_size(64);
            let (mut lsm, mut counters) = (builder.build().unwrap(), builder.build().unwrap());
            run(size, &seconds, Some(expected), |second| in_dictionary(&mut lsm, &mut counters, second)).unwrap().2
        };
        assert!(again(&expected));
        expected[4].counts[0] ^= 1;
        assert!(!again(&expected));
    }
}
