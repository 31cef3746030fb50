//! What kernels need of a function besides its words: the rows of its shape, and its plan.

use warpset_gpu::{Device, DeviceVec};
use warpset_kernels::recsplit::lookup::{BLOCK, FunctionPlan};
use warpset_simt::{Global, LaunchConfig};

use crate::Error;
use crate::recsplit::query::Parameters;

/// The rows of a function on the device, and its plan.
pub struct Tables {
    rows: DeviceVec<u64>,
    pub(super) plan: FunctionPlan,
}

impl Tables {
    /// The tables of a function of `words` words; `width` bits of fingerprints follow, or none.
    pub(super) fn new(device: &Device, parameters: &Parameters, words: u64, width: u32) -> Result<Self, Error> {
        let rows: Vec<u64> = parameters.tables.rows().iter().flat_map(|row| row.to_words()).collect();
        let plan =
            FunctionPlan { plan: parameters.tables.plan, words, remix: parameters.header.code.remix as u32, width };
        Ok(Self { rows: device.from_slice(&rows)?, plan })
    }

    /// The rows as kernels take them.
    pub(super) fn rows(&self) -> Global<u64> {
        self.rows.global()
    }
}

/// One thread per key. Keys come in chunks of less than 2^39, so the grid fits.
pub(super) fn one_thread_each(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}
