//! Text of files that may be compressed.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::blocked;

/// Bytes per read.
const BUFFER: usize = 1 << 18;
/// Largest window of Zstandard that is unpacked: 2 GiB, as of `zstd --long=31`.
const MOST_WINDOW: u64 = 1 << 31;
/// Bytes that show the kind of a file, and whether gzip is blocked.
const HEAD: u64 = 18;

/// Text, unpacked as it is read.
pub(crate) type Text<'a> = Box<dyn Read + Send + 'a>;

/// Returns the text of an input. Gzip and Zstandard are recognised by their first bytes. Blocked gzip is unpacked by
/// `threads` further threads, unless that is one.
pub(crate) fn unpacked<'a>(input: impl Read + Send + 'a, threads: usize) -> io::Result<Text<'a>> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    // One read is not enough: a pipe may give one byte at a time.
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head)?;
    let is_blocked = threads > 1 && blocked::is_blocked(&head);
    let first: [u8; 4] = std::array::from_fn(|i| head.get(i).copied().unwrap_or(0));
    let input = Cursor::new(head).chain(input);
    let packed = |input| BufReader::with_capacity(BUFFER, input);
    Ok(match first {
        [0x1f, 0x8b, ..] if is_blocked => Box::new(blocked::Unpacked::new(input, threads)),
        [0x1f, 0x8b, ..] => Box::new(Members::new(packed(input))),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Box::new(Frames::new(packed(input))),
        _ => Box::new(input),
    })
}

/// Members of gzip, one after the other. Zeros may follow the last one, as tapes and archives add them.
pub(super) struct Members<R> {
    /// Input between two members.
    input: Option<R>,
    member: Option<GzDecoder<R>>,
    is_padding: bool,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(input: R) -> Members<R> {
        Members { input: Some(input), member: None, is_padding: false }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(member) = &mut self.member {
                let read = member.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.input = self.member.take().map(GzDecoder::into_inner);
            }
            let Some(input) = &mut self.input else { return Ok(0) };
            let next = input.fill_buf()?;
            let zeros = next.iter().take_while(|&&byte| byte == 0).count();
            match next.first() {
                None => return Ok(0),
                Some(0x1f) if !self.is_padding => self.member = self.input.take().map(GzDecoder::new),
                Some(0) => {
                    input.consume(zeros);
                    self.is_padding = true;
                }
                Some(_) => {
                    let why = "bytes follow that are no gzip: the file is damaged, or something was appended to it";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
        }
    }
}

/// Frames of Zstandard, one after the other.
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

    /// Begins the next frame, or skips a skippable one. Returns whether there was one.
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
