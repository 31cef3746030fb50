//! Tells the crate whether device code lies beside its PTX. `cargo xtask ptx --code` makes it for packages; a checkout
//! has none, and the driver compiles the PTX. Cargo runs this again when any file of the package changes.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_device_code)");
    if std::path::Path::new("code").is_dir() {
        println!("cargo::rustc-cfg=has_device_code");
    }
}
