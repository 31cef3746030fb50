//! RecSplit on devices: the search for the numbers of all trees, their bits, and lookups.

mod encode;
mod node_lists;
mod rows;
mod search;
mod sizes;
mod strategy;
mod tables;

use std::sync::Arc;

use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::lookup::{recsplit_contains, recsplit_lookup};
use warpset_simt::Global;

use super::{RecSplitKind, Search};
use crate::Error;
use crate::build::Settings;
use crate::function::Parameters;
use crate::gpu::{AttemptError, DeviceHashKind, Numbers, SearchProgress, Sorted};
use encode::{Found, Lanes};
use rows::Rows;
use search::{Buckets, DeviceTrees};
use sizes::Sizes;
pub use strategy::Strategy;
use tables::{Tables, one_thread_each};

/// What searches on one device have in common.
pub struct DeviceSearch {
    trees: DeviceTrees,
    lanes: Lanes,
    rows: Arc<Rows>,
    strategy: Strategy,
}

impl DeviceHashKind for RecSplitKind {
    type DeviceOptions = Strategy;
    type DeviceSearch = DeviceSearch;
    type Found = Found;
    type DeviceTables = Tables;

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

    fn device_tables(device: &Device, parameters: &Parameters<Self>, words: u64, width: u32) -> Result<Tables, Error> {
        Tables::new(device, parameters, words, width)
    }

    unsafe fn queue_numbers(
        tables: &Tables,
        stream: &Stream,
        words: Global<u64>,
        keys: KeySlice,
        n: usize,
        numbers: Numbers,
    ) -> Result<(), Error> {
        let KeySlice { keys, kind, seed, .. } = keys;
        let (rows, function) = (tables.rows(), tables.plan);
        let Numbers { form, table, out, .. } = numbers;
        // SAFETY: the rows are those of the function in `words`; the rest is the caller's promise.
        unsafe {
            recsplit_lookup { words, rows, function, keys, kind, seed, n, form, table, out }
                .launch(stream, one_thread_each(n))?
        };
        Ok(())
    }

    unsafe fn queue_answers(
        tables: &Tables,
        stream: &Stream,
        words: Global<u64>,
        fingerprints: u64,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        numbers: Numbers,
    ) -> Result<(), Error> {
        let KeySlice { keys, kind, seed, .. } = keys;
        let (rows, function) = (tables.rows(), tables.plan);
        let (found_form, found) = (answers.form, answers.words);
        let (form, numbers) = (numbers.form, numbers.out);
        // SAFETY: the rows are those of the function in `words`, which the fingerprints follow; the rest is the
        // caller's promise.
        unsafe {
            recsplit_contains {
                words,
                rows,
                function,
                fingerprints,
                keys,
                kind,
                seed,
                n,
                found_form,
                found,
                form,
                numbers,
            }
            .launch(stream, one_thread_each(n))?
        };
        Ok(())
    }
}
