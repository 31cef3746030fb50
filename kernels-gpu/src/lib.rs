//! Device kernels of Warpset, one folder per structure: indexing and memory accesses here, arithmetic in
//! `warpset-core`.
//!
//! The crate is compiled twice. For the host it is an ordinary library with all modules: the kernels run in the
//! emulator, and carry their PTX and device code ([`MODULES`]). For `nvptx64-nvidia-cuda`, `cargo xtask ptx` compiles
//! it once per module, with `--cfg warpset_module="<module>" --cfg warpset_folder="<folder>"`, and writes
//! `ptx/<module>.ptx`.
//!
//! A module's name is its path with `_` for `::`: `bloom::blocked` is `bloom_blocked`, and its folder is `bloom`. A new
//! module is its `mod` with its `cfg` here, a name in [`MODULES`], and an empty file each in `ptx/` and `code/` until
//! the first build. Files of a folder without kernels of their own are compiled for all modules of the
//! folder. Files of device code stay empty for modules that `cargo xtask ptx` names as such: a registry takes 10 MiB.
//!
//! Any release may change kernels, their arguments and their modules. Items that other crates re-export, the types that
//! kernels query filters with, and `operators` follow the promise of `warpset`.
//!
//! This file and `modules` contain nothing that reaches the PTX, so the stamps of the PTX do not cover them: a new
//! module leaves the PTX of the others valid.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]
// Most modules use only a part of the shared code.
#![cfg_attr(target_arch = "nvptx64", allow(dead_code, unused_features, unused_imports, unused_macros))]
// Constants and imports that only bodies use, which the host compiles for the emulator.
#![cfg_attr(not(feature = "emulator"), allow(dead_code, unused_imports, unused_macros))]
// Kernels take all data as arguments, and index register arrays by loop variables, which unroll.
#![allow(clippy::manual_is_multiple_of, clippy::needless_range_loop, clippy::too_many_arguments)]

/// Declares kernels like [`warpset_simt::kernel!`], with the PTX of this crate, also in macros of this crate.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "bodies")]
macro_rules! kernel {
    (#![module($at:expr)] $($kernels:tt)*) => { $crate::simt::kernel! { #![module($at)] $($kernels)* } };
    ($($kernels:tt)*) => { $crate::simt::kernel! { #![module($crate::module_at)] $($kernels)* } };
}

/// The macro for kernels without the feature `bodies`.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "bodies"))]
macro_rules! kernel {
    (#![module($at:expr)] $($kernels:tt)*) => { $crate::simt::kernel! { #![module($at)] #![no_bodies] $($kernels)* } };
    ($($kernels:tt)*) => { $crate::simt::kernel! { #![module($crate::module_at)] #![no_bodies] $($kernels)* } };
}

/// Kernels for batches of keys, for several structures: hashes, strings, and the forms of the answers.
pub mod batch {
    #[cfg(feature = "bodies")]
    pub mod hash128;
    pub mod keys;
    pub mod results;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "batch_stencil"))]
    pub mod stencil;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "batch_strings"))]
    pub mod strings;
}

/// Bloom filters.
#[cfg(any(feature = "bloom", warpset_folder = "bloom", feature = "filters"))]
pub mod bloom {
    pub mod batch_partition;
    pub mod claims;
    #[cfg(any(
        not(target_arch = "nvptx64"),
        warpset_module = "bloom_blocked",
        warpset_module = "bloom_split_block",
        feature = "filters"
    ))]
    pub mod device_query;
    pub mod recent_hashes;
    pub mod sectors;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_blocked"))]
    pub mod blocked;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_partition"))]
    pub mod partition;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_rao"))]
    pub mod rao;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_sectors_narrow"))]
    pub mod sectors_narrow;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_sectors_wide"))]
    pub mod sectors_wide;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_split_block"))]
    pub mod split_block;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "bloom_words"))]
    pub mod words;
}

/// Binary fuse filters and static functions.
#[cfg(any(feature = "fuse", warpset_folder = "fuse", feature = "filters"))]
pub mod fuse {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_values", feature = "filters"))]
    pub mod device_query;
    pub mod slot;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_graph"))]
    pub mod graph;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_keys"))]
    pub mod keys;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_lookup"))]
    pub mod lookup;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_shards"))]
    pub mod shards;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "fuse_values"))]
    pub mod values;
}

