//! Keys and values on devices: their kernels, and their forms in the primitives.

use bytemuck::Pod;
use warpset_gpu::batch::DeviceKey;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_kernels::static_set::build::static_set_build;
use warpset_kernels::static_set::lookup::{VALUES_32, VALUES_64};
use warpset_primitives::select::{Item, unique_async, unique_by_key_async};
use warpset_primitives::sort::{By, Payload, sort_keys_in_place_async, sort_pairs_async};
use warpset_simt::EntryOf;

use crate::{Error, MapValue, StaticKey, Value};

/// Keys of sets in device memory: `u32` and `u64`. Sealed.
pub trait DeviceStaticKey: StaticKey + DeviceKey + EntryOf<static_set_build<Self>> {}
impl DeviceStaticKey for u32 {}
impl DeviceStaticKey for u64 {}

/// Values of maps in device memory: `u32`, `u64`, and `()` of sets. Sealed.
pub trait DeviceValue: Value + sealed::Sorted {}
impl DeviceValue for u32 {}
impl DeviceValue for u64 {}
impl DeviceValue for () {}

/// Values that lookups on devices can return: `u32` and `u64`. Sealed.
pub trait DeviceMapValue: DeviceValue + MapValue + Into<u64> {
    /// Form of the value in kernels.
    #[doc(hidden)]
    const WANTED: u32;
}
impl DeviceMapValue for u32 {
    const WANTED: u32 = VALUES_32;
}
impl DeviceMapValue for u64 {
    const WANTED: u32 = VALUES_64;
}

pub(super) mod sealed {
    use super::*;

    /// Ascending, different hashes at the beginning of a vector, their values, and their number.
    pub struct Distinct<T: Pod> {
        pub hashes: DeviceVec<u64>,
        pub values: DeviceVec<T>,
        pub len: usize,
    }

    pub trait Sorted: Sized {
        /// Stored form of a value; `()` stores nothing, whatever the type.
        type Stored: Pod;
        /// The value in 64 bits, as it travels between devices.
        type Wide: Sorted<Stored = u64>;
        /// Words of 32 bits in a value.
        const WORDS: u32;
        /// Sorts hashes with their values, and drops all but the last of equal ones. Waits for their number.
        ///
        /// # Safety
        /// Until `stream` has passed this work the values stay allocated, and nothing writes them.
        unsafe fn distinct(
            stream: &Stream,
            hashes: DeviceVec<u64>,
            values: DeviceSlice<'_, Self::Stored>,
        ) -> Result<Distinct<Self::Stored>, Error>;
    }

    impl Sorted for () {
        type Stored = u64;
        type Wide = ();
        const WORDS: u32 = 0;

        unsafe fn distinct(
            stream: &Stream,
            mut hashes: DeviceVec<u64>,
            _: DeviceSlice<'_, u64>,
        ) -> Result<Distinct<u64>, Error> {
            // SAFETY: this function owns all vectors, and they are freed in the order of the stream.
            unsafe {
                sort_keys_in_place_async(stream, &mut hashes, By::ascending())?;
                let mut distinct = stream.alloc_uninit(hashes.len())?;
                let mut count = stream.alloc_zeroed::<u64>(1)?;
                unique_async(stream, hashes.as_slice(), distinct.as_mut_slice(), count.as_mut_slice())?;
                let len = stream.download_first(&count)? as usize;
                Ok(Distinct { hashes: distinct, values: stream.alloc_uninit(0)?, len })
            }
        }
    }

    macro_rules! values {
        ($($value:ty: $words:literal;)*) => {$(
            impl Sorted for $value {
                type Stored = $value;
                type Wide = u64;
                const WORDS: u32 = $words;
                unsafe fn distinct(
                    stream: &Stream,
                    hashes: DeviceVec<u64>,
                    values: DeviceSlice<'_, $value>,
                ) -> Result<Distinct<$value>, Error> {
                    // SAFETY: the contracts are the same.
                    unsafe { distinct_pairs(stream, hashes, values) }
                }
            }
        )*};
    }
    values! {
        u32: 1;
        u64: 2;
    }

    /// Sorts hashes with values that take memory.
    ///
    /// # Safety
    /// The contract of [`Sorted::distinct`].
    unsafe fn distinct_pairs<V: Payload + Item>(
        stream: &Stream,
        hashes: DeviceVec<u64>,
        values: DeviceSlice<'_, V>,
    ) -> Result<Distinct<V>, Error> {
        let n = hashes.len();
        let (mut sorted, mut sorted_values) = (stream.alloc_uninit::<u64>(n)?, stream.alloc_uninit::<V>(n)?);
        // SAFETY: this function owns all vectors, and they are freed in the order of the stream; the values stay
        // allocated, by this function's contract.
        unsafe {
            let by = By::ascending().last_first();
            sort_pairs_async(stream, hashes.as_slice(), values, &mut sorted, &mut sorted_values, by)?;
        }
        // The memory of the unsorted hashes is reused for the distinct ones.
        let (mut distinct, mut distinct_values) = (hashes, stream.alloc_uninit::<V>(n)?);
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: this function owns all vectors, and they are freed in the order of the stream.
        unsafe {
            unique_by_key_async(
                stream,
                sorted.as_slice(),
                sorted_values.as_slice(),
                distinct.as_mut_slice(),
                distinct_values.as_mut_slice(),
                count.as_mut_slice(),
            )?;
        }
        let len = stream.download_first(&count)? as usize;
        Ok(Distinct { hashes: distinct, values: distinct_values, len })
    }
}
