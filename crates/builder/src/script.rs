//! Messages between Cargo and a build script.

use std::{env, path::PathBuf};

use crate::{Error, assemble, builder::PTX_VARIABLE, toolchain};

/// Returns the folder for a build script's output; `None` outside of one.
pub(crate) fn out_dir() -> Option<PathBuf> {
    env::var_os("OUT_DIR").map(PathBuf::from)
}

/// Whether the environment requests a new build.
pub(crate) fn asked_to_compile() -> Result<bool, Error> {
    match env::var(PTX_VARIABLE).as_deref() {
        Err(_) | Ok("" | "auto") => Ok(false),
        Ok("compile") => Ok(true),
        Ok(value) => Err(Error::InvalidSetting {
            variable: PTX_VARIABLE,
            value: value.to_owned(),
            allowed: "use `auto`, as if unset, or `compile`",
        }),
    }
}

/// Tells Cargo when to run the script again.
pub(crate) fn depends_on(files: impl Iterator<Item = PathBuf>) {
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let tools = [toolchain::RUSTC_VARIABLE, toolchain::CARGO_VARIABLE, assemble::VARIABLE];
    for variable in [PTX_VARIABLE].into_iter().chain(tools) {
        println!("cargo:rerun-if-env-changed={variable}");
    }
}
