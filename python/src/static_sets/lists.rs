//! All elements of a static set or map, as arrays.

use pyo3::prelude::*;
use warpset::static_sets::gpu::DeviceMapValue;
use warpset::static_sets::{MappedStaticMap, MappedStaticSet, StaticMap as Host, StaticSet as HostSet};

use super::lookups::SetKey;
use crate::either;
use crate::error::Result;
use crate::kinds::Either;
use crate::output::array;
use crate::structure::{ALL_OF_IT, Object, Structure, Where};

/// An array of one of the types of keys and values.
pub enum Column {
    Wide(Vec<u64>),
    Narrow(Vec<u32>),
}

impl Column {
    pub fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Column::Wide(items) => array(py, items),
            Column::Narrow(items) => array(py, items),
        }
    }
}

/// An item of a [`Column`].
pub trait Listed: Sized {
    fn into_column(items: Vec<Self>) -> Column;
}

impl Listed for u64 {
    fn into_column(items: Vec<u64>) -> Column {
        Column::Wide(items)
    }
}

impl Listed for u32 {
    fn into_column(items: Vec<u32>) -> Column {
        Column::Narrow(items)
    }
}

/// All keys of a set or map with their values, in the order of their numbers.
pub struct Elements {
    pub keys: Column,
    /// Empty for sets.
    pub values: Column,
}

/// Set or map that lists its elements.
pub trait Lists {
    fn listed(&self) -> Elements;
}

macro_rules! lists {
    ($($set:ty, $map:ty;)*) => {$(
        impl<K: SetKey + Listed> Lists for $set {
            fn listed(&self) -> Elements {
                Elements { keys: K::into_column(self.view().keys().collect()), values: Column::Wide(Vec::new()) }
            }
        }

        impl<K: SetKey + Listed, V: DeviceMapValue + Listed> Lists for $map {
            fn listed(&self) -> Elements {
                let (keys, values) = self.view().iter().unzip();
                Elements { keys: K::into_column(keys), values: V::into_column(values) }
            }
        }
    )*};
}
lists! {
    HostSet<K>, Host<K, V>;
    MappedStaticSet<K>, MappedStaticMap<K, V>;
}

impl<A: Lists, B: Lists> Lists for Either<A, B> {
    fn listed(&self) -> Elements {
        either!(self, |it| it.listed())
    }
}

/// Returns all elements of a set or map in any place.
pub fn elements<S: Structure<Host: Lists, Mapped: Lists>>(object: &Object<S>, py: Python<'_>) -> Result<Elements> {
    object.read(py, None, ALL_OF_IT, |value| {
        Ok(match value {
            Where::Host(value) => value.listed(),
            Where::Mapped(value, _) => value.listed(),
            Where::Device(there) => S::to_host(there)?.listed(),
        })
    })
}
