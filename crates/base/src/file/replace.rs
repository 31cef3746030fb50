//! Writing files that have names: at once, or through what is no regular file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FileError, SavedError, at_path};

/// Symbolic links that may follow one another; Linux follows as many.
const MAX_LINKS: usize = 40;

/// Lets `write` write a file. What stands there as a regular file, or as a link to one, is replaced at once: the bytes
/// go to a file next to it, which is then renamed. Anything else that stands there, such as a pipe, a device or
/// `/dev/stdout`, gets the bytes as they come.
///
/// # Errors
/// [`FileError::At`] with the errors of the system and of `write`.
pub fn replace<E: SavedError>(path: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    at_path(path, "write", || match target(path).map_err(FileError::from)? {
        Some(target) => rename_over(&target, write),
        None => write_through(path, write),
    })
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

fn rename_over<E: SavedError>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    /// Tells the threads of this process apart.
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{}.part", process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
    let part = target.with_file_name(name);
    let write = || -> Result<(), E> {
        let mut file = File::create(&part).map_err(FileError::from)?;
        write(&mut file)?;
        file.sync_all().and_then(|()| fs::rename(&part, target)).map_err(FileError::from)?;
        Ok(())
    };
    let written = write();
    if written.is_err() {
        // Nothing to add to the error that is returned.
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_through<E: SavedError>(path: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    let open = || {
        let mut file = OpenOptions::new().write(true).open(path)?;
        if file.metadata()?.is_file() {
            // An open file under another name, which may hold something already.
            file.seek(SeekFrom::End(0))?;
        }
        Ok::<_, io::Error>(file)
    };
    let mut file = open().map_err(FileError::from)?;
    write(&mut file)?;
    match file.sync_all() {
        // Pipes and terminals have nothing to wait for.
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Err(FileError::from(error).into())
        }
        _ => Ok(()),
    }
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
