//! The modules of kernels with their PTX and device code, which the host carries.

/// Bytes where the driver may read their header as words.
#[cfg(all(feature = "device-code", has_device_code))]
#[repr(C, align(16))]
struct Aligned<Bytes: ?Sized>(Bytes);

/// The device code of a module.
#[cfg(all(feature = "device-code", has_device_code))]
macro_rules! device_code {
    ($name:literal) => {{
        static CODE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!("../code/", $name, ".fatbin")));
        Some(&CODE.0)
    }};
}
#[cfg(not(all(feature = "device-code", has_device_code)))]
macro_rules! device_code {
    ($name:literal) => {
        None
    };
}

#[cfg(feature = "compressed")]
macro_rules! ptx {
    ($name:literal) => {
        warpset_simt::Ptx::Compressed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zlib")))
    };
}
#[cfg(not(feature = "compressed"))]
macro_rules! ptx {
    ($name:literal) => {
        warpset_simt::Ptx::Text(include_str!(concat!("../ptx/", $name, ".ptx")))
    };
}

macro_rules! modules {
    ($(#[$folder:meta] [$($name:literal,)*])*) => {
        /// Every module that has kernels, with its PTX and device code. For tools and tests: a program that names this
        /// holds those of all modules, while a kernel's `INFO` refers to those of its own module only.
        pub const MODULES: &[&warpset_simt::Module] = &[$($(#[$folder] {
            static MODULE: warpset_simt::Module = warpset_simt::Module {
                name: $name,
                ptx: Some(ptx!($name)),
                code: device_code!($name),
            };
            &MODULE
        },)*)*];
    };
}
modules! {
    #[cfg(all())] [
        "batch_stencil",
        "batch_strings",
    ]
    #[cfg(feature = "bloom")] [
        "bloom_blocked",
        "bloom_partition",
        "bloom_rao",
        "bloom_sectors_narrow",
        "bloom_sectors_wide",
        "bloom_split_block",
        "bloom_words",
    ]
    #[cfg(feature = "recsplit")] [
        "consensus_lookup",
        "consensus_search",
        "consensus_sizes",
    ]
    #[cfg(feature = "fuse")] [
        "fuse_graph",
        "fuse_keys",
        "fuse_lookup",
        "fuse_shards",
        "fuse_values",
    ]
    #[cfg(feature = "kmers")] [
        "kmers_letters",
        "kmers_lookup",
    ]
    #[cfg(feature = "all")] [
        "limits",
    ]
    #[cfg(feature = "lsm")] [
        "lsm_batch",
        "lsm_copies",
        "lsm_count",
        "lsm_derive",
        "lsm_flipped",
        "lsm_list",
        "lsm_lookup",
        "lsm_neighbours",
        "lsm_ordering",
        "lsm_rows",
        "lsm_spans",
        "lsm_visible",
    ]
    #[cfg(feature = "recsplit")] [
        "placement_lookup",
    ]
    #[cfg(all())] [
        "primitives_by_key",
        "primitives_exchange",
        "primitives_merge",
        "primitives_merge_many",
        "primitives_non_associative",
        "primitives_radix",
        "primitives_radix_sort",
        "primitives_reduce",
        "primitives_resident_sort",
        "primitives_scan",
        "primitives_segmented_sort",
        "primitives_select",
    ]
    #[cfg(feature = "quotient")] [
        "quotient_counts",
        "quotient_exact",
        "quotient_fingerprints",
        "quotient_lookup",
        "quotient_parts",
        "quotient_rank_select_build",
        "quotient_rank_select_counted",
        "quotient_rank_select_extract",
        "quotient_rank_select_in_place",
        "quotient_rank_select_lookup",
        "quotient_rank_select_maplet",
        "quotient_rank_select_rebuild",
        "quotient_standard_build",
        "quotient_standard_extract",
        "quotient_standard_lookup",
        "quotient_standard_update",
    ]
    #[cfg(feature = "range")] [
        "range_filter",
    ]
    #[cfg(feature = "recsplit")] [
        "recsplit_binary_splittings",
        "recsplit_buckets",
        "recsplit_distribute",
        "recsplit_encode",
        "recsplit_fingerprints",
        "recsplit_join",
        "recsplit_leaves",
        "recsplit_lists",
        "recsplit_lookup",
        "recsplit_packed_splittings",
        "recsplit_roots",
        "recsplit_rotated_leaves",
        "recsplit_rotated_splittings",
        "recsplit_two_group_leaves",
    ]
    #[cfg(all())] [
        "selftest",
    ]
    #[cfg(feature = "sequence")] [
        "sequence_filter",
        "sequence_minimizers",
        "sequence_screen",
    ]
    #[cfg(feature = "static")] [
        "static_set_build",
        "static_set_lookup",
    ]
}

/// Returns the module of this crate that contains a path, if any.
#[doc(hidden)]
pub const fn module_at(path: &str) -> Option<&'static warpset_simt::Module> {
    warpset_simt::Module::find(MODULES, env!("CARGO_CRATE_NAME"), path)
}

#[cfg(all(test, feature = "all"))]
mod tests {
    use super::MODULES;

    #[test]
    fn the_table_names_the_modules_that_are_declared() {
        let text = include_str!("lib.rs");
        // Only in the conditions of modules: here the name would not begin with a letter.
        let mut declared: Vec<_> = text
            .split("warpset_module = \"")
            .skip(1)
            .map(|rest| rest.split('"').next().expect("the name ends"))
            .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
            .collect();
        declared.sort_unstable();
        declared.dedup(); // some modules need another's as well
        assert_eq!(MODULES.iter().map(|module| module.name).collect::<Vec<_>>(), declared);
    }
}
