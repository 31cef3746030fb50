//! `cargo xtask bench` and `cargo xtask report`: commands of the laboratory in `benches/`, compiled and started.

use std::ffi::OsString;

use anyhow::{Context, ensure};

/// The arguments of a command of the laboratory, which reads them itself.
#[derive(clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Compiles the laboratory and runs its command `name`.
pub fn run(name: &str, args: &Args, peers: bool) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let mut command = crate::cargo();
    command.args(["run", "--release", "--package", "warpset-benches", "--manifest-path"]);
    command.arg(root.join("benches/Cargo.toml")).arg("--target-dir").arg(crate::target_folder(&root));
    if peers {
        command.args(["--features", "peers"]);
    }
    if args.arguments.iter().any(|word| word == "emulator" || word == "--backend=emulator") {
        command.args(["--features", "emulator"]);
    }
    let status = command.arg("--").arg(name).args(&args.arguments).status().context("cannot start cargo")?;
    // The laboratory has said what is wrong.
    ensure!(status.success(), "`{name}` has failed");
    Ok(())
}
