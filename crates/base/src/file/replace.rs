//! Writes of files by name: atomic for regular files, direct for pipes and devices.
//!
//! Bytes of a regular file go to a *part* beside it, `NAME.PROCESS.NUMBER.part`, which is renamed at the end. The
//! process holds a lock on its parts, so that another one can tell a part that is being written from an abandoned one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{mem, process};

use super::{FileError, SavedError, at_path, together};

/// Longest chain of symbolic links that is followed, as in Linux.
const MAX_LINKS: usize = 40;

/// Names of the standard output that is open.
#[cfg(unix)]
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Lets `write` write a file, as [`Replacement`] does, and waits until it is on the disk.
///
/// # Errors
/// [`FileError::At`] with the errors of the system and of `write`.
pub fn replace<E: SavedError>(path: &Path, write: impl FnOnce(&mut Replacement) -> Result<(), E>) -> Result<(), E> {
    at_path(path, "write", || {
        let mut replacement = Replacement::create(path).map_err(FileError::from)?;
        write(&mut replacement)?;
        replacement.sync().and_then(|()| replacement.finish()).map_err(FileError::from)?;
        Ok(())
    })
}

/// Parts of this process. Locked while one begins or ends, so that none does after [`abandon`].
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all files of this process that are being written. Threads that begin or finish one afterwards wait forever:
/// for a program that a signal is about to end.
pub fn abandon() {
    let parts = parts();
    for part in &*parts {
        // Nothing can be done about an error now.
        let _ = fs::remove_file(part);
    }
    mem::forget(parts);
}

/// A file that is being written. A regular file under this name, or a link to one, is replaced atomically: the bytes go
/// to a file next to it, which [`finish`](Replacement::finish) renames. Without that call, the new file is removed and
/// the old one stays. The new file has the permissions and the owner of the old one. Any other kind of file, such as a
/// pipe, a device or `/dev/stdout`, receives the bytes as they are written.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// The file next to it and its final name, unless the bytes go through.
    part: Option<(PathBuf, PathBuf)>,
}

impl Replacement {
    /// Opens a file to be written under this name.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> io::Result<Replacement> {
        let Some(target) = target(path)? else { return Ok(Replacement { file: open_through(path)?, part: None }) };
        if target.is_dir() {
            // This can only give an error, the system's.
            OpenOptions::new().write(true).open(&target)?;
        }
        let (file, part) = create_part(&target)?;
        let replacement = Replacement { file, part: Some((part, target)) };
        replacement.keep_rights()?;
        Ok(replacement)
    }

    /// Gives the part the permissions and the owner of the file that it will replace.
    fn keep_rights(&self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some((_, target)) = &self.part
            && let Some(old) = fs::metadata(target).map(Some).or_else(not_found)?
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let new = self.file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                fchown(&self.file, Some(old.uid()), Some(old.gid())).map_err(|error| {
                    let why = format!("its owner cannot be kept ({error}): remove it first, or name another file");
                    io::Error::new(error.kind(), why)
                })?;
            }
            self.file.set_permissions(old.permissions())?;
        }
        Ok(())
    }

    /// Whether bytes go to a file of this process alone, until it gets its name.
    pub(super) fn is_apart(&self) -> bool {
        self.part.is_some()
    }

    /// Returns the file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Waits until the bytes are on the disk; pipes and terminals have nothing to wait for.
    ///
    /// # Errors
    /// The system's error.
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
    /// The system's error; the old file stays then.
    pub fn finish(self) -> io::Result<()> {
        Replacement::finish_all([self]).map_err(|(_, error)| error)
    }

    /// Gives all files their names; [`abandon`] comes before that or after it.
    ///
    /// # Errors
    /// The first file that could not be renamed, with the system's error and the files that had been renamed.
    pub fn finish_all(replacements: impl IntoIterator<Item = Replacement>) -> Result<(), (PathBuf, io::Error)> {
        // Dropped after the lock, which the drop of a replacement takes.
        let mut replacements: Vec<Replacement> = replacements.into_iter().collect();
        let mut parts = parts();
        let mut renamed = Vec::new();
        for replacement in &mut replacements {
            let Some((part, target)) = &replacement.part else { continue };
            if let Err(error) = fs::rename(part, target) {
                let error = match renamed.is_empty() {
                    true => error,
                    false => {
                        let why = format!("{error}; these files have been written before it: {}", renamed.join(", "));
                        io::Error::new(error.kind(), why)
                    }
                };
                return Err((target.clone(), error));
            }
            parts.retain(|other| other != part);
            renamed.push(target.display().to_string());
            replacement.part = None;
        }
        Ok(())
    }
}

/// Many bytes are written by several threads of the current rayon pool to a file in memory (`tmpfs`), which takes less
/// time on the clock, but more of the processors.
impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_apart() || !together::pays(&self.file, bytes.len()) {
            return self.file.write(bytes);
        }
        let at = self.file.stream_position()?;
        together::write_at(&self.file, at, bytes)?;
        self.file.seek(SeekFrom::Start(at + bytes.len() as u64))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Replacement {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.part {
            let mut parts = parts();
            // The error that made it needs no addition.
            let _ = fs::remove_file(part);
            parts.retain(|other| other != part);
        }
    }
}

