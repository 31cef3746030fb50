//! `might_contain` for machines with a GPU: large batches on the device, small ones on the host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use warpset_base::file::{FileError, HEADER_BYTES};
use warpset_base::key::Key;
use warpset_bloom::{Error, Filter, SplitBlockBloom, gpu};
use warpset_gpu::Device;

use crate::error::Cause;
use crate::lookup::{Ask, Lookup, MightContain};

/// Number of filters kept in device memory.
const KEPT: usize = 4;

/// Returns a `might_contain` that looks up batches of at least `least_rows` rows on `device`. Register it after
/// [`register_all`](crate::register_all), because it replaces the function of that name; answers are the same.
///
/// A batch has `datafusion.execution.batch_size` rows, 8192 by default, too few to pay: set both to a million. The last
/// four filters stay in device memory. The host answers if a filter does not fit, and for binary fuse filters. Other
/// device errors fail the query. Strings and binaries are hashed on the host.
///
/// ```
/// use datafusion::prelude::{SessionConfig, SessionContext};
/// use warpset_gpu::Device;
/// let context = SessionContext::new_with_config(SessionConfig::new().with_batch_size(1 << 20));
/// let device = Device::emulator(Default::default()); // with the feature `cuda`: `Device::cuda(0)?`
/// context.register_udf(warpset_datafusion::might_contain_on(&device, 1 << 18).as_ref().clone());
/// ```
pub fn might_contain_on(device: &Device, least_rows: usize) -> Arc<ScalarUDF> {
    Lookup::function(MightContainOn { device: device.clone(), least_rows, kept: Mutex::default() })
}

/// A filter in device memory.
struct Kept {
    len: usize,
    header: [u8; HEADER_BYTES],
    filter: Arc<gpu::SplitBlockBloom>,
}

struct MightContainOn {
    device: Device,
    least_rows: usize,
    /// Least recently used first.
    kept: Mutex<VecDeque<Kept>>,
}

impl MightContainOn {
    /// Returns the filter in device memory; `None` if it does not fit or is no Bloom filter.
    fn filter(&self, saved: &[u8]) -> Result<Option<Arc<gpu::SplitBlockBloom>>, Cause> {
        let header = saved.first_chunk().copied().unwrap_or([0; HEADER_BYTES]);
        // After a panic in another thread the list is valid, because only finished filters are pushed.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().position(|kept| kept.len == saved.len() && kept.header == header) {
            let found = kept.remove(found).expect("it has been found");
            let filter = found.filter.clone();
            kept.push_back(found);
            return Ok(Some(filter));
        }
        let on_host = match SplitBlockBloom::from_bytes(saved) {
            // The host answers, or reports the error.
            Err(Error::File(FileError::WrongStructure { .. })) => return Ok(None),
            opened => opened?,
        };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        let filter = match gpu::SplitBlockBloom::from_host(&self.device, &on_host) {
            Err(Error::Gpu(error)) if error.is_out_of_memory() => return Ok(None),
            copied => Arc::new(copied?),
        };
        kept.push_back(Kept { len: saved.len(), header, filter: filter.clone() });
        Ok(Some(filter))
    }
}

impl Ask for MightContainOn {
    const NAME: &'static str = MightContain::NAME;
    const RETURNS: DataType = MightContain::RETURNS;
    type Answer = bool;

    fn ask<K: Key>(&self, saved: &[u8], keys: &[K], answers: &mut [bool]) -> Result<(), Cause> {
        if keys.len() >= self.least_rows.max(1)
            && let Some(filter) = self.filter(saved)?
        {
            match filter.contains_bulk_into(keys, answers) {
                Err(Error::Gpu(error)) if error.is_out_of_memory() => {}
                answered => return Ok(answered?),
            }
        }
        MightContain.ask(saved, keys, answers)
    }

    fn array(answers: Vec<bool>, nulls: Option<NullBuffer>) -> ArrayRef {
        MightContain::array(answers, nulls)
    }
}
