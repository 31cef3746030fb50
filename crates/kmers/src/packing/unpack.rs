//! The text of files that may be compressed.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::blocked;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;
/// The largest window of Zstandard that is unpacked: 2 GiB, which `zstd --long=31` takes.
const MOST_WINDOW: u64 = 1 << 31;
/// Bytes that say what a file is, and whether gzip is blocked.
const HEAD: u64 = 18;

/// Text, unpacked as it is read.
pub(crate) type Text<'a> = Box<dyn Read + Send + 'a>;

/// The text of an input: gzip and Zstandard are known by their first bytes. Blocked gzip is unpacked by this many
/// threads of its own, unless that is one.
pub(crate) fn unpacked<'a>(input: impl Read + Send + 'a, threads: usize) -> io::Result<Text<'a>> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    // One look is not enough: a pipe may give one byte at a time.
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head)?;
    let is_blocked = threads > 1 && blocked::is_blocked(&head);
    let first: [u8; 5] = std::array::from_fn(|i| head.get(i).copied().unwrap_or(0));
    let input = Cursor::new(head).chain(input);
    let packed = |input| BufReader::with_capacity(BUFFER, input);
    Ok(match first {
        [0x1f, 0x8b, ..] if is_blocked => Box::new(blocked::Unpacked::new(input, threads)),
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(packed(input))),
        [0x28, 0xb5, 0x2f, 0xfd, _] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, _] => Box::new(Frames::new(packed(input))),
        [0xfd, b'7', b'z', b'X', b'Z'] => return Err(unreadable("xz", "xz -dc")),
        [b'B', b'Z', b'h', b'1'..=b'9', _] => return Err(unreadable("bzip2", "bzip2 -dc")),
        _ => Box::new(input),
    })
}

fn unreadable(what: &str, by: &str) -> io::Error {
    let why = format!("it is compressed by {what}, which is not read: pass the output of `{by}` as the standard input");
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Zstandard's frames, one after the other.
struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    is_within: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(input: R) -> Frames<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MOST_WINDOW);
        Frames { input, decoder, is_within: false }
    }

    /// Begins the next frame, or skips one that is to be skipped; says whether there was one.
    fn begin(&mut self) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.reset(&mut self.input) {
            Ok(()) => self.is_within = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                let length = u64::from(length);
                if io::copy(&mut self.input.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_within {
                if !self.begin()? {
                    return Ok(0);
                }
                continue;
            }
            let decoder = &mut self.decoder;
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
            }
            let read = decoder.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            if let (Some(said), Some(found)) = (decoder.get_checksum_from_data(), decoder.get_calculated_checksum())
                && said != found
            {
                let why = "corrupt Zstandard frame: its checksum is wrong";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            self.is_within = false;
        }
    }
}
