//! Methods of structures that are divided among devices, by macros.

/// Gives a structure with a field `shards`, a [`Sharded`](crate::sharded::Sharded), the methods of all such structures.
#[doc(hidden)]
#[macro_export]
macro_rules! divided_structure {
    ([$($generics:tt)*] $structure:ty) => {
        /// Methods of all structures on several devices.
        impl<$($generics)*> $structure {
            /// Returns the devices that have a part of it.
            pub fn devices(&self) -> &::warpset_gpu::Devices {
                self.shards.devices()
            }

            /// Sets the number of keys of each device that are exchanged at a time by lookups, half of those by
            /// changes. Default and most: 64 Mi keys of a batch in device memory, and 128 Mi divided by the number of
            /// devices, less if one has under 64 GiB; 16 Mi of a host slice. Rounded up to a multiple of 64.
            pub fn set_chunk_keys(&mut self, keys: usize) {
                self.shards.set_chunk_keys(keys);
            }
        }
    };
}

/// Gives a filter with a field `shards`, a [`Sharded`](crate::sharded::Sharded), and this error its lookups and the
/// methods of all such filters.
#[doc(hidden)]
#[macro_export]
macro_rules! divided_filter {
    ([$($generics:tt)*] $filter:ty, $error:ty) => {
        $crate::divided_lookups! { [$($generics)*] $filter, $error }

        impl<$($generics)*> ::warpset_base::filter::Filter for $filter {
            type Error = $error;

            fn answer_bulk<K: ::warpset_base::key::Key>(
                &self,
                keys: &[K],
                take: &mut ::warpset_base::filter::Take<'_>,
            ) -> ::std::result::Result<(), $error> {
                self.shards.answer_bulk(keys, take)
            }

            fn memory_bytes(&self) -> u64 {
                self.memory_bytes()
            }
        }
    };
}

/// Gives a filter what [`divided_filter`](crate::divided_filter) does, but the lookups of keys of the host.
#[doc(hidden)]
#[macro_export]
macro_rules! divided_lookups {
    ([$($generics:tt)*] $filter:ty, $error:ty) => {
        $crate::divided_structure! { [$($generics)*] $filter }

        impl<$($generics)*> $filter {
            /// Returns the bytes of device memory of all parts.
            pub fn memory_bytes(&self) -> u64 {
                ::warpset_base::filter::Filter::memory_bytes(&self.shards)
            }

            /// Tests batches that lie on all devices, one batch per device in their order, as
            /// `DeviceFilter::contains_device` does: `answers` are on the device of their keys.
            ///
            /// # Errors
            /// `LengthMismatch` unless there is a batch per device, with answers; the errors of a lookup.
            pub fn contains_each_device<Keys: ::warpset_gpu::batch::DeviceKeys + Sync>(
                &self,
                batches: &[Keys],
                answers: ::std::vec::Vec<::warpset_gpu::DeviceSliceMut<'_, u8>>,
            ) -> ::std::result::Result<(), $error> {
                self.shards.contains_each_device(batches, answers)
            }
        }

        impl<$($generics)*, Keys: ::warpset_gpu::batch::DeviceKeys> $crate::DeviceFilter<Keys> for $filter {
            unsafe fn answer_async(
                &self,
                stream: &::warpset_gpu::Stream,
                keys: Keys,
                others: &[&::warpset_gpu::Device],
                answers: ::warpset_gpu::batch::Answers,
            ) -> ::std::result::Result<(), $error> {
                // SAFETY: the contract of this function.
                unsafe { $crate::DeviceFilter::answer_async(&self.shards, stream, keys, others, answers) }
            }
        }
    };
}

