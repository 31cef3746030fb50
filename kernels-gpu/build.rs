//! Tells the crate whether device code lies beside its PTX, and compresses the PTX for the feature `compressed`.
//! `cargo xtask ptx --code` makes device code for packages; a checkout has none, and the driver compiles the PTX. Cargo
//! runs this again when any file of the package changes.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_device_code)");
    if std::path::Path::new("code").is_dir() {
        println!("cargo::rustc-cfg=has_device_code");
    }
    #[cfg(feature = "compressed")]
    compress().expect("the PTX is readable, and Cargo's output folder takes files");
}

#[cfg(feature = "compressed")]
fn compress() -> std::io::Result<()> {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    for file in std::fs::read_dir("ptx")? {
        let path = file?.path();
        let data = miniz_oxide::deflate::compress_to_vec_zlib(&std::fs::read(&path)?, 6);
        let name = path.file_stem().expect("a file of a folder has a name");
        std::fs::write(out.join(name).with_extension("zlib"), data)?;
    }
    Ok(())
}
