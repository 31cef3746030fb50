//! `cargo xtask package`: the crates as a registry would hand them out, and a user's program built from them.
//!
//! Every crate that is to be published is packed (`cargo package`, which refuses files that are not checked in) and
//! unpacked under `target/package`. `examples/bloom-only` is copied out of the workspace and built from the unpacked
//! crates as a user would build it (release, stripped), with the feature `cuda` and without, run, and weighed: kernels
//! are text and device code in the executable, and the linker keeps those of the modules that the program can launch.
//! The facade, and with it every structure, is checked with the oldest Rust that the crates declare. Every crate that a
//! program then holds has a licence that allows what ours do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// The most bytes that the feature `cuda` may add: a program without it and without the emulator holds no device code.
const MOST: u64 = 400_000;

/// The most bytes of a packed crate that crates.io takes. The kernels have 10.2 million.
const MOST_PACKED: u64 = 10 << 20;

/// The arguments of `package`.
#[derive(clap::Args)]
pub struct Args {
    /// Pack files that are not checked in, too
    #[arg(long)]
    allow_dirty: bool,
    /// Check the facade with this toolchain of rustup's instead of the one that builds the workspace
    #[arg(long, value_name = "TOOLCHAIN")]
    oldest: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let folder = root.join("target/package");
    let kmers = root.join("kmers");
    let (packages, programs) = (published(&root)?, published(&kmers)?);
    let mut foreign = licences(&root, &packages)?;
    foreign.append(&mut licences(&kmers, &programs)?);
    println!("licences: {} crates of others, all permissive", foreign.len());
    let unpacked = folder.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    pack(&root, &folder, &packages, args.allow_dirty)?;
    pack(&kmers, &folder, &programs, args.allow_dirty)?;
    println!("{} crates packed and unpacked under {}", packages.len() + programs.len(), folder.display());

    let facade = Program::new(&folder, &packages, "facade")?;
    facade.write("src/lib.rs", "//! Uses every structure.\npub use warpset::prelude::*;\n")?;
    facade
        .depend(&[("warpset", &["bloom", "fuse", "gpu", "lsm", "mphf", "quotient", "range", "sequence", "static"])])?;
    facade.check(args.oldest.as_deref())?;

    let program = Program::new(&folder, &packages, "bloom-only")?;
    program.write("src/main.rs", &fs::read_to_string(root.join("examples/bloom-only/src/main.rs"))?)?;
    program.depend(&[("warpset-bloom", &["gpu"]), ("warpset-gpu", &[])])?;
    let without = program.build(&["--no-default-features"])?;
    let with = program.build(&[])?;
    weigh(&without, &with)
}

/// One crate of the workspace that is to be published.
struct Package {
    name: String,
    version: String,
    rust_version: String,
}

/// Returns the names of all packages of the workspace in `folder`.
pub fn members(folder: &Path) -> anyhow::Result<Vec<String>> {
    Ok(metadata(folder)?.iter().filter_map(|package| package["name"].as_str()).map(str::to_owned).collect())
}

