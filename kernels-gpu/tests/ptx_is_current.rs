//! The PTX that is checked in was made from the sources as they are.

use std::path::{Path, PathBuf};

use warpset_builder::Builder;

#[test]
fn ptx_matches_its_sources() {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let workspace = package.parent().unwrap_or(Path::new("."));
    let builder = Builder::new(&package).root(workspace);
    for module in warpset_kernels::MODULES {
        if let Err(why) = builder.check_stamp(module.ptx.unwrap_or_default()) {
            panic!("kernels-gpu/ptx/{}.ptx is stale: {why}; run `cargo xtask ptx` and commit it", module.name);
        }
    }
}

/// Device code that is older than its PTX is not loaded; it is made again before a release, by
/// `cargo xtask ptx --code`.
#[test]
#[cfg(all(feature = "all", feature = "papers"))] // with all modules
fn each_module_has_a_file_of_device_code_and_there_is_no_other() {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let files = std::fs::read_dir(package.join("code")).expect("the folder");
    let mut names: Vec<_> =
        files.map(|file| file.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    let mut modules: Vec<_> = warpset_kernels::MODULES.iter().map(|module| format!("{}.fatbin", module.name)).collect();
    modules.sort();
    assert_eq!(names, modules);
}
