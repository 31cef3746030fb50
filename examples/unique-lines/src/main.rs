//! Prints each line of its input once, at its first occurrence: `unique-lines [RATE] < INPUT > OUTPUT`.
//!
//! Does the work of `awk '!seen[$0]++'` with a few bytes per line instead of the lines themselves: a Bloom filter tells
//! whether a line has occurred. It takes the share RATE (default: one in a million) of new lines for old ones, and the
//! output lacks those. The number of lines is unknown, so the program uses a chain of filters: when one is full, the
//! next has twice the size and half the rate, so that the sum of all rates stays below RATE.
//! (Almeida, Baquero, Preguiça, Hutchison, "Scalable Bloom Filters", 2007.)

use std::io::{BufRead, Write};

use warpset_bloom::{Filter, SplitBlockBloom, TestAndInsert};

/// Lines that are looked up together.
const BATCH: usize = 1 << 14;
/// Lines that the first filter is made for.
const FIRST: u64 = 1 << 20;

/// Filters that together contain all lines so far.
struct Seen {
    /// All but the last are full.
    filters: Vec<SplitBlockBloom>,
    /// Capacity of the last filter in lines.
    room: u64,
    rate: f64,
}

impl Seen {
    fn new(rate: f64) -> Self {
        Self { filters: Vec::new(), room: 0, rate }
    }

    /// Whether each line is new. Lines that are, are known from then on.
    fn test_and_insert(&mut self, lines: &[Vec<u8>]) -> anyhow::Result<Vec<bool>> {
        if self.room < lines.len() as u64 {
            let number = self.filters.len() as i32;
            let capacity = FIRST << number;
            self.filters.push(SplitBlockBloom::builder(capacity).fpr(self.rate / 2f64.powi(number + 1)).build()?);
            self.room = capacity;
        }
        let (last, full) = self.filters.split_last_mut().expect("there is a filter");
        let mut new = last.test_and_insert_bulk(lines)?;
        self.room -= new.iter().filter(|&&new| new).count() as u64;
        for filter in full {
            // A line that an older filter has is in the last one now, too; that costs a place, and no answer.
            new.iter_mut().zip(filter.contains_bulk(lines)?).for_each(|(new, there)| *new &= !there);
        }
        Ok(new)
    }
}

fn main() -> anyhow::Result<()> {
    let rate = std::env::args().nth(1).map_or(Ok(1e-6), |text| text.parse())?;
    let mut seen = Seen::new(rate);
    let mut input = std::io::stdin().lock();
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut lines: Vec<Vec<u8>> = Vec::with_capacity(BATCH);
    loop {
        let mut line = Vec::new();
        let is_end = input.read_until(b'\n', &mut line)? == 0;
        if !is_end {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            lines.push(line);
        }
        if lines.len() == BATCH || is_end {
            for (line, _) in lines.iter().zip(seen.test_and_insert(&lines)?).filter(|(_, new)| *new) {
                output.write_all(line)?;
                output.write_all(b"\n")?;
            }
            lines.clear();
        }
        if is_end {
            return Ok(output.flush()?);
        }
    }
}
