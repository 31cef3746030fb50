//! Every device kernel of Warpset, one module a structure: indexing and memory here, arithmetic in `warpset-core`.
//!
//! The crate is compiled twice. For the host it is an ordinary library with all modules: the kernels run in the
//! emulator, and [`ptx`] hands out their PTX. For `nvptx64-nvidia-cuda`, `cargo xtask ptx` compiles it once a module,
//! with the Cargo feature of the module's name, and writes `ptx/<module>.ptx`.
//!
//! This file declares modules and holds nothing that reaches the PTX, so it is not part of what the PTX is stamped
//! with: a new module leaves the PTX of the others valid.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, stdarch_nvptx))]
// Kernels take what they need as arguments, and index register arrays by loop variables, which unroll.
#![allow(clippy::manual_is_multiple_of, clippy::needless_range_loop, clippy::too_many_arguments)]

#[cfg(any(not(target_arch = "nvptx64"), feature = "selftest"))]
pub mod selftest;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod launch_bounds;
#[cfg(not(target_arch = "nvptx64"))]
pub mod stamp;

// What several modules of kernels use. Only the PTX of those that do is stamped with a file that names its users here.
#[cfg(any(
    not(target_arch = "nvptx64"),
    feature = "by_key",
    feature = "quotient_build",
    feature = "quotient_extract",
    feature = "quotient_lookup",
    feature = "quotient_paper_builds",
    feature = "quotient_standard",
    feature = "quotient_update",
    feature = "radix",
    feature = "radix_sort",
    feature = "reduce",
    feature = "scan",
    feature = "segmented_sort",
    feature = "select"
))]
pub mod block;
#[cfg(any(not(target_arch = "nvptx64"), feature = "radix_sort", feature = "segmented_sort"))]
pub mod block_sort;
pub mod claims;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_cut_narrow", feature = "bloom_cut_wide"))]
pub mod cut;
pub mod keys;
#[cfg(any(
    not(target_arch = "nvptx64"),
    feature = "by_key",
    feature = "quotient_build",
    feature = "quotient_extract",
    feature = "quotient_lookup",
    feature = "quotient_paper_builds",
    feature = "quotient_standard",
    feature = "quotient_update",
    feature = "radix",
    feature = "radix_sort",
    feature = "reduce",
    feature = "scan",
    feature = "segmented_sort",
    feature = "select"
))]
pub mod look_back;
#[cfg(any(not(target_arch = "nvptx64"), feature = "merge"))]
pub mod merge_path;
#[cfg(any(not(target_arch = "nvptx64"), feature = "select"))]
pub mod predicate;
#[cfg(any(
    not(target_arch = "nvptx64"),
    feature = "quotient_build",
    feature = "quotient_extract",
    feature = "quotient_lookup",
    feature = "quotient_paper_builds",
    feature = "quotient_standard",
    feature = "quotient_update"
))]
pub mod quotient_memory;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_lookup", feature = "quotient_standard"))]
pub mod quotient_windows;
#[cfg(any(not(target_arch = "nvptx64"), feature = "radix", feature = "radix_sort", feature = "segmented_sort"))]
pub mod ranking;
pub mod results;
#[cfg(any(not(target_arch = "nvptx64"), feature = "merge", feature = "select"))]
pub mod shape;
#[cfg(any(not(target_arch = "nvptx64"), feature = "radix_sort", feature = "segmented_sort"))]
pub mod tile;
#[cfg(any(not(target_arch = "nvptx64"), feature = "scan", feature = "reduce", feature = "by_key"))]
pub mod warp_tile;

// What macros that make kernels name.
#[doc(hidden)]
pub use warpset_core::scan as operators;
#[doc(hidden)]
pub use warpset_simt as simt;

