//! RecSplit on devices: the search for the numbers of all trees, their bits, and lookups.

mod encode;
mod node_lists;
mod rows;
mod search;
mod sizes;
mod strategy;

use std::sync::Arc;

use warpset_core::recsplit::lookup::Plan;
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::recsplit::lookup::{FunctionPlan, recsplit_contains, recsplit_lookup};

use super::{RecSplitKind, Search};
use crate::Error;
use crate::build::Settings;
use crate::function::Parameters;
use crate::gpu::{AttemptError, DeviceHashKind, SearchProgress, Sorted, Tables, device_lookups, sealed};
use encode::{Found, Lanes};
use rows::Rows;
pub use search::{BucketPlan, BucketSearch, BucketWork};
use search::{Buckets, DeviceTrees};
use sizes::Sizes;
pub use strategy::Strategy;

/// Tables that all searches on one device share.
pub struct DeviceSearch {
    trees: DeviceTrees,
    lanes: Lanes,
    rows: Arc<Rows>,
    strategy: Strategy,
}

impl DeviceHashKind for RecSplitKind {}

impl sealed::DeviceHashKind for RecSplitKind {
    type DeviceOptions = Strategy;
    type DeviceSearch = DeviceSearch;
    type Found = Found;

    fn device_search(
        stream: &Stream,
        settings: &Settings<Self>,
        search: &Search,
        strategy: Strategy,
    ) -> Result<DeviceSearch, Error> {
        let trees = DeviceTrees::new(stream, search.trees.clone())?;
        let (lanes, rows) = (Lanes::of(&trees.trees, settings.bucket_size), Arc::new(Rows::new(stream, &trees.trees)?));
        Ok(DeviceSearch { trees, lanes, rows, strategy })
    }

    fn largest(search: &DeviceSearch) -> u32 {
        search.trees.largest()
    }

    fn find(
        search: &DeviceSearch,
        stream: &Stream,
        mut sorted: Sorted,
        base: u64,
        keys_before: DeviceSliceMut<'_, u64>,
        reported: &mut SearchProgress<'_>,
    ) -> Result<Found, AttemptError> {
        let DeviceSearch { trees, lanes, rows, strategy } = search;
        let sizes = Sizes::of(&sorted, stream, rows, base, keys_before)?;
        let mut numbers = stream.alloc_uninit(sizes.numbers)?;
        reported.mark("sizes")?;
        let buckets = Buckets { lows: &mut sorted.lows, bounds: &sorted.bounds, first_number: &sizes.first_number };
        let is_asked = reported.is_asked();
        let mut report = |share| reported.done(share);
        let report = is_asked.then_some(&mut report as &mut dyn FnMut(f64) -> _);
        if let Err(unsolved) = search::find(stream, *strategy, trees, buckets, &mut numbers, report)? {
            return Err(AttemptError::Seed(sorted.explain(stream, unsolved.bucket)?));
        }
        reported.mark("search")?;
        Ok(Found { lanes: *lanes, rows: rows.clone(), sorted, sizes, numbers })
    }

    fn device_tables(
        device: &Device,
        parameters: &Parameters<Self>,
        words: u64,
        width: u32,
    ) -> Result<Self::DeviceTables, Error> {
        let rows: Vec<u64> = parameters.tables.rows().iter().flat_map(|row| row.to_words()).collect();
        let remix = parameters.header.code.remix as u32;
        Tables::new(device, &rows, FunctionPlan { plan: parameters.tables.plan, words, remix, width })
    }

    device_lookups! { Plan, recsplit_lookup, recsplit_contains }
}
