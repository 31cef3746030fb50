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

/// What the host knows of a kernel.
#[derive(Debug)]
pub struct KernelInfo {
    /// The entry's name in the PTX.
    pub name: &'static str,
    /// The top-level module of the crate that it stands in, which names its PTX file.
    pub module: &'static str,
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
    (@attributes [$($meta:tt)*] [] #[launch_bounds($threads:literal $(,)?)] $($rest:tt)+) => {
        $crate::kernel!(@attributes [$($meta)*] [$threads, 0] $($rest)+);
    };
    (@attributes [$($meta:tt)*] [] #[launch_bounds($threads:literal, $blocks:literal $(,)?)] $($rest:tt)+) => {
        $crate::kernel!(@attributes [$($meta)*] [$threads, $blocks] $($rest)+);
    };
    (@attributes [$($meta:tt)*] [$($bounds:tt)*] #[$($attribute:tt)*] $($rest:tt)+) => {
        $crate::kernel!(@attributes [$($meta)* #[$($attribute)*]] [$($bounds)*] $($rest)+);
    };
    (@attributes [$($meta:tt)*] [$($bounds:tt)*]
        pub unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*
    ) => {
        $crate::kernel_item!([$($meta)*] [$($bounds)*] $name ($($arg: $ty),*) $body);
        $crate::kernel!($($rest)*);
    };
    ($($rest:tt)+) => { $crate::kernel!(@attributes [] [] $($rest)+); };
}

#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "nvptx64")]
macro_rules! kernel_item {
    ([$($meta:tt)*] [$($threads:literal, $blocks:literal)?] $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
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
    ([$($meta:tt)*] [$($threads:literal, $blocks:literal)?] $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        $($meta)*
        #[allow(non_camel_case_types)]
        pub enum $name {}

        impl $name {
            /// The kernel's name, PTX module and launch bounds.
            pub const INFO: &'static $crate::KernelInfo = &$crate::KernelInfo {
                name: stringify!($name),
                module: $crate::macro_support::top_module(module_path!()),
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
    fn covering_is_never_an_empty_grid() {
        assert_eq!(LaunchConfig::covering(0, 256).grid, Dim3::new(1, 1, 1));
        assert_eq!(LaunchConfig::covering(257, 256).grid, Dim3::new(2, 1, 1));
        assert_eq!(LaunchConfig::covering(usize::MAX, 1).grid.x, i32::MAX as u32);
    }
}
