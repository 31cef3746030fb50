//! One crate of kernels, compiled to PTX text.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Error,
    flags::{PROFILE, TARGET},
    manifest::Manifest,
    toolchain::DeviceToolchain,
};

/// Variables of the caller's environment that would change the output if they reached the device build.
const NOT_INHERITED: &[&str] = &[
    "CARGO",
    "CARGO_BUILD_BUILD_DIR",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// One call of the device compiler.
pub(crate) struct Compilation<'a> {
    pub toolchain: &'a DeviceToolchain,
    /// The crate's folder and names.
    pub folder: &'a Path,
    pub manifest: &'a Manifest,
    /// Name of the output.
    pub name: &'a str,
    /// Flags for every crate.
    pub flags: &'a [String],
    /// Conditions (`--cfg`) for the crate of kernels alone.
    pub cfgs: &'a [String],
    pub features: &'a [String],
    /// The build folder.
    pub target: &'a Path,
}

/// Output of the compiler.
pub(crate) struct Compiled {
    pub ptx: String,
    /// Every file that was read of the crate and of those it depends on by path; absolute.
    pub sources: Vec<PathBuf>,
}

impl Compilation<'_> {
    pub fn run(&self) -> Result<Compiled, Error> {
        fs::create_dir_all(self.target).map_err(Error::io("create", self.target))?;
        let target = self.target.canonicalize().map_err(Error::io("open", self.target))?;
        let assembly = target.join(format!("{}.s", self.name));
        let mut command = Command::new(&self.toolchain.cargo);
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        command
            .current_dir(self.folder)
            // In a build script, standard output belongs to Cargo.
            .stdout(Stdio::null())
            .envs(PROFILE.iter().copied())
            .env("RUSTC", &self.toolchain.rustc)
            // The target and the library of instructions are unstable; the release is pinned, so this is safe.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags.join("\x1f"))
            .args(["rustc", "--quiet", "--release", "--package", &self.manifest.package, "--lib"])
            .args(["--crate-type", "cdylib", "--target", TARGET, "-Zbuild-std=core", "--target-dir"])
            .arg(&target);
        if !self.features.is_empty() {
            command.args(["--features", &self.features.join(",")]);
        }
        // The assembly of the last step is the PTX: nothing is left to link.
        command.args(["--", "-Clinker=true"]).arg(format!("--emit=asm={}", assembly.display()));
        for cfg in self.cfgs {
            command.args(["--cfg", cfg]);
        }
        let status = command.status().map_err(Error::io("start", &self.toolchain.cargo))?;
        if !status.success() {
            return Err(Error::DoesNotCompile { name: self.name.to_owned() });
        }
        let output = |what: &'static str, file: PathBuf| {
            let text = fs::read_to_string(&file);
            text.map_err(|_| Error::NoOutput { what, file, target: target.clone() })
        };
        let dependencies = target.join(TARGET).join("release").join(format!("{}.d", self.manifest.library));
        Ok(Compiled { ptx: output("PTX", assembly)?, sources: sources(&output("list of sources", dependencies)?) })
    }
}

/// Parses a dependency file of Cargo (`output: file file…`, blanks escaped).
fn sources(dependencies: &str) -> Vec<PathBuf> {
    let list = dependencies.split_once(": ").map_or("", |(_, list)| list.lines().next().unwrap_or(""));
    let placeholder = "\0";
    list.replace("\\ ", placeholder)
        .split_whitespace()
        .map(|path| PathBuf::from(path.replace(placeholder, " ")))
        .collect()
}

/// Returns the files that are in `root`, relative to it, with `/` between folders.
pub(crate) fn within(root: &Path, files: &[PathBuf]) -> Vec<String> {
    files.iter().filter_map(|file| Some(file.strip_prefix(root).ok()?.to_str()?.replace('\\', "/"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_relative_and_only_those_in_the_root() {
        let list = "/t/lib.ptx: /w s/crates/core/src/lib.rs /elsewhere/x.rs /w s/kernels-gpu/src/bloom.rs\n";
        let list = list.replace("/w s/", "/w\\ s/");
        let found = within(Path::new("/w s"), &sources(&list));
        assert_eq!(found, ["crates/core/src/lib.rs", "kernels-gpu/src/bloom.rs"]);
        assert!(sources("").is_empty());
    }
}
