//! `cargo xtask report`.

/// The arguments of `report`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: &Args) -> anyhow::Result<()> {
    anyhow::bail!("no structure is here to measure")
}
