//! Sinks of reads: texts in order, packed by the threads that decided them.
//!
//! Texts arrive in any order, each with its number. The thread that brings the next one appends all texts that are
//! ready, and packs the gathered text, about a megabyte at a time. Packed bytes are ordered again, and written.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use warpset_base::file::Replacement;

use crate::Error;
use crate::packing::Packing;

/// Bytes of text per packed piece, about.
const GATHERED: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Numbered items, handed out in order.
struct Ordered<T> {
    next: u64,
    waiting: BTreeMap<u64, T>,
}

impl<T> Ordered<T> {
    fn new() -> Ordered<T> {
        Ordered { next: 0, waiting: BTreeMap::new() }
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(item)
    }
}

/// File for reads, written by several threads.
pub(crate) struct Sink {
    path: PathBuf,
    packing: Packing,
    level: u32,
    gathering: Mutex<Gathering>,
    writing: Mutex<Writing>,
    /// Texts that may wait for an earlier one.
    most_waiting: u64,
    has_moved: Condvar,
    /// Memory of texts that have been written.
    spare: Mutex<Vec<Vec<u8>>>,
}

struct Gathering {
    texts: Ordered<Vec<u8>>,
    gathered: Vec<u8>,
    /// Number of packed pieces.
    packed: u64,
    is_empty: bool,
    /// Whether a thread has failed, so that no other thread may wait.
    has_failed: bool,
}

struct Writing {
    packed: Ordered<Vec<u8>>,
    file: Destination,
}

/// File that gets its name at the end, or the standard output.
pub(crate) enum Destination {
    File(Replacement),
    Standard(io::Stdout),
}

impl Destination {
    /// Opens a file, or for `-` the standard output.
    pub(crate) fn create(path: &Path) -> Result<Destination, Error> {
        if path == Path::new("-") {
            return Ok(Destination::Standard(io::stdout()));
        }
        let failed = |source| Error::Write { path: path.to_owned(), source };
        Ok(Destination::File(Replacement::create(path).map_err(failed)?))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Destination::File(file) => file.file().write_all(bytes),
            Destination::Standard(output) => output.write_all(bytes),
        }
    }

    /// Gives all files their names together.
    pub(crate) fn finish_all(all: impl IntoIterator<Item = Destination>) -> Result<(), Error> {
        let mut files = Vec::new();
        for destination in all {
            match destination {
                Destination::File(file) => files.push(file),
                Destination::Standard(mut output) => {
                    output.flush().map_err(|source| Error::Write { path: "-".into(), source })?;
                }
            }
        }
        Replacement::finish_all(files).map_err(|(path, source)| Error::Write { path, source })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink {
    /// Opens a file, which gets its name when it is finished; `-` is the standard output. `most_waiting` texts may wait
    /// for an earlier one.
    pub(crate) fn create(path: &Path, level: u32, most_waiting: usize) -> Result<Sink, Error> {
        let packing = Packing::of_name(path)?;
        let file = Destination::create(path)?;
        let (texts, gathered) = (Ordered::new(), Vec::new());
        Ok(Sink {
            path: path.to_owned(),
            packing,
            level,
            gathering: Mutex::new(Gathering { texts, gathered, packed: 0, is_empty: true, has_failed: false }),
            writing: Mutex::new(Writing { packed: Ordered::new(), file }),
            most_waiting: most_waiting as u64,
            has_moved: Condvar::new(),
            spare: Mutex::new(Vec::new()),
        })
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }

    /// Returns memory for a text, reused if possible, since new memory costs more than writing it. Its content is
    /// arbitrary.
    pub(crate) fn spare(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    fn keep(&self, text: Vec<u8>) {
        let mut spare = lock(&self.spare);
        if text.capacity() > 0 && (spare.len() as u64) < self.most_waiting {
            spare.push(text);
        }
    }

    /// Adds the text with this number. Each number is used once, and none is left out.
    pub(crate) fn put(&self, number: u64, text: Vec<u8>) -> Result<(), Error> {
        let mut gathering = lock(&self.gathering);
        while number > gathering.texts.next + self.most_waiting && !gathering.has_failed {
            gathering = self.has_moved.wait(gathering).unwrap_or_else(PoisonError::into_inner);
        }
        gathering.texts.waiting.insert(number, text);
        let mut full = Vec::new();
        while let Some(text) = gathering.texts.pop() {
            gathering.is_empty &= text.is_empty();
            if gathering.gathered.is_empty() {
                gathering.gathered = text;
            } else {
                gathering.gathered.extend_from_slice(&text);
                self.keep(text);
            }
            if gathering.gathered.len() >= GATHERED {
                full.push((gathering.packed, std::mem::take(&mut gathering.gathered)));
                gathering.packed += 1;
            }
        }
        drop(gathering);
        self.has_moved.notify_all();
        full.into_iter().try_for_each(|(number, text)| self.pack(number, text))
    }

    fn pack(&self, number: u64, text: Vec<u8>) -> Result<(), Error> {
        let packed = self.packing.pack(text, self.level).map_err(|error| self.failed(error))?;
        let mut writing = lock(&self.writing);
        writing.packed.waiting.insert(number, packed);
        while let Some(packed) = writing.packed.pop() {
            writing.file.write(&packed).map_err(|error| self.failed(error))?;
            self.keep(packed);
        }
        Ok(())
    }

    /// Ends all waits for texts of a thread that failed.
    pub(crate) fn give_up(&self) {
        lock(&self.gathering).has_failed = true;
        self.has_moved.notify_all();
    }

    /// Writes the rest; the file gets its name by [`Destination::finish_all`].
    pub(crate) fn end(self) -> Result<Destination, Error> {
        let (is_empty, last) = {
            let mut gathering = lock(&self.gathering);
            let text = std::mem::take(&mut gathering.gathered);
            (gathering.is_empty, (!text.is_empty()).then_some((gathering.packed, text)))
        };
        if let Some((number, text)) = last {
            self.pack(number, text)?;
        }
        let mut file = self.writing.into_inner().unwrap_or_else(PoisonError::into_inner).file;
        let path = self.path;
        file.write(&self.packing.end(is_empty)).map_err(|source| Error::Write { path, source })?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::thread;

    use super::*;
    use crate::packing::unpacked;

    /// Checks that texts from several threads are written in order, packed or not, and only at the end.
    #[test]
    fn texts_are_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "packed.gz", "packed.zst"] {
            let path = folder.path().join(name);
            fs::write(&path, b"old").unwrap();
            let sink = Sink::create(&path, 2, 3).unwrap();
            let text = |i: u64| format!("{i} ").repeat((i % 90) as usize);
            thread::scope(|scope| {
                for thread in 0..3 {
                    let sink = &sink;
                    scope.spawn(move || {
                        (0..300).filter(|i| i % 3 == thread).for_each(|i| sink.put(i, text(i).into_bytes()).unwrap());
                    });
                }
            });
            assert_eq!(fs::read(&path).unwrap(), b"old");
            Destination::finish_all([sink.end().unwrap()]).unwrap();
            let mut found = String::new();
            unpacked(&fs::read(&path).unwrap()[..], 2).unwrap().read_to_string(&mut found).unwrap();
            assert!(found == (0..300).map(text).collect::<String>(), "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.gz");
        let sink = Sink::create(&path, 2, 1).unwrap();
        sink.put(0, vec![b'A'; 10_000]).unwrap();
        drop(sink);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(Sink::create(&folder.path().join("none/x"), 2, 1), Err(Error::Write { .. })));
        assert!(matches!(Sink::create(folder.path(), 2, 1), Err(Error::Write { .. })));
    }
}
