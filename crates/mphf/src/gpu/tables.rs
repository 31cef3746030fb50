//! Lookups on devices: the rows and the plan of a function there, and the launches.

use warpset_gpu::{Device, DeviceVec};
use warpset_kernels::recsplit::answers::{BLOCK, FunctionPlan};
use warpset_simt::{Global, LaunchConfig};

use crate::Error;

/// The rows of a function on the device, and its plan.
pub struct Tables<P> {
    rows: DeviceVec<u64>,
    pub(crate) plan: FunctionPlan<P>,
}

impl<P> Tables<P> {
    /// Copies the rows to the device.
    pub(crate) fn new(device: &Device, rows: &[u64], plan: FunctionPlan<P>) -> Result<Self, Error> {
        Ok(Self { rows: device.from_slice(rows)?, plan })
    }

    /// Returns the rows as kernels take them.
    pub(crate) fn rows(&self) -> Global<u64> {
        self.rows.global()
    }
}

/// Returns a launch with one thread per key. Keys come in chunks of less than 2^39, so the grid fits.
pub(crate) fn one_thread_each(n: usize) -> LaunchConfig {
    LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK)
}

/// The lookups of a [`DeviceHashKind`](super::DeviceHashKind) with the plan `$plan`, by the kernels `$lookup` and
/// `$contains`.
macro_rules! device_lookups {
    ($plan:ty, $lookup:ident, $contains:ident) => {
        type DeviceTables = $crate::gpu::Tables<$plan>;

        unsafe fn queue_numbers(
            tables: &Self::DeviceTables,
            stream: &warpset_gpu::Stream,
            words: warpset_simt::Global<u64>,
            keys: warpset_kernels::batch::keys::KeySlice,
            n: usize,
            numbers: $crate::gpu::Numbers,
        ) -> Result<(), Error> {
            let (rows, function) = (tables.rows(), tables.plan);
            let (keys, kind, seed) = (keys.keys, keys.kind, keys.seed);
            let (form, table, out) = (numbers.form, numbers.table, numbers.out);
            // SAFETY: the rows are those of the function in `words`; keys, places and table are valid until the stream
            // has passed this launch, by this method's contract.
            unsafe {
                $lookup { words, rows, function, keys, kind, seed, n, form, table, out }
                    .launch(stream, $crate::gpu::one_thread_each(n))?
            };
            Ok(())
        }

        unsafe fn queue_answers(
            tables: &Self::DeviceTables,
            stream: &warpset_gpu::Stream,
            words: warpset_simt::Global<u64>,
            fingerprints: u64,
            keys: warpset_kernels::batch::keys::KeySlice,
            n: usize,
            answers: warpset_gpu::batch::Answers,
            numbers: $crate::gpu::Numbers,
        ) -> Result<(), Error> {
            let (rows, function) = (tables.rows(), tables.plan);
            let (keys, kind, seed) = (keys.keys, keys.kind, keys.seed);
            let (found_form, found) = (answers.form, answers.words);
            let (form, numbers) = (numbers.form, numbers.out);
            // SAFETY: the rows are those of the function in `words`, and the fingerprints follow it; keys and places
            // are valid until the stream has passed this launch, by this method's contract.
            unsafe {
                $contains { words, rows, function, fingerprints, keys, kind, seed, n, found_form, found, form, numbers }
                    .launch(stream, $crate::gpu::one_thread_each(n))?
            };
            Ok(())
        }
    };
}
pub(crate) use device_lookups;
