//! Which devices the tests of this workspace run on. Not part of the API.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::emulator::Config;
use crate::{Backend, Device};

/// The environment variable that makes it a failure if there is no CUDA device to test on.
pub const REQUIRE_VARIABLE: &str = "WARPSET_REQUIRE_CUDA";

/// The environment variable that says that the tests run under compute-sanitizer.
pub const SANITIZER_VARIABLE: &str = "WARPSET_SANITIZER";

/// The CUDA device; `None` after saying why there is none.
///
/// Under compute-sanitizer it is held until the process ends: each time it is opened again, the sanitizer rewrites
/// every module, which takes seconds.
///
/// # Panics
/// If there is none, and the environment requires one.
pub fn cuda() -> Option<Device> {
    match Backend::auto() {
        Backend::Cuda(device) => {
            static HELD: OnceLock<Device> = OnceLock::new();
            if std::env::var_os(SANITIZER_VARIABLE).is_some() {
                HELD.get_or_init(|| device.clone());
            }
            Some(device)
        }
        Backend::Cpu(why) => {
            assert!(std::env::var_os(REQUIRE_VARIABLE).is_none(), "CUDA is required, and: {why}");
            skipped(&format!("everything on CUDA: {why}"));
            None
        }
    }
}

/// An emulator with this seed, and the CUDA device if one answers.
pub fn devices(seed: u64) -> Vec<Device> {
    std::iter::once(Device::emulator(Config::seeded(seed))).chain(cuda()).collect()
}

/// Says once what is skipped, past the test runner, which shows nothing of tests that pass.
pub fn skipped(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
    }
}
