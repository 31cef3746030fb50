//! Methods that filters and functions share, since both are a layout and the words that it describes.

/// Gives types with a method `layout` the numbers that follow from it.
macro_rules! measures {
    ($($(#[$attribute:meta])* [$($generics:tt)*] $of:ty;)*) => {$(
        /// Numbers that follow from the layout.
        $(#[$attribute])*
        impl<$($generics)*> $of {
            /// Returns the number of different keys that it was built from; estimated from the slots for a filter read
            /// from arrays of `xorf`, which do not record it.
            pub fn len(&self) -> u64 {
                self.layout().keys
            }

            /// Whether it was built from no keys.
            pub fn is_empty(&self) -> bool {
                self.layout().keys == 0
            }

            /// Returns the number of keys per slot.
            pub fn load_factor(&self) -> f64 {
                self.len() as f64 / self.layout().slots().max(1) as f64
            }

            /// Returns the size of the words in bytes.
            pub fn memory_bytes(&self) -> u64 {
                8 * self.layout().words()
            }

            /// Returns the bits of memory per key.
            pub fn bits_per_key(&self) -> f64 {
                8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
            }

            /// Returns the probability that a filter claims to contain another key than its own, or that a function has
            /// a value for one: `2^-bits` for fingerprints of that many bits, and 1 for functions without; 0 if it was
            /// built from no keys.
            pub fn fpr(&self) -> f64 {
                let $crate::Layout { graph, bits, value_bits, .. } = *self.layout();
                if graph.starts == 0 { 0.0 } else { (-f64::from(bits - value_bits)).exp2() }
            }
        }
    )*};
}
pub(crate) use measures;

/// Gives a structure in host memory and its view their parts, comparison and the saved form.
///
/// Both have the fields `layout`, `words` and `of`. The ranges are those of the bits of slots and of values.
macro_rules! in_host_memory {
    (
        [$($generics:tt)*] $name:ident<$of:ident>, $view:ident;
        $kind:expr, $kind_name:expr, $bits:expr, $value_bits:expr;
        $(#[$view_doc:meta])*
        fn from_bytes;
    ) => {
        impl<$($generics)*> $name<$of> {
            /// Joins the words and the layout that they were made for.
            pub(crate) fn from_parts(
                layout: $crate::Layout,
                words: ::warpset_base::words::AlignedWords<u64>,
            ) -> $name<$of> {
                debug_assert_eq!(words.as_slice().len() as u64, layout.words());
                $name { layout, words, of: ::std::marker::PhantomData }
            }

            /// Returns the parameters.
            pub fn layout(&self) -> &$crate::Layout {
                &self.layout
            }

            /// Returns the words, little-endian: slots, then the seeds of shards, the memory image that every backend
            /// shares.
            #[inline]
            pub fn words(&self) -> &[u64] {
                self.words.as_slice()
            }

            /// Returns a borrow that answers queries.
            #[inline]
            pub fn view(&self) -> $view<'_, $of> {
                $view::new(self.layout, self.words())
            }
        }

        impl<'a, $($generics)*> $view<'a, $of> {
            /// Joins the words and the layout that they were made for.
            #[inline]
            pub(crate) fn new(layout: $crate::Layout, words: &'a [u64]) -> $view<'a, $of> {
                debug_assert_eq!(words.len() as u64, layout.words());
                $view { layout, words, of: ::std::marker::PhantomData }
            }

            /// Returns the parameters.
            pub fn layout(&self) -> &$crate::Layout {
                &self.layout
            }

            /// Returns the words, little-endian: slots, then the seeds of shards, the memory image that every backend
            /// shares.
            pub fn words(&self) -> &'a [u64] {
                self.words
            }
        }

        ::warpset_base::viewed! {
            ['a, $($generics)*] $view<'a, $of>, $name<$of>, $crate::Error;
            |layout, words| $view::new(layout, words);
            /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
            $(#[$view_doc])*
            fn from_bytes;
        }

        impl<$($generics)*> ::warpset_base::file::Saved for $name<$of> {
            const STRUCTURE: ::warpset_base::file::FileKind = $kind;
            const NAME: &'static str = $kind_name;
            type Word = u64;
            type Layout = $crate::Layout;
            type Error = $crate::Error;

            fn layout_of(fields: [u64; ::warpset_base::file::FIELDS]) -> Result<$crate::Layout, $crate::Error> {
                $crate::Layout::from_fields($bits, $value_bits, fields)
            }

            fn words_of(layout: &$crate::Layout) -> u64 {
                layout.words()
            }

            fn fields(&self) -> [u64; ::warpset_base::file::FIELDS] {
                self.layout.to_fields()
            }

            fn payload(&self) -> impl ::warpset_base::file::Payload + '_ {
                ::bytemuck::cast_slice::<u64, u8>(self.words())
            }

            fn from_saved(
                layout: $crate::Layout,
                words: ::warpset_base::words::AlignedWords<u64>,
            ) -> Result<$name<$of>, $crate::Error> {
                Ok($name::from_parts(layout, words))
            }
        }

        ::warpset_base::saved_methods! {
            [$($generics)*] $name<$of>, $crate::Error;
        }

        /// Same parameters, same bytes.
        impl<$($generics)*> PartialEq for $name<$of> {
            fn eq(&self, other: &$name<$of>) -> bool {
                self.layout == other.layout && self.words() == other.words()
            }
        }
        impl<$($generics)*> Eq for $name<$of> {}

        impl<$($generics)*> ::std::fmt::Debug for $name<$of> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name)).field("layout", &self.layout).finish_non_exhaustive()
            }
        }

        impl<$($generics)*> ::std::fmt::Debug for $view<'_, $of> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($view)).field("layout", &self.layout).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use in_host_memory;

/// Gives a structure in device memory its parts and copies. It has the fields `layout`, `device`, `words` and `of`.
#[cfg(feature = "gpu")]
macro_rules! in_device_memory {
    ([$($generics:tt)*] $name:ident<$of:ident> of $host:ty) => {
        impl<$($generics)*> $name<$of> {
            /// Joins the words and the layout that they were made for.
            fn from_parts(device: &::warpset_gpu::Device, layout: $crate::Layout, words: DeviceVec<u64>) -> $name<$of> {
                $name::of_graphs(device, layout, 0..layout.graphs(), words)
            }

            /// Joins the words of some graphs, with a byte per shard after the slots, and the layout of the whole.
            pub(crate) fn of_graphs(
                device: &::warpset_gpu::Device,
                layout: $crate::Layout,
                graphs: ::std::ops::Range<u64>,
                words: DeviceVec<u64>,
            ) -> $name<$of> {
                $name { layout, device: device.clone(), graphs, words, of: ::std::marker::PhantomData }
            }

            /// Returns the words of the slots here, and the bytes with the seeds of their shards.
            pub(crate) fn slots_and_seeds(
                &self,
            ) -> (::warpset_gpu::DeviceSlice<'_, u64>, ::warpset_gpu::DeviceSlice<'_, u8>) {
                let graphs = self.graphs.end - self.graphs.start;
                let slots = (graphs * self.layout.shard_words()) as usize;
                let seeds = self.words.slice(slots..).cast().expect("bytes of words");
                (self.words.slice(..slots), seeds.slice(..graphs.min(self.layout.shards) as usize))
            }

            /// Returns the slots of the whole and the seeds of all its shards for kernels. Only those of the graphs
            /// here may be read.
            fn of_whole(&self) -> (::warpset_simt::Global<u64>, ::warpset_simt::Global<u8>) {
                let ((slots, seeds), first) = (self.slots_and_seeds(), self.graphs.start as usize);
                let before = first * self.layout.shard_words() as usize;
                let slots = slots.global().as_ptr().wrapping_sub(before);
                let seeds = seeds.global().as_ptr().wrapping_sub(first);
                (
                    ::warpset_simt::Global::from_raw_parts(slots, self.layout.slot_words() as usize),
                    ::warpset_simt::Global::from_raw_parts(seeds, self.layout.shards as usize),
                )
            }

            /// Copies a structure from host memory.
            ///
            /// # Errors
            /// [`Error::Gpu`](crate::Error::Gpu) if the device fails or has too little memory.
            pub fn from_host(device: &::warpset_gpu::Device, host: &$host) -> Result<$name<$of>, $crate::Error> {
                Ok($name::from_parts(device, *host.layout(), device.from_slice(host.words())?))
            }

            /// Returns a copy in host memory. Waits for all work on the device.
            ///
            /// # Errors
            /// [`Error::Gpu`](crate::Error::Gpu) if the device fails or has too little memory,
            /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the host has.
            pub fn to_host(&self) -> Result<$host, $crate::Error> {
                let mut words = ::warpset_base::words::AlignedWords::zeroed(self.layout.words())?;
                self.device.synchronize()?;
                self.device.new_stream()?.download(&self.words, words.as_mut_slice())?;
                Ok(<$host>::from_parts(self.layout, words))
            }

            /// Returns a copy on the same device.
            ///
            /// # Errors
            /// [`Error::Gpu`](crate::Error::Gpu) if the device fails or has too little memory.
            pub fn try_clone(&self) -> Result<$name<$of>, $crate::Error> {
                let words = self.device.waiting(|stream| {
                    let mut words = stream.alloc_uninit(self.words.len())?;
                    stream.copy(&mut words, &self.words)?;
                    Ok::<_, $crate::Error>(words)
                })?;
                Ok($name::from_parts(&self.device, self.layout, words))
            }

            /// Returns the parameters.
            pub fn layout(&self) -> &$crate::Layout {
                &self.layout
            }

            /// Returns the device that it is on.
            pub fn device(&self) -> &::warpset_gpu::Device {
                &self.device
            }

            /// Returns the words on the device: the memory image that every backend shares.
            pub fn words(&self) -> ::warpset_gpu::DeviceSlice<'_, u64> {
                self.words.as_slice()
            }
        }

        impl<$($generics)*> $host {
            /// Returns a copy in device memory.
            ///
            /// # Errors
            /// [`Error::Gpu`](crate::Error::Gpu) if the device fails or has too little memory.
            pub fn to_device(&self, device: &::warpset_gpu::Device) -> Result<$name<$of>, $crate::Error> {
                $name::from_host(device, self)
            }
        }

        impl<$($generics)*> ::std::fmt::Debug for $name<$of> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(concat!("gpu::", stringify!($name)))
                    .field("layout", &self.layout)
                    .finish_non_exhaustive()
            }
        }
    };
}
#[cfg(feature = "gpu")]
pub(crate) use in_device_memory;
