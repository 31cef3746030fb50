//! Words of standard quotient filters, laid out from ascending fingerprints.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::build::quotient_build;

use super::update::fill_by_superclusters;
use crate::cpu::check_fit;
use crate::gpu::fingerprints::{FingerprintWord, Fingerprints};
use crate::gpu::scan::{self, Arguments, ScanKernel};
use crate::gpu::zeroed_words;
use crate::{Error, Layout, Standard};

/// [`BuildMethod::SuperclusterInserts`](crate::BuildMethod::SuperclusterInserts).
pub(super) fn supercluster_inserts(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    if layout.slots() < 1 << 32 && sorted.len() < 1 << 32 {
        let unique;
        let sorted = if sorted.len() as u64 > layout.limit {
            // Of a set, or the caller would have refused them: what does not fit would take a round each to find out.
            unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            &unique
        } else {
            sorted
        };
        let mut words = zeroed_words(layout, stream)?;
        let filled = fill_by_superclusters(stream, layout, &mut words, sorted.copied(layout, stream)?)?;
        if filled.failed == 0 && filled.done <= layout.limit {
            return Ok((words, filled.done));
        }
    }
    // It says why they do not fit.
    scan(stream, layout, sorted)
}

/// [`BuildMethod::Scan`](crate::BuildMethod::Scan).
pub(super) fn scan(stream: &Stream, layout: &Layout, sorted: &Fingerprints) -> Result<(DeviceVec<u64>, u64), Error> {
    scan::scan::<Standard>(stream, layout, sorted)
}

impl ScanKernel for Standard {
    unsafe fn launch<F: FingerprintWord>(
        stream: &Stream,
        config: LaunchConfig,
        arguments: Arguments<F>,
    ) -> Result<(), Error> {
        let Arguments { fingerprints, n, parameters, slots, look_back, ticket, words, totals } = arguments;
        // SAFETY: the caller's promise is the same.
        unsafe {
            quotient_build { fingerprints, n, parameters, slots, look_back, ticket, words, totals }
                .launch(stream, config)?;
        }
        Ok(())
    }
}
