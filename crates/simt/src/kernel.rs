//! Kernels as the host sees them: description, launch shape, launcher, and the macro.
use core::ffi::c_void;

/// Three extents or indices; `y` and `z` are 1 (or 0, for an index) where not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl Dim3 {
    /// Three extents.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The product of the extents.
    #[must_use]
    pub const fn count(self) -> u64 {
        (self.x as u64).saturating_mul(self.y as u64).saturating_mul(self.z as u64)
    }

    /// The index that stands at place `linear` when these are the extents: x runs fastest.
    #[must_use]
    pub const fn index(self, linear: u64) -> Self {
        let (x, y) = (self.x as u64, self.y as u64);
        Self { x: (linear % x) as u32, y: (linear / x % y) as u32, z: (linear / x / y) as u32 }
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl core::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// What `#[launch_bounds(max_threads, min_blocks)]` says of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// No block has more threads.
    pub max_threads: u32,
    /// Blocks that shall fit on a multiprocessor at once; 0 where nothing is asked.
    pub min_blocks: u32,
}

/// Kernels that are loaded together: one PTX file.
pub struct Module {
    /// Its name.
    pub name: &'static str,
    /// Its PTX; `None` where a program registers it under the name.
    pub ptx: Option<&'static str>,
}

impl Module {
    /// That of a crate's modules which stands at `path`, a `module_path!()`, or above it. A module's name is its path
    /// after the crate's name, with `_` for `::`.
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

/// What the host knows of a kernel.
#[derive(Debug)]
pub struct KernelInfo {
    /// The entry's name in the PTX.
    pub name: &'static str,
    /// The module whose PTX has it.
    pub module: &'static Module,
    /// The kernel's launch bounds, if it states any.
    pub launch_bounds: Option<LaunchBounds>,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory for each block.
    pub shared_bytes: u32,
}

impl LaunchConfig {
    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self { grid: grid.into(), block: block.into(), shared_bytes: 0 }
    }

    /// Enough blocks of `block` threads for one thread an item, at least one block and
    /// at most 2³¹ - 1: kernels walk with [`grid_stride`](crate::thread::grid_stride).
    #[must_use]
    pub fn covering(items: usize, block: u32) -> Self {
        let blocks = items.div_ceil(block.max(1) as usize).clamp(1, i32::MAX as usize);
        Self::new(blocks as u32, block)
    }

    /// The same with `bytes` of dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }
}

/// What can run a kernel: a CUDA stream, or the emulator.
pub trait Launcher {
    /// Why a launch was refused or failed.
    type Error;

    /// Queues or runs one launch. Called by the `launch` functions that [`kernel!`](crate::kernel!) makes.
    ///
    /// `args` has one pointer an argument, to the value as the device takes it;
    /// `thread` is what one emulated thread runs.
    ///
    /// # Safety
    /// `args` and `thread` belong to the kernel that `info` describes, and the kernel's
    /// own contract is kept until the launch has ended.
    unsafe fn launch_raw(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        args: &mut [*mut c_void],
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), Self::Error>;
}

/// The segment after the crate's name in `path`, a `module_path!()`; the crate's own name where there is none.
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

/// Kernels of a crate that brings no PTX stand in no module.
#[doc(hidden)]
#[must_use]
pub const fn no_module(_: &str) -> Option<&'static Module> {
    None
}

