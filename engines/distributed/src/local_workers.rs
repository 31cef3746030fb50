//! Workers on one machine, for tests and measurements.

use std::io;
use std::path::Path;

use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::Processes;

use crate::session;

/// Workers as processes of this machine, on free ports of the loopback device. Dropping it ends them.
#[derive(Debug)]
pub struct LocalWorkers {
    processes: Processes,
    urls: Vec<String>,
}

impl LocalWorkers {
    /// Starts `program`, the program of this crate, as `workers` workers.
    pub fn start(program: &Path, workers: usize) -> Result<LocalWorkers> {
        let mut processes = Processes::default();
        let start = |_| {
            let port = processes.spawn(program, &["worker", "--address", "127.0.0.1:0"])?;
            Ok(format!("http://127.0.0.1:{port}"))
        };
        let urls = (0..workers).map(start).collect::<Result<_>>()?;
        Ok(LocalWorkers { processes, urls })
    }

    /// Returns the context of a client.
    pub fn client(&self, config: SessionConfig) -> Result<SessionContext> {
        session(&self.urls, config)
    }

    /// Returns the process ids.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.ids()
    }

    /// Kills a worker.
    ///
    /// # Panics
    ///
    /// If there is no worker with this number.
    pub fn kill(&mut self, worker: usize) -> io::Result<()> {
        self.processes.kill(worker)
    }
}
