//! The PTX that is checked in was made from the sources as they are, and the device code from the PTX.

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

#[test]
fn device_code_was_made_from_the_ptx() {
    let package: PathBuf =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let mut files = 0;
    for module in warpset_kernels::MODULES {
        let file = format!("code/{}.fatbin", module.name);
        let code = std::fs::read(package.join(&file)).unwrap_or_else(|error| panic!("kernels-gpu/{file}: {error}"));
        let ptx = module.ptx.unwrap_or_default();
        assert!(
            warpset_builder::is_made_from(&code, ptx),
            "kernels-gpu/{file} was not made from the PTX beside it; run `cargo xtask ptx` where NVIDIA's tools are, and commit it"
        );
        files += 1;
    }
    let there = std::fs::read_dir(package.join("code")).expect("the folder").count();
    assert_eq!(there, files, "files of modules that are gone lie in kernels-gpu/code");
}
