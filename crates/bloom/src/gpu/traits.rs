//! The traits of filters, by the inherent methods.

use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::{BloomFilter, Error, Insert, Key, TestAndInsert, cpu};

/// The traits of insertion, for types that have inherent methods of the same names.
macro_rules! insertions {
    ($($filter:ty $(, $layout:ident)?;)*) => {$(
        impl$(<$layout: DeviceOneBlock>)? Insert for $filter {
            fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
                self.insert_bulk(keys)
            }
            fn clear(&mut self) -> Result<(), Error> {
                self.clear()
            }
            fn merge(&mut self, other: &Self) -> Result<(), Error> {
                self.merge(other)
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

    fn layout(&self) -> &L {
        self.layout()
    }
    fn intersect(&mut self, other: &Self) -> Result<(), Error> {
        self.intersect(other)
    }
    fn fold(&mut self, factor: u64) -> Result<(), Error> {
        self.fold(factor)
    }
    fn shrink_to_fpr(&mut self, fpr: f64) -> Result<u32, Error> {
        self.shrink_to_fpr(fpr)
    }
    fn any_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        self.any_contained_bulk(keys)
    }
    fn count_ones(&self) -> Result<u64, Error> {
        self.count_ones()
    }
    fn fpr(&self) -> Result<f64, Error> {
        self.fpr()
    }
    fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        self.measured_fpr(samples, seed)
    }
    fn to_host(&self) -> Result<cpu::Bloom<L>, Error> {
        self.to_host()
    }
}