/// K-mers.
#[cfg(any(feature = "kmers", warpset_folder = "kmers"))]
pub mod kmers {
    pub mod cut;
    pub mod number;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "kmers_letters"))]
    pub mod letters;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "kmers_lookup"))]
    pub mod lookup;
}

/// Log-structured merge trees.
#[cfg(any(feature = "lsm", warpset_folder = "lsm"))]
pub mod lsm {
    pub mod groups;
    pub mod levels;
    pub mod nodes;
    pub mod order;
    pub mod short;
    pub mod table;
    pub mod visibility;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_batch"))]
    pub mod batch;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_copies"))]
    pub mod copies;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_count"))]
    pub mod count;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_derive"))]
    pub mod derive;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_flipped"))]
    pub mod flipped;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_list"))]
    pub mod list;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_lookup"))]
    pub mod lookup;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_neighbours"))]
    pub mod neighbours;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_ordering"))]
    pub mod ordering;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_rows"))]
    pub mod rows;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_spans"))]
    pub mod spans;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "lsm_visible"))]
    pub mod visible;
}

/// Quotient filters.
#[cfg(any(feature = "quotient", warpset_folder = "quotient", feature = "filters"))]
pub mod quotient {
    #[cfg(feature = "bodies")]
    pub mod answers;
    #[cfg(feature = "bodies")]
    pub mod keys;
    pub mod layout;
    pub mod memory;

    /// Kernels for the slots of the standard quotient filter.
    pub mod standard {
        #[cfg(feature = "bodies")]
        pub mod change;
        pub mod windows;

        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_standard_build"))]
        pub mod build;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_standard_extract"))]
        pub mod extract;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_standard_lookup"))]
        pub mod lookup;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_standard_update"))]
        pub mod update;
    }

    /// Kernels for the slots of the rank-and-select quotient filter.
    pub mod rank_select {
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_maplet", feature = "filters"))]
        pub mod combine;
        #[cfg(any(not(target_arch = "nvptx64"), feature = "filters"))]
        pub mod device_query;
        pub mod extract_tile;
        pub mod form;
        #[cfg(feature = "bodies")]
        pub mod runs;
        pub mod search;

        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_build"))]
        pub mod build;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_counted"))]
        pub mod counted;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_extract"))]
        pub mod extract;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_in_place"))]
        pub mod in_place;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_lookup"))]
        pub mod lookup;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_maplet"))]
        pub mod maplet;
        #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_rebuild"))]
        pub mod rebuild;
    }

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_counts"))]
    pub mod counts;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_exact"))]
    pub mod exact;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_fingerprints"))]
    pub mod fingerprints;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_lookup"))]
    pub mod lookup;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_parts"))]
    pub mod parts;
}

/// Device-wide building blocks: scans, reductions, sorting, selection, merging.
#[cfg(any(
    not(target_arch = "nvptx64"),
    warpset_folder = "primitives",
    warpset_folder = "lsm",
    warpset_module = "quotient_counts",
    feature = "operators"
))]
pub mod primitives {
    pub mod block_sort;
    pub mod merge_path;
    pub mod onesweep_tile;
    pub mod predicate;
    pub mod ranking;
    pub mod tile_shape;
    pub mod warp_tile;

    #[cfg(any(
        not(target_arch = "nvptx64"),
        warpset_module = "primitives_by_key",
        warpset_module = "quotient_counts",
        feature = "operators"
    ))]
    pub mod by_key;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_exchange"))]
    pub mod exchange;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_merge"))]
    pub mod merge;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_merge_many"))]
    pub mod merge_many;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_non_associative"))]
    pub mod non_associative;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_radix"))]
    pub mod radix;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_radix_sort"))]
    pub mod radix_sort;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_reduce", feature = "operators"))]
    pub mod reduce;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_resident_sort"))]
    pub mod resident_sort;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_scan", feature = "operators"))]
    pub mod scan;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_segmented_sort"))]
    pub mod segmented_sort;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_select"))]
    pub mod select;
}

