//! Progress of reading: a bar on a terminal, nothing elsewhere, or a callback, which may stop it.

use std::fmt;
use std::io::{self, IsTerminal, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::{Error, OddLetters};

/// Display of the bytes read so far.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    listener: Option<Arc<Listener>>,
    odd: Arc<Mutex<OddLetters>>,
}

/// Callback, with the bytes it has been called with, and its answers.
struct Listener {
    callback: Box<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Progress {
    /// Returns a progress that shows nothing.
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), listener: None, odd: Arc::default() }
    }

    /// Calls `callback` from time to time, from any thread, with the bytes read so far: of files as stored, compressed
    /// or not. [`ControlFlow::Break`] stops the count or the screening, which ends with [`Error::Interrupted`].
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use warpset_kmers::{Error, Progress, Settings, count_bytes};
    ///
    /// let stop = Progress::calling(|_| ControlFlow::Break(()));
    /// let counted = count_bytes(b">a\nACGT\n", &Settings::new(3)?.progress(stop));
    /// assert!(matches!(counted, Err(Error::Interrupted { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn calling(callback: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> Progress {
        let (bytes, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let listener = Some(Arc::new(Listener { callback: Box::new(callback), bytes, is_stopped }));
        Progress { bar: ProgressBar::hidden(), listener, odd: Arc::default() }
    }

    /// Shows a bar over the sizes of these files, if the error stream is a terminal.
    pub fn of_files(files: &[PathBuf]) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::hidden();
        }
        let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        let bar = ProgressBar::new(files.iter().map(bytes).sum());
        let style = "{elapsed_precise} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, listener: None, odd: Arc::default() }
    }

    /// Returns the letters other than A, C, G, T that counts and indexings have read with this progress.
    pub fn odd_letters(&self) -> OddLetters {
        *self.odd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, odd: OddLetters) {
        *self.odd.lock().unwrap_or_else(PoisonError::into_inner) += odd;
    }

    /// Shows the current activity.
    pub(crate) fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Adds bytes that were read; an error if the callback stops the reading, or has stopped it.
    pub(crate) fn advance(&self, bytes: u64) -> Result<(), Error> {
        self.bar.inc(bytes);
        if let Some(listener) = &self.listener {
            let read = listener.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if (listener.callback)(read).is_break() {
                listener.is_stopped.store(true, Ordering::Relaxed);
            }
        }
        self.check()
    }

    /// Returns an error if the callback has stopped the reading.
    fn check(&self) -> Result<(), Error> {
        match &self.listener {
            Some(listener) if listener.is_stopped.load(Ordering::Relaxed) => {
                Err(Error::Interrupted { bytes: listener.bytes.load(Ordering::Relaxed) })
            }
            _ => Ok(()),
        }
    }

    /// Returns the outcome of reading: the stop by the callback, if there was one, instead of any error that it caused.
    pub(crate) fn outcome<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        outcome.or_else(|error| self.check().and(Err(error)))
    }

    /// Opens a file, and counts its bytes as they are read, before they are decompressed; `-` is the standard input.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let progress = self.clone();
        Ok(match path == Path::new("-") {
            true => Box::new(Counted { input: io::stdin(), progress }),
            false => Box::new(Counted { input: std::fs::File::open(path)?, progress }),
        })
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Input that counts the bytes read.
struct Counted<R> {
    input: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.progress.advance(read as u64).map_err(io::Error::other)?;
        Ok(read)
    }
}