/// Gives a structure with a field `shards`, a [`Sharded`](crate::sharded::Sharded), and this error its lookups of a
/// value with a bit per key, by a closure that asks a part. The methods are those of the parts.
#[doc(hidden)]
#[macro_export]
macro_rules! divided_values {
    (
        [$($generics:tt)*] $structure:ty, $error:ty, $what:literal, $value:ty, $ask:expr,
        [$($batch_generics:tt)*] $batch:ty, [$($key_generics:tt)*] $key:ty,
        $device:ident $queued:ident $each:ident $bulk:ident $into:ident
    ) => {
        impl<$($generics)*> $structure {
            #[doc = concat!("Looks up the ", $what, " of each key, on any one of the devices: bit `i % 64` of word `i / 64`")]
            /// of `found` says whether key `i` has one, and place `i` of `out` gets it, or zero.
            ///
            /// # Errors
            /// `LengthMismatch` if there are fewer places or bits than keys; memory of a device that has no part.
            pub fn $device $($batch_generics)* (
                &self,
                keys: $batch,
                out: ::warpset_gpu::DeviceSliceMut<'_, $value>,
                found: ::warpset_gpu::DeviceSliceMut<'_, u64>,
            ) -> ::std::result::Result<(), $error> {
                // SAFETY: structure, keys and answers are borrowed until the stream has been waited for.
                keys.device().waiting(|stream| unsafe { self.$queued(stream, keys, out, found) })
            }

            #[doc = concat!("Queues [`", stringify!($device), "`](Self::", stringify!($device), "). Waits for the grouping")]
            /// of each round.
            ///
            /// # Errors
            #[doc = concat!("The errors of [`", stringify!($device), "`](Self::", stringify!($device), ").")]
            ///
            /// # Safety
            /// Until `stream` has passed this work, the structure, keys and answers stay allocated; nothing writes the
            /// keys, and nothing else accesses the answers.
            pub unsafe fn $queued $($batch_generics)* (
                &self,
                stream: &::warpset_gpu::Stream,
                keys: $batch,
                mut out: ::warpset_gpu::DeviceSliceMut<'_, $value>,
                found: ::warpset_gpu::DeviceSliceMut<'_, u64>,
            ) -> ::std::result::Result<(), $error> {
                if let [only] = self.shards.parts() {
                    // SAFETY: this function's contract.
                    return unsafe { only.$queued(stream, keys, out, found) };
                }
                let there = [out.device(), found.device()];
                let to = $crate::sharded::Replies::for_keys(&keys, &mut out, found)?;
                // SAFETY: values and bits have a place per key; the rest is this function's contract.
                unsafe { self.shards.reply_async(stream, keys, &there, to, $ask) }
            }

            #[doc = concat!("Looks up the ", $what, "s of batches that lie on all devices, one batch per device in their")]
            /// order; answers are on the device of their keys.
            ///
            /// # Errors
            /// `LengthMismatch` unless there is a batch per device, with places for its answers; the errors of a
            /// device.
            pub fn $each $($batch_generics)* (
                &self,
                batches: &[$batch],
                answers: ::std::vec::Vec<(
                    ::warpset_gpu::DeviceSliceMut<'_, $value>,
                    ::warpset_gpu::DeviceSliceMut<'_, u64>,
                )>,
            ) -> ::std::result::Result<(), $error> {
                self.shards.ask_each(batches, answers, |keys, (out, found)| self.$device(keys, out, found))
            }

            #[doc = concat!("Returns the ", $what, " of each key of the host, if it has one.")]
            ///
            /// # Errors
            /// The errors of a device.
            pub fn $bulk $($key_generics)* (
                &self,
                keys: &[$key],
            ) -> ::std::result::Result<::std::vec::Vec<Option<$value>>, $error> {
                let zeros = ::std::vec![<$value as ::bytemuck::Zeroable>::zeroed(); keys.len()];
                let mut out = ::warpset_base::words::in_huge_pages(zeros);
                let found = self.$into(keys, &mut out)?;
                Ok(found.options(&out))
            }

            #[doc = concat!("Writes the ", $what, "s to a slice of equal length, and returns which keys have one; the others")]
            /// get zero.
            ///
            /// # Errors
            /// `LengthMismatch`; the errors of a device.
            pub fn $into $($key_generics)* (
                &self,
                keys: &[$key],
                out: &mut [$value],
            ) -> ::std::result::Result<::warpset_base::bitmap::Bitmap, $error> {
                if let [only] = self.shards.parts() {
                    return only.$into(keys, out);
                }
                ::warpset_base::filter::same_length(keys.len(), out.len())?;
                let mut found = vec![0; keys.len().div_ceil(64)];
                // SAFETY: the closure queues all work on its stream, and writes a value and a bit per key.
                unsafe { self.shards.reply_bulk(keys, out, &mut found, $ask)? };
                Ok(::warpset_base::bitmap::Bitmap::from_words(found, keys.len()))
            }
        }
    };
}
