//! The lookups of filters in device memory, written once.

#[doc(hidden)]
pub use warpset_base::bitmap::Bitmap;
#[doc(hidden)]
pub use warpset_base::filter::{Filter, same_length};
#[doc(hidden)]
pub use warpset_base::key::Key;
#[doc(hidden)]
pub use warpset_gpu::batch::{Answers, DeviceKey, Stencil, answers_bitmap, answers_count, answers_into};
#[doc(hidden)]
pub use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

/// Gives filters in device memory their lookups of keys on the host, and the trait `Filter`. Documentation shows the methods as
/// each type's own.
///
/// Each line names generic parameters, the filter, and the error of its crate. The filter has
/// - `fn memory_bytes(&self) -> u64`;
/// - `fn answer<K: Key>(&self, keys: &[K], take: impl FnMut(usize, &[u64])) -> Result<(), Error>`, which brings one bit per key of
///   a host slice to `take`, chunk by chunk in any order, each from a multiple of 64 on.
#[doc(hidden)]
#[macro_export]
macro_rules! bulk_lookups {
    ($([$($generics:tt)*] $filter:ty, $error:ty;)*) => {$(
        /// Lookups of keys on the host: keys of any kind; those that are no integers are hashed on the host.
        impl<$($generics)*> $filter {
            /// Whether each key may be in the filter, in the order of the keys.
            ///
            /// # Errors
            /// Of the device.
            pub fn contains_bulk<K: $crate::lookups::Key>(&self, keys: &[K]) -> Result<Vec<bool>, $error> {
                let mut answers = vec![false; keys.len()];
                self.contains_bulk_into(keys, &mut answers)?;
                Ok(answers)
            }

            /// [`contains_bulk`](Self::contains_bulk) into a slice of the same length.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`], and of the device.
            pub fn contains_bulk_into<K: $crate::lookups::Key>(
                &self,
                keys: &[K],
                answers: &mut [bool],
            ) -> Result<(), $error> {
                $crate::lookups::same_length(keys.len(), answers.len())?;
                $crate::lookups::answers_into(answers, |take| self.answer(keys, take))
            }

            /// [`contains_bulk`](Self::contains_bulk) as bytes 0 and 1.
            ///
            /// # Errors
            /// As for [`contains_bulk_into`](Self::contains_bulk_into).
            pub fn contains_bytes_bulk_into<K: $crate::lookups::Key>(
                &self,
                keys: &[K],
                answers: &mut [u8],
            ) -> Result<(), $error> {
                $crate::lookups::same_length(keys.len(), answers.len())?;
                $crate::lookups::answers_into(answers, |take| self.answer(keys, take))
            }

            /// [`contains_bulk`](Self::contains_bulk) as one bit per key.
            ///
            /// # Errors
            /// Of the device.
            pub fn contains_bitmap_bulk<K: $crate::lookups::Key>(
                &self,
                keys: &[K],
            ) -> Result<$crate::lookups::Bitmap, $error> {
                $crate::lookups::answers_bitmap(keys.len(), |take| self.answer(keys, take))
            }

            /// How many of the keys may be in the filter.
            ///
            /// # Errors
            /// Of the device.
            pub fn count_contained_bulk<K: $crate::lookups::Key>(&self, keys: &[K]) -> Result<usize, $error> {
                $crate::lookups::answers_count(|take| self.answer(keys, take))
            }

            /// Drops the keys that are surely not in the filter; the others keep their order.
            ///
            /// # Errors
            /// Of the device.
            pub fn retain_contained_bulk<K: $crate::lookups::Key>(&self, keys: &mut Vec<K>) -> Result<(), $error> {
                let answers = self.contains_bitmap_bulk(keys)?;
                let mut answers = answers.iter();
                keys.retain(|_| answers.next() == Some(true));
                Ok(())
            }
        }

        impl<$($generics)*> $crate::lookups::Filter for $filter {
            type Error = $error;

            fn contains_bulk_into<K: $crate::lookups::Key>(
                &self,
                keys: &[K],
                answers: &mut [bool],
            ) -> Result<(), $error> {
                self.contains_bulk_into(keys, answers)
            }
            fn contains_bitmap_bulk<K: $crate::lookups::Key>(
                &self,
                keys: &[K],
            ) -> Result<$crate::lookups::Bitmap, $error> {
                self.contains_bitmap_bulk(keys)
            }
            fn count_contained_bulk<K: $crate::lookups::Key>(&self, keys: &[K]) -> Result<usize, $error> {
                self.count_contained_bulk(keys)
            }
            fn memory_bytes(&self) -> u64 {
                self.memory_bytes()
            }
        }
    )*};
}

