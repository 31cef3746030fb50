//! Files that are mapped into memory, and queried in place.

use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::path::Path;

use bytemuck::Pod;

use super::{FileError, HEADER_BYTES, Saved, at_path, view, view_unverified};

/// The words of a saved structure in a memory-mapped file.
pub struct MappedWords<T> {
    map: memmap2::Mmap,
    /// Offset of the words.
    begin: usize,
    words: PhantomData<fn() -> T>,
}

impl<T: Pod> MappedWords<T> {
    /// Maps a file; the first word is that of the file.
    ///
    /// # Errors
    /// [`FileError::Io`].
    ///
    /// # Safety
    /// No process changes or truncates the file while the words are in use.
    pub unsafe fn open(path: &Path) -> Result<MappedWords<T>, FileError> {
        // Checked before the file is opened, because opening a pipe waits for its other end.
        if !fs::metadata(path)?.is_file() {
            let why = "only regular files can be mapped: read it with `load` or `read_from`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        let file = File::open(path)?;
        // SAFETY: the caller keeps the file as it is.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(MappedWords { map, begin: 0, words: PhantomData })
    }

    /// Returns the whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// No words if the file does not hold whole ones.
impl<T: Pod> AsRef<[T]> for MappedWords<T> {
    #[inline]
    fn as_ref(&self) -> &[T] {
        self.map.get(self.begin..).and_then(|words| bytemuck::try_cast_slice(words).ok()).unwrap_or(&[])
    }
}

/// Parameters and words of a structure in a memory-mapped file.
pub type InMap<S> = (<S as Saved>::Layout, MappedWords<<S as Saved>::Word>);

/// Maps a file and returns the parameters of its structure and its words. With `verified`, reads the words and checks
/// everything; otherwise reads the header alone.
///
/// # Errors
/// [`FileError::At`].
///
/// # Safety
/// No process changes or truncates the file while the words are in use.
pub unsafe fn map<S: Saved>(path: &Path, verified: bool) -> Result<InMap<S>, S::Error> {
    at_path(path, "map", || {
        // SAFETY: no process changes the file while the words are in use, by this function's contract.
        let map = unsafe { MappedWords::open(path)? };
        let (layout, _) = if verified { view::<S>(map.bytes())? } else { view_unverified::<S>(map.bytes())? };
        Ok((layout, MappedWords { begin: HEADER_BYTES, ..map }))
    })
}

/// Defines the type of a [`Saved`] structure in a memory-mapped file, with its `view` and `layout`, and gives the
/// structure the functions that open it.
///
/// The documentation of `fn map` precedes the text for all structures.
#[doc(hidden)]
#[macro_export]
macro_rules! mapped {
    (
        $(#[$type_doc:meta])*
        [$($generics:tt)*] $mapped:ty as $name:ident of $of:ty, $error:ty;
        layout: $layout:ty = |$saved:ident| $borrowed:expr;
        view: $view:ty = |$parameters:ident, $words:ident| $made:expr;
        $(#[$map_doc:meta])*
        fn map;
    ) => {
        $(#[$type_doc])*
        pub struct $name<$($generics)*> {
            saved: $crate::file::InMap<$of>,
        }

        impl<$($generics)*> $mapped {
            /// Returns the parameters.
            pub fn layout(&self) -> &$layout {
                let $saved = &self.saved.0;
                $borrowed
            }

            /// Borrows the words, to answer queries.
            #[inline]
            pub fn view(&self) -> $view {
                let ($parameters, $words) = (self.saved.0, self.saved.1.as_ref());
                $made
            }
        }

        /// Mapping.
        impl<$($generics)*> $of {
            $(#[$map_doc])*
            ///
            /// # Errors
            /// [`FileError::At`](crate::FileError::At) with the path and the cause.
            ///
            /// # Safety
            /// - Until the returned value is dropped, no process changes or truncates the file. Replacing it, as `save`
            ///   does, and removing it are allowed: the map keeps the old file.
            pub unsafe fn map(path: impl AsRef<::std::path::Path>) -> Result<$mapped, $error> {
                // SAFETY: the caller guarantees an unchanged file for as long as the words live, as `file::map` asks.
                Ok($name { saved: unsafe { $crate::file::map::<$of>(path.as_ref(), true)? } })
            }

            /// Maps a saved structure and reads its header alone, in constant time: without the checksum and other
            /// checks of [`map`](Self::map). Damaged words give wrong answers, nothing worse.
            ///
            /// # Errors
            /// [`FileError::At`](crate::FileError::At) with the path and the cause.
            ///
            /// # Safety
            /// - The contract of [`map`](Self::map).
            pub unsafe fn map_unverified(path: impl AsRef<::std::path::Path>) -> Result<$mapped, $error> {
                // SAFETY: the caller guarantees an unchanged file for as long as the words live, as `file::map` asks.
                Ok($name { saved: unsafe { $crate::file::map::<$of>(path.as_ref(), false)? } })
            }
        }

        impl<$($generics)*> ::std::fmt::Debug for $mapped {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.view()).finish()
            }
        }
    };
}
