//! Insertion of keys on the device under a stencil. (For keys on the host, the trait [`Insert`](crate::Insert) has a method of
//! this name.)

use warpset_gpu::batch::Stencil;
use warpset_primitives::select::select_keys_device;

use super::{Bloom, DeviceKeys, DeviceLayout, DeviceOneBlock, RaoBloom};
use crate::Error;

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
