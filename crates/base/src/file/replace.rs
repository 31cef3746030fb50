//! Writing files that have names: at once, or through what is no regular file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FileError, SavedError, at_path};

/// Symbolic links that may follow one another; Linux follows as many.
const MAX_LINKS: usize = 40;

/// Lets `write` write a file, as [`Replacement`] does, and waits until it is on the disk.
///
/// # Errors
/// [`FileError::At`] with the errors of the system and of `write`.
pub fn replace<E: SavedError>(path: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    at_path(path, "write", || {
        let mut replacement = Replacement::create(path).map_err(FileError::from)?;
        write(&mut replacement.file)?;
        replacement.sync().and_then(|()| replacement.finish()).map_err(FileError::from)?;
        Ok(())
    })
}

/// A file that is being written. What stands under its name as a regular file, or as a link to one, is replaced at
/// once: the bytes go to a file next to it, which [`finish`](Replacement::finish) renames; unless it is called, that
/// file is removed and the old one stays. Anything else that stands there, such as a pipe, a device or `/dev/stdout`,
/// gets the bytes as they come.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// The file next to it and the name it gets, unless the bytes go through.
    part: Option<(PathBuf, PathBuf)>,
}

impl Replacement {
    /// Opens a file to be written under this name.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path) -> io::Result<Replacement> {
        /// Tells the threads of this process apart.
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let Some(target) = target(path)? else { return Ok(Replacement { file: open_through(path)?, part: None }) };
        if target.is_dir() {
            // Nothing but an error comes of it, and that is the system's.
            OpenOptions::new().write(true).open(&target)?;
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{}.part", process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
        let part = target.with_file_name(name);
        Ok(Replacement { file: File::create(&part)?, part: Some((part, target)) })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Waits until what was written is on the disk; pipes and terminals have nothing to wait for.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        match self.file.sync_all() {
            Err(error)
                if self.part.is_none() && matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            synced => synced,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// What the system says; the old file stays then.
    pub fn finish(mut self) -> io::Result<()> {
        let Some((part, target)) = self.part.take() else { return Ok(()) };
        let renamed = fs::rename(&part, target);
        if renamed.is_err() {
            self.part = Some((part, PathBuf::new()));
        }
        renamed
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.part {
            // Nothing to add to the error that made it.
            let _ = fs::remove_file(part);
        }
    }
}

/// The path of the regular file that `path` leads to, there already or not; `None` if that is not one.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => return Ok(None),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        // Links to open files look like paths, and are not.
        if target.starts_with("/proc") || target.starts_with("/dev/fd") {
            return Ok(None);
        }
        match fs::read_link(&target) {
            Ok(to) => target = target.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(Some(target)),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "too many symbolic links"))
}

/// What is no regular file, or an open one under another name, which may hold something already.
fn open_through(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.is_file() {
        file.seek(SeekFrom::End(0))?;
    }
    Ok(file)
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    /// An empty folder, gone at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("warpset-replace-{name}-{}", process::id()));
            fs::create_dir(&folder).unwrap();
            Folder(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        replace(path, |file| Ok(file.write_all(bytes)?))
    }

    #[test]
    fn links_stay_and_their_targets_are_replaced() {
        let folder = Folder::new("links");
        fs::create_dir(folder.path("inner")).unwrap();
        fs::write(folder.path("inner/data"), b"old").unwrap();
        symlink("inner/data", folder.path("near")).unwrap();
        symlink(folder.path("near"), folder.path("far")).unwrap();
        symlink("inner/new", folder.path("dangling")).unwrap();
        let held = File::open(folder.path("inner/data")).unwrap();
        put(&folder.path("far"), b"new").unwrap();
        put(&folder.path("dangling"), b"first").unwrap();
        for link in ["near", "far", "dangling"] {
            assert!(fs::symlink_metadata(folder.path(link)).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(fs::read(folder.path("inner/data")).unwrap(), b"new");
        assert_eq!(fs::read(folder.path("inner/new")).unwrap(), b"first");
        // Replaced, not written over: who had it open has the old one.
        assert_eq!(io::read_to_string(held).unwrap(), "old");
        assert_eq!((folder.files(), fs::read_dir(folder.path("inner")).unwrap().count()), (4, 2));

        symlink("circle", folder.path("circle")).unwrap();
        let error = put(&folder.path("circle"), b"x").unwrap_err();
        assert!(matches!(error.reason(), FileError::Io(_)), "{error}");
    }

    #[test]
    fn what_is_no_regular_file_is_written_through() {
        let folder = Folder::new("through");
        let pipe = folder.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        put(&pipe, b"through the pipe").unwrap();
        assert_eq!(reader.join().unwrap(), b"through the pipe");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        put(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert_eq!(folder.files(), 1);
    }

    #[test]
    fn open_files_go_on_at_their_end() {
        let folder = Folder::new("open");
        let mut file = File::create(folder.path("output")).unwrap();
        file.write_all(b"head, ").unwrap();
        let name = PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
        put(&name, b"and the rest").unwrap();
        assert_eq!(fs::read(folder.path("output")).unwrap(), b"head, and the rest");
        assert_eq!(folder.files(), 1);
    }

    #[test]
    fn errors_name_the_file_and_leave_nothing() {
        let folder = Folder::new("errors");
        let told = |path: &Path| put(path, b"x").unwrap_err().to_string();
        let missing = folder.path("no such folder/x");
        assert!(told(&missing).starts_with(&format!("cannot write {}: No such file", missing.display())));
        assert!(told(&folder.0).starts_with(&format!("cannot write {}: Is a directory", folder.0.display())));
        fs::write(folder.path("kept"), b"kept").unwrap();
        let failed: Result<(), FileError> = replace(&folder.path("kept"), |file| {
            file.write_all(b"half of it")?;
            Err(FileError::BadMagic)
        });
        assert!(matches!(failed.unwrap_err().reason(), FileError::BadMagic));
        assert_eq!(fs::read(folder.path("kept")).unwrap(), b"kept");
        assert_eq!(folder.files(), 1);
    }
}
