//! Modules: kernels that are loaded together, and the search for the module of a path.

/// Kernels that are loaded together: one PTX file.
///
/// ```
/// use warpset_simt::{Module, Ptx};
///
/// static SORTS: Module = Module { name: "sorts", ptx: Some(Ptx::Text("// PTX of the kernels in `sorts`")), code: None };
/// let found = Module::find(&[&SORTS], "my_kernels", "my_kernels::sorts::by_key");
/// assert_eq!(found.map(|module| module.name), Some("sorts"));
/// assert!(SORTS.device_code().is_none());
/// ```
pub struct Module {
    /// Its name.
    pub name: &'static str,
    /// Its PTX; `None` where a program registers it under the name.
    pub ptx: Option<Ptx>,
    /// Device code for some architectures, in a container (`warpset_builder::Containers`); `None` or empty if there is
    /// none. [`Module::device_code`] checks that it belongs to the PTX.
    pub code: Option<&'static [u8]>,
}

impl Module {
    /// Returns the device code assembled from the PTX, which is loaded in its place if the driver accepts it. `None` if
    /// the container was made from other sources than the PTX: both carry the stamp of their sources.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    pub fn device_code(&self) -> Option<&'static [u8]> {
        let text = self.ptx?.text();
        let stamp = text.lines().find_map(|line| line.strip_prefix("// Sources: "))?;
        let mark = format!("warpset:{stamp}");
        self.code.filter(|code| code.windows(mark.len()).any(|bytes| bytes == mark.as_bytes()))
    }

    /// Finds the crate's module at `path`, a `module_path!()`, or above it. A module's name is its path after the
    /// crate's name, with `_` for `::`.
    #[must_use]
    pub const fn find(modules: &[&'static Module], crate_name: &str, path: &str) -> Option<&'static Module> {
        let mut i = 0;
        while i < modules.len() {
            if is_at(crate_name.as_bytes(), modules[i].name.as_bytes(), path.as_bytes()) {
                return Some(modules[i]);
            }
            i += 1;
        }
        None
    }
}

/// PTX of a module.
///
/// ```
/// assert_eq!(warpset_simt::Ptx::Text(".version 8.0").text(), ".version 8.0");
/// ```
#[derive(Clone, Copy)]
pub enum Ptx {
    /// The text.
    Text(&'static str),
    /// The text, compressed as zlib data.
    #[cfg(feature = "compressed")]
    Compressed(&'static [u8]),
}

#[cfg(not(target_arch = "nvptx64"))]
impl Ptx {
    /// Returns the text.
    ///
    /// # Panics
    /// If the data do not decompress to UTF-8.
    #[must_use]
    pub fn text(self) -> std::borrow::Cow<'static, str> {
        match self {
            Self::Text(text) => text.into(),
            #[cfg(feature = "compressed")]
            Self::Compressed(data) => {
                let text = miniz_oxide::inflate::decompress_to_vec_zlib(data).expect("zlib data of the build script");
                String::from_utf8(text).expect("UTF-8, which the build script compressed").into()
            }
        }
    }

    /// Returns the address of the data, by which two texts under one name are told apart.
    #[must_use]
    pub fn address(self) -> usize {
        match self {
            Self::Text(text) => text.as_ptr().addr(),
            #[cfg(feature = "compressed")]
            Self::Compressed(data) => data.as_ptr().addr(),
        }
    }
}

impl core::fmt::Debug for Module {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Module").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether the path begins with the crate's name and the segments of `name`.
const fn is_at(crate_name: &[u8], name: &[u8], path: &[u8]) -> bool {
    let mut p = 0;
    while p < crate_name.len() {
        if p >= path.len() || path[p] != crate_name[p] {
            return false;
        }
        p += 1;
    }
    if p + 2 > path.len() || path[p] != b':' {
        return false;
    }
    p += 2;
    let mut n = 0;
    while n < name.len() {
        if p >= path.len() {
            return false;
        }
        if path[p] == b':' && name[n] == b'_' {
            p += 1;
        } else if path[p] != name[n] {
            return false;
        }
        (p, n) = (p + 1, n + 1);
    }
    p == path.len() || (p < path.len() && path[p] == b':')
}

/// Returns the segment after the crate's name in `path`, a `module_path!()`; the crate's own name if there is none.
#[doc(hidden)]
#[must_use]
pub const fn top_module(path: &'static str) -> &'static str {
    let bytes = path.as_bytes();
    let (mut start, mut i) = (0, 0);
    while i < bytes.len() {
        if bytes[i] == b':' {
            if start > 0 {
                break;
            }
            i += 2;
            start = i;
        } else {
            i += 1;
        }
    }
    path.split_at(i).0.split_at(start).1
}

/// Returns `None`, for the kernels of a crate without PTX.
#[doc(hidden)]
#[must_use]
pub const fn no_module(_: &str) -> Option<&'static Module> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ptx_module_is_the_crates_top_level_one() {
        assert_eq!(top_module("warpset_kernels::bloom"), "bloom");
        assert_eq!(top_module("warpset_kernels::bloom::split"), "bloom");
        assert_eq!(top_module("my_test"), "my_test");
    }

    #[test]
    fn a_module_is_found_by_its_path() {
        static SCAN: Module = Module { name: "primitives_scan", ptx: None, code: None };
        static SELFTEST: Module = Module { name: "selftest", ptx: None, code: None };
        let found = |path| Module::find(&[&SCAN, &SELFTEST], "warpset_kernels", path).map(|module| module.name);
        assert_eq!(found("warpset_kernels::primitives::scan"), Some("primitives_scan"));
        assert_eq!(found("warpset_kernels::primitives::scan::deep"), Some("primitives_scan"));
        assert_eq!(found("warpset_kernels::selftest"), Some("selftest"));
        assert_eq!(found("warpset_kernels::primitives::scanner"), None);
        assert_eq!(found("warpset_kernels::primitives"), None);
        assert_eq!(found("warpset_kernels"), None);
        assert_eq!(found("other::selftest"), None);
    }
}
