//! A scheduler or an executor with Warpset's functions.

use clap::Parser;
use warpset_ballista::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};

/// Apache DataFusion Ballista with the functions of Warpset.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Accepts queries and assigns their tasks to executors.
    Scheduler(SchedulerOptions),
    /// Runs tasks of a scheduler.
    Executor(ExecutorOptions),
}

fn main() -> std::process::ExitCode {
    let run = async {
        match Command::parse() {
            Command::Scheduler(options) => run_scheduler(options).await,
            Command::Executor(options) => run_executor(options).await,
        }
    };
    // Decoding a deep plan recurses deeply.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(32 << 20).build();
    match runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run).map_err(|e| e.to_string()))
    {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
