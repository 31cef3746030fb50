//! Basics of all classes: places of structures, copies, files.

use std::path::{Path, PathBuf};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use warpset::gpu;
use warpset_base::file::MappedWords;

use crate::device::{self, Location};
use crate::error::{Failure, Result};
use crate::keys::Bytes;
use crate::threads::{FEW_KEYS, Placed, Shared, run};

/// Types of a structure in host memory, in a mapped file and on a device.
pub trait Forms: Sized + 'static {
    /// In host memory.
    type Host: Send + Sync + PartialEq;
    /// In a mapped file.
    type Mapped: Send + Sync;
    /// On a device.
    type Device: Send + Sync;

    /// Copies a structure to a device.
    fn to_device(host: &Self::Host, device: &gpu::Device) -> Result<Self::Device>;
    /// Copies a structure to host memory.
    fn to_host(there: &Self::Device) -> Result<Self::Host>;
    /// Returns the device of a structure.
    fn device(there: &Self::Device) -> &gpu::Device;
    /// Copies a structure within host memory.
    fn copy(host: &Self::Host) -> Self::Host;
    /// Returns the saved form.
    fn to_bytes(host: &Self::Host) -> Result<Vec<u8>>;
    /// Reads the saved form.
    fn from_bytes(bytes: &[u8]) -> Result<Self::Host>;
    /// Writes a file.
    fn save(host: &Self::Host, path: &Path) -> Result<()>;
    /// Reads a file.
    fn load(path: &Path) -> Result<Self::Host>;
    /// Maps a file.
    ///
    /// # Safety
    /// No process changes the file as long as it is mapped.
    unsafe fn map(path: &Path) -> Result<Self::Mapped>;
}

/// Structure of a class.
pub trait Structure: Forms {
    /// Name of the class.
    const NAME: &'static str;

    /// Returns the text of `repr` after the name.
    fn describe(value: &Where<Self>) -> Result<String>;

    /// Whether `keys` more keys surely fit.
    fn has_room(_: &Where<Self>, _keys: u64) -> bool {
        true
    }
}

/// Types of a class with the text of its `repr`; or, without it, types of one kind of a class's structures.
#[macro_export]
macro_rules! structure {
    ($family:ident = $name:literal: $host:ty, $mapped:ty, $device:ty; $describe:expr) => {
        $crate::structure! { $family: $host, $mapped, $device }

        impl $crate::structure::Structure for $family {
            const NAME: &'static str = $name;

            fn describe(value: &$crate::structure::Where<Self>) -> $crate::error::Result<String> {
                #[allow(clippy::redundant_closure_call, reason = "the macro's argument is a closure")]
                ($describe)(value)
            }
        }
    };
    ($family:ident: $host:ty, $mapped:ty, $device:ty) => {
        /// Types of a class, or of one kind of its structures.
        pub struct $family;

        #[allow(clippy::needless_question_mark, reason = "other types than `Nowhere` have errors of their own")]
        impl $crate::structure::Forms for $family {
            type Host = $host;
            type Mapped = $mapped;
            type Device = $device;

            fn to_device(host: &$host, device: &warpset::gpu::Device) -> $crate::error::Result<$device> {
                Ok(<$device>::from_host(device, host)?)
            }
            fn to_host(there: &$device) -> $crate::error::Result<$host> {
                Ok(there.to_host()?)
            }
            fn device(there: &$device) -> &warpset::gpu::Device {
                there.device()
            }
            fn copy(host: &$host) -> $host {
                host.clone()
            }
            fn to_bytes(host: &$host) -> $crate::error::Result<Vec<u8>> {
                Ok(host.to_bytes())
            }
            fn from_bytes(bytes: &[u8]) -> $crate::error::Result<$host> {
                Ok(<$host>::from_bytes(bytes)?)
            }
            fn save(host: &$host, path: &std::path::Path) -> $crate::error::Result<()> {
                Ok(host.save(path)?)
            }
            fn load(path: &std::path::Path) -> $crate::error::Result<$host> {
                Ok(<$host>::load(path)?)
            }
            unsafe fn map(path: &std::path::Path) -> $crate::error::Result<$mapped> {
                // SAFETY: the caller guarantees that the file does not change.
                Ok(unsafe { <$host>::map(path)? })
            }
        }
    };
}

/// Form on devices of structures that have none.
pub enum Nowhere {}

impl Nowhere {
    /// Returns the error for a copy to a device.
    pub fn from_host<H>(_: &gpu::Device, _: &H) -> Result<Nowhere> {
        Err(Failure::value("this structure is in host memory only, whatever the device: leave `device` away"))
    }

    /// Copies the structure to host memory; there is none.
    pub fn to_host<H>(&self) -> Result<H> {
        match *self {}
    }

    /// Returns the device; there is none.
    pub fn device(&self) -> &gpu::Device {
        match *self {}
    }
}

