//! The kernels of each width of fingerprints.

use warpset_gpu::{GpuError, LaunchConfig, Stream};
use warpset_kernels::quotient::build;
use warpset_kernels::quotient::extract;
use warpset_kernels::quotient::paper_builds as paper;
use warpset_primitives::non_associative::{NextSlot, NonAssociativeKernels};
use warpset_primitives::{select, sort};
use warpset_simt::{Global, GlobalMut};

/// Fingerprints, and their slots, in 32 or 64 bits, and the kernels for them. Each method launches one.
pub(super) trait Width: sort::Key + select::Item {
    /// Items of a tile of the layout.
    const TILE: usize;
    /// The most that are laid out at once.
    const MOST: usize;
    /// The paper's scan, over slots of this width.
    type NextSlot: NonAssociativeKernels<Item = Self, Value = Self>;

    /// As 64 bits.
    fn wide(self) -> u64;

    #[allow(clippy::too_many_arguments)]
    unsafe fn hash(
        stream: &Stream,
        config: LaunchConfig,
        keys: Global<u64>,
        kind: u32,
        spread: u64,
        n: usize,
        parameters: u32,
        out: GlobalMut<Self>,
    ) -> Result<(), GpuError>;

    #[allow(clippy::too_many_arguments)]
    unsafe fn build(
        stream: &Stream,
        config: LaunchConfig,
        fingerprints: Global<Self>,
        n: usize,
        parameters: u32,
        slots: u64,
        look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>,
        words: GlobalMut<u64>,
        totals: GlobalMut<u64>,
    ) -> Result<(), GpuError>;

    #[allow(clippy::too_many_arguments)]
    unsafe fn extract(
        stream: &Stream,
        config: LaunchConfig,
        words: Global<u64>,
        slots: u64,
        parameters: u32,
        dropped: u32,
        look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>,
        out: GlobalMut<Self>,
        n: u64,
    ) -> Result<(), GpuError>;

    #[allow(clippy::too_many_arguments)]
    unsafe fn equals(
        stream: &Stream,
        config: LaunchConfig,
        a: Global<Self>,
        a_len: usize,
        b: Global<Self>,
        b_len: usize,
        equal: u32,
        form: u32,
        out: GlobalMut<u64>,
    ) -> Result<(), GpuError>;

    unsafe fn quotients(
        stream: &Stream,
        config: LaunchConfig,
        fingerprints: Global<Self>,
        n: usize,
        parameters: u32,
        out: GlobalMut<Self>,
    ) -> Result<(), GpuError>;

    unsafe fn starts(
        stream: &Stream,
        config: LaunchConfig,
        fingerprints: Global<Self>,
        n: usize,
        parameters: u32,
        segments: usize,
        starts: GlobalMut<u64>,
    ) -> Result<(), GpuError>;

    #[allow(clippy::too_many_arguments)]
    unsafe fn layout(
        stream: &Stream,
        config: LaunchConfig,
        fingerprints: Global<Self>,
        parameters: u32,
        starts: Global<u64>,
        segments: usize,
        incoming: Global<u64>,
        outgoing: GlobalMut<u64>,
        change: GlobalMut<u32>,
        slots: GlobalMut<Self>,
        last_round: u32,
    ) -> Result<(), GpuError>;

    #[allow(clippy::too_many_arguments)]
    unsafe fn write(
        stream: &Stream,
        config: LaunchConfig,
        fingerprints: Global<Self>,
        slots: Global<Self>,
        n: usize,
        parameters: u32,
        words: GlobalMut<u64>,
    ) -> Result<(), GpuError>;
}

/// A method that launches this kernel.
macro_rules! launches {
    ($($method:ident = $module:ident::$kernel:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[inline]
        unsafe fn $method(stream: &Stream, config: LaunchConfig, $($arg: $ty),*) -> Result<(), GpuError> {
            // SAFETY: the caller keeps the kernel's contract.
            unsafe { $module::$kernel::launch(stream, config, $($arg),*) }
        }
    )*};
}

macro_rules! widths {
    ($($word:ty, $tile:ident, $most:expr, $hash:ident $build:ident $extract:ident $equals:ident $quotients:ident
        $starts:ident $layout:ident $write:ident;)*) => {$(
        impl Width for $word {
            const TILE: usize = build::$tile;
            const MOST: usize = $most;
            type NextSlot = NextSlot<$word>;

            fn wide(self) -> u64 {
                self as u64
            }

            launches! {
                hash = build::$hash(
                    keys: Global<u64>, kind: u32, spread: u64, n: usize, parameters: u32, out: GlobalMut<$word>
                );
                build = build::$build(
                    fingerprints: Global<$word>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
                    ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>
                );
                extract = extract::$extract(
                    words: Global<u64>, slots: u64, parameters: u32, dropped: u32, look_back: GlobalMut<u64>,
                    ticket: GlobalMut<u32>, out: GlobalMut<$word>, n: u64
                );
                equals = extract::$equals(
                    a: Global<$word>, a_len: usize, b: Global<$word>, b_len: usize, equal: u32, form: u32,
                    out: GlobalMut<u64>
                );
                quotients = paper::$quotients(
                    fingerprints: Global<$word>, n: usize, parameters: u32, out: GlobalMut<$word>
                );
                starts = paper::$starts(
                    fingerprints: Global<$word>, n: usize, parameters: u32, segments: usize, starts: GlobalMut<u64>
                );
                layout = paper::$layout(
                    fingerprints: Global<$word>, parameters: u32, starts: Global<u64>, segments: usize,
                    incoming: Global<u64>, outgoing: GlobalMut<u64>, change: GlobalMut<u32>, slots: GlobalMut<$word>,
                    last_round: u32
                );
                write = paper::$write(
                    fingerprints: Global<$word>, slots: Global<$word>, n: usize, parameters: u32,
                    words: GlobalMut<u64>
                );
            }
        }
    )*};
}
widths! {
    u32, TILE_U32, build::MOST_U32, quotient_fingerprints_u32 quotient_build_u32 quotient_extract_u32
        quotient_equals_u32 quotient_quotients_u32 quotient_starts_u32 quotient_layout_u32 quotient_write_u32;
    u64, TILE_U64, usize::MAX, quotient_fingerprints_u64 quotient_build_u64 quotient_extract_u64
        quotient_equals_u64 quotient_quotients_u64 quotient_starts_u64 quotient_layout_u64 quotient_write_u64;
}
