//! One module of kernels, compiled to PTX text.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use warpset_kernels::stamp::{PROFILE, RUST_FLAGS, Stamp, TARGET};

use super::{canonical::canonical, toolchain::DeviceToolchain};

/// Variables that would change what is compiled, or how, if the caller's environment reached the device build.
const NOT_INHERITED: &[&str] = &[
    "CARGO",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// Compiles modules into a build folder of its own.
pub struct Builder<'a> {
    root: &'a Path,
    toolchain: &'a DeviceToolchain,
    target: PathBuf,
}

impl<'a> Builder<'a> {
    /// A builder for the workspace at `root`.
    pub fn new(root: &'a Path, toolchain: &'a DeviceToolchain) -> Self {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        Self { root, toolchain, target: target.join("device") }
    }

    /// The PTX of `module`, with its stamp, the same on every machine.
    pub fn build(&self, module: &str) -> anyhow::Result<String> {
        fs::create_dir_all(&self.target).with_context(|| format!("cannot create {}", self.target.display()))?;
        let target = self.target.canonicalize()?;
        let assembly = target.join(format!("{module}.s"));
        let mut command = Command::new(&self.toolchain.cargo);
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        command
            .current_dir(self.root)
            .envs(PROFILE.iter().copied())
            .env("RUSTC", &self.toolchain.rustc)
            // The target and the library of instructions are unstable; the release is pinned, so this is safe.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", RUST_FLAGS.join("\x1f"))
            .args(["rustc", "--quiet", "--release", "--package", "warpset-kernels", "--lib"])
            .args(["--crate-type", "cdylib", "--target", TARGET, "-Zbuild-std=core"])
            .arg("--target-dir")
            .arg(&target)
            // The assembly of the last step is the PTX: nothing is left to link.
            .args(["--", "-Clinker=true"])
            // These reach the last crate alone, so that the others are compiled once for all modules.
            .args(["--cfg", &format!("warpset_module=\"{module}\"")])
            .args(["--cfg", &format!("warpset_folder=\"{}\"", module.split('_').next().unwrap_or(module))])
            .arg(format!("--emit=asm={}", assembly.display()));
        let status = command.status().with_context(|| format!("cannot start {}", self.toolchain.cargo.display()))?;
        if !status.success() {
            bail!("module {module} does not compile for {TARGET}");
        }
        let ptx = fs::read_to_string(&assembly)
            .with_context(|| format!("no PTX in {}; remove {} and try again", assembly.display(), target.display()))?;
        let dependencies = target.join(TARGET).join("release/warpset_kernels.d");
        let dependencies = fs::read_to_string(&dependencies)
            .with_context(|| format!("no list of sources in {}", dependencies.display()))?;
        let stamp = Stamp::of_sources(self.root, &sources(&dependencies, &self.root.canonicalize()?))?;
        Ok(stamp.to_comment() + &canonical(&ptx))
    }
}

/// The source files of the workspace in a dependency file of Cargo (`output: file file…`, blanks escaped).
fn sources(dependencies: &str, root: &Path) -> Vec<String> {
    let list = dependencies.split_once(": ").map_or("", |(_, list)| list.lines().next().unwrap_or(""));
    let placeholder = "\0";
    list.replace("\\ ", placeholder)
        .split_whitespace()
        .map(|path| path.replace(placeholder, " "))
        .filter_map(|path| Some(Path::new(&path).strip_prefix(root).ok()?.to_str()?.replace('\\', "/")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_relative_and_only_our_own() {
        let list = "/t/lib.ptx: /w s/crates/core/src/lib.rs /elsewhere/x.rs /w s/kernels-gpu/src/bloom.rs\n";
        let list = list.replace("/w s/", "/w\\ s/");
        let found = sources(&list, Path::new("/w s"));
        assert_eq!(found, ["crates/core/src/lib.rs", "kernels-gpu/src/bloom.rs"]);
        assert!(sources("", Path::new("/w")).is_empty());
    }
}