/// File of a mapped structure.
pub struct MappedFile {
    path: PathBuf,
    bytes: MappedWords<u8>,
}

impl MappedFile {
    /// Maps a file; returns its structure, and the file.
    ///
    /// # Safety
    /// No process changes the file as long as it is mapped.
    unsafe fn open<S: Forms>(path: PathBuf) -> Result<(S::Mapped, MappedFile)> {
        loop {
            let before = identity(&path)?;
            // SAFETY: the caller guarantees that the file does not change.
            let structure = unsafe { S::map(&path)? };
            // SAFETY: the caller guarantees that the file does not change.
            let bytes = unsafe { MappedWords::open(&path) }.map_err(Failure::from)?;
            // Another process may replace the file between the two mappings, which are then repeated.
            if identity(&path)? == before {
                return Ok((structure, MappedFile { path, bytes }));
            }
        }
    }
}

/// Returns device and inode number of a file, which differ for a file that replaces it.
#[cfg(unix)]
fn identity(path: &Path) -> Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = path.metadata().map_err(|error| Failure::system("map", path, error))?;
    Ok((file.dev(), file.ino()))
}

/// Returns nothing: a mapped file cannot be replaced on this system.
#[cfg(not(unix))]
fn identity(_: &Path) -> Result<()> {
    Ok(())
}

/// A structure in its place.
pub enum Where<S: Forms> {
    /// In host memory.
    Host(S::Host),
    /// In a mapped file, read-only.
    Mapped(S::Mapped, MappedFile),
    /// On a device.
    Device(S::Device),
}

/// Runs `$body` with the structure under the name `$it`, in any place.
#[macro_export]
macro_rules! anywhere {
    ($place:expr, |$it:ident| $body:expr) => {
        match $place {
            $crate::structure::Where::Host($it) => $body,
            $crate::structure::Where::Mapped($it, _) => $body,
            $crate::structure::Where::Device($it) => $body,
        }
    };
}

/// Value of `$body` for a structure under the name `$it`, in any place, without waiting.
#[macro_export]
macro_rules! ask {
    ($object:expr, $py:expr, |$it:ident| $body:expr) => {
        Ok($object.read($py, None, 1, |value| Ok($crate::anywhere!(value, |$it| $body)))?)
    };
}

/// Returns a number as a length in Python, at most the largest one.
pub fn length(number: u64) -> usize {
    isize::try_from(number).unwrap_or(isize::MAX) as usize
}

/// Runs `$body` with a structure that can change, under the name `$it`; a structure in a mapped file is an error.
#[macro_export]
macro_rules! changing {
    ($place:expr, |$it:ident| $body:expr) => {
        match $place {
            $crate::structure::Where::Host($it) => $body,
            $crate::structure::Where::Device($it) => $body,
            $crate::structure::Where::Mapped(_, file) => Err($crate::structure::read_only(file)),
        }
    };
}

/// Returns the error for changes of a mapped structure.
pub fn read_only(file: &MappedFile) -> Failure {
    Failure::value(format!("{}: mapped, so it cannot be changed: change a `copy()` of it", file.path.display()))
}

/// Returns the error for keys in another place than the structure.
pub fn keys_elsewhere(place: &str) -> Failure {
    Failure::value(format!(
        "the keys are on a device and the structure {place}: move one of them, as by `.to(\"cuda:0\")` or `.get()`"
    ))
}

impl<S: Forms> Placed for Where<S> {
    fn waits(&self) -> bool {
        matches!(self, Where::Device(_))
    }
}

/// Content of an object of a class.
pub type Object<S> = Shared<Where<S>>;

impl<S: Forms> Where<S> {
    /// Moves a new structure to its place.
    pub fn at(host: S::Host, place: &Location) -> Result<Where<S>> {
        Ok(match place {
            Location::Cpu => Where::Host(host),
            Location::On(device) => Where::Device(S::to_device(&host, device)?),
        })
    }

    /// Runs `work` with the structure in host memory: the structure itself, or a copy.
    pub fn on_host<R>(&self, work: impl FnOnce(&S::Host) -> Result<R>) -> Result<R> {
        match self {
            Where::Host(host) => work(host),
            Where::Device(there) => work(&S::to_host(there)?),
            Where::Mapped(_, file) => work(&S::from_bytes(file.bytes.bytes())?),
        }
    }

    /// Copies the structure to `place`, by default its own.
    pub fn copy(&self, place: Option<&Location>) -> Result<Where<S>> {
        let here = match self {
            Where::Device(there) => &Location::On(S::device(there).clone()),
            _ => &Location::Cpu,
        };
        self.on_host(|host| Where::at(S::copy(host), place.unwrap_or(here)))
    }

    /// Returns the name of the place.
    pub fn place(&self) -> String {
        match self {
            Where::Host(_) => "cpu".into(),
            Where::Mapped(_, file) => format!("mapped from {}", file.path.display()),
            Where::Device(there) => device::name_of(S::device(there)),
        }
    }
}

