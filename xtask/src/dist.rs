//! `cargo xtask dist`: packs what a GPU node without a Rust toolchain needs.

/// The arguments of `dist`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: &Args) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    anyhow::bail!("nothing to pack in {}", root.display())
}
