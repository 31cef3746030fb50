//! A cluster with the tables.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;
use warpset_ballista::LocalCluster;
use warpset_engines_testing::{local, register_tables, write_tables};

/// A cluster of processes, and the folder of its tables.
pub struct Cluster {
    processes: LocalCluster,
    /// Folder of the tables and of the executors' results.
    pub folder: TempDir,
}

impl Cluster {
    /// Starts a scheduler and `executors` executors, and waits until they are ready.
    pub async fn start(executors: usize) -> Cluster {
        let folder = TempDir::new().unwrap();
        write_tables(folder.path()).await.unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_warpset-ballista"));
        let processes = LocalCluster::start(program, executors, folder.path()).await.unwrap();
        Cluster { processes, folder }
    }

    /// Returns the context of a client, with the tables.
    pub async fn client(&self, config: SessionConfig) -> SessionContext {
        let context = self.processes.client(config).await.unwrap();
        register_tables(&context, self.folder.path()).await.unwrap();
        context
    }

    /// Returns DataFusion in this process, with the same tables.
    pub async fn local(&self) -> SessionContext {
        local(self.folder.path()).await.unwrap()
    }
}

impl Deref for Cluster {
    type Target = LocalCluster;

    fn deref(&self) -> &LocalCluster {
        &self.processes
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut LocalCluster {
        &mut self.processes
    }
}
