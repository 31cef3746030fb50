//! The host's own memory.

/// Returns the bytes that the host can still allocate, by its own estimate; 0 if it gives none.
pub(crate) fn available_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    kib.map_or(0, |kib| kib << 10)
}
