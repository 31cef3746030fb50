//! Traits of filters, by the inherent methods.

use warpset_gpu::DeviceSlice;
use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;
use warpset_primitives::radix::MAX_DIGIT_BITS;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::{BloomFilter, Error, Hashed, TestAndInsert, cpu};

impl<L: DeviceOneBlock> DeviceInsert for Bloom<L> {
    fn hashing(&self) -> Hashing {
        self.layout.hashing()
    }
    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        self.insert_device(keys)
    }
    fn region_bits(&self, n: usize) -> Option<u32> {
        // With one bit less a region is of half the cache to all of it.
        self.group_bits(n)
            .map(|bits| if bits == MAX_DIGIT_BITS + 1 { bits - 1 } else { bits })
            .filter(|bits| (1..=MAX_DIGIT_BITS).contains(bits))
    }
    fn insert_regions_device(&mut self, hashes: DeviceSlice<'_, Hashed>) -> Result<(), Error> {
        self.insert_grouped_hashes(hashes)
    }
}

impl DeviceInsert for RaoBloom {
    fn hashing(&self) -> Hashing {
        self.layout.hashing()
    }
    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
        self.insert_device(keys)
    }
}

impl<L: DeviceLayout> BloomFilter for Bloom<L>
where
    Bloom<L>: TestAndInsert<Error = Error>,
{
    type Layout = L;

    warpset_base::by_inherent! {
        fn layout(&self) -> &L;
        fn intersect(&mut self, other: &Self) -> Result<(), Error>;
        fn fold(&mut self, factor: u64) -> Result<(), Error>;
        fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error>;
        fn count_ones(&self) -> Result<u64, Error>;
        fn fpr(&self) -> Result<f64, Error>;
        fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error>;
        fn to_host(&self) -> Result<cpu::Bloom<L>, Error>;
    }
}
