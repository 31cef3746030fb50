//! Parquet's own form of a split-block filter: a Thrift header in the compact protocol, then the bitset.
//!
//! Source: the Apache Parquet format specification, `BloomFilter.md` and `parquet.thrift` (`BloomFilterHeader`), and
//! the Thrift compact protocol specification. Readers skip unknown fields, as Thrift requires.
//!
//! ```text
//!  15 <zigzag varint>   field 1, i32: bytes of the bitset
//!  1c 1c 00 00          field 2, union: SplitBlockAlgorithm
//!  1c 1c 00 00          field 3, union: XxHash
//!  1c 1c 00 00          field 4, union: Uncompressed
//!  00                   end
//! ```

use std::fmt;
use std::io::{Read, Write};

use warpset_core::bloom::split_block::BLOCK_BYTES;

use warpset_base::file::{read_exact, read_words};

use crate::cpu::Bloom;
use crate::{Error, FileError, Layout, SplitBlockBloom, SplitBlockLayout, View};

/// The physical type of a Parquet column. It determines the bytes of a value that a filter hashes, and so the type of
/// keys.
///
/// | column | keys |
/// | --- | --- |
/// | `Int32` (also 8- and 16-bit integers, dates, times in milliseconds, small decimals) | integers of any type |
/// | `Int64` (also timestamps, times in micro- and nanoseconds) | integers of any type |
/// | `Int96`, `Float`, `Double` | the little-endian bytes: `x.to_le_bytes()` |
/// | `ByteArray` (strings), `FixedLenByteArray` | strings, bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhysicalType {
    /// Integers that are hashed as four bytes.
    Int32,
    /// Integers that are hashed as eight bytes.
    Int64,
    /// Twelve bytes.
    Int96,
    /// Four bytes.
    Float,
    /// Eight bytes.
    Double,
    /// Byte strings of any length.
    ByteArray,
    /// Byte strings of one length.
    FixedLenByteArray,
}

impl fmt::Display for PhysicalType {
    /// Writes the type as Parquet's schemas do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PhysicalType::Int32 => "INT32",
            PhysicalType::Int64 => "INT64",
            PhysicalType::Int96 => "INT96",
            PhysicalType::Float => "FLOAT",
            PhysicalType::Double => "DOUBLE",
            PhysicalType::ByteArray => "BYTE_ARRAY",
            PhysicalType::FixedLenByteArray => "FIXED_LEN_BYTE_ARRAY",
        })
    }
}

/// Headers longer than this are refused; those in use take fewer than 24 bytes.
const MAX_HEADER_BYTES: u64 = 4096;
/// Structures in unknown fields may nest this deep.
const MAX_DEPTH: u32 = 16;

/// Types of the compact protocol.
mod wire {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const I8: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
    pub const UUID: u8 = 13;
}

/// Reads the compact protocol byte by byte and counts.
struct Thrift<R> {
    reader: R,
    taken: u64,
}

fn wrong(what: &'static str) -> Error {
    Error::Parquet { what }
}

impl<R: Read> Thrift<R> {
    fn byte(&mut self) -> Result<u8, Error> {
        if self.taken == MAX_HEADER_BYTES {
            return Err(wrong("its header is longer than 4096 bytes"));
        }
        let mut byte = [0];
        read_exact(&mut self.reader, &mut byte, self.taken, self.taken + 1)?;
        self.taken += 1;
        Ok(byte[0])
    }

    fn skip_bytes(&mut self, n: u64) -> Result<(), Error> {
        for _ in 0..n {
            self.byte()?;
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(wrong("a number is longer than 64 bits"))
    }

    fn zigzag(&mut self) -> Result<i64, Error> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Returns the next field of a struct: number and type; `None` at its end.
    fn field(&mut self, before: &mut i64) -> Result<Option<(i64, u8)>, Error> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *before = match byte >> 4 {
            0 => self.zigzag()?,
            delta => before.saturating_add(delta as i64),
        };
        Ok(Some((*before, byte & 15)))
    }

