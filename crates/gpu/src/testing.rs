//! Devices for the tests of this workspace. Not part of the API.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::emulator::Config;
use crate::{Backend, Device, Devices, EmulatorOptions, faults};

/// The environment variable that makes it a failure if there is no CUDA device to test on.
pub const REQUIRE_VARIABLE: &str = "WARPSET_REQUIRE_CUDA";

/// Environment variable that is set when the tests run under compute-sanitizer.
pub const SANITIZER_VARIABLE: &str = "WARPSET_SANITIZER";

/// Whether they do. Every launch takes a hundred times as long then, so tests take smaller inputs.
pub fn is_sanitized() -> bool {
    std::env::var_os(SANITIZER_VARIABLE).is_some()
}

/// Returns the CUDA device; `None` after printing why there is none.
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
            if is_sanitized() {
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

/// Makes an emulated device with this seed, on which streams run as late as a program allows.
pub fn deferred(seed: u64) -> Device {
    Device::emulator_with(EmulatorOptions::default().config(Config::seeded(seed)).deferred(true))
}

/// Returns a [`deferred`] device with this seed, and the CUDA device if one answers.
pub fn devices(seed: u64) -> Vec<Device> {
    std::iter::once(deferred(seed)).chain(cuda()).collect()
}

/// Picks by the cost of a launch on this device: on an emulator, under compute-sanitizer, or on CUDA without it.
pub fn sized<T>(device: &Device, emulated: T, sanitized: T, full: T) -> T {
    match (device.is_emulator(), is_sanitized()) {
        (true, _) => emulated,
        (false, true) => sanitized,
        (false, false) => full,
    }
}

/// Makes `count` [`deferred`] devices of unequal memory: 64 MiB, 128 MiB and so on.
pub fn unequal(count: usize) -> Devices {
    let device =
        |i: usize| Device::emulator_with(EmulatorOptions::default().memory_bytes((i + 1) << 26).deferred(true));
    Devices::new((0..count).map(device)).expect("different devices")
}

/// Returns all CUDA devices, at least two: a single one is opened a second time, apart from the first, which counts as
/// another device. `None` if there is none.
pub fn several_cuda() -> Option<Devices> {
    let first = cuda()?;
    let mut all = Device::cuda_all().expect("they were just found");
    if all.len() == 1 {
        static HELD: OnceLock<Device> = OnceLock::new();
        let apart = || Device::cuda_apart(first.properties().ordinal).expect("it was just found");
        all.push(if is_sanitized() { HELD.get_or_init(apart).clone() } else { apart() });
    }
    Some(Devices::new(all).expect("different devices"))
}

/// Lists of [`unequal`] devices, a CUDA device, and several of them.
pub fn unequal_lists() -> Vec<Devices> {
    let several = several_cuda();
    let single = several.as_ref().map(|all| all.at_most(1));
    [1, 2, 3, 8].map(unequal).into_iter().chain(single).chain(several).collect()
}

/// Lists of several devices: two emulators with this seed, three, and those of CUDA.
pub fn lists_of_devices(seed: u64) -> Vec<Devices> {
    let emulators = |count: u64| Devices::new((0..count).map(|i| deferred(seed + i))).expect("different devices");
    [2, 3].map(emulators).into_iter().chain(several_cuda()).collect()
}

/// Longest delay before a launch; 0 for none.
static DELAY: AtomicU32 = AtomicU32::new(0);

/// Ends [`delay_launches`] when it is dropped.
pub struct Delayed(());

impl Drop for Delayed {
    fn drop(&mut self) {
        DELAY.store(0, Ordering::Relaxed);
    }
}

/// Lets launches on CUDA devices wait for up to that many microseconds, as on a busy device: an order that is missing
/// between streams shows then. Counts for all threads of the process.
#[must_use]
pub fn delay_launches(microseconds: u32) -> Delayed {
    DELAY.store(microseconds, Ordering::Relaxed);
    Delayed(())
}

/// Queues a sleep of random length before a launch, if a test requests it.
#[cfg(feature = "cuda")]
#[inline]
pub(crate) fn delay(stream: &crate::cuda::CudaStream) -> crate::Result<()> {
    match DELAY.load(Ordering::Relaxed) {
        0 => Ok(()),
        most => sleep(stream, most),
    }
}

#[cfg(feature = "cuda")]
#[cold]
fn sleep(stream: &crate::cuda::CudaStream, most: u32) -> crate::Result<()> {
    use warpset_simt::{KernelInfo, LaunchConfig, Module, Ptx};

    static MODULE: Module = Module { name: "delay", ptx: Some(Ptx::Text(include_str!("delay.ptx"))), code: None };
    static INFO: KernelInfo = KernelInfo { name: "delay", module: &MODULE, launch_bounds: None };
    static DRAWS: AtomicU32 = AtomicU32::new(0);
    let draw = DRAWS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9);
    let mut microseconds = ((u64::from(draw) * u64::from(most)) >> 32) as u32;
    // SAFETY: one argument of 32 bits, as the kernel takes it; it accesses no memory.
    unsafe { stream.launch(&INFO, LaunchConfig::new(1, 1), &mut [(&raw mut microseconds).cast()]) }
}

/// Runs an operation several times: with the first allocation or launch of this thread failing, then with the second,
/// until it has fewer; returns their number. After each run, `check`, in which nothing fails, receives the result and
/// the state left behind. Operations that can do with less memory may succeed in spite of a failure.
///
/// # Panics
/// If it fails without one.
pub fn fail_each<S, T, E: std::fmt::Debug>(
    state: &mut S,
    mut operation: impl FnMut(&mut S) -> Result<T, E>,
    mut check: impl FnMut(&mut S, Result<T, E>),
) -> usize {
    for nth in 0.. {
        faults::fail_after(Some(nth));
        let result = operation(state);
        let is_done = faults::fail_after(None).is_some();
        assert!(!is_done || result.is_ok(), "nothing was made to fail: {:?}", result.err());
        check(state, result);
        if is_done {
            return nth;
        }
    }
    unreachable!("operations end")
}

/// Prints once what is skipped, past the test runner, which shows no output of passing tests.
pub fn skipped(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
    }
}
