//! Placement on devices: lookups, and builds. The device hashes and sorts the keys and makes the lists; the host places
//! the keys of its segments.

use rayon::prelude::*;
use warpset_core::placement::lookup::Plan;
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::placement::lookup::{FunctionPlan, placement_contains, placement_lookup};

use super::{PlacementKind, Scratch, Search};
use crate::Error;
use crate::bit_vec::BitVec;
use crate::build::Settings;
use crate::consensus::gpu::Found;
use crate::elias_fano::Least;
use crate::function::Parameters;
use crate::gpu::{AttemptError, DeviceHashKind, SearchProgress, Sorted, Tables, device_lookups, sealed};
use crate::kind::sealed::HashKind;
use crate::kind::{Bucket, Buckets};

impl DeviceHashKind for PlacementKind {}

impl sealed::DeviceHashKind for PlacementKind {
    type DeviceOptions = ();
    type DeviceSearch = Search;
    type Found = Found;

    fn device_search(_: &Stream, _: &Settings<Self>, search: &Search, (): ()) -> Result<Search, Error> {
        Ok(search.clone())
    }

    fn largest(search: &Search) -> u32 {
        search.largest
    }

    fn find(
        search: &Search,
        stream: &Stream,
        sorted: Sorted,
        base: u64,
        mut keys_before: DeviceSliceMut<'_, u64>,
        reported: &mut SearchProgress<'_>,
    ) -> Result<Found, AttemptError> {
        let (mut bounds, mut lows) = (vec![0; sorted.bounds.len()], vec![0; sorted.lows.len()]);
        stream.download(&sorted.bounds, &mut bounds)?;
        stream.download(&sorted.lows, &mut lows)?;
        let ends: Vec<u64> = bounds[1..].iter().map(|&end| base + u64::from(end)).collect();
        stream.upload(&mut keys_before, &ends)?;
        reported.mark("sizes")?;
        let encode = |scratch: &mut Scratch, segment: &[u32]| {
            let keys = &mut lows[segment[0] as usize..segment[1] as usize].to_vec();
            let buckets = Buckets { bounds: &[0, keys.len() as u32], keys };
            Self::encode(search, false, buckets, &mut [Bucket::default()], &mut Least::default(), scratch)
        };
        let parts: Vec<_> = bounds.par_windows(2).map_init(Scratch::default, encode).collect();
        let (mut bits, mut first_bit, mut largest) = (BitVec::default(), vec![0], 0);
        for (bucket, part) in parts.into_iter().enumerate() {
            let Ok(part) = part else { return Err(AttemptError::Seed(sorted.explain(stream, bucket)?)) };
            bits.append(&part.bits);
            first_bit.push(bits.len());
            largest = largest.max(part.largest);
        }
        let words: Vec<u64> = bits.words().collect();
        let (first_bit, words) = (stream.from_slice(&first_bit)?, stream.from_slice(&words)?);
        reported.mark("search")?;
        Ok(Found { bounds: sorted.bounds, first_bit, words, largest })
    }

    fn device_tables(
        device: &Device,
        parameters: &Parameters<Self>,
        words: u64,
        width: u32,
    ) -> Result<Self::DeviceTables, Error> {
        let rows: Vec<u64> = parameters.tables.segments().iter().flat_map(|segment| segment.to_words()).collect();
        let plan = Plan { keys: parameters.header.keys, segments: parameters.header.layout.buckets };
        Tables::new(device, &rows, FunctionPlan { plan, words, remix: 0, width })
    }

    device_lookups! { Plan, placement_lookup, placement_contains }
}
