//! Messages of errors in a text to review, and the errors that the sources define, so that none can be left out.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Messages of errors, and the errors' names.
#[derive(Default)]
pub struct Messages {
    text: String,
    names: BTreeSet<String>,
}

impl Messages {
    /// Adds an error with the expression that makes it, under its name in the sources: `bloom::Error::ZeroCapacity`.
    pub fn add<E: Error>(&mut self, error: &E, expression: &str) {
        let path = std::any::type_name::<E>().trim_start_matches("warpset_");
        let (of, name) = (path.split("::").next().unwrap(), path.rsplit("::").next().unwrap());
        let variant = expression.trim_start_matches("E::").split(|c: char| !c.is_alphanumeric()).next().unwrap();
        let name = if variant == name { format!("{of}::{name}") } else { format!("{of}::{name}::{variant}") };
        writeln!(self.text, "{name}\n    {}", error.to_string().replace('\n', "\n    ")).unwrap();
        self.names.insert(name);
    }

    /// Asserts that these are the messages in `file` and all errors of `in_sources`.
    pub fn check(&self, file: &Path, in_sources: &BTreeSet<String>) {
        let missing: Vec<_> = in_sources.symmetric_difference(&self.names).collect();
        assert!(missing.is_empty(), "errors of the sources and of this test differ: {missing:?}");
        if std::env::var_os("WARPSET_WRITE_MESSAGES").is_some() {
            fs::write(file, &self.text).unwrap();
        }
        let saved = fs::read_to_string(file).unwrap();
        let changed = saved.lines().zip(self.text.lines()).find(|(before, now)| before != now);
        assert!(saved == self.text, "{changed:?}: to accept it, set WARPSET_WRITE_MESSAGES=1 and run this test again");
    }
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lists the public errors with their variants in the sources of the crate `of`, which are in `folder`.
pub fn names_in_sources(of: &str, folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    rust_files(folder, &mut files);
    let mut names = Vec::new();
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        for (at, _) in text.match_indices("thiserror::Error)]") {
            let mut lines = text[at..].lines();
            let public = lines.find_map(|line| {
                let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
                Some((kind, rest.split(|c: char| !c.is_alphanumeric()).next()?))
            });
            match public {
                Some(("enum", name)) => names.extend(lines.take_while(|line| *line != "}").filter_map(|line| {
                    let variant = line.strip_prefix("    ")?.split(|c: char| !c.is_alphanumeric()).next()?;
                    variant.starts_with(char::is_uppercase).then(|| format!("{of}::{name}::{variant}"))
                })),
                Some((_, name)) => names.push(format!("{of}::{name}")),
                None => {}
            }
        }
    }
    names
}
