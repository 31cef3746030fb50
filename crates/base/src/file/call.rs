//! Files of one call of a program: none may be written that is read or written by another name.

use std::fs::{self, FileType, Metadata};
use std::path::{Path, PathBuf};

use super::replace::{folder_of, remove_abandoned, target};

/// Files that a call reads and writes, checked before any of them is opened. `-` is the standard input where it is
/// read, and the standard output where it is written.
///
/// ```
/// use warpset_base::file::CallFiles;
///
/// let files = CallFiles::new().reads(["reads.fq", "-"]).writes(["clean.fq", "./clean.fq"]);
/// assert_eq!(files.check().unwrap_err().to_string(), "clean.fq and ./clean.fq are the same file, which would be \
///     written twice: name another file for the output");
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallFiles {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
}

/// Two names of a call that are the same file.
#[derive(thiserror::Error)]
#[error("{}: name another file for the {}", self.clash(), if self.is_written { "output" } else { "input" })]
pub struct SameFile {
    /// The name that came first.
    pub path: PathBuf,
    /// The other name, which may be equal.
    pub other: PathBuf,
    /// Whether the first name is read.
    pub is_read: bool,
    /// Whether the other name is written.
    pub is_written: bool,
}

crate::debug_as_display!(SameFile);

impl SameFile {
    fn clash(&self) -> String {
        let what = match (self.is_read, self.is_written) {
            (true, true) => "read and written",
            (true, false) => "read twice",
            _ => "written twice",
        };
        let shown = |path: &Path, is_read: bool| match (path == Path::new("-"), is_read) {
            (true, true) => "the standard input".to_owned(),
            (true, false) => "the standard output".to_owned(),
            _ => path.display().to_string(),
        };
        let [path, other] = [shown(&self.path, self.is_read), shown(&self.other, !self.is_written)];
        match path == other {
            true => format!("{path} would be {what}"),
            false => format!("{path} and {other} are the same file, which would be {what}"),
        }
    }
}

/// A file, whatever its name.
#[derive(PartialEq)]
enum Identity {
    /// Device and number of what exists.
    #[cfg(unix)]
    Node(u64, u64),
    /// Path without links of what does not exist, or of any file on systems without such numbers.
    Path(PathBuf),
}

/// Name in a call and the file it denotes.
struct Named<'a> {
    path: &'a Path,
    identity: Identity,
    /// `None` for what does not exist.
    kind: Option<FileType>,
    is_read: bool,
}

impl CallFiles {
    /// Returns an empty collection.
    pub fn new() -> CallFiles {
        CallFiles::default()
    }

    /// Adds files that are read.
    pub fn reads<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.reads.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Adds files that are written.
    pub fn writes<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.writes.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Checks that no file is written that is read or written by another name, nor a pipe or the standard input read
    /// twice. Character devices such as `/dev/null`, and sockets, are exempt.
    ///
    /// # Errors
    /// [`SameFile`] with the first two such names.
    pub fn check(&self) -> Result<(), SameFile> {
        let reads = self.reads.iter().map(|path| Named::new(path, true));
        let mut named: Vec<Named<'_>> = Vec::new();
        for new in reads.chain(self.writes.iter().map(|path| Named::new(path, false))) {
            if let Some(old) = named.iter().find(|old| old.clashes(&new)) {
                let (path, other) = (old.path.to_owned(), new.path.to_owned());
                return Err(SameFile { path, other, is_read: old.is_read, is_written: !new.is_read });
            }
            named.push(new);
        }
        Ok(())
    }

    /// Removes what processes that have ended left of the files that this call writes. Files that are read stay.
    pub fn remove_abandoned(&self) {
        let reads: Vec<Identity> = self.reads.iter().map(|path| Named::new(path, true).identity).collect();
        for path in &self.writes {
            // A folder that cannot be listed is an error when the file is opened, if it is one.
            let _ = remove_abandoned(path, |part| reads.contains(&Named::new(part, true).identity));
        }
    }
}

impl<'a> Named<'a> {
    fn new(path: &'a Path, is_read: bool) -> Named<'a> {
        let place = match (path == Path::new("-"), is_read) {
            (true, true) => Path::new("/dev/stdin"),
            (true, false) => Path::new("/dev/stdout"),
            (false, _) => path,
        };
        let there = fs::metadata(place).ok();
        let identity = there.as_ref().and_then(node).unwrap_or_else(|| Identity::Path(real(place)));
        Named { path, identity, kind: there.map(|there| there.file_type()), is_read }
    }

    fn clashes(&self, new: &Named<'_>) -> bool {
        let is_stream = self.path == Path::new("-") && new.path == self.path && self.is_read == new.is_read;
        if is_stream || self.identity != new.identity {
            return is_stream;
        }
        match new.is_read {
            true => new.kind.is_some_and(is_pipe),
            false => !new.kind.is_some_and(may_be_shared),
        }
    }
}

/// Resolves the links of a path, whose file may not exist.
fn real(path: &Path) -> PathBuf {
    let target = target(path).ok().flatten().unwrap_or_else(|| path.to_owned());
    target.canonicalize().unwrap_or_else(|_| match (folder_of(&target).canonicalize(), target.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => target,
    })
}

#[cfg(unix)]
fn node(there: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some(Identity::Node(there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn node(_: &Metadata) -> Option<Identity> {
    None
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// Whether several names of one call may denote this file: bytes written through one name do not overwrite those
/// written through another.
#[cfg(unix)]
fn may_be_shared(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn may_be_shared(_: FileType) -> bool {
    false
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::{self, Command};

    use super::*;

    /// Compares files under several names, existing or not.
    #[test]
    fn files_are_known_by_any_name() {
        let folder = std::env::temp_dir().join(format!("warpset-call-{}", process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        let path = |name: &str| folder.join(name);
        fs::write(path("data"), b"").unwrap();
        fs::hard_link(path("data"), path("hard")).unwrap();
        symlink("data", path("soft")).unwrap();
        symlink(&folder, path("inner/folder")).unwrap();
        symlink("new", path("dangling")).unwrap();
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        let check = |reads: &[&str], writes: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|name| path(name)).collect::<Vec<_>>();
            CallFiles::new().reads(all(reads)).writes(all(writes)).check()
        };
        for other in ["data", "hard", "soft", "inner/../data", "inner/folder/soft"] {
            assert!(check(&["data"], &[other]).is_err() && check(&[], &["x", other, "data"]).is_err(), "{other}");
            assert!(check(&["data", other], &["x", "y"]).is_ok());
        }
        for other in ["new", "dangling", "inner/folder/new", "inner/folder/dangling", "inner/../new"] {
            assert!(check(&["data"], &["new", other]).is_err(), "{other}");
        }
        assert!(check(&["pipe", "pipe"], &[]).is_err() && check(&["pipe"], &["pipe"]).is_err());
        let devices = CallFiles::new().reads(["/dev/null", "/dev/null"]).writes(["/dev/null", "/dev/null"]);
        assert!(devices.check().is_ok());
        for streams in [CallFiles::new().reads(["-", "-"]), CallFiles::new().writes(["-", "-"])] {
            assert!(streams.check().is_err());
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
