//! `cargo xtask ptx`: from kernels in Rust to the PTX that is checked in.

/// The arguments of `ptx`.
#[derive(clap::Args)]
pub struct Args {
    /// Rebuild in memory, compare with the checked-in PTX, lint it, and have `ptxas` assemble it
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(!args.check, "no module to check");
    Ok(())
}
