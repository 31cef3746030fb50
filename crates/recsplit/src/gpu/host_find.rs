//! The numbers of trees whose keys are on a device, found on the host.

use warpset_core::recsplit::Method;
use warpset_gpu::{DeviceVec, Stream};

use crate::Error;
use crate::find::cpu::CpuFinder;
use crate::find::{Buckets, Finder, Simd, Trees, Unsolved};

/// Writes the numbers of all nodes of `buckets` buckets to `numbers`, in the order that [`crate::find`] describes. Waits.
pub(super) fn find(
    stream: &Stream,
    trees: &Trees,
    lows: &mut DeviceVec<u64>,
    bounds: &DeviceVec<u32>,
    buckets: usize,
    numbers: &mut DeviceVec<u64>,
) -> Result<Result<(), Unsolved>, Error> {
    let (mut keys, mut ends) = (vec![0; lows.len()], vec![0; buckets + 1]);
    stream.download(lows.as_slice(), &mut keys)?;
    stream.download(bounds.slice(..buckets + 1), &mut ends)?;
    if trees.shape.method() == Method::Grouped {
        for ends in ends.windows(2) {
            keys[ends[0] as usize..ends[1] as usize].sort_unstable_by_key(|&low| low as u8);
        }
    }
    let mut found = vec![0; numbers.len()];
    let finder = CpuFinder::new(Simd::Auto, trees.remix, f64::INFINITY);
    let buckets = Buckets { keys: &mut keys, bounds: &ends };
    let result = finder.find(trees, buckets, &mut found, &mut Default::default());
    stream.upload(numbers.as_mut_slice(), &found)?;
    Ok(result)
}
