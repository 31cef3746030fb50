//! Consensus on devices: the search for the codes of all buckets, and lookups.

mod search;

use warpset_core::consensus::lookup::Plan;
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::consensus::lookup::{FunctionPlan, consensus_contains, consensus_lookup};

use super::{ConsensusKind, Search};
use crate::Error;
use crate::build::Settings;
use crate::function::Parameters;
use crate::gpu::{AttemptError, DeviceHashKind, SearchProgress, Sorted, Tables, device_lookups, sealed};
pub use search::{DeviceSearch, Found};

impl DeviceHashKind for ConsensusKind {}

impl sealed::DeviceHashKind for ConsensusKind {
    type DeviceOptions = ();
    type DeviceSearch = DeviceSearch;
    type Found = Found;

    fn device_search(
        stream: &Stream,
        _: &Settings<Self>,
        search: &Search,
        (): Self::DeviceOptions,
    ) -> Result<DeviceSearch, Error> {
        DeviceSearch::new(stream, &search.tasks)
    }

    fn largest(search: &DeviceSearch) -> u32 {
        search.largest()
    }

    fn find(
        search: &DeviceSearch,
        stream: &Stream,
        sorted: Sorted,
        base: u64,
        keys_before: DeviceSliceMut<'_, u64>,
        reported: &mut SearchProgress<'_>,
    ) -> Result<Found, AttemptError> {
        search.find(stream, sorted, base, keys_before, reported)
    }

    fn device_tables(
        device: &Device,
        parameters: &Parameters<Self>,
        words: u64,
        width: u32,
    ) -> Result<Self::DeviceTables, Error> {
        let tables = &parameters.tables;
        Tables::new(device, tables.rows().as_flattened(), FunctionPlan { plan: *tables.plan(), words, remix: 0, width })
    }

    device_lookups! { Plan, consensus_lookup, consensus_contains }
}
