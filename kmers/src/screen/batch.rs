//! Batches of whole records, as stored in their files, with their letters.

use memchr::{memchr, memchr_iter};

use super::lines::{LineEnds, Portable};
use crate::odd::{OddLetters, is_plain, tidy};
use crate::roll::is_white;

/// Places of a record and its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// Bytes of the record in the text, line end included.
    bytes: (usize, usize),
    /// Letters, in the text or in the joined lines.
    letters: (usize, usize),
    is_joined: bool,
}

/// Records to be decided: reads, or pairs of reads with adjacent mates.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    text: Vec<u8>,
    /// Tidied letters of records that have several lines, white space or U.
    joined: Vec<u8>,
    records: Vec<Record>,
    is_paired: bool,
    odd: OddLetters,
    /// Odd letters of the last record that was parsed.
    odd_of_last: OddLetters,
}

/// Format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Fasta,
    Fastq,
}

/// Fault of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Begin of the record.
    pub(crate) at: usize,
    /// Line of the record, from 0 on.
    pub(crate) line: usize,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Start,
    Separator,
    Lengths { letters: usize, qualities: usize },
    End,
}

impl Format {
    /// Returns the format for the first byte of a text.
    pub(crate) fn of(first: u8) -> Option<Format> {
        match first {
            b'>' | b';' => Some(Format::Fasta),
            b'@' => Some(Format::Fastq),
            _ => None,
        }
    }
}

impl Batch {
    /// Removes all records and keeps the memory. The text stays, to be overwritten.
    pub(crate) fn clear(&mut self, is_paired: bool) {
        self.joined.clear();
        self.records.clear();
        self.is_paired = is_paired;
        self.odd = OddLetters::default();
    }

    /// Returns the numbers of odd letters in all records.
    pub(crate) fn odd_letters(&self) -> OddLetters {
        self.odd
    }

    /// Appends a record. Unless its letters are only A, C, G and T (`is_plain`), tidied ones in `joined` may replace
    /// them.
    #[inline(always)]
    fn push(&mut self, mut record: Record, is_plain: bool) {
        self.odd_of_last = OddLetters::default();
        if !is_plain {
            self.tidy(&mut record);
        }
        self.records.push(record);
    }

    #[cold]
    fn tidy(&mut self, record: &mut Record) {
        let Record { letters: (begin, end), is_joined, .. } = *record;
        let odd = OddLetters::of(if is_joined { &self.joined[begin..end] } else { &self.text[begin..end] });
        self.odd_of_last = odd;
        self.odd += odd;
        let joined_before = self.joined.len();
        if is_joined {
            let letters = self.joined.split_off(begin);
            tidy(&letters, &mut self.joined);
            record.letters = (begin, self.joined.len());
        } else if odd.uracils > 0 || self.text[begin..end].iter().any(|&letter| is_white(letter)) {
            tidy(&self.text[begin..end], &mut self.joined);
            (record.letters, record.is_joined) = ((joined_before, self.joined.len()), true);
        }
    }

    /// Borrows the text, to be filled before it is parsed.
    pub(crate) fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Takes the text and leaves `other` in its place. Places and lengths stay, letters do not.
    pub(crate) fn replace_text(&mut self, other: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.text, other)
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of units, which are decided one by one: reads, or pairs of reads.
    pub(crate) fn units(&self) -> usize {
        self.records.len() / self.mates()
    }

    /// Returns the records per unit: 1, or 2 mates.
    pub(crate) fn mates(&self) -> usize {
        if self.is_paired { 2 } else { 1 }
    }

    /// Returns the letters of a record, without line ends.
    #[inline]
    pub(crate) fn letters(&self, record: usize) -> &[u8] {
        let Record { letters: (begin, end), is_joined, .. } = self.records[record];
        if is_joined { &self.joined[begin..end] } else { &self.text[begin..end] }
    }

    /// Returns the number of letters of a record; also without the text.
    #[inline]
    pub(crate) fn letters_len(&self, record: usize) -> usize {
        let Record { letters: (begin, end), .. } = self.records[record];
        end - begin
    }

    /// Returns the letters of each record of a unit.
    #[inline]
    pub(crate) fn letters_of_unit(&self, unit: usize) -> impl Iterator<Item = &[u8]> {
        let mates = self.mates();
        (unit * mates..(unit + 1) * mates).map(|record| self.letters(record))
    }

    /// Returns the range of a record in the text. Only at the end of the text its line end may be missing.
    #[inline]
    pub(crate) fn bytes(&self, record: usize) -> (usize, usize) {
        self.records[record].bytes
    }

