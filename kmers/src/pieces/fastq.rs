//! Records of FASTQ that begin in a range of bytes.

use std::io;
use std::ops::Range;

use super::{BLOCK, Input, Text};
use crate::Error;
use crate::reads::Seen;
use crate::screen::{Batch, Format, cut, read};

pub(super) struct Reads<'a> {
    input: Box<dyn Input + 'a>,
    text: Text<'a>,
    /// Begin of the next record.
    at: u64,
    /// Begin of the first record of the next piece, or the end of the text.
    end: u64,
    len: u64,
    batch: Batch,
}

impl<'a> Reads<'a> {
    pub(super) fn new(
        mut input: Box<dyn Input + 'a>,
        text: Text<'a>,
        (range, len): (Range<u64>, u64),
    ) -> io::Result<Reads<'a>> {
        let mut first = |at| if at == 0 { Ok(0) } else { cut(&mut *input, Format::Fastq, at, len) };
        let (at, end) = (first(range.start)?, first(range.end)?);
        Ok(Reads { input, text, at, end, len, batch: Batch::default() })
    }

    /// Visits the sequences of about a block. Returns whether there may be more.
    pub(super) fn step(&mut self, visit: &mut impl FnMut(&[u8]), seen: &mut Seen) -> Result<bool, Error> {
        if self.at >= self.end {
            return Ok(false);
        }
        let next = cut(&mut *self.input, Format::Fastq, self.at + BLOCK as u64, self.end);
        let next = next.map_err(|source| self.text.failed(source))?.min(self.end);
        read(self.text, Format::Fastq, (self.at, next, next == self.len), &mut self.batch)?;
        seen.add_batch(&self.batch);
        (0..self.batch.len()).for_each(|record| visit(self.batch.letters(record)));
        self.at = next;
        Ok(next < self.end)
    }
}
