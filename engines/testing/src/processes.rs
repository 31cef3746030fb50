//! Processes of a cluster on one machine.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Servers that print their port. Dropping it ends them.
#[derive(Debug, Default)]
pub struct Processes(Vec<Child>);

impl Processes {
    /// Starts `program`, and returns the port at the end of the first line of its output.
    pub fn spawn(&mut self, program: &Path, arguments: &[&str]) -> io::Result<u16> {
        let mut process = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().expect("it is piped");
        self.0.push(process);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        port.ok_or_else(|| {
            let program = program.display();
            io::Error::other(format!("{program} {arguments:?} ended without an address; it said {line:?}"))
        })
    }

    /// Returns the process ids, in the order of their starts.
    pub fn ids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }

    /// Kills a process.
    ///
    /// # Panics
    ///
    /// If fewer processes were started.
    pub fn kill(&mut self, number: usize) -> io::Result<()> {
        let process = &mut self.0[number];
        process.kill()?;
        process.wait().map(|_| ())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            // An error means that it has ended already.
            _ = process.kill();
            _ = process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_names_its_port_and_ends() {
        let shell = Path::new("/bin/sh");
        let mut processes = Processes::default();
        assert_eq!(processes.spawn(shell, &["-c", "echo listens at 127.0.0.1:4711; exec sleep 60"]).unwrap(), 4711);
        assert_eq!(processes.ids().len(), 1);
        processes.kill(0).unwrap();
        let error = processes.spawn(shell, &["-c", "echo no port"]).unwrap_err().to_string();
        assert!(error.contains("no port"), "{error}");
    }
}
