//! Files with large parts that several threads read.
//!
//! One thread copies from the page cache at a few gigabytes per second, and takes the page faults of the memory that it
//! reads into. Several threads do so side by side.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

#[cfg(unix)]
use rayon::prelude::*;

/// Bytes per read of one thread.
#[cfg(unix)]
const PART: usize = if cfg!(test) { 1 << 8 } else { 4 << 20 };

/// File that is read from its present position. Large reads are divided among threads.
pub(crate) struct Wide {
    file: File,
    at: u64,
    #[cfg_attr(not(unix), expect(dead_code, reason = "large parts are read by one thread"))]
    len: u64,
}

impl Wide {
    /// Takes a file.
    ///
    /// # Errors
    /// Errors of asking for its position and length.
    pub(crate) fn new(mut file: File) -> io::Result<Wide> {
        let (at, len) = (file.stream_position()?, file.metadata()?.len());
        Ok(Wide { file, at, len })
    }
}

impl Read for Wide {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // On other systems all readers of a file share one position.
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileExt;
            let there = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
            let (len, begin) = (buffer.len().min(there), self.at);
            if len > PART {
                let buffer = &mut buffer[..len];
                let parts = buffer.par_chunks_mut(PART).enumerate();
                parts.try_for_each(|(i, part)| self.file.read_exact_at(part, begin + (i * PART) as u64))?;
                self.at += len as u64;
                return Ok(len);
            }
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_whole() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..10_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        io::Write::write_all(&mut file, &bytes).unwrap();
        for begin in [0, 1, 255, 5000, 9_999, 10_000] {
            for size in [1, 255, 256, 257, 4000, 20_000] {
                file.seek(SeekFrom::Start(begin)).unwrap();
                let mut wide = Wide::new(file.try_clone().unwrap()).unwrap();
                let (mut found, mut buffer) = (Vec::new(), vec![0; size]);
                loop {
                    match wide.read(&mut buffer).unwrap() {
                        0 => break,
                        read => found.extend_from_slice(&buffer[..read]),
                    }
                }
                assert!(found == bytes[begin as usize..], "{begin} {size}");
            }
        }
    }
}
