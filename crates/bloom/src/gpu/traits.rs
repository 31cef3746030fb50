//! Traits of filters, by the inherent methods.

use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::{BloomFilter, Error, TestAndInsert, cpu};

/// Implements insertion of device memory, by the inherent method.
macro_rules! insertions {
    ($($filter:ty $(, $layout:ident)?;)*) => {$(
        impl$(<$layout: DeviceOneBlock>)? DeviceInsert for $filter {
            fn hashing(&self) -> Hashing {
                self.layout.hashing()
            }
            fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
                self.insert_device(keys)
            }
        }
    )*};
}
insertions! {
    Bloom<L>, L;
    RaoBloom;
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