/// Minimal perfect hash functions whose tasks share the bits of a bucket.
#[cfg(any(feature = "recsplit", warpset_folder = "consensus"))]
pub mod consensus {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_lookup"))]
    pub mod lookup;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_search"))]
    pub mod search;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_sizes"))]
    pub mod sizes;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_search"))]
    pub mod slot;
    #[cfg(feature = "bodies")]
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_search"))]
    pub mod solve;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "consensus_search"))]
    pub mod tree;
}

/// Minimal perfect hash functions with a seed per few keys.
#[cfg(any(feature = "recsplit", warpset_folder = "placement"))]
pub mod placement {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "placement_lookup"))]
    pub mod lookup;
}

/// Minimal perfect hash functions, and what all of their kinds share.
#[cfg(any(
    feature = "recsplit",
    warpset_folder = "recsplit",
    warpset_folder = "consensus",
    warpset_folder = "placement"
))]
pub mod recsplit {
    #[cfg(feature = "bodies")]
    pub mod memory;

    #[cfg(feature = "bodies")]
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod append;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod node_keys;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod nodes;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod queue;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod rotation_groups;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_folder = "recsplit"))]
    pub mod rotation_match;

    #[cfg(any(
        not(target_arch = "nvptx64"),
        warpset_module = "recsplit_lookup",
        warpset_module = "consensus_lookup",
        warpset_module = "placement_lookup"
    ))]
    pub mod answers;
    #[cfg(feature = "bodies")]
    #[cfg(any(
        not(target_arch = "nvptx64"),
        warpset_module = "recsplit_lookup",
        warpset_module = "consensus_lookup",
        warpset_module = "placement_lookup"
    ))]
    pub mod device_words;

    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_binary_splittings"))]
    pub mod binary_splittings;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_buckets"))]
    pub mod buckets;
    #[cfg(feature = "bodies")]
    #[cfg(any(
        not(target_arch = "nvptx64"),
        warpset_module = "recsplit_lookup",
        warpset_module = "consensus_lookup",
        warpset_module = "placement_lookup"
    ))]
    pub mod device_function;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_distribute"))]
    pub mod distribute;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_encode"))]
    pub mod encode;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_fingerprints"))]
    pub mod fingerprints;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_join"))]
    pub mod join;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_leaves"))]
    pub mod leaves;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_lists"))]
    pub mod lists;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_lookup"))]
    pub mod lookup;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_packed_splittings"))]
    pub mod packed_splittings;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_roots"))]
    pub mod roots;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_rotated_leaves"))]
    pub mod rotated_leaves;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_rotated_splittings"))]
    pub mod rotated_splittings;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "recsplit_two_group_leaves"))]
    pub mod two_group_leaves;
}

/// Sequences: minimizers, decisions on reads, filters.
#[cfg(any(feature = "sequence", warpset_folder = "sequence"))]
pub mod sequence {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "sequence_filter"))]
    pub mod filter;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "sequence_minimizers"))]
    pub mod minimizers;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "sequence_screen"))]
    pub mod screen;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "sequence_filter"))]
    pub mod tile;
}

/// Range filters.
#[cfg(any(feature = "range", warpset_folder = "range"))]
pub mod range {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "range_filter"))]
    pub mod filter;
}

/// Exact static sets and maps.
#[cfg(any(feature = "static", warpset_folder = "static"))]
pub mod static_set {
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "static_set_build"))]
    pub mod build;
    #[cfg(any(not(target_arch = "nvptx64"), warpset_module = "static_set_lookup"))]
    pub mod lookup;
}

#[cfg(any(feature = "all", warpset_module = "limits"))]
pub mod limits;
#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "selftest"))]
pub mod selftest;

// Operations of a warp or a block, for every structure.
pub mod block;
pub mod look_back;

#[cfg(not(target_arch = "nvptx64"))]
mod modules;
#[cfg(not(target_arch = "nvptx64"))]
pub use modules::{MODULES, module_at};

// Names that macros for kernels use.
#[doc(hidden)]
pub use warpset_core::scan as operators;
#[doc(hidden)]
pub use warpset_simt as simt;