/// Returns the packages of the workspace in `folder`, as Cargo describes them.
fn metadata(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut command = cargo(None);
    command.current_dir(folder).args(["metadata", "--format-version", "1", "--no-deps"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata has failed");
    let mut metadata: Value = serde_json::from_slice(&output.stdout)?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => anyhow::bail!("no packages in cargo's metadata"),
    }
}

/// Returns the crates of the workspace that are to be published.
fn published(root: &Path) -> anyhow::Result<Vec<Package>> {
    let text = |package: &Value, key: &str| {
        package[key].as_str().map(str::to_owned).with_context(|| format!("a package without `{key}`"))
    };
    metadata(root)?
        .iter()
        .filter(|package| package["publish"].is_null())
        .map(|package| {
            Ok(Package {
                name: text(package, "name")?,
                version: text(package, "version")?,
                rust_version: text(package, "rust_version")?,
            })
        })
        .collect()
}

/// Licences that ask for nothing but their own text. One of them must do for each crate.
const PERMISSIVE: [&str; 8] =
    ["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Lists the crates of others in a program that depends on all of `packages` with all features; fails where the licence
/// of one is not permissive.
fn licences(root: &Path, packages: &[Package]) -> anyhow::Result<BTreeSet<String>> {
    let mut command = cargo(None);
    command.current_dir(root).args(["tree", "--edges", "normal,build", "--all-features", "--target", "all"]);
    command.args(["--prefix", "none", "--format", "{p}|{l}"]);
    packages.iter().for_each(|package| _ = command.args(["-p", &package.name]));
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo tree has failed");
    let lines = String::from_utf8(output.stdout)?;
    // Cargo marks crates that were printed before.
    let lines = lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
    let foreign: BTreeSet<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("warpset")).collect();
    for line in &foreign {
        let (name, licence) = line.split_once('|').context("cargo tree prints another format")?;
        ensure!(is_permissive(licence)?, "{name} has the licence \"{licence}\"");
    }
    Ok(foreign)
}

/// Whether a licence, as crates name it, leaves a choice that is permissive.
fn is_permissive(licence: &str) -> anyhow::Result<bool> {
    // Crates of before 2018 write `/` for `OR`.
    let licence = licence.replace('/', " OR ");
    let expression =
        spdx::Expression::parse(&licence).with_context(|| format!("cannot read the licence \"{licence}\""))?;
    Ok(expression.evaluate(|one| {
        one.license.id().is_some_and(|id| PERMISSIVE.contains(&id.name))
            && one.addition.as_ref().is_none_or(|addition| addition.id().is_some_and(|id| id.name == "LLVM-exception"))
    }))
}

/// Packs `packages` of the workspace in `root` and unpacks them into `folder`, as `NAME-VERSION`.
fn pack(root: &Path, folder: &Path, packages: &[Package], allow_dirty: bool) -> anyhow::Result<()> {
    let mut command = cargo(None);
    // A lock file would name Warpset's other crates in the registry, which does not have them before the release.
    command
        .current_dir(root)
        .args(["package", "--quiet", "--no-verify", "--exclude-lockfile", "--target-dir"])
        .arg(folder);
    if allow_dirty {
        command.arg("--allow-dirty");
    }
    for package in packages {
        command.args(["-p", &package.name]);
    }
    ensure!(command.status().context("cannot start cargo")?.success(), "the crates cannot be packed");
    for package in packages {
        let archive = folder.join("package").join(format!("{}-{}.crate", package.name, package.version));
        let bytes = fs::metadata(&archive).with_context(|| format!("no {}", archive.display()))?.len();
        ensure!(bytes <= MOST_PACKED, "{} has {bytes} bytes; the registry takes {MOST_PACKED}", archive.display());
        // With the time of now: Cargo looks at times to see what has changed since an earlier run.
        let status = Command::new("tar").arg("-xmzf").arg(&archive).arg("-C").arg(folder.join("unpacked")).status();
        ensure!(status.context("cannot start tar")?.success(), "cannot unpack {}", archive.display());
    }
    Ok(())
}

/// A program outside the workspace that depends on the unpacked crates.
struct Program<'a> {
    name: &'a str,
    folder: PathBuf,
    packages: &'a [Package],
}

impl<'a> Program<'a> {
    /// Makes an empty program, beside the packages.
    fn new(folder: &Path, packages: &'a [Package], name: &'a str) -> anyhow::Result<Self> {
        let folder = folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(Self { name, folder, packages })
    }

    fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(file);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes its manifest: crates and their features. It asks the registry for Warpset's crates, as a user's does;
    /// what answers are the unpacked ones.
    fn depend(&self, on: &[(&str, &[&str])]) -> anyhow::Result<()> {
        let Some(Package { version, rust_version, .. }) = self.packages.first() else {
            anyhow::bail!("the workspace publishes no crate");
        };
        let mut manifest = format!(
            "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\nrust-version = \"{rust_version}\"\n\n\
             [workspace]\n\n[dependencies]\nanyhow = \"1\"\n",
            self.name
        );
        for (name, features) in on {
            manifest +=
                &format!("{name} = {{ version = \"{version}\", default-features = false, features = {features:?} }}\n");
        }
        let features: Vec<_> = on.iter().map(|(name, _)| format!("\"{name}/cuda\"")).collect();
        manifest +=
            &format!("\n[features]\ndefault = [\"cuda\"]\ncuda = [{}]\n\n[patch.crates-io]\n", features.join(", "));
        for Package { name, version, .. } in self.packages {
            manifest += &format!("{name} = {{ path = \"../unpacked/{name}-{version}\" }}\n");
        }
        self.write("Cargo.toml", &manifest)
    }

