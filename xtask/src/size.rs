//! `cargo xtask size`: what the feature `cuda` adds to a small program, which must stay small.
//!
//! `examples/bloom-only` is built twice, with the feature and without, as a user would (release, stripped). Kernels are text
//! in the executable: the linker keeps those of the modules that the program can launch.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// The most bytes that the feature may add.
const MOST: u64 = 300_000;

/// The arguments of `size`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Args) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let without = build(&root, &["--no-default-features"])?;
    let with = build(&root, &["--features", "cuda"])?;
    let kernels = kernels(&with);
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

/// The executable, built in release and stripped.
fn build(root: &Path, features: &[&str]) -> anyhow::Result<Vec<u8>> {
    let target = root.join("target/size");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--quiet", "--release", "-p", "bloom-only", "--config", "profile.release.strip=true"])
        .args(features)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "bloom-only cannot be built with {features:?}");
    let path = target.join("release").join(format!("bloom-only{}", std::env::consts::EXE_SUFFIX));
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The kernels whose PTX is in a program, by name.
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

/// Whether a split-block filter can need it: its own kernels, the grouping of large batches, and the hashing of strings.
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
}
