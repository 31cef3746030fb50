//! The PTX that is checked in was made from the sources as they are.

use std::path::{Path, PathBuf};

use warpset_builder::Builder;
use warpset_simt::Ptx;

#[test]
fn ptx_matches_its_sources() {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let workspace = package.parent().unwrap_or(Path::new("."));
    let builder = Builder::new(&package).root(workspace);
    for module in warpset_kernels::MODULES {
        if let Err(why) = builder.check_stamp(&module.ptx.map(Ptx::text).unwrap_or_default()) {
            panic!("kernels-gpu/ptx/{}.ptx is stale: {why}; run `cargo xtask ptx` and commit it", module.name);
        }
    }
}

/// Checks device code, which `cargo xtask ptx --code` makes for packages. Code older than its PTX is not loaded.
#[test]
#[cfg(feature = "all")] // with all modules
fn device_code_is_of_all_modules_or_of_none() {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let Ok(files) = std::fs::read_dir(package.join("code")) else { return };
    let mut names: Vec<_> =
        files.map(|file| file.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    let mut modules: Vec<_> = warpset_kernels::MODULES.iter().map(|module| format!("{}.fatbin", module.name)).collect();
    modules.sort();
    assert_eq!(names, modules);
}
