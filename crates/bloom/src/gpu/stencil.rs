//! Insertion and lookup of keys on the device under a stencil. (For keys on the host, the traits
//! [`Filter`](crate::Filter) and [`Insert`](crate::Insert) have methods of these names.)

use warpset_gpu::batch::{Answers, Stencil};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_primitives::select::select_keys_device;

use super::query::LOOKUP;
use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::Error;

impl<L: DeviceLayout> Bloom<L> {
    /// Whether each key may be in the filter and is meant by the stencil, bytes or bits: answer `i` becomes 1 or 0.
    ///
    /// All keys are looked up, and then the answers masked, which adds a pass over one bit or byte per key. Where a stencil
    /// means few keys of a batch, select those first ([`warpset_primitives::select`]).
    ///
    /// ```
    /// use warpset_bloom::SplitBlockBloom;
    /// use warpset_gpu::Device;
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let odd = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[1u64, 3, 5, 7])?;
    /// let prime = SplitBlockBloom::builder(100).fpr(0.001).on(&device).build_from(&[2u64, 3, 5, 7])?;
    /// let keys = device.from_slice(&[1u64, 2, 3, 4])?;
    /// let mut answers = device.alloc_zeroed::<u64>(1)?;
    /// odd.contains_bitmap_device(keys.as_slice(), answers.as_mut_slice())?;
    /// let mut both = device.alloc_zeroed::<u64>(1)?;
    /// prime.contains_if_bitmap_device(keys.as_slice(), &answers, both.as_mut_slice())?;
    /// assert_eq!(both.to_vec()?, [0b0100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if stencil or answers have fewer places than there are keys; memory of another device.
    pub fn contains_if_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        self.waiting_query(|stream| unsafe { self.contains_if_async(stream, keys, stencil, answers) })
    }

    /// Queues [`Bloom::contains_if_device`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`]; the stencil stays as the keys do.
    pub unsafe fn contains_if_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer_if_async(stream, keys, stencil.into(), there, answers) }
    }

    /// [`Bloom::contains_if_device`] as one bit per key: bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// As there.
    pub fn contains_if_bitmap_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        self.waiting_query(|stream| unsafe { self.contains_if_bitmap_async(stream, keys, stencil, answers) })
    }

    /// Queues [`Bloom::contains_if_bitmap_device`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`Bloom::contains_if_async`].
    pub unsafe fn contains_if_bitmap_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let there = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer_if_async(stream, keys, stencil.into(), there, answers) }
    }

    /// # Safety
    /// As for [`Bloom::contains_if_async`]; `answers` has room, on the device `there`.
    unsafe fn answer_if_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: Stencil<'_>,
        there: &Device,
        answers: Answers,
    ) -> Result<(), Error> {
        stencil.expect_for(keys.count())?;
        if keys.count() > 0 {
            self.expect_here(LOOKUP, [stencil.device()])?;
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.answer_async(stream, keys, there, answers)?;
            Ok(stencil.apply(stream, answers, keys.count())?)
        }
    }
}

macro_rules! insert_if {
    ($([$($generics:tt)*] $filter:ty;)*) => {$(
        impl<$($generics)*> $filter {
            /// Inserts the keys on the device that the stencil, bytes or bits, means.
            ///
            /// They are selected first: that takes memory for all keys, 4 or 8 bytes each (strings: 8), and a pass over
            /// keys and stencil; the insertion is one of as many keys as are meant.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if the stencil has fewer places than there are keys; a stencil of another device;
            /// what the insertion of keys on the device adds.
            pub fn insert_if_device<'s, K: DeviceKeys>(
                &mut self,
                keys: K,
                stencil: impl Into<Stencil<'s>>,
            ) -> Result<(), Error> {
                let stencil = stencil.into();
                stencil.expect_for(keys.count())?;
                if keys.count() == 0 {
                    return Ok(());
                }
                self.expect_here("an insertion into a Bloom filter", [keys.device(), stencil.device()])?;
                let selected = select_keys_device(keys, &self.layout.hashing(), stencil)?;
                self.insert_device(selected.as_keys())
            }
        }
    )*};
}
insert_if! {
    [L: DeviceOneBlock] Bloom<L>;
    [] RaoBloom;
}