/// Number of keys of an operation on a whole structure, which is long enough to leave the interpreter.
pub const ALL_OF_IT: usize = FEW_KEYS + 1;

/// Writes a file.
pub fn save<S: Structure>(object: &Object<S>, py: Python<'_>, path: &Path) -> PyResult<()> {
    Ok(object.read(py, None, ALL_OF_IT, |value| value.on_host(|host| S::save(host, path)))?)
}

/// Reads a file.
pub fn load<S: Structure>(py: Python<'_>, path: &Path, device: Option<&Bound<'_, PyAny>>) -> PyResult<Object<S>> {
    let place = Location::of(device)?;
    Ok(Shared::new(run(py, None, ALL_OF_IT, || Where::at(S::load(path)?, &place))?))
}

/// Maps a file.
pub fn map<S: Structure>(py: Python<'_>, path: PathBuf) -> PyResult<Object<S>> {
    // SAFETY: the documentation of the class requires that the file is not written while it is mapped.
    let (mapped, file) = run(py, None, ALL_OF_IT, || unsafe { MappedFile::open::<S>(path) })?;
    Ok(Shared::new(Where::Mapped(mapped, file)))
}

/// Reads the saved form.
pub fn from_bytes<S: Structure>(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Object<S>> {
    let (place, bytes) = (Location::of(device)?, Bytes::of(data)?);
    Ok(Shared::new(run(py, None, ALL_OF_IT, || Where::at(S::from_bytes(bytes.get())?, &place))?))
}

/// Returns the saved form as `bytes`.
pub fn to_bytes<'py, S: Structure>(object: &Object<S>, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = object.read(py, None, ALL_OF_IT, |value| value.on_host(S::to_bytes))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns the arguments of `pickle`: the saved form and the device, or the name of the mapped file.
pub fn reduce<'py, S: Structure>(object: &Object<S>, slf: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, class) = (slf.py(), slf.get_type());
    let path = object.read(py, None, 1, |value| match value {
        Where::Mapped(_, file) => Ok(Some(file.path.clone())),
        _ => Ok(None),
    })?;
    if let Some(path) = path {
        return Ok((class.getattr(intern!(py, "mmap"))?, (path,)).into_pyobject(py)?.into_any());
    }
    let load = py.import(intern!(py, "warpset"))?.getattr(intern!(py, "_unpickle"))?;
    let place = object.read(py, None, 1, |value| Ok(value.place()))?;
    Ok((load, (class, to_bytes(object, py)?, place)).into_pyobject(py)?.into_any())
}

/// Copies a structure to `place`, by default its own.
pub fn copy<S: Structure>(object: &Object<S>, py: Python<'_>, place: Option<&Location>) -> PyResult<Object<S>> {
    Ok(Shared::new(object.read(py, None, ALL_OF_IT, |value| value.copy(place))?))
}

/// Whether two structures have the same parameters and contents, in any places.
pub fn equal<S: Structure>(object: &Object<S>, other: &Object<S>, py: Python<'_>) -> PyResult<bool> {
    if std::ptr::eq(object, other) {
        return Ok(true);
    }
    // One after the other, so that two threads that compare two structures in both directions cannot deadlock.
    let here = object.read(py, None, ALL_OF_IT, |value| value.on_host(|host| Ok(S::copy(host))))?;
    Ok(other.read(py, None, ALL_OF_IT, |value| value.on_host(|there| Ok(here == *there)))?)
}

/// Changes a structure by the contents of another one. The other one is copied first, unless it is the same object, so
/// that no two locks are held at once.
pub fn combine<S: Structure>(
    object: &Object<S>,
    other: &Object<S>,
    py: Python<'_>,
    on_host: impl FnOnce(&mut S::Host, &S::Host) -> Result<()> + Send,
    on_device: impl FnOnce(&mut S::Device, &S::Device) -> Result<()> + Send,
) -> PyResult<()> {
    let place = object.read(py, None, 1, |value| match value {
        Where::Host(_) => Ok(Location::Cpu),
        Where::Device(there) => Ok(Location::On(S::device(there).clone())),
        Where::Mapped(_, file) => Err(read_only(file)),
    })?;
    let other = other.read(py, None, ALL_OF_IT, |value| value.copy(Some(&place)))?;
    Ok(object.write(py, None, ALL_OF_IT, |value| match (value, &other) {
        (Where::Host(here), Where::Host(other)) => on_host(here, other),
        (Where::Device(here), Where::Device(other)) => on_device(here, other),
        _ => Err(Failure::internal("a structure does not change its place")),
    })?)
}

/// Returns the text of `repr`.
pub fn describe<S: Structure>(object: &Object<S>, py: Python<'_>) -> PyResult<String> {
    let text =
        object.read(py, None, 1, |value| Ok(format!("{}({}, {})", S::NAME, S::describe(value)?, value.place())))?;
    Ok(text)
}
