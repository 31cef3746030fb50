//! Writing payloads, whether they lie in one piece of memory or in several: nothing is put together in memory first.

use std::io::{self, BufWriter, Seek, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use xxhash_rust::xxh3::Xxh3;

use super::{CHECKSUM_AT, FIELDS, FileError, FileKind, HEADER_BYTES, Header, HeaderBytes, replace};

/// Smallest payload, in bytes, for which another thread computes the checksum.
const LARGE: u64 = 1 << 20;

/// Bytes after a header, in one piece or in several.
pub trait Payload: Sync {
    /// Returns the bytes of all pieces.
    fn bytes(&self) -> u64;

    /// Calls `to` with each piece, in their order, up to the first error.
    ///
    /// # Errors
    /// The first one of `to`.
    fn each(&self, to: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

impl Payload for [u8] {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn each(&self, to: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        to(self)
    }
}

impl<P: Payload + ?Sized> Payload for &P {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn each(&self, to: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        (**self).each(to)
    }
}

/// Hashes a header's bytes before the checksum, and the payload, by XXH3-64.
fn checksum_of(header: &HeaderBytes, payload: &(impl Payload + ?Sized)) -> io::Result<u64> {
    let mut hasher = Xxh3::new();
    hasher.update(&header[..CHECKSUM_AT]);
    payload.each(&mut |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.digest())
}

/// Writes header and payload.
pub(super) fn write_payload_to(
    structure: FileKind,
    fields: [u64; FIELDS],
    payload: &(impl Payload + ?Sized),
    writer: &mut impl Write,
) -> Result<(), FileError> {
    let mut header = Header { payload_bytes: payload.bytes(), fields, checksum: 0 };
    header.checksum = checksum_of(&header.to_bytes(structure), payload)?;
    writer.write_all(&header.to_bytes(structure))?;
    Ok(payload.each(&mut |bytes| writer.write_all(bytes))?)
}

/// Writes a file as [`replace`] does. A thread of its own computes the checksum of a large payload meanwhile, where the
/// header can be written after what follows it, which is not sure of a file that was open before.
pub(super) fn save_payload(
    structure: FileKind,
    fields: [u64; FIELDS],
    payload: &(impl Payload + ?Sized),
    path: &Path,
) -> Result<(), FileError> {
    replace(path, |file| {
        let has_thread = payload.bytes() >= LARGE && file.is_apart();
        let mut writer = BufWriter::new(file);
        if !has_thread {
            write_payload_to(structure, fields, payload, &mut writer)?;
            return Ok(writer.flush()?);
        }
        let mut header = Header { payload_bytes: payload.bytes(), fields, checksum: 0 };
        thread::scope(|scope| {
            let bytes = header.to_bytes(structure);
            let checksum = scope.spawn(move || checksum_of(&bytes, payload));
            // The header's place, until the checksum is known.
            writer.write_all(&[0; HEADER_BYTES])?;
            payload.each(&mut |bytes| writer.write_all(bytes))?;
            header.checksum = checksum.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            writer.rewind()?;
            writer.write_all(&header.to_bytes(structure))?;
            Ok(writer.flush()?)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NINETY_NINE: FileKind = FileKind::new(99, 1, "test");

    /// Bytes in pieces of many lengths, none included.
    struct Pieces<'a>(&'a [u8]);

    impl Payload for Pieces<'_> {
        fn bytes(&self) -> u64 {
            self.0.len() as u64
        }

        fn each(&self, to: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
            let mut rest = self.0;
            for len in (0..).map(|i| i * i % 70_001) {
                let (piece, after) = rest.split_at(rest.len().min(len));
                to(piece)?;
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn pieces_make_the_bytes_of_the_whole() {
        // Interpreted, the last would take an hour.
        let lens = [0, 1, 1000, LARGE as usize + 77];
        for &len in &lens[..if cfg!(miri) { 3 } else { 4 }] {
            let all: Vec<u8> = (0..len).map(|i| ((i * i) >> 7) as u8).collect();
            let mut whole = Vec::new();
            write_payload_to(NINETY_NINE, [7; FIELDS], &all[..], &mut whole).unwrap();
            let mut pieces = Vec::new();
            write_payload_to(NINETY_NINE, [7; FIELDS], &Pieces(&all), &mut pieces).unwrap();
            assert!(pieces == whole && pieces[HEADER_BYTES..] == all);
            // The second folder lies in memory on Linux.
            for folder in [std::env::temp_dir(), "/dev/shm".into()].iter().filter(|folder| folder.is_dir()) {
                let path = folder.join(format!("warpset-payload-{}-{len}", std::process::id()));
                save_payload(NINETY_NINE, [7; FIELDS], &Pieces(&all), &path).unwrap();
                assert!(std::fs::read(&path).unwrap() == whole);
                save_payload(NINETY_NINE, [7; FIELDS], &all[..], &path).unwrap();
                assert!(std::fs::read(&path).unwrap() == whole);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }

    /// Covers pipes, which take no header after the payload, and open files, which may begin with other bytes.
    #[cfg(all(unix, not(miri)))]
    #[test]
    fn large_payloads_go_through_pipes_and_open_files() {
        use std::os::fd::AsRawFd;
        let all = vec![7; LARGE as usize + 77];
        let save = |path: &Path| save_payload(NINETY_NINE, [7; FIELDS], &all[..], path).unwrap();
        let mut whole = Vec::new();
        write_payload_to(NINETY_NINE, [7; FIELDS], &all[..], &mut whole).unwrap();
        let path = std::env::temp_dir().join(format!("warpset-payload-through-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        thread::scope(|scope| {
            let read = scope.spawn(|| std::fs::read(&path).unwrap());
            save(&path);
            assert!(read.join().unwrap() == whole);
        });
        std::fs::remove_file(&path).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"head").unwrap();
        save(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())));
        assert!(std::fs::read(&path).unwrap() == [b"head", &whole[..]].concat());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let told =
            write_payload_to(NINETY_NINE, [7; FIELDS], &Pieces(&[1; 300]), &mut Full(HEADER_BYTES + 3)).unwrap_err();
        assert!(matches!(told, FileError::Io(error) if error.kind() == io::ErrorKind::StorageFull));
    }
}
