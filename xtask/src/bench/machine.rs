//! What a run is measured on, so that figures can be compared: processor, threads, crate versions.

use warpset::gpu::Device;

/// The processor's name as the system gives it, and the threads that a process may use.
pub fn processor() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = ["model name", "Model", "Hardware", "cpu model"].iter().find_map(|field| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == *field && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    });
    let name = name.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH));
    format!("{name}, {} threads", threads())
}

/// A GPU's name, compute capability and driver; the emulator's name.
pub fn gpu(device: &Device) -> String {
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    match properties.driver_version {
        Some(driver) => format!("{}, compute capability {major}.{minor}, driver for CUDA {driver}", properties.name),
        None => properties.name.clone(),
    }
}

/// The threads that this process may use.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The version of a package that this executable was built with, read from the lock file.
pub fn version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let mut lines = LOCK.lines();
    let wanted = format!("name = \"{package}\"");
    let found = lines.find(|line| *line == wanted).and_then(|_| lines.next());
    found.and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"')).unwrap_or("of unknown version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(version("xtask"), env!("CARGO_PKG_VERSION"));
        assert_eq!(version("no such package"), "of unknown version");
        assert!(processor().contains("thread"));
    }
}
