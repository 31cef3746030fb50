//! Clusters of processes on one machine, for tests and measurements.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::Processes;

use crate::client;

/// Time limit for processes to start.
const START: Duration = Duration::from_secs(60);

/// A scheduler and executors of one core each, as processes of this machine on free ports of the loopback device.
/// Dropping it ends them.
///
/// Each executor has a folder of its own. A client with [`LocalCluster::session_config`] reads the results of other
/// executors through the network, as between machines.
#[derive(Debug)]
pub struct LocalCluster {
    processes: Processes,
    port: u16,
    folder: PathBuf,
}

impl LocalCluster {
    /// Starts `program`, the program of this crate, as a scheduler and `executors` executors, and waits until they are
    /// ready. They write into `folder`, which exists.
    pub async fn start(program: &Path, executors: usize, folder: &Path) -> Result<LocalCluster> {
        let mut cluster = LocalCluster { processes: Processes::default(), port: 0, folder: folder.to_owned() };
        cluster.port = cluster.processes.spawn(program, &["scheduler", "--port", "0", "--executor-timeout", "8"])?;
        let port = cluster.port.to_string();
        for executor in 0..executors {
            let work_dir = cluster.work_dir(executor);
            std::fs::create_dir(&work_dir)?;
            let work_dir = work_dir.display().to_string();
            let options = ["--scheduler-port", &port, "--cores", "1", "--heartbeat", "1", "--work-dir", &work_dir];
            cluster.processes.spawn(program, &[&["executor"], &options[..]].concat())?;
        }
        if executors > 0 {
            cluster.wait_until_ready().await?;
        }
        Ok(cluster)
    }

    /// Returns settings of a client under which all results of other executors are read through the network.
    pub fn session_config() -> SessionConfig {
        use ballista::prelude::SessionConfigExt;
        client::session_config().with_ballista_shuffle_reader_force_remote_read(true)
    }

    /// Returns the context of a client.
    pub async fn client(&self, config: SessionConfig) -> Result<SessionContext> {
        client::remote_with(&format!("df://127.0.0.1:{}", self.port), config).await
    }

    /// Returns the scheduler's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the process ids, the scheduler's first.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.ids()
    }

    /// Returns the bytes of an executor's results for other tasks that are not removed yet.
    pub fn written_bytes(&self, executor: usize) -> u64 {
        bytes_in(&self.work_dir(executor))
    }

    /// Kills an executor.
    ///
    /// # Panics
    ///
    /// If there is no executor with this number.
    pub fn kill(&mut self, executor: usize) -> io::Result<()> {
        self.processes.kill(1 + executor)
    }

    fn work_dir(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("executor-{executor}"))
    }

    /// Waits until an executor has registered, before which no query is answered.
    async fn wait_until_ready(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            let context = self.client(client::session_config()).await?;
            let query = context.sql("SELECT count(*) FROM (VALUES (1), (2))").await?;
            match client::collect_within(query, Duration::from_secs(10)).await {
                Err(error) if started.elapsed() > START => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                Ok(_) => return Ok(()),
            }
        }
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}