    /// Skips a value; in a struct, a boolean has no bytes of its own.
    fn skip(&mut self, kind: u8, in_struct: bool, depth: u32) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(wrong("the structures of its header nest too deep"));
        }
        match kind {
            wire::TRUE | wire::FALSE if in_struct => Ok(()),
            wire::TRUE | wire::FALSE | wire::I8 => self.skip_bytes(1),
            wire::I16 | wire::I32 | wire::I64 => self.varint().map(|_| ()),
            wire::DOUBLE => self.skip_bytes(8),
            wire::BINARY => {
                let n = self.varint()?;
                self.skip_bytes(n)
            }
            wire::LIST | wire::SET => {
                let head = self.byte()?;
                let n = if head >> 4 == 15 { self.varint()? } else { (head >> 4) as u64 };
                (0..n).try_for_each(|_| self.skip_element(head & 15, depth))
            }
            wire::MAP => match self.varint()? {
                0 => Ok(()),
                n => {
                    let kinds = self.byte()?;
                    (0..n).try_for_each(|_| {
                        self.skip_element(kinds >> 4, depth)?;
                        self.skip_element(kinds & 15, depth)
                    })
                }
            },
            wire::STRUCT => {
                let mut before = 0;
                while let Some((_, kind)) = self.field(&mut before)? {
                    self.skip(kind, true, depth + 1)?;
                }
                Ok(())
            }
            wire::UUID => self.skip_bytes(16),
            _ => Err(wrong("its header has a field of an unknown type")),
        }
    }

    /// Skips an element. Every element takes at least one byte, so a false count cannot make the reader loop past the
    /// header.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), Error> {
        self.skip(kind, false, depth + 1)
    }

    /// Reads a union with one known member: number 1, a struct.
    fn union(&mut self, kind: u8, unknown: &'static str) -> Result<(), Error> {
        if kind != wire::STRUCT {
            return Err(wrong(unknown));
        }
        let mut before = 0;
        let mut known = false;
        while let Some((number, kind)) = self.field(&mut before)? {
            if number != 1 || kind != wire::STRUCT {
                return Err(wrong(unknown));
            }
            self.skip(kind, true, 0)?;
            known = true;
        }
        if known { Ok(()) } else { Err(wrong(unknown)) }
    }

    /// Returns a `BloomFilterHeader`: the bytes of the bitset.
    fn header(&mut self) -> Result<u64, Error> {
        let mut before = 0;
        let mut num_bytes = None;
        let mut unions = [false; 3];
        while let Some((number, kind)) = self.field(&mut before)? {
            match number {
                1 if kind == wire::I32 => num_bytes = Some(self.zigzag()?),
                1 => return Err(wrong("the number of bytes is not an i32")),
                2 => self.union(kind, "unknown algorithm")?,
                3 => self.union(kind, "unknown hash")?,
                4 => self.union(kind, "unknown compression")?,
                _ => self.skip(kind, true, 0)?,
            }
            if (2..=4).contains(&number) {
                unions[number as usize - 2] = true;
            }
        }
        if unions != [true; 3] {
            return Err(wrong("algorithm, hash or compression is missing"));
        }
        match num_bytes {
            None => Err(wrong("the number of bytes is missing")),
            Some(n) if n <= 0 || n > i32::MAX as i64 => Err(wrong("the number of bytes is out of range")),
            Some(n) if n % BLOCK_BYTES as i64 != 0 => Err(wrong("the number of bytes is not a multiple of 32")),
            Some(n) => Ok(n as u64),
        }
    }
}

/// Returns a layout for this many bytes of bitset.
fn layout_of(bytes: u64, column: PhysicalType) -> Result<SplitBlockLayout, Error> {
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES as u64) {
        return Err(wrong("the bitset is empty or not a multiple of 32 bytes"));
    }
    Ok(SplitBlockLayout::new(bytes / BLOCK_BYTES as u64)?.for_column(column))
}