    fn cargo(&self, toolchain: Option<&str>) -> Command {
        let mut command = cargo(toolchain);
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.with_file_name("target"));
        command
    }

    /// Compiles it without `cuda`, refusing warnings of Warpset's crates.
    fn check(&self, toolchain: Option<&str>) -> anyhow::Result<()> {
        let status = self
            .cargo(toolchain)
            .args(["check", "--quiet", "--no-default-features"])
            .env("RUSTFLAGS", "-D warnings")
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "{} cannot be compiled from the packed crates without `cuda`", self.name);
        println!(
            "{}: compiles from the packed crates with {}",
            self.name,
            toolchain.unwrap_or("the workspace's toolchain")
        );
        Ok(())
    }

    /// Builds the executable in release, strips it and runs it once.
    fn build(&self, features: &[&str]) -> anyhow::Result<Vec<u8>> {
        let status = self
            .cargo(None)
            .args(["build", "--quiet", "--release", "--config", "profile.release.strip=true"])
            .args(features)
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "{} cannot be built from the packed crates with {features:?}", self.name);
        let target = self.folder.with_file_name("target");
        let path = target.join("release").join(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX));
        let output = Command::new(&path).args(["one", "two", "one"]).output().context("cannot start the program")?;
        ensure!(output.status.success() && output.stdout == b"one\n", "{} answers wrongly: {output:?}", self.name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// Returns Cargo, of a rustup toolchain or the one that runs this.
fn cargo(toolchain: Option<&str>) -> Command {
    match toolchain {
        Some(toolchain) => {
            let mut command = Command::new("rustup");
            command.args(["run", toolchain, "cargo"]);
            command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
            command
        }
        None => crate::cargo(),
    }
}

/// Says what `cuda` adds, and fails where that is too much.
fn weigh(without: &[u8], with: &[u8]) -> anyhow::Result<()> {
    let kernels = kernels(with);
    let (without, with) = (without.len() as u64, with.len() as u64);
    let added = with.saturating_sub(without);
    println!(
        "bloom-only without `cuda`: {without} bytes; with: {with}, {added} more; {} kernels linked",
        kernels.len()
    );
    ensure!(!kernels.is_empty(), "no kernel has been found in the program");
    let foreign: Vec<_> = kernels.iter().filter(|name| !of_filter(name)).collect();
    ensure!(foreign.is_empty(), "the program holds kernels that it never launches: {foreign:?}");
    ensure!(added <= MOST, "`cuda` adds {added} bytes to a Bloom-only program; {MOST} are allowed");
    Ok(())
}

/// Returns the kernels whose PTX is in a program, by name.
fn kernels(program: &[u8]) -> Vec<String> {
    const ENTRY: &[u8] = b"\n.visible .entry ";
    let starts = program.windows(ENTRY.len()).enumerate().filter(|(_, window)| *window == ENTRY);
    let name = |at: usize| {
        let rest = &program[at + ENTRY.len()..];
        let end = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    };
    starts.map(|(at, _)| name(at)).collect()
}

/// Whether a split-block filter can need it: its own kernels, the grouping of large batches, and the hashing of
/// strings.
fn of_filter(kernel: &str) -> bool {
    ["split_block_", "partition_", "strings_"].iter().any(|prefix| kernel.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_their_entries() {
        let program = b"\x7fELF\0// head\n.visible .entry strings_hash(\n.param)\0\n.visible .entry radix_scan(";
        assert_eq!(kernels(program), ["strings_hash", "radix_scan"]);
        assert!(of_filter("strings_hash") && of_filter("partition_absent") && !of_filter("radix_scan"));
    }

    #[test]
    fn licences_are_told_apart() {
        let permissive = |licence| is_permissive(licence).expect("a licence");
        assert!(
            permissive("MIT OR Apache-2.0")
                && permissive("MIT/Apache-2.0")
                && permissive("(MIT OR Apache-2.0) AND Unicode-3.0")
        );
        assert!(permissive("MIT OR LGPL-2.1-or-later") && permissive("Apache-2.0 WITH LLVM-exception"));
        assert!(!permissive("GPL-3.0-only") && !permissive("MIT AND GPL-2.0-or-later"));
        assert!(is_permissive("").is_err());
    }

    #[test]
    fn what_users_depend_on_is_published_and_what_measures_is_not() {
        let root = crate::workspace_root();
        let packages = [root.clone(), root.join("kmers")].map(|folder| published(&folder).expect("cargo's metadata"));
        let names: Vec<_> = packages.iter().flatten().map(|package| package.name.as_str()).collect();
        for name in ["warpset", "warpset-core", "warpset-kernels", "warpset-kmers", "warpset-cust"] {
            assert!(names.contains(&name), "{name} is not published");
        }
        assert!(!names.contains(&"xtask") && !names.contains(&"warpset-tests"), "{names:?}");
    }
}
