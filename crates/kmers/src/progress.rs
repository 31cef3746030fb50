//! How far reading is: a bar on a terminal, silence elsewhere.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is shown of the bytes that have been read.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows nothing.
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// A bar over the sizes of these files, if the error stream is a terminal.
    pub fn of_files(files: &[PathBuf]) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::hidden();
        }
        let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        let bar = ProgressBar::new(files.iter().map(bytes).sum());
        let style = "{elapsed_precise} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Counts bytes that were read.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// The file, its bytes counted as they are read, before they are decompressed; `-` is the standard input.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        if path == Path::new("-") {
            return Ok(Box::new(io::stdin()));
        }
        Ok(Box::new(self.bar.wrap_read(std::fs::File::open(path)?)))
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
