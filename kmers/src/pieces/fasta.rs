//! Lines of FASTA that begin in a range of bytes.
//!
//! Windows belong to the piece that contains the line of their first base. So after its own lines a piece reads
//! on, up to `k - 1` letters of the same sequence.

use std::io::{self, SeekFrom};
use std::ops::Range;

use memchr::memchr;

use super::{BLOCK, Input, fill};
use crate::K;
use crate::reads::Seen;
use crate::roll::is_white;

/// Bytes read past a range: in most cases the rest of its last line.
const BEYOND: usize = 1 << 9;

/// State of the parser at the next byte.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the first line of the piece, in a line of the piece before.
    Before,
    /// At the start of a line.
    Line,
    /// In a line of letters.
    Letters,
    /// In the name of a record.
    Name,
    /// In a comment, which begins with `;`; after the lines of the piece, with the number of letters still to be read.
    Comment(Option<usize>),
    /// After the lines of the piece: letters still to be read, and whether a line begins.
    Beyond(usize, bool),
}

pub(super) struct Lines<'a> {
    input: Box<dyn Input + 'a>,
    overlap: usize,
    end: u64,
    /// Letters of windows that began before, then the bytes read.
    text: Vec<u8>,
    kept: usize,
    /// Place in the file of the first byte that is not read yet.
    at: u64,
    state: State,
}

impl<'a> Lines<'a> {
    pub(super) fn new(mut input: Box<dyn Input + 'a>, range: Range<u64>, k: K) -> io::Result<Lines<'a>> {
        // The line before ends where the range begins, or later.
        let (at, state) = if range.start == 0 { (0, State::Line) } else { (range.start - 1, State::Before) };
        input.seek(SeekFrom::Start(at))?;
        let overlap = k.get() as usize - 1;
        Ok(Lines { input, overlap, end: range.end, text: Vec::new(), kept: 0, at, state })
    }

    /// Reads one more block and visits its parts of sequences. Returns whether there may be more. Adds the letters of
    /// the piece's own lines to `seen`.
    pub(super) fn step(&mut self, visit: &mut impl FnMut(&[u8]), seen: &mut Seen) -> io::Result<bool> {
        let left = self.end.saturating_sub(self.at).min(BLOCK as u64) as usize;
        let block = BLOCK.min(left + BEYOND);
        self.text.resize(self.kept + block, 0);
        let read = fill(&mut *self.input, &mut self.text[self.kept..])?;
        self.text.truncate(self.kept + read);
        let (at, kept) = (self.at, self.kept);
        let text = &mut self.text[..];
        let place = |i: usize| at + (i - kept) as u64;
        // The next byte, and the begin of the sequence's letters.
        let (mut i, mut begin, mut state, mut is_done) = (self.kept, 0, self.state, read < block);
        while i < text.len() {
            let line = || memchr(b'\n', &text[i..]).map(|at| i + at + 1);
            match state {
                State::Before => {
                    let Some(next) = line() else { break };
                    if place(next) >= self.end {
                        return Ok(false);
                    }
                    (i, begin, state) = (next, next, State::Line);
                }
                State::Name => {
                    let Some(next) = line() else { break };
                    (i, begin, state) = (next, next, State::Line);
                }
                State::Line if text[i] == b'>' => {
                    visit(&text[begin..i]);
                    (begin, state) = (text.len(), State::Name);
                    if place(i) >= self.end {
                        return Ok(false);
                    }
                }
                State::Line if place(i) >= self.end => state = State::Beyond(self.overlap, true),
                State::Line if text[i] == b';' => state = State::Comment(None),
                State::Comment(beyond) => {
                    let next = line();
                    let end = next.unwrap_or(text.len());
                    // White space within a sequence is skipped.
                    text[i..end].fill(b' ');
                    i = end;
                    if next.is_some() {
                        state = beyond.map_or(State::Line, |letters| State::Beyond(letters, true));
                    }
                }
                State::Line => state = State::Letters,
                State::Letters => {
                    let begin = i;
                    match line() {
                        Some(next) => (i, state) = (next, State::Line),
                        None => i = text.len(),
                    }
                    seen.add(&text[begin..i]);
                }
                State::Beyond(letters, is_line) => {
                    if letters == 0 || is_line && text[i] == b'>' {
                        visit(&text[begin..i]);
                        return Ok(false);
                    }
                    if is_line && text[i] == b';' {
                        state = State::Comment(Some(letters));
                        continue;
                    }
                    state = State::Beyond(letters - usize::from(!is_white(text[i])), text[i] == b'\n');
                    i += 1;
                }
            }
        }
        match state {
            State::Before => is_done |= place(text.len()) > self.end,
            State::Name => {}
            State::Line | State::Letters | State::Comment(_) | State::Beyond(..) => visit(&text[begin..]),
        }
        let kept = if matches!(state, State::Before | State::Name) { Vec::new() } else { self.last_letters(begin) };
        self.at += read as u64;
        (self.kept, self.state) = (kept.len(), state);
        self.text.clear();
        self.text.extend(kept.into_iter().rev());
        Ok(!is_done)
    }

    /// Returns the last letters from `begin` on with which windows of the next block may begin, the last one first.
    fn last_letters(&self, begin: usize) -> Vec<u8> {
        let letters = self.text[begin..].iter().rev().copied().filter(|&letter| !is_white(letter));
        letters.take(self.overlap).collect()
    }
}
