//! Starting and stopping the processes of a cluster.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

/// A scheduler and its executors; they end with it.
pub struct Cluster {
    processes: Vec<Child>,
    port: u16,
    /// Where the tables are, and what executors write.
    pub folder: TempDir,
}

impl Cluster {
    /// Starts a scheduler and this many executors, and waits until they can work.
    pub async fn start(executors: usize) -> Cluster {
        let folder = TempDir::new().unwrap();
        crate::write_tables(folder.path()).await;
        let mut scheduler = spawn(&["scheduler", "--port", "0", "--executor-timeout", "8"]);
        let address = first_line(&mut scheduler);
        let port = address.rsplit(':').next().unwrap().trim().parse().unwrap();
        let mut cluster = Cluster { processes: vec![scheduler], port, folder };
        for executor in 0..executors {
            let folder = cluster.work_folder(executor);
            std::fs::create_dir(&folder).unwrap();
            let port = cluster.port.to_string();
            let mut process = spawn(&[
                "executor",
                "--scheduler-port",
                &port,
                "--cores",
                "1",
                "--heartbeat",
                "1",
                "--work-dir",
                folder.to_str().unwrap(),
            ]);
            first_line(&mut process);
            cluster.processes.push(process);
        }
        cluster.wait_until_ready().await;
        cluster
    }

    /// What an executor writes for others.
    pub fn work_folder(&self, executor: usize) -> PathBuf {
        self.folder.path().join(format!("executor-{executor}"))
    }

    /// Bytes that an executor wrote for others.
    pub fn written(&self, executor: usize) -> u64 {
        bytes_in(self.work_folder(executor))
    }

    /// The context of a client, with the tables.
    pub async fn client(&self, config: SessionConfig) -> SessionContext {
        let context = self.bare_client(config).await;
        crate::register_tables(&context, self.folder.path()).await.unwrap();
        context
    }

    async fn bare_client(&self, config: SessionConfig) -> SessionContext {
        warpset_ballista::remote_with(&format!("df://127.0.0.1:{}", self.port), config).await.unwrap()
    }

    /// Ends an executor without notice.
    pub fn kill(&mut self, executor: usize) {
        let process = &mut self.processes[1 + executor];
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Queries get no answer before an executor has registered.
    async fn wait_until_ready(&self) {
        let started = Instant::now();
        loop {
            let context = self.bare_client(warpset_ballista::session_config()).await;
            let query = crate::run(&context, "SELECT count(*) FROM (VALUES (1), (2))");
            match tokio::time::timeout(Duration::from_secs(10), query).await {
                Ok(Ok(_)) => return,
                failed => assert!(started.elapsed() < Duration::from_secs(60), "no cluster: {failed:?}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // One that has ended already needs nothing.
            _ = process.kill();
            _ = process.wait();
        }
    }
}

fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpset-ballista"));
    command.args(arguments).stdout(Stdio::piped()).spawn().unwrap()
}

/// What a process says first: where it listens.
fn first_line(process: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(" at "), "{line}");
    line
}

fn bytes_in(folder: PathBuf) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(entry_data) if entry_data.is_dir() => bytes_in(entry.path()),
            Ok(entry_data) => entry_data.len(),
            Err(_) => 0,
        })
        .sum()
}
