//! Sources of keys that can be read repeatedly.

use crate::{Error, Key};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use warpset_base::file::{FileError, at_path};

/// Keys that can be read several times, one after the other.
///
/// Closures that return an iterator over the keys are sources; so are [`KeyFile`]s.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no source of keys",
    note = "pass a closure that returns an iterator over the keys, each time the same, or a `KeyFile`"
)]
pub trait KeySource {
    /// Type of the keys.
    type Key: Key + ?Sized;

    /// Passes each key to `take`, the same keys in every pass. An error of `take` ends the pass and is returned.
    ///
    /// # Errors
    /// The errors of `take`, and of reading.
    fn pass(&mut self, take: &mut dyn FnMut(&Self::Key) -> Result<(), Error>) -> Result<(), Error>;
}

impl<F, I, K> KeySource for F
where
    F: FnMut() -> io::Result<I>,
    I: IntoIterator<Item = io::Result<K>>,
    K: Key,
{
    type Key = K;

    fn pass(&mut self, take: &mut dyn FnMut(&K) -> Result<(), Error>) -> Result<(), Error> {
        self()?.into_iter().try_for_each(|key| take(&key?))
    }
}

/// Keys in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lines,
    Bytes(usize),
}

/// Bytes read at a time.
const BUFFER: usize = 1 << 18;

impl KeyFile {
    /// Reads one key per line: any bytes except the line end, `\n` or `\r\n`. Empty lines are no keys.
    pub fn lines(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), form: Form::Lines }
    }

    /// Reads keys of `width` bytes each, one after the other. They equal keys of the type `[u8; width]`.
    pub fn bytes(path: impl AsRef<Path>, width: usize) -> Self {
        Self { path: path.as_ref().to_owned(), form: Form::Bytes(width) }
    }

    /// Reads integers of 64 bits, little-endian. They equal keys of the type `u64`.
    pub fn u64s(path: impl AsRef<Path>) -> impl KeySource<Key = u64> + Send {
        Integers { file: Self::bytes(path, 8), widen: |bytes| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0) }
    }

    /// Reads integers of 32 bits, little-endian. They equal keys of the type `u32`.
    pub fn u32s(path: impl AsRef<Path>) -> impl KeySource<Key = u32> + Send {
        Integers { file: Self::bytes(path, 4), widen: |bytes| bytes.try_into().map(u32::from_le_bytes).unwrap_or(0) }
    }
}

impl KeyFile {
    fn read(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut input = BufReader::with_capacity(BUFFER, File::open(&self.path)?);
        match self.form {
            Form::Lines => lines(&mut input, take),
            Form::Bytes(0) => {
                Err(Error::InvalidParameter { what: "width of keys", value: 0.0, allowed: "at least 1 byte" })
            }
            Form::Bytes(width) => fixed_width(&mut input, width, take),
        }
    }
}

impl KeySource for KeyFile {
    type Key = [u8];

    fn pass(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut refused = false;
        let mut take = |key: &[u8]| take(key).inspect_err(|_| refused = true);
        match self.read(&mut take) {
            // An error of the file, not one of `take`.
            Err(Error::Io(error)) if !refused => at_path(&self.path, "read", || Err(FileError::from(error).into())),
            read => read,
        }
    }
}

fn lines(input: &mut impl BufRead, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let key = line.strip_suffix(b"\n").unwrap_or(&line);
        let key = if key.len() < line.len() { key.strip_suffix(b"\r").unwrap_or(key) } else { key };
        if !key.is_empty() {
            take(key)?;
        }
        line.clear();
    }
    Ok(())
}

fn fixed_width(
    input: &mut impl BufRead,
    width: usize,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    // Beginning of a key at the end of the buffer. It grows as bytes arrive, whatever the width.
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let buffer = input.fill_buf();
        let mut rest = match &buffer {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            _ => buffer?,
        };
        let read = rest.len();
        if read == 0 {
            break;
        }
        if !begun.is_empty() {
            let (missing, others) = rest.split_at(rest.len().min(width - begun.len()));
            begun.try_reserve(missing.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            begun.extend_from_slice(missing);
            rest = others;
            if begun.len() == width {
                take(&begun)?;
                begun.clear();
            }
        }
        let keys = rest.chunks_exact(width);
        begun.extend_from_slice(keys.remainder());
        keys.into_iter().try_for_each(&mut *take)?;
        input.consume(read);
    }
    if begun.is_empty() { Ok(()) } else { Err(Error::PartialKey { width: width as u64, rest: begun.len() as u64 }) }
}

/// A file of integers.
struct Integers<T> {
    file: KeyFile,
    widen: fn(&[u8]) -> T,
}

impl<T: Key> KeySource for Integers<T> {
    type Key = T;

    fn pass(&mut self, take: &mut dyn FnMut(&T) -> Result<(), Error>) -> Result<(), Error> {
        let widen = self.widen;
        self.file.pass(&mut |bytes| take(&widen(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads keys through a buffer of any size.
    fn read(bytes: &[u8], buffer: usize, width: Option<usize>) -> Result<Vec<Vec<u8>>, Error> {
        let mut keys = Vec::new();
        let mut take = |key: &[u8]| {
            keys.push(key.to_vec());
            Ok(())
        };
        let mut input = BufReader::with_capacity(buffer, bytes);
        match width {
            None => lines(&mut input, &mut take)?,
            Some(width) => fixed_width(&mut input, width, &mut take)?,
        }
        Ok(keys)
    }

    #[test]
    fn keys_reach_over_the_end_of_the_buffer() {
        let bytes: Vec<u8> = (0..60).collect();
        for width in [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60] {
            for buffer in [1, 2, 3, 4, 7, 16, 64] {
                let keys = read(&bytes, buffer, Some(width)).unwrap();
                assert!(keys.iter().all(|key| key.len() == width) && keys.concat() == bytes, "{width} {buffer}");
            }
        }
        for width in [8, 61, 1 << 40, usize::MAX] {
            let cut = read(&bytes, 7, Some(width));
            let left = (60 % width) as u64;
            assert!(matches!(cut, Err(Error::PartialKey { rest, .. }) if rest == left), "{width} {cut:?}");
        }
    }

    #[test]
    fn line_ends_and_empty_lines() {
        for buffer in [1, 3, 64] {
            let keys = read(b"one\r\n\ntwo\nthr\ree\n\r\n\xff\n last \r", buffer, None).unwrap();
            let expected: [&[u8]; 5] = [b"one", b"two", b"thr\ree", b"\xff", b" last \r"];
            assert_eq!(keys, expected);
        }
    }
}
