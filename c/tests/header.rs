//! The header that the repository contains is the one that cbindgen makes of the sources.

use std::path::Path;

/// Makes the header of the sources.
fn generated() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate().expect("valid sources");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header).expect("the sources are UTF-8");
    // Names in backticks are Rust's habit.
    let lines: Vec<&str> = header.lines().map(str::trim_end).collect();
    lines.join("\n").replace('`', "") + "\n"
}

#[test]
fn header_is_generated() {
    let (path, header) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("include/warpset.h"), generated());
    if std::env::var_os("WARPSET_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).expect("include/ is writable");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == header, "the header is older than the sources: run this test with WARPSET_WRITE_HEADER=1");
    assert!(header.lines().count() <= 900, "the header has {} lines", header.lines().count());
}
