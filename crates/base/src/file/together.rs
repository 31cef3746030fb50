//! Writes of many bytes to a file in memory, by several threads together.
//!
//! A file system in memory (`tmpfs`, as in `/dev/shm`) finds memory for each page of a new file, which takes longer
//! than the copy, and calls that write to the same file wait for one another: 1 to 2 GB/s, whatever the number of
//! threads. Page faults of a mapped file do not wait. So each thread maps a piece of the file, lets the system allocate
//! its pages, and copies bytes there. If the system refuses, for instance because no space is left, the piece is
//! written by a call, which returns the reason: an access to a mapped page without memory would end the process.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::parallel;

/// Writes at least as long are shared.
const MANY: usize = if cfg!(test) { 1 << 16 } else { 32 << 20 };
/// Most threads that write: they wait for one another in the system, 16 for most of their time.
const MOST_WRITERS: usize = 4;
/// Bytes that a thread takes at once: a multiple of the page size, so that no page is in two pieces.
const PIECE: u64 = if cfg!(test) { 1 << 15 } else { 8 << 20 };

/// Whether several threads of the current pool write this number of bytes to the file sooner than one.
pub(super) fn pays(file: &File, bytes: usize) -> bool {
    bytes >= MANY && rayon::current_num_threads() > 1 && is_in_memory(file)
}

/// Writes bytes at a place of a file that no other process has under its name.
///
/// # Errors
/// The system's error.
pub(super) fn write_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    let end = at + bytes.len() as u64;
    if file.metadata()?.len() < end {
        file.set_len(end)?;
    }
    let (mut pieces, mut begin, mut rest) = (Vec::new(), at, bytes);
    while !rest.is_empty() {
        let len = (PIECE - begin % PIECE).min(rest.len() as u64);
        pieces.push((begin, rest.split_off(..len as usize).unwrap_or_default()));
        begin += len;
    }
    let pieces = Mutex::new(pieces.into_iter());
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    parallel::try_for_each(0..MOST_WRITERS, |_| {
        std::iter::from_fn(next).try_for_each(|(at, bytes)| write_piece(file, at, bytes))
    })
}

#[cfg(all(feature = "mmap", target_os = "linux", not(miri)))]
mod system {
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use memmap2::{Advice, MmapOptions};

    pub(super) fn is_in_memory(file: &File) -> bool {
        let mut told = MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the file is open; the system fills the description if it returns 0.
        unsafe {
            libc::fstatfs(file.as_raw_fd(), told.as_mut_ptr()) == 0
                && told.assume_init().f_type as libc::c_long == libc::TMPFS_MAGIC
        }
    }

    pub(super) fn write_piece(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        copy(file, at, bytes).or_else(|_| file.write_all_at(bytes, at))
    }

    /// Copies bytes to the pages of a file once the system has allocated them.
    fn copy(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: nothing reads the map. The file has been extended beyond it, and no other process shortens it: it
        // belongs to this process until it gets its name.
        let mut map = unsafe { MmapOptions::new().offset(at).len(bytes.len()).map_mut(file)? };
        map.advise(Advice::PopulateWrite)?;
        map.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(not(all(feature = "mmap", target_os = "linux", not(miri))))]
mod system {
    use std::fs::File;
    use std::io;

    pub(super) fn is_in_memory(_file: &File) -> bool {
        false
    }

    pub(super) fn write_piece(_file: &File, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
use system::{is_in_memory, write_piece};
