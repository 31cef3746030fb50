//! Processor, threads, devices and crate versions of a run, so that figures can be compared.

use std::time::SystemTime;

use warpset::gpu::Device;

/// Returns the processor's name as the system reports it, and the number of threads that a process may use.
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

/// Returns a GPU's name, compute capability and driver, or the emulator's name.
pub fn gpu(device: &Device) -> String {
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    match properties.driver_version {
        Some(driver) => format!("{}, compute capability {major}.{minor}, driver for CUDA {driver}", properties.name),
        None => properties.name.clone(),
    }
}

/// Returns the version of NVIDIA's driver, where the system reports it.
pub fn driver() -> Option<String> {
    let version = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(version.trim().to_owned())
}

/// Returns the time in UTC, in ISO 8601.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    iso(since.as_secs())
}

fn iso(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last of its year; 146,097 days are 400 years.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = 400 * era + year + next;
    format!("{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Returns the number of threads that this process may use.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the version of a package in this executable, read from the lock file.
pub fn version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let wanted = format!("name = \"{package}\"");
    // The last of several versions is ours; peers depend on older ones.
    let found = LOCK.lines().zip(LOCK.lines().skip(1)).filter(|(name, _)| *name == wanted).last();
    found.and_then(|(_, line)| line.strip_prefix("version = \"")?.strip_suffix('"')).unwrap_or("of unknown version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(iso(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(iso(1_798_761_599), "2026-12-31T23:59:59Z");
        assert!(now().as_str() > "2026");
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(version("bench-frame"), env!("CARGO_PKG_VERSION"));
        assert_eq!(version("no such package"), "of unknown version");
        assert!(processor().contains("thread"));
    }
}
