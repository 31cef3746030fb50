//! Folder of a test, the program, and random sequences.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Folder that is removed with the test.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Returns the names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Returns a place that Cargo names, asked at run time so that a packed test finds the files packed with it.
pub fn place(variable: &str, compiled: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| compiled.to_owned())
}

/// Runs the program.
pub fn kmers(args: &[&str]) -> Output {
    Command::new(place("CARGO_BIN_EXE_kmers", env!("CARGO_BIN_EXE_kmers"))).args(args).output().unwrap()
}

/// Returns a generator of numbers below its argument.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    }
}

pub fn bases(seed: u64, len: usize) -> Vec<u8> {
    let mut next = random(seed);
    (0..len).map(|_| b"ACGT"[next(4) as usize]).collect()
}
