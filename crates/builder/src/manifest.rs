//! Fields of a crate's `Cargo.toml` that the builder needs.

use std::{fs, path::Path};

use crate::Error;

/// A crate's names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The package, as Cargo's commands take it.
    pub package: String,
    /// The library, as the compiler's files are named.
    pub library: String,
}

impl Manifest {
    /// Reads the manifest in `folder`.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let no_crate = |why: String| Error::NoCrate { folder: folder.to_path_buf(), why };
        let text = fs::read_to_string(folder.join("Cargo.toml"))
            .map_err(|error| no_crate(format!("its Cargo.toml cannot be read ({error})")))?;
        Self::parse(&text).ok_or_else(|| no_crate("its Cargo.toml has no `name` under [package]".to_owned()))
    }

    fn parse(text: &str) -> Option<Self> {
        let package = name_in(text, "[package]")?;
        let library = name_in(text, "[lib]").unwrap_or_else(|| package.replace('-', "_"));
        Some(Self { package, library })
    }
}

/// Returns the `name` in one section. Cargo does not let names be inherited, so they are plain strings.
fn name_in(text: &str, section: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != section).skip(1);
    lines.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let value = line.strip_prefix("name")?.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        value[1..].split(quote).next().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let names = |text: &str| Manifest::parse(text).map(|found| (found.package, found.library));
        let expect = |package: &str, library: &str| Some((package.to_owned(), library.to_owned()));
        assert_eq!(names("[package]\nname = \"own-kernel\" # a crate\n"), expect("own-kernel", "own_kernel"));
        let both = "[package]\nversion = \"1\"\nname = 'a'\n\n[lib]\nname=\"b\"\n[[bin]]\nname = \"c\"\n";
        assert_eq!(names(both), expect("a", "b"));
        assert_eq!(names("[package]\nname = \"a\"\n[[bin]]\nname = \"c\"\n"), expect("a", "a"));
        assert_eq!(names("[workspace]\nmembers = []\n"), None);
        assert_eq!(names("[lib]\nname = \"b\"\n"), None);
    }
}
