//! The records of FASTQ that begin in a range of bytes.
//!
//! A record has four lines, and starts with `@`, as a line of qualities may. But the second line after it starts with
//! `+` only for a record: for qualities that is the next record's sequence. Each piece ends where the next record must
//! begin, or says that the file is not sound, so that no line is left out.

use std::io::{self, BufRead, BufReader, Read, SeekFrom};
use std::ops::Range;

use needletail::FastxReader;

use super::{BLOCK, Input, Text};
use crate::Error;
use crate::reads::broken;

pub(super) struct Reads<'a> {
    text: Text<'a>,
    /// `None` if no record begins in the range.
    reader: Option<Box<dyn FastxReader + 'a>>,
    /// Where the first record begins.
    begin: u64,
    /// Where the next record begins.
    at: u64,
    end: u64,
}

impl<'a> Reads<'a> {
    pub(super) fn new(mut input: Box<dyn Input + 'a>, text: Text<'a>, range: Range<u64>) -> Result<Reads<'a>, Error> {
        let failed = |source| text.failed(source);
        let first = match range.start {
            0 => Some(0),
            start => first_record(&mut *input, start..range.end).map_err(failed)?,
        };
        let Some(at) = first else { return Ok(Reads { text, reader: None, begin: 0, at: 0, end: 0 }) };
        input.seek(SeekFrom::Start(at)).map_err(failed)?;
        let reader = needletail::parse_fastx_reader(input).map_err(|error| broken(text.path(), error, 0))?;
        Ok(Reads { text, reader: Some(reader), begin: at, at, end: range.end })
    }

    /// Visits the sequences of about a block; says whether there may be more.
    pub(super) fn step(&mut self, visit: &mut impl FnMut(&[u8])) -> Result<bool, Error> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let stop = self.at + BLOCK as u64;
        while self.at < stop {
            if self.at >= self.end {
                let mut input = self.text.open().map_err(|source| self.text.failed(source))?;
                match first_record(&mut *input, self.end..u64::MAX).map_err(|source| self.text.failed(source))? {
                    Some(next) if next == self.at => return Ok(false),
                    Some(next) => {
                        let line = 1 + lines_before(self.text, self.at.min(next))?;
                        let reason = format!("at line {line} one record should end and the next one begin");
                        return Err(Error::NotSequence { path: self.text.path().to_owned(), reason });
                    }
                    // What is left is no record, which is for the parser to say, unless it is empty lines.
                    None => self.end = u64::MAX,
                }
            }
            let Some(record) = reader.next() else { return Ok(false) };
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    return Err(broken(self.text.path(), error, lines_before(self.text, self.begin)?));
                }
            };
            visit(record.raw_seq());
            self.at += record.all().len() as u64 + 1;
        }
        Ok(true)
    }
}

/// How many lines end before this byte.
fn lines_before(text: Text<'_>, end: u64) -> Result<u64, Error> {
    let count = || {
        let mut input = BufReader::with_capacity(BLOCK, text.open()?.take(end));
        let mut lines = 0;
        while !input.fill_buf()?.is_empty() {
            input.skip_until(b'\n')?;
            lines += 1;
        }
        Ok(lines)
    };
    count().map_err(|source| text.failed(source))
}

/// The first byte of a range, which does not begin where the file does, at which a record begins.
fn first_record(input: &mut dyn Input, range: Range<u64>) -> io::Result<Option<u64>> {
    input.seek(SeekFrom::Start(range.start - 1))?;
    let mut input = BufReader::with_capacity(1 << 12, input);
    let mut at = range.start - 1 + input.skip_until(b'\n')? as u64;
    // The first byte of each of the last two lines, and where they begin.
    let mut before: [Option<(u64, u8)>; 2] = [None, None];
    while at < range.end || before.iter().flatten().any(|&(place, first)| first == b'@' && place < range.end) {
        let Some(&first) = input.fill_buf()?.first() else { break };
        if let [Some((place, b'@')), _] = before
            && first == b'+'
            && place < range.end
        {
            return Ok(Some(place));
        }
        before = [before[1], Some((at, first))];
        at += input.skip_until(b'\n')? as u64;
    }
    Ok(None)
}
