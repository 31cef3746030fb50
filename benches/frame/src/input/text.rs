//! Keys from text: one per line, of any length.

use std::io::{self, BufRead};
use std::path::Path;

use super::{InputError, read_maybe_gzip};

/// Keys of any length, end to end in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// End of each key.
    ends: Vec<usize>,
}

impl Lines {
    /// Reads one key per line: any bytes but the line end (`\n` or `\r\n`). Empty lines are no keys.
    pub fn read(mut input: impl BufRead) -> io::Result<Self> {
        let mut lines = Self::default();
        loop {
            let start = lines.bytes.len();
            if input.read_until(b'\n', &mut lines.bytes)? == 0 {
                return Ok(lines);
            }
            if lines.bytes[start..].ends_with(b"\n") {
                lines.bytes.pop();
                if lines.bytes[start..].ends_with(b"\r") {
                    lines.bytes.pop();
                }
            }
            if lines.bytes.len() > start {
                lines.ends.push(lines.bytes.len());
            }
        }
    }

    /// Reads a file, plain or gzip; a file without any key is an error.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let lines =
            Self::read(read_maybe_gzip(path)?).map_err(|source| InputError::Read { path: path.to_owned(), source })?;
        match lines.ends.is_empty() {
            true => Err(InputError::NoKeys { path: path.to_owned(), wanted: "one per line" }),
            false => Ok(lines),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns each key, in the order of the lines.
    pub fn slices(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let key = |&end| {
            let key = &self.bytes[start..end];
            start = end;
            key
        };
        self.ends.iter().map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_empty_lines() {
        let lines = Lines::read(&b"one\r\n\ntwo\nthr\ree\n\r\n\xff\n last "[..]).unwrap();
        let expected: [&[u8]; 5] = [b"one", b"two", b"thr\ree", b"\xff", b" last "];
        assert_eq!(lines.slices(), expected);
        assert!(Lines::read(&b""[..]).unwrap().is_empty());
    }

    #[test]
    fn missing_empty_and_damaged_files_are_errors() {
        let folder = std::env::temp_dir().join(format!("warpset-text-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("keys");
        assert!(matches!(Lines::open(&path), Err(InputError::Read { .. })));
        std::fs::write(&path, b"\n\n").unwrap();
        assert!(matches!(Lines::open(&path), Err(InputError::NoKeys { .. })));
        std::fs::write(&path, b"\x1f\x8b broken").unwrap();
        assert!(matches!(Lines::open(&path), Err(InputError::Read { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
