//! The laboratory: `bench` verifies and measures every structure on this machine, `report` makes a page of its rows.
//! `cargo xtask` launches both.

mod bench;
mod first_use;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Warpset's laboratory.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verify and measure the structures on this machine
    Bench(bench::Args),
    /// Turn the JSON of `bench` into one HTML page
    Report(bench_report::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => bench_report::run(&args),
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
