//! Clusters of processes on one machine, for tests and measurements.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::Processes;

use crate::client;

/// How long the processes have to start.
const START: Duration = Duration::from_secs(60);

/// A scheduler and executors of one core each as processes of this machine, on free ports of the loopback device. They
/// end when this is dropped.
///
/// Executors write into folders of their own, and a client with [`LocalCluster::session_config`] reads what others
/// wrote through the network, as it would be between machines.
#[derive(Debug)]
pub struct LocalCluster {
    processes: Processes,
    port: u16,
    folder: PathBuf,
}

impl LocalCluster {
    /// Starts `program`, which is the program of this crate, as a scheduler and this many executors, and waits until
    /// they can work. They write into `folder`, which has to be there.
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

    /// The settings of a client whose queries read what another executor wrote through the network, also on one
    /// machine.
    pub fn session_config() -> SessionConfig {
        use ballista::prelude::SessionConfigExt;
        client::session_config().with_ballista_shuffle_reader_force_remote_read(true)
    }

    /// The context of a client.
    pub async fn client(&self, config: SessionConfig) -> Result<SessionContext> {
        client::remote_with(&format!("df://127.0.0.1:{}", self.port), config).await
    }

    /// The scheduler's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The numbers of the processes: the scheduler's first.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.ids()
    }

    /// Bytes of the files that an executor has written for other tasks and not removed since.
    pub fn written_bytes(&self, executor: usize) -> u64 {
        bytes_in(&self.work_dir(executor))
    }

    /// Ends an executor without notice.
    ///
    /// # Panics
    ///
    /// If there is no executor of this number.
    pub fn kill(&mut self, executor: usize) -> io::Result<()> {
        self.processes.kill(1 + executor)
    }

    fn work_dir(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("executor-{executor}"))
    }

    /// Queries get no answer before an executor has registered.
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