/// The same, and the lookups of keys on the device.
///
/// Each line also names, before the error, which keys on the device the filter takes. The filter also has
/// - `fn device(&self) -> &Device`;
/// - `unsafe fn answer_async<K: Keys>(&self, stream: &Stream, keys: K, others: &[&Device], answers: Answers) -> Result<(), Error>`,
///   which queues the answers to keys on the device. It does nothing if there are no keys, and else refuses keys, a stream or
///   `others` of another device. Its contract: `answers` has room; until `stream` has passed this work, the filter, the keys and
///   the answers stay allocated, nothing writes filter and keys, and nothing else accesses the answers.
#[doc(hidden)]
#[macro_export]
macro_rules! lookups {
    ($([$($generics:tt)*] $filter:ty, $keys:path, $error:ty;)*) => {$(
        $crate::bulk_lookups! { [$($generics)*] $filter, $error; }

        /// Lookups of keys on the device.
        impl<$($generics)*> $filter {
            /// Whether each key may be in the filter: answer `i` becomes 1 or 0.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device.
            pub fn contains_device<K: $keys>(
                &self,
                keys: K,
                answers: $crate::lookups::DeviceSliceMut<'_, u8>,
            ) -> Result<(), $error> {
                // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
                self.device().waiting(|stream| unsafe { self.contains_async(stream, keys, answers) })
            }

            /// Queues [`contains_device`](Self::contains_device).
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// Until `stream` has passed this work:
            /// - the filter, `keys` and `answers` stay allocated;
            /// - nothing writes the filter or the keys, and nothing else accesses the answers.
            pub unsafe fn contains_async<K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                answers: $crate::lookups::DeviceSliceMut<'_, u8>,
            ) -> Result<(), $error> {
                let there = answers.device();
                let answers = $crate::lookups::Answers::bytes(answers, keys.count())?;
                // SAFETY: there is room; the rest is the caller's promise.
                unsafe { self.answer_async(stream, keys, &[there], answers) }
            }

            /// Whether each key may be in the filter: answer `i` becomes bit `i % 64` of word `i / 64`; bits past the last key become
            /// zero.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if there are fewer bits than keys; memory of another device.
            pub fn contains_bitmap_device<K: $keys>(
                &self,
                keys: K,
                answers: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
                self.device().waiting(|stream| unsafe { self.contains_bitmap_async(stream, keys, answers) })
            }

            /// Queues [`contains_bitmap_device`](Self::contains_bitmap_device).
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// As for [`contains_async`](Self::contains_async).
            pub unsafe fn contains_bitmap_async<K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                answers: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                let there = answers.device();
                let answers = $crate::lookups::Answers::bits(answers, keys.count())?;
                // SAFETY: there is room; the rest is the caller's promise.
                unsafe { self.answer_async(stream, keys, &[there], answers) }
            }

            /// How many of the keys may be in the filter.
            ///
            /// # Errors
            /// Memory of another device.
            pub fn count_contained_device<K: $keys>(&self, keys: K) -> Result<usize, $error> {
                self.device().waiting(|stream| {
                    let mut count = stream.alloc_zeroed::<u64>(1)?;
                    // SAFETY: filter and keys are borrowed until the stream has been waited for, and the count is freed in its
                    // order.
                    unsafe { self.count_contained_async(stream, keys, count.as_mut_slice())? };
                    Ok(stream.download_first(&count)? as usize)
                })
            }

            /// Queues the count of the keys that may be in the filter: adds it to the first word of `count`.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if `count` is empty and `keys` are not; memory of another device.
            ///
            /// # Safety
            /// As for [`contains_async`](Self::contains_async); but other such counts may add to the same word at the same time.
            pub unsafe fn count_contained_async<K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                count: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                if keys.count() == 0 {
                    return Ok(());
                }
                let there = count.device();
                let answers = $crate::lookups::Answers::count(count, keys.count())?;
                // SAFETY: there is room; the rest is the caller's promise.
                unsafe { self.answer_async(stream, keys, &[there], answers) }
            }

            /// Selects the keys that may be in the filter: they go to the start of `retained`, in order. Returns their number.
            ///
            /// # Errors
            /// Memory of another device; `retained` shorter than `keys`.
            pub fn retain_contained_device<K: $crate::lookups::DeviceKey + $crate::select::Item>(
                &self,
                keys: $crate::lookups::DeviceSlice<'_, K>,
                retained: $crate::lookups::DeviceSliceMut<'_, K>,
            ) -> Result<usize, $error> {
                self.device().waiting(|stream| {
                    let mut count = stream.alloc_zeroed::<u64>(1)?;
                    // SAFETY: filter, keys and places are borrowed until the stream has been waited for; the borrows do not
                    // overlap.
                    unsafe { self.retain_contained_async(stream, keys, retained, count.as_mut_slice())? };
                    Ok(stream.download_first(&count)? as usize)
                })
            }

            /// Queues [`retain_contained_device`](Self::retain_contained_device); the number goes to the first word of `count`.
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// As for [`contains_async`](Self::contains_async), `retained` and `count` being the answers; `keys` and `retained` do
            /// not overlap.
            pub unsafe fn retain_contained_async<K: $crate::lookups::DeviceKey + $crate::select::Item>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: $crate::lookups::DeviceSlice<'_, K>,
                retained: $crate::lookups::DeviceSliceMut<'_, K>,
                count: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                let n = keys.len();
                let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
                let answers = $crate::lookups::Answers::bits(bitmap.as_mut_slice(), n)?;
                // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
                unsafe {
                    self.answer_async(stream, keys, &[retained.device(), count.device()], answers)?;
                    $crate::select::select_async(stream, keys, bitmap.as_slice(), retained, count)?;
                }
                Ok(())
            }

            /// Selects the keys that may be in the filter by number: the places that they have in `keys` go to the start of
            /// `retained`, in order. Returns how many there are. For strings too, which stay where they are.
            ///
            /// # Errors
            /// As for [`retain_contained_device`](Self::retain_contained_device).
            pub fn retain_contained_indices_device<K: $keys>(
                &self,
                keys: K,
                retained: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<usize, $error> {
                self.device().waiting(|stream| {
                    let mut count = stream.alloc_zeroed::<u64>(1)?;
                    // SAFETY: filter, keys and places are borrowed until the stream has been waited for.
                    unsafe { self.retain_contained_indices_async(stream, keys, retained, count.as_mut_slice())? };
                    Ok(stream.download_first(&count)? as usize)
                })
            }

            /// Queues [`retain_contained_indices_device`](Self::retain_contained_indices_device); the number goes to the first word
            /// of `count`.
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// As for [`contains_async`](Self::contains_async), `retained` and `count` being the answers.
            pub unsafe fn retain_contained_indices_async<K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                retained: $crate::lookups::DeviceSliceMut<'_, u64>,
                count: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                let n = keys.count();
                let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
                let answers = $crate::lookups::Answers::bits(bitmap.as_mut_slice(), n)?;
                // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
                unsafe {
                    self.answer_async(stream, keys, &[retained.device(), count.device()], answers)?;
                    $crate::select::select_indices_async(stream, n, bitmap.as_slice(), retained, count)?;
                }
                Ok(())
            }
        }

        /// Lookups of keys on the device under a stencil. (For keys on the host, the trait `Filter` has methods of these names.)
        ///
        /// All keys are looked up, and then the answers masked, which adds a pass over one bit or byte per key. Where a stencil means
        /// few keys of a batch, select those first (`warpset_primitives::select`).
        impl<$($generics)*> $filter {
            /// Whether each key may be in the filter and is meant by the stencil, bytes or bits: answer `i` becomes 1 or 0.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if stencil or answers have fewer places than there are keys; memory of another device.
            pub fn contains_if_device<'s, K: $keys>(
                &self,
                keys: K,
                stencil: impl Into<$crate::lookups::Stencil<'s>>,
                answers: $crate::lookups::DeviceSliceMut<'_, u8>,
            ) -> Result<(), $error> {
                // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
                self.device().waiting(|stream| unsafe { self.contains_if_async(stream, keys, stencil, answers) })
            }

            /// Queues [`contains_if_device`](Self::contains_if_device).
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// As for [`contains_async`](Self::contains_async); the stencil stays as the keys do.
            pub unsafe fn contains_if_async<'s, K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                stencil: impl Into<$crate::lookups::Stencil<'s>>,
                answers: $crate::lookups::DeviceSliceMut<'_, u8>,
            ) -> Result<(), $error> {
                let (n, stencil, there) = (keys.count(), stencil.into(), answers.device());
                stencil.expect_for(n)?;
                let answers = $crate::lookups::Answers::bytes(answers, n)?;
                // SAFETY: there is room, and the stencil is for all keys; the rest is the caller's promise.
                unsafe {
                    self.answer_async(stream, keys, &[there, stencil.device()], answers)?;
                    Ok(stencil.apply(stream, answers, n)?)
                }
            }

            /// [`contains_if_device`](Self::contains_if_device) as one bit per key: bit `i % 64` of word `i / 64`.
            ///
            /// # Errors
            /// As there.
            pub fn contains_if_bitmap_device<'s, K: $keys>(
                &self,
                keys: K,
                stencil: impl Into<$crate::lookups::Stencil<'s>>,
                answers: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
                self.device().waiting(|stream| unsafe { self.contains_if_bitmap_async(stream, keys, stencil, answers) })
            }

            /// Queues [`contains_if_bitmap_device`](Self::contains_if_bitmap_device).
            ///
            /// # Errors
            /// As there.
            ///
            /// # Safety
            /// As for [`contains_if_async`](Self::contains_if_async).
            pub unsafe fn contains_if_bitmap_async<'s, K: $keys>(
                &self,
                stream: &$crate::lookups::Stream,
                keys: K,
                stencil: impl Into<$crate::lookups::Stencil<'s>>,
                answers: $crate::lookups::DeviceSliceMut<'_, u64>,
            ) -> Result<(), $error> {
                let (n, stencil, there) = (keys.count(), stencil.into(), answers.device());
                stencil.expect_for(n)?;
                let answers = $crate::lookups::Answers::bits(answers, n)?;
                // SAFETY: there is room, and the stencil is for all keys; the rest is the caller's promise.
                unsafe {
                    self.answer_async(stream, keys, &[there, stencil.device()], answers)?;
                    Ok(stencil.apply(stream, answers, n)?)
                }
            }
        }
    )*};
}
