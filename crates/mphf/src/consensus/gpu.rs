//! Consensus on devices: the search for the codes of all buckets, and lookups.

mod search;
mod tables;

use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::consensus::lookup::{consensus_contains, consensus_lookup};
use warpset_simt::Global;

use super::{ConsensusKind, Search};
use crate::Error;
use crate::build::Settings;
use crate::function::Parameters;
use crate::gpu::{AttemptError, DeviceHashKind, Numbers, SearchProgress, Sorted};
pub use search::{DeviceSearch, Found};
pub use tables::Tables;
use tables::one_thread_each;

impl DeviceHashKind for ConsensusKind {
    type DeviceOptions = ();
    type DeviceSearch = DeviceSearch;
    type Found = Found;
    type DeviceTables = Tables;

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
            consensus_lookup { words, rows, function, keys, kind, seed, n, form, table, out }
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
            consensus_contains {
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