/// Declares kernels.
///
/// ```
/// use warpset_simt::{GlobalMut, kernel, thread};
/// kernel! {
///     /// Sets `n` words to `value`.
///     ///
///     /// # Safety
///     /// `words` is valid for `n` words, which nobody else touches meanwhile.
///     #[launch_bounds(256, 8)]
///     pub unsafe fn fill(words: GlobalMut<u32>, value: u32, n: usize) {
///         for i in thread::grid_stride(n) {
///             // SAFETY: `i < n`.
///             unsafe { words.write(i, value) };
///         }
///     }
/// }
/// assert_eq!(fill::INFO.name, "fill");
/// assert_eq!(fill::INFO.launch_bounds.unwrap().max_threads, 256);
/// ```
///
/// On the device each becomes a `ptx-kernel` entry; launch bounds travel as the
/// comment `// @launch_bounds 256 8` in its body, and the host inserts directives
/// where it finds one. On the host each becomes a type of its name with the constant
/// `INFO: &KernelInfo` and the functions `launch(&launcher, config, arguments…)` and
/// `thread(arguments…)`, which is what one emulated thread runs.
///
/// Arguments are `Copy`: numbers, [`Global`](crate::Global), [`GlobalMut`](crate::GlobalMut).
/// `#[launch_bounds(max_threads)]` and `#[launch_bounds(max_threads, min_blocks)]` take literals.
/// A generic kernel is an `#[inline(always)]` function and a `macro_rules!` that emits one entry an instantiation.
#[macro_export]
macro_rules! kernel {
    () => {};
    (@next $module_at:tt) => {};
    (@next $module_at:tt $($rest:tt)+) => { $crate::kernel!(@attributes $module_at [] [] $($rest)+); };
    (@attributes $module_at:tt [$($meta:tt)*] [] #[launch_bounds($threads:literal $(,)?)] $($rest:tt)+) => {
        $crate::kernel!(@attributes $module_at [$($meta)*] [$threads, 0] $($rest)+);
    };
    (@attributes $module_at:tt [$($meta:tt)*] [] #[launch_bounds($threads:literal, $blocks:literal $(,)?)]
        $($rest:tt)+
    ) => {
        $crate::kernel!(@attributes $module_at [$($meta)*] [$threads, $blocks] $($rest)+);
    };
    (@attributes $module_at:tt [$($meta:tt)*] [$($bounds:tt)*] #[$($attribute:tt)*] $($rest:tt)+) => {
        $crate::kernel!(@attributes $module_at [$($meta)* #[$($attribute)*]] [$($bounds)*] $($rest)+);
    };
    (@attributes $module_at:tt [$($meta:tt)*] [$($bounds:tt)*]
        pub unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*
    ) => {
        $crate::kernel_item!($module_at [$($meta)*] [$($bounds)*] $name ($($arg: $ty),*) $body);
        $crate::kernel!(@next $module_at $($rest)*);
    };
    (#![module($at:expr)] $($rest:tt)*) => { $crate::kernel!(@next ($at) $($rest)*); };
    ($($rest:tt)+) => { $crate::kernel!(@next ($crate::macro_support::no_module) $($rest)+); };
}

#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "nvptx64")]
macro_rules! kernel_item {
    ($module_at:tt [$($meta:tt)*] [$($threads:literal, $blocks:literal)?] $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name($($arg: $ty),*) {
            $($crate::macro_support::launch_bounds::<$threads, $blocks>();)?
            $body
        }
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! kernel_item {
    ($module_at:tt [$($meta:tt)*] [$($threads:literal, $blocks:literal)?] $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        $($meta)*
        #[allow(non_camel_case_types)]
        pub enum $name {}

        impl $name {
            const MODULE: &'static $crate::Module = match $module_at(module_path!()) {
                Some(module) => module,
                None => &$crate::Module { name: $crate::macro_support::top_module(module_path!()), ptx: None },
            };

            /// The kernel's name, PTX module and launch bounds.
            pub const INFO: &'static $crate::KernelInfo = &$crate::KernelInfo {
                name: stringify!($name),
                module: Self::MODULE,
                launch_bounds: [
                    $(Some($crate::LaunchBounds { max_threads: $threads, min_blocks: $blocks }),)?
                    None,
                ][0],
            };

            /// What one emulated thread runs.
            ///
            /// # Safety
            /// The kernel's own contract; to be called by an emulated thread.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn thread($($arg: $ty),*) $body

            /// Launches the kernel.
            ///
            /// # Safety
            /// The kernel's own contract, until the launch has ended.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn launch<L: $crate::Launcher>(
                launcher: &L,
                config: $crate::LaunchConfig,
                $($arg: $ty),*
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the caller keeps the kernel's contract.
                let thread = || unsafe { Self::thread($($arg),*) };
                $(let mut $arg = $arg;)*
                let mut args: [*mut ::core::ffi::c_void; { <[&str]>::len(&[$(stringify!($arg)),*]) }] =
                    [$((&raw mut $arg).cast()),*];
                // SAFETY: one pointer an argument, in order, and the same arguments in
                // `thread`; the caller keeps the kernel's contract.
                unsafe { launcher.launch_raw(Self::INFO, config, &mut args, &thread) }
            }
        }
    };
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
        static SCAN: Module = Module { name: "primitives_scan", ptx: None };
        static SELFTEST: Module = Module { name: "selftest", ptx: None };
        let found = |path| Module::find(&[&SCAN, &SELFTEST], "warpset_kernels", path).map(|module| module.name);
        assert_eq!(found("warpset_kernels::primitives::scan"), Some("primitives_scan"));
        assert_eq!(found("warpset_kernels::primitives::scan::deep"), Some("primitives_scan"));
        assert_eq!(found("warpset_kernels::selftest"), Some("selftest"));
        assert_eq!(found("warpset_kernels::primitives::scanner"), None);
        assert_eq!(found("warpset_kernels::primitives"), None);
        assert_eq!(found("warpset_kernels"), None);
        assert_eq!(found("other::selftest"), None);
    }

    #[test]
    fn covering_is_never_an_empty_grid() {
        assert_eq!(LaunchConfig::covering(0, 256).grid, Dim3::new(1, 1, 1));
        assert_eq!(LaunchConfig::covering(257, 256).grid, Dim3::new(2, 1, 1));
        assert_eq!(LaunchConfig::covering(usize::MAX, 1).grid.x, i32::MAX as u32);
    }
}
