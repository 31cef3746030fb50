//! List of the kernels a device has loaded: for programs and benches that explain the time of a first call, and for
//! tests of a budget.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use warpset_simt::KernelInfo;

use crate::ptx;

/// A kernel that a device has loaded; on the emulator, one that it would have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedKernel {
    /// The module that it belongs to.
    pub module: &'static str,
    /// The kernel's name.
    pub name: String,
    /// Bytes of PTX that the driver has compiled for it: 0 where it took the device code that came with the module. On
    /// the emulator, those that a driver without that would compile.
    pub ptx_bytes: usize,
    /// Time the driver took to load it; zero on the emulator.
    pub time: Duration,
    /// Whether it has been launched.
    pub launched: bool,
}

/// Kernels that an emulated device has launched, by module and name.
pub(crate) struct Asked(Mutex<BTreeMap<(&'static str, &'static str), &'static KernelInfo>>);

impl Asked {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn note_launch(&self, info: &'static KernelInfo) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((info.module.name, info.name), info);
    }

    pub(crate) fn all(&self) -> Vec<LoadedKernel> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = |info: &&'static KernelInfo| {
            let text = ptx::text(info.module).and_then(|text| ptx::kernel_alone(&text, info.name));
            LoadedKernel {
                module: info.module.name,
                name: info.name.into(),
                ptx_bytes: text.map_or(0, |text| text.len()),
                time: Duration::ZERO,
                launched: true,
            }
        };
        all.values().map(loaded).collect()
    }
}
