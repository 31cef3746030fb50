//! Signals that end the program: the files it is writing are removed first.

/// Waits for interrupts, terminations and hang-ups on a thread, unless they are ignored, as by `nohup`. A file that
/// exceeds the limit of `ulimit -f` is an error of the write.
#[cfg(unix)]
pub fn watch() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    // The write fails, once the signal has a handler.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let ends = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    // Without it the system's own handling remains.
    let Ok(mut signals) = Signals::new(ends) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            warpset_base::file::abandon();
            let _ = emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}

/// Returns the signals that the process was started to ignore, one bit each from 1 on; none if the system does not
/// tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// Leaves signals to the system.
#[cfg(not(unix))]
pub fn watch() {}
