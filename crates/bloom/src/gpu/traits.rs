//! The traits of filters, by the inherent methods.

use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::{BloomFilter, Error, Insert, Key, TestAndInsert, cpu};

/// The traits of insertion, for types that have inherent methods of the same names.
macro_rules! insertions {
    ($($filter:ty $(, $layout:ident)?;)*) => {$(
        impl$(<$layout: DeviceOneBlock>)? Insert for $filter {
            warpset_base::by_inherent! {
                fn insert_bulk[K: Key](&mut self, keys: &[K]) -> Result<(), Error>;
                fn clear(&mut self) -> Result<(), Error>;
                fn merge(&mut self, other: &Self) -> Result<(), Error>;
            }
        }

        impl$(<$layout: DeviceOneBlock>)? DeviceInsert for $filter {
            type Inserted = ();

            fn hashing(&self) -> Hashing {
                self.layout.hashing()
            }
            fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<(), Error> {
                self.insert_device(keys)
            }
        }

        impl$(<$layout: DeviceOneBlock>)? TestAndInsert for $filter {
            fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
                self.test_and_insert_bulk(keys)
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
        fn any_contained_bulk[K: Key](&self, keys: &[K]) -> Result<bool, Error>;
        fn count_ones(&self) -> Result<u64, Error>;
        fn fpr(&self) -> Result<f64, Error>;
        fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error>;
        fn to_host(&self) -> Result<cpu::Bloom<L>, Error>;
    }
}