    /// Whether the text consists of the records, one after the other, each with its line end.
    pub(crate) fn is_in_order(&self) -> bool {
        let ends = self.records.first().zip(self.records.last());
        ends.is_some_and(|(first, last)| first.bytes.0 == 0 && last.bytes.1 == self.text.len())
            && self.text.last() == Some(&b'\n')
            && self.records.is_sorted_by(|one, other| one.bytes.1 == other.bytes.0)
    }

    /// Returns the name of a record: its first line up to the first blank, without the mark.
    pub(crate) fn name(&self, record: usize) -> &[u8] {
        let (begin, end) = self.records[record].bytes;
        name_of(&self.text[begin..end])
    }

    /// Appends the records that begin at `at`, at most `most`. Returns the begin of the first record that is not whole.
    /// At the end of a file the last record needs no line end.
    pub(crate) fn parse(&mut self, format: Format, at: usize, is_end: bool, most: usize) -> Result<usize, Fault> {
        match format {
            Format::Fasta => self.parse_fasta(at, is_end, most),
            Format::Fastq => self.parse_fastq(at, is_end, most),
        }
    }

    fn parse_fasta(&mut self, mut at: usize, is_end: bool, most: usize) -> Result<usize, Fault> {
        // Comments before the first record.
        while self.text.get(at) == Some(&b';') {
            match memchr(b'\n', &self.text[at..]) {
                Some(len) => at += len + 1,
                None if is_end => at = self.text.len(),
                None => return Ok(at),
            }
        }
        for _ in 0..most {
            let Some(record) = fasta(&self.text, at, is_end, &mut self.joined)? else { break };
            at = record.bytes.1;
            let Record { letters: (begin, end), is_joined, .. } = record;
            let letters = if is_joined { &self.joined[begin..end] } else { &self.text[begin..end] };
            self.push(record, is_plain::<false>(letters));
        }
        Ok(at)
    }

    fn parse_fastq(&mut self, at: usize, is_end: bool, most: usize) -> Result<usize, Fault> {
        #[cfg(target_arch = "x86_64")]
        {
            use super::lines::x86::{Avx2, Avx512};
            #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
            fn by_avx512(
                batch: &mut Batch,
                lines: Avx512,
                (at, is_end, most): (usize, bool, usize),
            ) -> Result<usize, Fault> {
                batch.parse_fastq_by(lines, at, is_end, most)
            }
            #[target_feature(enable = "avx2,bmi1,popcnt")]
            fn by_avx2(
                batch: &mut Batch,
                lines: Avx2,
                (at, is_end, most): (usize, bool, usize),
            ) -> Result<usize, Fault> {
                batch.parse_fastq_by(lines, at, is_end, most)
            }
            if let Some(lines) = Avx512::detect() {
                // SAFETY: a value of `Avx512` exists only if the processor has the instructions.
                return unsafe { by_avx512(self, lines, (at, is_end, most)) };
            }
            if let Some(lines) = Avx2::detect() {
                // SAFETY: a value of `Avx2` exists only if the processor has the instructions.
                return unsafe { by_avx2(self, lines, (at, is_end, most)) };
            }
        }
        self.parse_fastq_by(Portable, at, is_end, most)
    }

    #[inline(always)]
    fn parse_fastq_by<I: LineEnds>(
        &mut self,
        lines: I,
        mut at: usize,
        is_end: bool,
        most: usize,
    ) -> Result<usize, Fault> {
        let mut shape = Shape::default();
        for _ in 0..most {
            let record = if shape.len > 0
                && let Some(record) = self.text.get(at..).and_then(|rest| rest.get(..shape.len))
                && shape.fits(lines, record)
            {
                shape.at(at)
            } else {
                let Some((record, found)) = fastq(lines, &self.text, at, is_end)? else { break };
                shape = if I::COUNTS { found } else { Shape::default() };
                record
            };
            at = record.bytes.1;
            let is_plain = lines.is_plain(&self.text[record.letters.0..record.letters.1]);
            self.push(record, is_plain);
        }
        Ok(at)
    }

    /// Removes the last record. Returns its begin.
    pub(crate) fn pop(&mut self) -> usize {
        self.odd -= std::mem::take(&mut self.odd_of_last);
        self.records.pop().map_or(0, |record| record.bytes.0)
    }

