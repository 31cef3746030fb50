//! Limits of the processor's memory, measured in the same run: rates of rows are shown as shares of them.
//!
//! A filter's lookup streams keys in, touches one 32-byte block at a random address and writes an
//! answer; an insert changes the block. These loops do just that and no hashing, so a structure
//! that reaches them has nothing left to gain without changing its access pattern.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use crate::input::keys::KeySpace;
use rayon::prelude::*;

use super::clock::Effort;
use bench_record::Record;

/// A 32-byte block, aligned to its size.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Block([u64; 4]);

/// Kind of access to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A `u64` key streamed in, 32 bytes read at a random address, a byte streamed out.
    Read,
    /// A `u64` key streamed in, 32 bytes changed at a random address.
    Update,
}

impl Access {
    /// Returns the name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Access::Read => "random 32-byte read",
            Access::Update => "random 32-byte update",
        }
    }
}

/// Limits already measured, by access, footprint and threads.
#[derive(Default)]
pub struct Limits {
    known: HashMap<(Access, usize, usize), f64>,
    copies: HashMap<(usize, usize), f64>,
}

impl Limits {
    /// Measures random accesses per second to `bytes` of memory, with the threads of the current pool.
    pub fn random(&mut self, access: Access, bytes: usize, effort: Effort) -> f64 {
        let threads = rayon::current_num_threads();
        *self.known.entry((access, bytes, threads)).or_insert_with(|| measure_random(access, bytes, effort))
    }

    /// Measures the bytes per second that repeated copies of `bytes` move (read and written bytes both count), with the
    /// threads of the current pool.
    pub fn copy(&mut self, bytes: usize, effort: Effort) -> f64 {
        let threads = rayon::current_num_threads();
        *self.copies.entry((bytes, threads)).or_insert_with(|| measure_copy(bytes, effort))
    }

    /// Returns every limit measured so far, as rows.
    pub fn rows(&self) -> Vec<Record> {
        let row = |operation: &str, n: usize, bytes: usize, threads: usize, rate: f64| {
            let row = Record::new("machine", operation, n).param("threads", threads).time(n as f64 / rate);
            row.param("filter_bytes", bytes)
        };
        let copies = self
            .copies
            .iter()
            .map(|(&(bytes, threads), &rate)| row("memory copy, bytes", 2 * bytes, bytes, threads, rate));
        let accesses = self
            .known
            .iter()
            .map(|(&(access, bytes, threads), &rate)| row(access.name(), ACCESSES, bytes, threads, rate));
        let mut rows: Vec<Record> = copies.chain(accesses).collect();
        let place = |row: &Record| (row.operation.clone(), row.number("threads"), row.number("filter_bytes"));
        rows.sort_by(|a, b| place(a).partial_cmp(&place(b)).unwrap_or(std::cmp::Ordering::Equal));
        rows
    }
}

/// Random accesses in one measurement.
const ACCESSES: usize = 1 << 21;
/// Bytes that one measurement of copying reads, and writes.
const COPIED: usize = 1 << 26;

/// Returns the best of a few repeats: a limit is the machine's best, not its usual rate.
fn best_seconds(effort: Effort, mut work: impl FnMut()) -> f64 {
    work();
    let repeats = if effort == Effort::Quick { 4 } else { 8 };
    (0..repeats)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn measure_random(access: Access, bytes: usize, effort: Effort) -> f64 {
    let threads = rayon::current_num_threads();
    let mut blocks = vec![Block([1, 2, 4, 8]); (bytes / size_of::<Block>()).max(threads)];
    let n = ACCESSES;
    let keys = KeySpace::new(0x11).stream(0).u64_keys(n);
    let share = n.div_ceil(threads);
    let seconds = match access {
        Access::Read => {
            let mut answers = vec![false; n];
            best_seconds(effort, || {
                keys.par_chunks(share).zip(answers.par_chunks_mut(share)).for_each(|(keys, answers)| {
                    for (key, answer) in keys.iter().zip(answers) {
                        let Block([a, b, c, d]) = blocks[index(*key, blocks.len())];
                        *answer = (a | b | c | d) & key == 0;
                    }
                });
                black_box(&mut answers);
            })
        }
        // Each thread changes its own part of the memory: no locks, no atomics.
        Access::Update => best_seconds(effort, || {
            let part = blocks.len().div_ceil(threads);
            keys.par_chunks(share).zip(blocks.par_chunks_mut(part)).for_each(|(keys, blocks)| {
                for key in keys {
                    let Block([a, b, c, d]) = &mut blocks[index(*key, blocks.len())];
                    (*a, *b, *c, *d) = (*a | key, *b | key >> 1, *c | key >> 2, *d | key >> 3);
                }
            });
            black_box(&mut blocks);
        }),
    };
    n as f64 / seconds
}

/// Maps a key to a block, without modulo.
#[inline]
fn index(key: u64, blocks: usize) -> usize {
    ((u128::from(key) * blocks as u128) >> 64) as usize
}

fn measure_copy(bytes: usize, effort: Effort) -> f64 {
    let source = vec![1u8; bytes];
    let mut target = vec![0u8; bytes];
    let part = bytes.div_ceil(rayon::current_num_threads()).max(1);
    let rounds = (COPIED / bytes.max(1)).clamp(1, 1000);
    let seconds = best_seconds(effort, || {
        target.par_chunks_mut(part).zip(source.par_chunks(part)).for_each(|(target, source)| {
            for _ in 0..rounds {
                black_box(&mut *target).copy_from_slice(black_box(source));
            }
        });
    });
    (2 * bytes * rounds) as f64 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_measured_once() {
        let mut limits = Limits::default();
        let read = limits.random(Access::Read, 1 << 16, Effort::Quick);
        assert!(read > 0.0);
        assert_eq!(limits.random(Access::Read, 1 << 16, Effort::Quick), read);
        assert!(limits.random(Access::Update, 0, Effort::Quick) > 0.0);
        assert!(limits.copy(1 << 16, Effort::Quick) > 0.0);
        assert_eq!(limits.rows().len(), 3);
    }
}