/// Parquet's own form.
impl SplitBlockBloom {
    /// Returns the header that Parquet puts before the bitset of such a column's filter. An error if this filter hashes
    /// integers otherwise than the column does, or has 2 GiB or more: Parquet counts its bytes in an `i32`.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], [`Error::TooLarge`].
    pub fn parquet_header(&self, column: PhysicalType) -> Result<Vec<u8>, Error> {
        self.layout().check_column(column)?;
        let bytes = self.memory_bytes();
        if bytes > i32::MAX as u64 {
            return Err(Error::TooLarge { bytes, limit: i32::MAX as u64 });
        }
        let mut header = vec![0x15];
        let mut zigzag = 2 * bytes;
        while zigzag >= 0x80 {
            header.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        header.push(zigzag as u8);
        for _ in 0..3 {
            header.extend_from_slice(&[0x1c, 0x1c, 0, 0]);
        }
        header.push(0);
        Ok(header)
    }

    /// Writes header and bitset as in a Parquet file, for a column of this type. An error if this filter hashes
    /// integers in another way than the column.
    ///
    /// ```
    /// use warpset_bloom::{Insert, PhysicalType, SplitBlockBloom};
    ///
    /// let mut filter = SplitBlockBloom::builder(100).column(PhysicalType::Int32).build()?;
    /// filter.insert_bulk(&[2, 3, 5, 7])?;
    /// let mut file = Vec::new();
    /// filter.write_parquet(&mut file, PhysicalType::Int32)?;
    /// let read = SplitBlockBloom::read_parquet(&file[..], PhysicalType::Int32)?;
    /// assert_eq!(read, filter);
    /// assert!(read.contains(7i32) && read.contains(7u64));
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], [`Error::TooLarge`], [`Error::File`] with the error of the writer.
    pub fn write_parquet<W: Write>(&self, mut writer: W, column: PhysicalType) -> Result<(), Error> {
        let header = self.parquet_header(column)?;
        writer.write_all(&header).and_then(|()| writer.write_all(self.bitset())).map_err(FileError::from)?;
        Ok(())
    }

    /// Reads header and bitset from where a Parquet file has them, and no byte after them. Memory grows with what
    /// arrives. The column's type, which the file's schema has, decides how integers hash.
    ///
    /// # Errors
    /// [`Error::Parquet`], [`Error::File`].
    pub fn read_parquet<R: Read>(reader: R, column: PhysicalType) -> Result<SplitBlockBloom, Error> {
        let mut thrift = Thrift { reader, taken: 0 };
        let layout = layout_of(thrift.header()?, column)?;
        let words = read_words(&mut thrift.reader, layout.words(), 0, thrift.taken)?;
        Ok(Bloom::from_parts(layout, words))
    }

    /// Returns the bitset alone: blocks of eight little-endian words.
    pub fn bitset(&self) -> &[u8] {
        bytemuck::cast_slice(self.words())
    }

    /// Returns a filter from a column's bitset; its length must be a multiple of 32 bytes.
    ///
    /// # Errors
    /// [`Error::Parquet`] for a length that no filter has.
    pub fn from_bitset(bitset: &[u8], column: PhysicalType) -> Result<SplitBlockBloom, Error> {
        let layout = layout_of(bitset.len() as u64, column)?;
        let words = read_words(&mut &bitset[..], layout.words(), bitset.len() as u64, 0)?;
        Ok(Bloom::from_parts(layout, words))
    }
}