    /// Inserts the records of another batch, equally many, after those of this one, so that single records become
    /// pairs.
    pub(crate) fn pair_with(&mut self, other: &Batch) {
        debug_assert_eq!(self.records.len(), other.records.len());
        if !self.text.ends_with(b"\n") {
            // The last record of a file may lack its line end.
            self.text.push(b'\n');
            if let Some(last) = self.records.last_mut() {
                last.bytes.1 += 1;
            }
        }
        self.odd += other.odd;
        let (text, joined) = (self.text.len(), self.joined.len());
        self.text.extend_from_slice(&other.text);
        self.joined.extend_from_slice(&other.joined);
        let moved = |record: &Record| {
            let by = if record.is_joined { joined } else { text };
            let moved = |(begin, end): (usize, usize), by| (begin + by, end + by);
            Record { bytes: moved(record.bytes, text), letters: moved(record.letters, by), ..*record }
        };
        let pairs = self.records.iter().zip(&other.records).flat_map(|(&first, second)| [first, moved(second)]);
        self.records = pairs.collect();
        self.is_paired = true;
    }
}

/// Returns the name in the first line of a record.
pub(crate) fn name_of(record: &[u8]) -> &[u8] {
    let line = record.split(|&byte| byte == b'\n' || byte == b'\r').next().unwrap_or_default();
    let name = line.get(1..).unwrap_or_default();
    name.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default()
}

/// Returns the end of a line without white space.
#[inline(always)]
fn without_white(text: &[u8], begin: usize, mut end: usize) -> usize {
    while end > begin && is_white(text[end - 1]) {
        end -= 1;
    }
    end
}

/// Places of the line ends in a record of FASTQ, relative to its begin. The next record has equal lengths in most
/// cases, which is checked without searching one line end after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    name: usize,
    letters: usize,
    separator: usize,
    /// Bytes of the record; 0 for a record with white space at line ends, with which others are not compared.
    len: usize,
}

impl Shape {
    /// Whether a text of this length is a record of this shape.
    #[inline(always)]
    fn fits(self, lines: impl LineEnds, record: &[u8]) -> bool {
        let Shape { name, letters, separator, len } = self;
        record[0] == b'@'
            && record[name] == b'\n'
            && record[letters] == b'\n'
            && record[letters + 1] == b'+'
            && record[separator] == b'\n'
            && record[len - 1] == b'\n'
            && record[letters - 1] > b' '
            && record[len - 2] > b' '
            && lines.count(record) == 4
    }

    /// Returns the record of this shape that begins at `at`.
    #[inline(always)]
    fn at(self, at: usize) -> Record {
        Record { bytes: (at, at + self.len), letters: (at + self.name + 1, at + self.letters), is_joined: false }
    }
}

/// Returns the result for a record that the text ends within line `line`: a fault at the end of a file, else no record.
#[cold]
fn cut(at: usize, line: usize, is_end: bool) -> Result<Option<(Record, Shape)>, Fault> {
    if is_end { Err(Fault { at, line, what: What::End }) } else { Ok(None) }
}

#[inline(always)]
fn fastq(lines: impl LineEnds, text: &[u8], at: usize, is_end: bool) -> Result<Option<(Record, Shape)>, Fault> {
    match text.get(at) {
        Some(b'@') => {}
        // Empty lines may end a file.
        None => return Ok(None),
        Some(_) if text[at..].iter().all(|&byte| is_white(byte)) => {
            return Ok(None);
        }
        Some(_) => return Err(Fault { at, line: 0, what: What::Start }),
    }
    let Some(name) = lines.next(text, at + 1) else { return cut(at, 0, is_end) };
    let Some(letters) = lines.next(text, name + 1) else { return cut(at, 1, is_end) };
    match text.get(letters + 1) {
        Some(b'+') => {}
        Some(_) => return Err(Fault { at, line: 2, what: What::Separator }),
        None => return cut(at, 2, is_end),
    }
    let Some(separator) = lines.next(text, letters + 1) else { return cut(at, 2, is_end) };
    let (qualities, end) = match lines.next(text, separator + 1) {
        Some(end) => (end, end + 1),
        None if is_end => (text.len(), text.len()),
        None => return Ok(None),
    };
    let letters_end = without_white(text, name + 1, letters);
    let qualities_end = without_white(text, separator + 1, qualities);
    let record = Record { bytes: (at, end), letters: (name + 1, letters_end), is_joined: false };
    let is_plain = letters_end == letters && qualities_end + 1 == end;
    let (letters_len, qualities) = (letters_end - (name + 1), qualities_end - (separator + 1));
    if letters_len != qualities {
        let is_last = is_end && end == text.len() && qualities < letters_len;
        let is_cut = is_last && (separator + 1 == text.len() || text.last() != Some(&b'\n'));
        let what = if is_cut { What::End } else { What::Lengths { letters: letters_len, qualities } };
        return Err(Fault { at, line: 3, what });
    }
    let len = if is_plain { end - at } else { 0 };
    let shape = Shape { name: name - at, letters: letters - at, separator: separator - at, len };
    Ok(Some((record, shape)))
}

