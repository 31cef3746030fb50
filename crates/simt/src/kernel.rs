//! Kernels on the host: description, launch shape, launcher, and the macro that declares them.
use core::ffi::c_void;

use crate::Module;

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
    /// Makes three extents.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// Returns the product of the extents.
    #[must_use]
    pub const fn count(self) -> u64 {
        (self.x as u64).saturating_mul(self.y as u64).saturating_mul(self.z as u64)
    }

    /// Returns the index at place `linear` among these extents: x runs fastest.
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

/// Contents of `#[launch_bounds(max_threads, min_blocks)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// No block has more threads.
    pub max_threads: u32,
    /// Blocks that have to fit on a multiprocessor at once; 0 if there is no such demand.
    pub min_blocks: u32,
}

/// Description of a kernel on the host.
#[derive(Debug)]
pub struct KernelInfo {
    /// The entry's name in the PTX.
    pub name: &'static str,
    /// The module that contains the kernel.
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
    /// Whether all blocks have to run at once, because they wait for each other.
    pub cooperative: bool,
}

impl LaunchConfig {
    /// Returns a launch of `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self { grid: grid.into(), block: block.into(), shared_bytes: 0, cooperative: false }
    }

    /// Returns a launch of one thread per item, in blocks of `block` threads: at least one block and at most 2³¹ - 1.
    /// Kernels loop with [`grid_stride`](crate::thread::grid_stride).
    #[must_use]
    pub fn covering(items: usize, block: u32) -> Self {
        let blocks = items.div_ceil(block.max(1) as usize).clamp(1, i32::MAX as usize);
        Self::new(blocks as u32, block)
    }

    /// Returns this launch with `bytes` of dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }

    /// Returns this launch for blocks that wait for each other: it begins when all of them can run, and is refused if
    /// the device never has room for that many.
    #[must_use]
    pub fn cooperative(self) -> Self {
        Self { cooperative: true, ..self }
    }
}

/// Executor of kernels: a CUDA stream, or the emulator.
pub trait Launcher {
    /// Error of a launch that was refused or failed.
    type Error;

    /// Queues or runs one launch. Called by the `launch` functions that [`kernel!`](crate::kernel!) makes.
    ///
    /// `args` has one pointer per argument, to the value in the form that the device takes. `thread` makes the code of
    /// an emulated thread, including the arguments; without the feature `emulator` that code does nothing.
    ///
    /// # Safety
    /// `args` and `thread` belong to the kernel that `info` describes, and the kernel's own contract is kept until the
    /// launch has ended.
    unsafe fn launch_raw(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        args: &mut [*mut c_void],
        thread: &dyn Fn() -> ThreadBody,
    ) -> Result<(), Self::Error>;
}

/// Code of an emulated thread. It owns its arguments, so that a launch can run after the call that queued it.
#[cfg(not(target_arch = "nvptx64"))]
pub type ThreadBody = Box<dyn Fn() + Send + Sync>;
/// Placeholder: device code launches nothing.
#[cfg(target_arch = "nvptx64")]
pub type ThreadBody = ();

/// A type for which the kernel `K`, a `K<Self, …>`, has an entry: [`kernel!`](crate::kernel!) implements it for the
/// types after `for`.
///
/// A trait of a program's types bundles the kernels that it launches for them: `trait Width: Sized +
/// EntryOf<fill<Self>>`.
pub trait EntryOf<K>: Sized {
    /// The entry's name, module and launch bounds.
    const INFO: &'static KernelInfo;

    /// Launches the entry with these arguments.
    ///
    /// # Safety
    /// The kernel's own contract, until the launch has ended.
    unsafe fn launch<L: Launcher>(kernel: K, launcher: &L, config: LaunchConfig) -> Result<(), L::Error>;
}

