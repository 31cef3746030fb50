//! Keys and payloads in the form of kernels of all widths.

use warpset_gpu::{DeviceSlice, DeviceSliceMut};
use warpset_simt::{Global, GlobalMut};

use super::{Payload, SortKey};

/// Keys and payloads of any type, for reading.
#[derive(Clone, Copy)]
pub(crate) struct SortInput {
    pub(crate) keys: Global<u8>,
    pub(crate) values: Global<u8>,
}

/// Output of the sorted keys and values.
#[derive(Clone, Copy)]
pub(crate) struct SortOutput {
    pub(crate) keys: GlobalMut<u8>,
    pub(crate) values: GlobalMut<u8>,
}

impl SortInput {
    pub(crate) fn keys<K: SortKey>(keys: DeviceSlice<'_, K>) -> SortInput {
        SortInput { keys: keys.global().cast(), values: Global::from_raw_parts(std::ptr::null(), 0) }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>(keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> SortInput {
        SortInput { keys: keys.global().cast(), values: values.global().cast() }
    }
}

impl SortOutput {
    pub(crate) fn keys<K: SortKey>(mut keys: DeviceSliceMut<'_, K>) -> SortOutput {
        SortOutput { keys: keys.global_mut().cast(), values: GlobalMut::from_raw_parts(std::ptr::null_mut(), 0) }
    }

    pub(crate) fn pairs<K: SortKey, V: Payload>(
        mut keys: DeviceSliceMut<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
    ) -> SortOutput {
        SortOutput { keys: keys.global_mut().cast(), values: values.global_mut().cast() }
    }

    pub(crate) fn as_source(self) -> SortInput {
        SortInput { keys: self.keys.as_const(), values: self.values.as_const() }
    }
}