#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_blocked"))]
pub mod bloom_blocked;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_cut_narrow"))]
pub mod bloom_cut_narrow;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_cut_wide"))]
pub mod bloom_cut_wide;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_rao"))]
pub mod bloom_rao;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_split_block"))]
pub mod bloom_split_block;
#[cfg(any(not(target_arch = "nvptx64"), feature = "bloom_words"))]
pub mod bloom_words;
#[cfg(any(not(target_arch = "nvptx64"), feature = "by_key"))]
pub mod by_key;
#[cfg(any(not(target_arch = "nvptx64"), feature = "limits"))]
pub mod limits;
#[cfg(any(not(target_arch = "nvptx64"), feature = "merge"))]
pub mod merge;
#[cfg(any(not(target_arch = "nvptx64"), feature = "non_associative"))]
pub mod non_associative;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_build"))]
pub mod quotient_build;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_extract"))]
pub mod quotient_extract;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_lookup"))]
pub mod quotient_lookup;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_paper_builds"))]
pub mod quotient_paper_builds;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_standard"))]
pub mod quotient_standard;
#[cfg(any(not(target_arch = "nvptx64"), feature = "quotient_update"))]
pub mod quotient_update;
#[cfg(any(not(target_arch = "nvptx64"), feature = "radix"))]
pub mod radix;
#[cfg(any(not(target_arch = "nvptx64"), feature = "radix_sort"))]
pub mod radix_sort;
#[cfg(any(not(target_arch = "nvptx64"), feature = "reduce"))]
pub mod reduce;
#[cfg(any(not(target_arch = "nvptx64"), feature = "scan"))]
pub mod scan;
#[cfg(any(not(target_arch = "nvptx64"), feature = "segmented_sort"))]
pub mod segmented_sort;
#[cfg(any(not(target_arch = "nvptx64"), feature = "select"))]
pub mod select;
#[cfg(any(not(target_arch = "nvptx64"), feature = "strings"))]
pub mod strings;

#[cfg(not(target_arch = "nvptx64"))]
pub use launch_bounds::with_launch_bounds;

/// The PTX of every kernel in `module`, as `cargo xtask ptx` made it; `None` if there is no such module.
#[cfg(not(target_arch = "nvptx64"))]
pub fn ptx(module: &str) -> Option<&'static str> {
    MODULES.iter().find(|(name, _)| *name == module).map(|(_, text)| *text)
}

/// Every module that has kernels, with its PTX.
///
/// A new module is a line in this table, a feature in `Cargo.toml`, a `mod` above and, until `cargo xtask ptx` has
/// written it, an empty file in `ptx/`.
#[cfg(not(target_arch = "nvptx64"))]
pub const MODULES: &[(&str, &str)] = &[
    ("bloom_blocked", include_str!("../ptx/bloom_blocked.ptx")),
    ("bloom_cut_narrow", include_str!("../ptx/bloom_cut_narrow.ptx")),
    ("bloom_cut_wide", include_str!("../ptx/bloom_cut_wide.ptx")),
    ("bloom_rao", include_str!("../ptx/bloom_rao.ptx")),
    ("bloom_split_block", include_str!("../ptx/bloom_split_block.ptx")),
    ("bloom_words", include_str!("../ptx/bloom_words.ptx")),
    ("by_key", include_str!("../ptx/by_key.ptx")),
    ("limits", include_str!("../ptx/limits.ptx")),
    ("non_associative", include_str!("../ptx/non_associative.ptx")),
    ("merge", include_str!("../ptx/merge.ptx")),
    ("quotient_build", include_str!("../ptx/quotient_build.ptx")),
    ("quotient_extract", include_str!("../ptx/quotient_extract.ptx")),
    ("quotient_lookup", include_str!("../ptx/quotient_lookup.ptx")),
    ("quotient_paper_builds", include_str!("../ptx/quotient_paper_builds.ptx")),
    ("quotient_standard", include_str!("../ptx/quotient_standard.ptx")),
    ("quotient_update", include_str!("../ptx/quotient_update.ptx")),
    ("radix", include_str!("../ptx/radix.ptx")),
    ("radix_sort", include_str!("../ptx/radix_sort.ptx")),
    ("reduce", include_str!("../ptx/reduce.ptx")),
    ("scan", include_str!("../ptx/scan.ptx")),
    ("segmented_sort", include_str!("../ptx/segmented_sort.ptx")),
    ("select", include_str!("../ptx/select.ptx")),
    ("selftest", include_str!("../ptx/selftest.ptx")),
    ("strings", include_str!("../ptx/strings.ptx")),
];