/// Declares kernels.
///
/// ```
/// use warpset_simt::{GlobalMut, kernel, thread};
/// kernel! {
///     /// Sets `n` words to `value`.
///     ///
///     /// # Safety
///     /// - Launch: 1-D, any grid and block size, no shared memory.
///     /// - `words`: valid for `n` words; no other thread accesses them while the kernel runs.
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
/// On the device each kernel becomes a `ptx-kernel` entry whose parameters are the arguments, one by one; launch bounds
/// travel as the comment `// @launch_bounds 256 8` in its body, and the host inserts directives where it finds one. On
/// the host each kernel becomes a struct of its arguments with the constant `INFO: &KernelInfo` and the method
/// `launch(&launcher, config)`: `fill { words, value, n }.launch(&stream, config)`.
///
/// Arguments are `Copy`: numbers, [`Global`](crate::Global), [`GlobalMut`](crate::GlobalMut), and `repr(C)` structures
/// of numbers. A structure with a `Global` has another layout on the host, where a `Global` has a length.
/// `#[launch_bounds(max_threads)]` and `#[launch_bounds(max_threads, min_blocks)]` take literals.
///
/// A kernel for several types names them, and the entry of each. The host's struct is generic, and its types choose the
/// entry; see [`EntryOf`](crate::EntryOf).
///
/// ```
/// # use warpset_simt::{GlobalMut, kernel, thread};
/// use warpset_simt::emulator::{Config, Emulator};
/// use warpset_simt::{EntryOf, LaunchConfig};
/// kernel! {
///     /// Sets `n` words to `value`.
///     ///
///     /// # Safety
///     /// - Launch: 1-D, any grid and block size, no shared memory.
///     /// - `words`: valid for `n` words; no other thread accesses them while the kernel runs.
///     pub unsafe fn fill<T>(words: GlobalMut<T>, value: T, n: usize) for [u32 => fill_u32, u64 => fill_u64] {
///         for i in thread::grid_stride(n) {
///             // SAFETY: `i < n`.
///             unsafe { words.write(i, value) };
///         }
///     }
/// }
///
/// let emulator = Emulator::new(Config::default());
/// let words = emulator.buffer_from(&[1u64, 2, 3]);
/// // SAFETY: three words, of this function alone.
/// unsafe { fill { words: words.global_mut(), value: 7, n: 3 }.launch(&emulator, LaunchConfig::new(1, 32)) }.unwrap();
/// assert_eq!(words.to_vec(), [7, 7, 7]);
/// assert_eq!(<u64 as EntryOf<fill<u64>>>::INFO.name, "fill_u64");
/// ```
///
/// For several type parameters the types are in parentheses, `for [(u32, u64) => …]`, and the entries are those of the
/// first. An entry may have launch bounds of its own before its types. The body is compiled for each entry, with the
/// parameters as aliases: bounds are not written, and it may use items that only these types have.
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
    (@attributes $module_at:tt [$($meta:tt)*] $bounds:tt #[$($attribute:tt)*] $($rest:tt)+) => {
        $crate::kernel!(@attributes $module_at [$($meta)* #[$($attribute)*]] $bounds $($rest)+);
    };
    (@attributes $module_at:tt $meta:tt $bounds:tt
        pub unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*
    ) => {
        $crate::kernel_item!($module_at $meta $bounds $name ($($arg: $ty),*) $body);
        $crate::kernel!(@next $module_at $($rest)*);
    };
    (@attributes $module_at:tt $meta:tt $bounds:tt
        pub unsafe fn $name:ident<$($param:ident),+>($($arg:ident: $ty:ty),* $(,)?)
        for [$($entries:tt)+] $body:block $($rest:tt)*
    ) => {
        $crate::generic_kernel_item!($meta $name ($($param)+) ($($arg: $ty),*));
        $crate::kernel_entries!(
            { $module_at $bounds $name ($($param)+) ($($arg: $ty),*) $body } $($entries)+
        );
        $crate::kernel!(@next $module_at $($rest)*);
    };
    (#![module($at:expr)] #![no_bodies] $($rest:tt)*) => { $crate::kernel!(@next ($at, no_bodies) $($rest)*); };
    (#![module($at:expr)] $($rest:tt)*) => { $crate::kernel!(@next ($at) $($rest)*); };
    ($($rest:tt)+) => { $crate::kernel!(@next ($crate::macro_support::no_module) $($rest)+); };
}

/// The entries of a generic kernel, each with launch bounds of its own or the kernel's.
#[doc(hidden)]
#[macro_export]
macro_rules! kernel_entries {
    ($kernel:tt) => {};
    ({ $module_at:tt $bounds:tt $($kernel:tt)+ }
        #[launch_bounds($threads:literal)] $types:tt => $entry:ident $(, $($rest:tt)*)?
    ) => {
        $crate::kernel_entry!($module_at [$threads, 0] $types $entry $($kernel)+);
        $crate::kernel_entries!({ $module_at $bounds $($kernel)+ } $($($rest)*)?);
    };
    ({ $module_at:tt $bounds:tt $($kernel:tt)+ }
        #[launch_bounds($threads:literal, $blocks:literal)] $types:tt => $entry:ident $(, $($rest:tt)*)?
    ) => {
        $crate::kernel_entry!($module_at [$threads, $blocks] $types $entry $($kernel)+);
        $crate::kernel_entries!({ $module_at $bounds $($kernel)+ } $($($rest)*)?);
    };
    ({ $module_at:tt $bounds:tt $($kernel:tt)+ } $types:tt => $entry:ident $(, $($rest:tt)*)?) => {
        $crate::kernel_entry!($module_at $bounds $types $entry $($kernel)+);
        $crate::kernel_entries!({ $module_at $bounds $($kernel)+ } $($($rest)*)?);
    };
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
#[cfg(target_arch = "nvptx64")]
macro_rules! generic_kernel_item {
    ($($unused:tt)*) => {};
}

#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "nvptx64")]
macro_rules! kernel_entry {
    ($module_at:tt $bounds:tt $type:ident $entry:ident $($kernel:tt)+) => {
        $crate::kernel_entry!($module_at $bounds ($type) $entry $($kernel)+);
    };
    ($module_at:tt $bounds:tt ($($type:ty),+) $entry:ident $name:ident ($($param:ident)+) $args:tt $body:block) => {
        const _: () = {
            $(#[allow(dead_code)] type $param = $type;)+
            $crate::kernel_item!($module_at [] $bounds $entry $args $body);
        };
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! kernel_item {
    ($module_at:tt [$($meta:tt)*] $bounds:tt $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        $($meta)*
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy)]
        pub struct $name { $(pub $arg: $ty),* }

        impl $name {
            /// The kernel's name, PTX module and launch bounds.
            pub const INFO: &'static $crate::KernelInfo = $crate::kernel_info!($module_at $bounds $name);

            /// Launches the kernel.
            ///
            /// # Safety
            /// The kernel's own contract, until the launch has ended.
            pub unsafe fn launch<L: $crate::Launcher>(
                self,
                launcher: &L,
                config: $crate::LaunchConfig,
            ) -> ::core::result::Result<(), L::Error> {
                let Self { $($arg),* } = self;
                $crate::launch_entry!($module_at launcher, config, Self::INFO, ($($arg: $ty),*) $body)
            }
        }
    };
}

/// Name, module and launch bounds of one entry.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! kernel_info {
    (($module_at:expr $(, $no_bodies:ident)?) [$($threads:literal, $blocks:literal)?] $entry:ident) => {
        &$crate::KernelInfo {
            name: stringify!($entry),
            module: match ($module_at)(module_path!()) {
                Some(module) => module,
                None => &$crate::Module { name: $crate::macro_support::top_module(module_path!()), ptx: None, code: None },
            },
            launch_bounds: [
                $(Some($crate::LaunchBounds { max_threads: $threads, min_blocks: $blocks }),)?
                None,
            ][0],
        }
    };
}

/// Hands one entry with its arguments to a launcher, and its body for the emulator.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! launch_entry {
    ($module_at:tt $launcher:ident, $config:ident, $info:expr, ($($arg:ident: $ty:ty),*) $body:block) => {{
        $crate::emulated_thread!($module_at thread ($($arg: $ty),*) $body);
        $(let mut $arg = $arg;)*
        let mut args: [*mut ::core::ffi::c_void; { <[&str]>::len(&[$(stringify!($arg)),*]) }] =
            [$((&raw mut $arg).cast()),*];
        // SAFETY: one pointer per argument, in order, and the same arguments in `thread`; the caller keeps the kernel's
        // contract.
        unsafe { $launcher.launch_raw($info, $config, &mut args, &|| $crate::macro_support::Box::new(thread)) }
    }};
}

/// One emulated thread of an entry, as a closure.
#[doc(hidden)]
#[macro_export]
#[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
macro_rules! emulated_thread {
    (($module_at:expr) $thread:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        /// Runs the kernel's body.
        ///
        /// # Safety
        /// The kernel's own contract; to be called by an emulated thread.
        #[allow(clippy::too_many_arguments)]
        unsafe fn body($($arg: $ty),*) $body

        // SAFETY: the caller keeps the kernel's contract.
        let $thread = move || unsafe { body($($arg),*) };
    };
    (($module_at:expr, no_bodies) $thread:ident $args:tt $body:block) => {
        let $thread = || panic!("the kernel's crate was compiled without bodies: turn on its feature `emulator`");
    };
}

/// Nothing in place of an emulated thread: there is no emulator to run it.
#[doc(hidden)]
#[macro_export]
#[cfg(not(any(feature = "emulator", target_arch = "nvptx64")))]
macro_rules! emulated_thread {
    ($module_at:tt $thread:ident $args:tt $body:block) => {
        let $thread = || ();
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! generic_kernel_item {
    ([$($meta:tt)*] $name:ident ($first:ident $($param:ident)*) ($($arg:ident: $ty:ty),*)) => {
        $($meta)*
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy)]
        pub struct $name<$first $(, $param)*> { $(pub $arg: $ty),* }

        impl<$first: $crate::EntryOf<Self> $(, $param)*> $name<$first $(, $param)*> {
            /// The name, PTX module and launch bounds of the entry for these types.
            pub const INFO: &'static $crate::KernelInfo = <$first as $crate::EntryOf<Self>>::INFO;

            /// Launches the kernel's entry for these types.
            ///
            /// # Safety
            /// The kernel's own contract, until the launch has ended.
            pub unsafe fn launch<L: $crate::Launcher>(
                self,
                launcher: &L,
                config: $crate::LaunchConfig,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the caller keeps the kernel's contract.
                unsafe { <$first as $crate::EntryOf<Self>>::launch(self, launcher, config) }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! kernel_entry {
    ($module_at:tt $bounds:tt $type:ident $entry:ident $($kernel:tt)+) => {
        $crate::kernel_entry!($module_at $bounds ($type) $entry $($kernel)+);
    };
    ($module_at:tt $bounds:tt ($first_type:ty $(, $type:ty)*) $entry:ident
        $name:ident ($first:ident $($param:ident)*) ($($arg:ident: $ty:ty),*) $body:block
    ) => {
        const _: () = {
            #[allow(dead_code)]
            type $first = $first_type;
            $(#[allow(dead_code)] type $param = $type;)*
            impl $crate::EntryOf<$name<$first $(, $param)*>> for $first {
                const INFO: &'static $crate::KernelInfo = $crate::kernel_info!($module_at $bounds $entry);

                unsafe fn launch<L: $crate::Launcher>(
                    kernel: $name<$first $(, $param)*>,
                    launcher: &L,
                    config: $crate::LaunchConfig,
                ) -> ::core::result::Result<(), L::Error> {
                    let $name { $($arg),* } = kernel;
                    let info = <Self as $crate::EntryOf<$name<$first $(, $param)*>>>::INFO;
                    $crate::launch_entry!($module_at launcher, config, info, ($($arg: $ty),*) $body)
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covering_is_never_an_empty_grid() {
        assert_eq!(LaunchConfig::covering(0, 256).grid, Dim3::new(1, 1, 1));
        assert_eq!(LaunchConfig::covering(257, 256).grid, Dim3::new(2, 1, 1));
        assert_eq!(LaunchConfig::covering(usize::MAX, 1).grid.x, i32::MAX as u32);
    }
}