impl<'a> View<'a, SplitBlockLayout> {
    /// Returns a view of a column's bitset, at any address; [`View::from_parquet`] finds it after a header.
    ///
    /// # Errors
    /// [`Error::Parquet`] for a length that no filter has.
    pub fn from_bitset(bitset: &'a [u8], column: PhysicalType) -> Result<View<'a, SplitBlockLayout>, Error> {
        let layout = layout_of(bitset.len() as u64, column)?;
        Ok(View::new(layout, bytemuck::cast_slice(bitset)))
    }

    /// Views header and bitset as in a Parquet file, at any address; also returns the bytes that both take.
    ///
    /// The column's type, which the file's schema has, decides how integers hash.
    ///
    /// # Errors
    /// [`Error::Parquet`], [`Error::File`].
    pub fn from_parquet(bytes: &'a [u8], column: PhysicalType) -> Result<(View<'a, SplitBlockLayout>, usize), Error> {
        let mut thrift = Thrift { reader: bytes, taken: 0 };
        let len = thrift.header()? as usize;
        let start = thrift.taken as usize;
        let end = start + len;
        let bitset =
            bytes.get(start..end).ok_or(FileError::Truncated { needed: end as u64, found: bytes.len() as u64 })?;
        Ok((View::from_bitset(bitset, column)?, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;

    /// The header of a bitset of 32 bytes.
    const SMALL: [u8; 15] = [0x15, 64, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];

    fn header_of(bytes: &[u8]) -> Result<u64, Error> {
        Thrift { reader: bytes, taken: 0 }.header()
    }

    #[test]
    fn headers_by_hand() {
        let filter = SplitBlockBloom::with_layout(SplitBlockLayout::new(1).unwrap()).unwrap();
        assert_eq!(filter.parquet_header(PhysicalType::Int64).unwrap(), SMALL);
        assert_eq!(header_of(&SMALL).unwrap(), 32);
        for blocks in [1, 2, 3, 100, 1 << 20] {
            let filter = SplitBlockBloom::with_layout(SplitBlockLayout::new(blocks).unwrap()).unwrap();
            assert_eq!(header_of(&filter.parquet_header(PhysicalType::Int64).unwrap()).unwrap(), 32 * blocks);
        }
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let mut header = SMALL[..14].to_vec();
        // Field 5: list of two i8; 6: list of 15; 7: map of one binary to a double; 8: true; 9: struct with a uuid;
        // 200: i64, long form.
        header.extend_from_slice(&[0x19, 0x23, 1, 2]);
        header.extend_from_slice(&[0x19, 0xf3, 15]);
        header.extend_from_slice(&[0xff; 15]);
        header.extend_from_slice(&[0x1b, 1, 0x87, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 0]);
        header.push(0x11);
        header.extend_from_slice(&[0x1c, 0x1d]);
        header.extend_from_slice(&[9; 16]);
        header.push(0);
        header.extend_from_slice(&[0x06, 0x90, 0x03, 0x80, 0x01, 0]);
        assert_eq!(header_of(&header).unwrap(), 32);
    }

    #[test]
    fn wrong_headers_are_typed_errors() {
        let with = |at: usize, value: u8| {
            let mut header = SMALL;
            header[at] = value;
            header
        };
        // 0 bytes, 33 bytes, negative, not an i32, other unions, deep nesting, unknown types, no end.
        for header in [with(1, 0), with(1, 66), with(1, 63), with(0, 0x16), with(3, 0x2c), with(7, 0x15), with(11, 0)] {
            assert!(
                matches!(header_of(&header), Err(Error::Parquet { .. } | Error::File(FileError::Truncated { .. }))),
                "{header:x?}"
            );
        }
        for cut in 0..SMALL.len() {
            assert!(matches!(header_of(&SMALL[..cut]), Err(Error::File(FileError::Truncated { .. }))), "{cut}");
        }
        assert!(matches!(header_of(&[0]), Err(Error::Parquet { .. })));
        assert!(matches!(header_of(&[0x1e]), Err(Error::File(FileError::Truncated { .. }) | Error::Parquet { .. })));
        assert!(matches!(header_of(&[0x5c; 10_000]), Err(Error::Parquet { .. })));
        // A list and a binary that claim 2^63 elements.
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for head in [&[0x59, 0xf3][..], &[0x58]] {
            let bytes: Vec<u8> = head.iter().chain(&huge).copied().chain([0; 10_000]).collect();
            assert!(matches!(header_of(&bytes), Err(Error::Parquet { .. })));
        }
    }

    #[test]
    fn an_absurd_claim_does_not_allocate() {
        let mut header = vec![0x15, 0xc0, 0xff, 0xff, 0xff, 0x0f];
        header.extend_from_slice(&SMALL[2..]);
        assert_eq!(header_of(&header).unwrap(), 2_147_483_616);
        assert!(matches!(
            SplitBlockBloom::read_parquet(&header[..], PhysicalType::Int64),
            Err(Error::File(FileError::Truncated { needed, .. })) if needed > 2_000_000_000
        ));
    }

    #[test]
    fn views_of_parquet_bytes() {
        let filter: SplitBlockBloom = (0..1000u64).collect();
        let header = filter.parquet_header(PhysicalType::Int64).unwrap();
        // At every address.
        for shift in 0..8 {
            let bytes = [&vec![0; shift][..], &header, filter.bitset()].concat();
            let (view, taken) = View::from_parquet(&bytes[shift..], PhysicalType::Int64).unwrap();
            assert_eq!(taken, bytes.len() - shift);
            assert_eq!((view.bytes(), view.fpr()), (filter.bitset(), filter.fpr()));
            assert!(view.contains(7u64));
            let asked: Vec<u64> = (0..3000).collect();
            assert_eq!(view.contains_bulk(&asked).unwrap(), filter.contains_bulk(&asked).unwrap());
            assert_eq!(view.count_ones(), filter.count_ones());
        }
        assert!(matches!(SplitBlockBloom::from_bitset(&[0; 33], PhysicalType::Float), Err(Error::Parquet { .. })));
        assert!(matches!(SplitBlockBloom::from_bitset(&[], PhysicalType::Float), Err(Error::Parquet { .. })));
    }

    #[test]
    fn a_column_of_int32_hashes_integers_as_four_bytes_whatever_their_type() {
        let build = |column| SplitBlockBloom::builder(100).column(column).build_from(&[5i32, -7]).unwrap();
        let (int32, int64) = (build(PhysicalType::Int32), build(PhysicalType::Int64));
        assert_ne!(int32.bitset(), int64.bitset());
        for filter in [&int32, &int64] {
            assert!(filter.contains(5i32) && filter.contains(5u8) && filter.contains(5u64) && filter.contains(5i128));
            assert!(filter.contains(-7i32) && filter.contains(-7i8) && filter.contains(-7i64));
            assert_eq!(filter.contains_bulk(&[5u64, -7i64 as u64, 6]).unwrap(), [true, true, false]);
        }
        assert!(int32.contains(5u32.to_le_bytes()) && int64.contains(5u64.to_le_bytes()));

        let mismatch = |written: Result<(), Error>| matches!(written, Err(Error::ColumnMismatch { .. }));
        assert!(mismatch(int32.write_parquet(Vec::new(), PhysicalType::Int64)));
        assert!(mismatch(int64.write_parquet(Vec::new(), PhysicalType::Int32)));
        let by_value: SplitBlockBloom = [5].into_iter().collect();
        assert!(mismatch(by_value.write_parquet(Vec::new(), PhysicalType::Int32)));
        by_value.write_parquet(Vec::new(), PhysicalType::Int64).unwrap();
        for filter in [&int32, &int64] {
            filter.write_parquet(Vec::new(), PhysicalType::ByteArray).unwrap();
        }

        let bitset = int32.bitset();
        let as_int32 = View::from_bitset(bitset, PhysicalType::Int32).unwrap();
        assert!(as_int32.contains(5u64) && as_int32.contains(-7i64) && !as_int32.contains(5 + (1u64 << 32)));
        assert!(int32.clone().merge(&int64).is_err());
        // The saved form remembers.
        let saved = SplitBlockBloom::from_bytes(&int32.to_bytes()).unwrap();
        assert!(saved == int32 && saved.contains(5u64));
        let told = int64.parquet_header(PhysicalType::Int32).unwrap_err().to_string();
        assert!(told.starts_with("a column of type INT32"), "{told}");
    }
}
