//! `cargo xtask`: the project's own commands, one file each, so that no shell script has to know how things are built.

mod dist;
mod faults;
mod laboratory;
mod package;
mod pictures;
mod ptx;
mod soak;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Parser, Subcommand};

/// Warpset's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
struct Cli {
    /// Compile the laboratory with the libraries that take minutes to compile too, as `cargo xtask-peers` does
    #[arg(long, global = true)]
    peers: bool,
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Verify and measure the structures on this machine (`cargo xtask bench --help`)
    #[command(disable_help_flag = true)]
    Bench(laboratory::Args),
    /// Pack tests, benches, data and PTX for a GPU node without a Rust toolchain
    Dist(dist::Args),
    /// Plant the faults of `tests/faults` in a copy, one at a time, and say which of them the tests find
    Faults(faults::Args),
    /// Pack the crates, build a program from the packages, check what the feature `cuda` adds to it
    Package(package::Args),
    /// Draw the pictures of the documentation, or check that they are fresh
    Pictures(pictures::Args),
    /// Compile the kernels to PTX, or check the PTX that is checked in
    Ptx(ptx::Args),
    /// Turn the JSON of `bench` into one HTML page (`cargo xtask report --help`)
    #[command(disable_help_flag = true)]
    Report(laboratory::Args),
    /// Run the tests on emulated GPUs again and again, each time with other schedules
    Soak(soak::Args),
}

fn main() -> ExitCode {
    let Cli { peers, job } = Cli::parse();
    let done = match job {
        Job::Bench(args) => laboratory::run("bench", &args, peers),
        Job::Dist(args) => dist::run(&args, peers),
        Job::Faults(args) => faults::run(&args),
        Job::Package(args) => package::run(&args),
        Job::Pictures(args) => pictures::run(&args),
        Job::Ptx(args) => ptx::run(&args),
        Job::Report(args) => laboratory::run("report", &args, peers),
        Job::Soak(args) => soak::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not as `Debug`: whoever has RUST_BACKTRACE set for panics does not want a backtrace under every fault.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder of the workspace: the parent of this package's, read at run time, so that a packed executable
/// follows the folder it was unpacked into.
fn workspace_root() -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&package).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns the Cargo that runs this command, or the one on the path.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the folder of compiled files, for every workspace of the repository.
fn target_folder(root: &Path) -> PathBuf {
    // Joining an absolute path gives that path.
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