#[inline(always)]
fn fasta(text: &[u8], at: usize, is_end: bool, joined: &mut Vec<u8>) -> Result<Option<Record>, Fault> {
    match text.get(at) {
        Some(b'>') => {}
        None => return Ok(None),
        Some(_) => return Err(Fault { at, line: 0, what: What::Start }),
    }
    let next = memchr_iter(b'>', &text[at + 1..]).map(|place| at + 1 + place).find(|&place| text[place - 1] == b'\n');
    let end = match next {
        Some(next) => next,
        None if is_end => text.len(),
        None => return Ok(None),
    };
    let name = memchr(b'\n', &text[at..end]).map_or(end, |len| at + len + 1);
    let line = memchr(b'\n', &text[name..end]).map_or(end, |len| name + len);
    let rest = &text[line..end];
    if rest.iter().all(|&byte| is_white(byte)) && text.get(name) != Some(&b';') {
        let letters = (name, without_white(text, name, line));
        return Ok(Some(Record { bytes: (at, end), letters, is_joined: false }));
    }
    let begin = joined.len();
    let lines = text[name..end].split(|&byte| byte == b'\n').filter(|line| line.first() != Some(&b';'));
    lines.for_each(|line| joined.extend_from_slice(&line[..without_white(line, 0, line.len())]));
    Ok(Some(Record { bytes: (at, end), letters: (begin, joined.len()), is_joined: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(format: Format, text: &[u8], is_end: bool) -> Result<(Vec<(String, String)>, usize), Fault> {
        let mut batch = Batch::default();
        batch.text_mut().extend_from_slice(text);
        let found = batch.parse(format, 0, is_end, usize::MAX);
        if format == Format::Fastq {
            // Any processor must find equal records.
            let mut portable = Batch { text: text.to_vec(), ..Batch::default() };
            assert_eq!(portable.parse_fastq_by(Portable, 0, is_end, usize::MAX), found);
            assert_eq!(portable.records, batch.records);
        }
        let end = found?;
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let records = (0..batch.len()).map(|i| (string(batch.name(i)), string(batch.letters(i)))).collect();
        Ok((records, end))
    }

    #[test]
    fn fastq_is_parsed() {
        let text = b"@a x\nACGT\n+\nIIII\n@b\r\nAC\r\n+b\r\n@+\r\n@\n\n+\n\n@d\nA\n+\nI";
        let whole = |records: &[(&str, &str)]| -> Vec<(String, String)> {
            records.iter().map(|(name, letters)| (name.to_string(), letters.to_string())).collect()
        };
        let all = whole(&[("a", "ACGT"), ("b", "AC"), ("", ""), ("d", "A")]);
        assert_eq!(parsed(Format::Fastq, text, true), Ok((all.clone(), text.len())));
        assert_eq!(parsed(Format::Fastq, text, false), Ok((all[..3].to_vec(), text.len() - 8)));
        for end in [&b"\n"[..], b"\n\n", b"\r\n\r\n"] {
            let (records, _) = parsed(Format::Fastq, &[&text[..], end].concat(), true).unwrap();
            assert_eq!(records, all);
        }
        // Cut anywhere, the text gives the records before the cut, and an error only at its end.
        for len in 1..text.len() {
            let (records, end) = parsed(Format::Fastq, &text[..len], false).unwrap();
            assert!(end <= len && all.starts_with(&records), "{len}");
            assert!(parsed(Format::Fastq, &text[..len], true).map_or_else(|fault| fault.what == What::End, |_| true));
        }
    }

    /// Checks records of the shape of the one before, and others that differ from it in one place.
    #[test]
    fn shapes_are_compared_whole() {
        let one = "@name\nACGTACGT\n+\nIIIIIIII\n";
        let others = [
            one.to_owned(),
            one.replace('C', "N"),
            one.replace("ACGTACGT\n+\nIIIIIIII", "ACGTACG\n+x\nIIIIIII"),
            one.replace("T\n", "\r\n").replace("I\n", "\r\n"),
            one.replace("IIII\n", "@@+@\n"),
            "@a\nA\n+\nI\n@b\n\n+\n\n@cdef\nA\n+\nI\n".to_owned(),
            // Equal length, with line ends at the right places and more of them.
            "@na\nA\n+\nI\n@b\nA\n+\nI\n@x\n\n+\n\n".to_owned(),
        ];
        for other in &others {
            for text in [format!("{one}{one}{other}{one}"), format!("{one}{other}{other}{one}{one}")] {
                let (records, end) = parsed(Format::Fastq, text.as_bytes(), true).unwrap();
                assert_eq!(end, text.len());
                let letters: usize = records.iter().map(|(_, letters)| letters.len()).sum();
                let wanted = text.lines().collect::<Vec<_>>();
                assert_eq!(records.len() * 4, wanted.len());
                assert_eq!(letters, wanted.chunks(4).map(|lines| lines[1].len()).sum::<usize>(), "{text:?}");
            }
        }
        for (broken, what) in [
            ("@name\nACGTACGT\n-\nIIIIIIII\n", What::Separator),
            ("name@\nACGTACGT\n+\nIIIIIIII\n", What::Start),
            ("@name\nACGTACGT\n+\nIIIIIII\n\n", What::Lengths { letters: 8, qualities: 7 }),
            ("@name\nACGTACGT\n+\nIIII\nIII\n", What::Lengths { letters: 8, qualities: 4 }),
            ("@name\nACGTACG\r\n+\nIIIIIIII\n", What::Lengths { letters: 7, qualities: 8 }),
            ("@name\nACGTACGT\n+\nIIIIIII\r\n", What::Lengths { letters: 8, qualities: 7 }),
        ] {
            let fault = parsed(Format::Fastq, format!("{one}{broken}{one}").as_bytes(), true).unwrap_err();
            assert_eq!((fault.at, fault.what), (one.len(), what), "{broken:?}");
        }
    }

    #[test]
    fn faults_say_what_and_where() {
        for (text, at, line, what) in [
            ("@a\nAC\n+\nI\n", 0, 3, What::Lengths { letters: 2, qualities: 1 }),
            ("@a\nAC\n+\nIII\n", 0, 3, What::Lengths { letters: 2, qualities: 3 }),
            ("@a\nAC\n+\nII\nx\n", 11, 0, What::Start),
            ("@a\nAC\n+\nII\n\n@b\nA\n+\nI\n", 11, 0, What::Start),
            ("@a\nAC\nII\n", 0, 2, What::Separator),
            ("@a\nAC\n+\nI", 0, 3, What::End),
            ("@a\nAC\n", 0, 2, What::End),
            ("@a", 0, 0, What::End),
        ] {
            assert_eq!(parsed(Format::Fastq, text.as_bytes(), true), Err(Fault { at, line, what }), "{text:?}");
        }
    }

    #[test]
    fn fasta_is_parsed() {
        let text = b">a b\nAC>G\nTT\n>b\r\nAC\r\nG\r\n>c\n>\nA\n\n>d";
        let (records, end) = parsed(Format::Fasta, text, true).unwrap();
        let of = |name: &str, letters: &str| (name.to_owned(), letters.to_owned());
        assert_eq!(records, [of("a", "AC>GTT"), of("b", "ACG"), of("c", ""), of("", "A"), of("d", "")]);
        assert_eq!(end, text.len());
        let (records, end) = parsed(Format::Fasta, text, false).unwrap();
        assert_eq!((records.len(), end), (4, text.len() - 2));
    }

    #[test]
    fn pairs_take_turns() {
        let mut batches = [&b"@a/1\nAC\n+\nII\n@b/1\nA\n+\nI"[..], b"@a/2\nG\n+\nI\n@b/2\nTTT\n+\nIII\n"].map(|text| {
            let mut batch = Batch::default();
            batch.text_mut().extend_from_slice(text);
            batch.parse(Format::Fastq, 0, true, usize::MAX).unwrap();
            batch
        });
        let [first, second] = &mut batches;
        first.pair_with(second);
        let names: Vec<_> = (0..4).map(|i| (first.name(i), first.letters(i))).collect();
        let wanted: [(&[u8], &[u8]); 4] = [(b"a/1", b"AC"), (b"a/2", b"G"), (b"b/1", b"A"), (b"b/2", b"TTT")];
        assert_eq!((first.units(), names), (2, wanted.to_vec()));
        let (begin, end) = first.bytes(2);
        assert_eq!(&first.text()[begin..end], b"@b/1\nA\n+\nI\n");
    }
}
