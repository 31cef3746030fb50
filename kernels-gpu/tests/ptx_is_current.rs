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
