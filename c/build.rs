//! Names the shared library by its binary interface, so that a program loads the one that it was linked with.

fn main() {
    println!("cargo::rerun-if-changed=include/warpset.h");
    let header = std::fs::read_to_string("include/warpset.h").unwrap_or_default();
    let version = header.lines().find_map(|line| line.strip_prefix("#define WARPSET_ABI_VERSION "));
    if let (Ok("linux"), Some(version)) = (std::env::var("CARGO_CFG_TARGET_OS").as_deref(), version) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwarpset.so.{version}");
    }
}