/// Creates a part of `target`, under a name that no other file has.
fn create_part(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut parts = parts();
    for number in 0.. {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{number}.part", process::id()));
        let part = target.with_file_name(name);
        // Maps of a file need it open for reading, too.
        match OpenOptions::new().read(true).write(true).create_new(true).open(&part) {
            Ok(file) => {
                // A file system without locks has no abandoned parts removed; on Windows a lock binds other handles.
                #[cfg(unix)]
                let _ = file.try_lock();
                parts.push(part.clone());
                return Ok((file, part));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Removes the parts of `path` that other processes have abandoned, except the files that `keep` selects.
pub(super) fn remove_abandoned(path: &Path, keep: impl Fn(&Path) -> bool) -> io::Result<()> {
    let Some(target) = target(path)? else { return Ok(()) };
    let Some(name) = target.file_name() else { return Ok(()) };
    for entry in fs::read_dir(folder_of(&target))? {
        let entry = entry?;
        let part = entry.path();
        let is_abandoned = process_of(name.as_encoded_bytes(), entry.file_name().as_encoded_bytes())
            .is_some_and(|process| process != process::id() && !Path::new(&format!("/proc/{process}")).exists())
            && entry.file_type()?.is_file()
            && !keep(&part)
            && OpenOptions::new().write(true).open(&part).is_ok_and(|file| file.try_lock().is_ok());
        if is_abandoned {
            // Another process may be removing it, too.
            let _ = fs::remove_file(part);
        }
    }
    Ok(())
}

/// Parses the process number in the name of a part of `name`.
fn process_of(name: &[u8], part: &[u8]) -> Option<u32> {
    let numbers = part.strip_prefix(name)?.strip_prefix(b".")?.strip_suffix(b".part")?;
    let (process, number) = std::str::from_utf8(numbers).ok()?.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(number)).then(|| process.parse().ok())?
}

/// Returns the folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Turns the error that a file does not exist into `None`.
#[cfg(unix)]
fn not_found<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) }
}

/// Returns the path of the regular file, existing or not, that `path` leads to; `None` for other kinds of files.
pub(super) fn target(path: &Path) -> io::Result<Option<PathBuf>> {
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

/// Opens a pipe, a device or an open file under another name, which may contain bytes already. The standard output is
/// the open one, so that what other processes write to it afterwards follows.
fn open_through(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if STANDARD_OUTPUT.iter().any(|name| path == Path::new(name)) {
        use std::os::fd::AsFd;
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
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
        // Replaced, not overwritten: a process that had it open keeps the old one.
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

    /// Checks permissions, and the owner if the test may change it.
    #[test]
    fn replaced_files_keep_their_rights() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let folder = Folder::new("rights");
        let path = folder.path("data");
        for mode in [0o640, 0o600, 0o444, 0o666, 0o751] {
            fs::write(&path, b"old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let is_root = chown(&path, Some(1234), Some(4321)).is_ok();
            put(&path, b"new").unwrap();
            let there = fs::metadata(&path).unwrap();
            assert_eq!(there.mode() & 0o7777, mode);
            assert!(!is_root || (there.uid(), there.gid()) == (1234, 4321));
            fs::remove_file(&path).unwrap();
        }
    }

    /// Checks that several files get their names together, and that an error lists the files already renamed.
    #[test]
    fn files_are_finished_together() {
        let folder = Folder::new("together");
        let create = |name: &str| Replacement::create(&folder.path(name)).unwrap();
        Replacement::finish_all([create("a"), create("b")]).unwrap();
        assert_eq!(folder.files(), 2);
        let (first, second, third) = (create("c"), create("d"), create("e"));
        fs::create_dir(folder.path("d")).unwrap();
        let (path, error) = Replacement::finish_all([first, second, third]).unwrap_err();
        assert_eq!(path, folder.path("d"));
        assert!(error.to_string().contains(folder.path("c").to_str().unwrap()), "{error}");
        assert_eq!(folder.files(), 4);
    }

    #[test]
    fn only_abandoned_parts_are_removed() {
        let folder = Folder::new("abandoned");
        let mut dead = Command::new("true").spawn().unwrap();
        let (dead_id, alive) = (dead.id(), process::id());
        dead.wait().unwrap();
        let kept = [
            format!("data.{alive}.7.part"),
            format!("other.{dead_id}.0.part"),
            format!("data.{dead_id}.part"),
            format!("data.{dead_id}.0.part.gz"),
            format!("data.x{dead_id}.0.part"),
            format!("data.{dead_id}.1.part"),
            format!("data.{dead_id}.2.part"),
        ];
        kept.iter().for_each(|name| fs::write(folder.path(name), b"").unwrap());
        let locked = File::open(folder.path(&kept[6])).unwrap();
        locked.lock().unwrap();
        fs::write(folder.path(&format!("data.{dead_id}.0.part")), b"").unwrap();
        remove_abandoned(&folder.path("data"), |path| path == folder.path(&kept[5])).unwrap();
        assert_eq!(folder.files(), kept.len());
        assert!(kept.iter().all(|name| folder.path(name).exists()));
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
