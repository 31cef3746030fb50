//! Filters and maplets with quotients of another width.

/// Gives types with a method `rewritten`, which takes a layout of fingerprints, the changes of their size.
///
/// Each line names the kind of slots and the present layout of fingerprints.
macro_rules! resizes {
    ($([$($generics:tt)*] $of:ty, $kind:ty, |$this:ident| $layout:expr;)*) => {$(
        /// Changes of size.
        impl<$($generics)*> $of {
            /// Builds one of these fingerprints with quotients of another width. One more quotient bit is one remainder
            /// bit less, so the rate for a number of keys stays, and twice as many fit.
            ///
            /// # Errors
            /// [`Error::InvalidBits`](crate::Error::InvalidBits) if there are no fingerprints of that form,
            /// [`Error::InvalidValueBits`](crate::Error::InvalidValueBits) if values do not fit beside the remainders;
            /// [`Error::Full`](crate::Error::Full) or
            /// [`Error::OverflowRegionFull`](crate::Error::OverflowRegionFull) if the fingerprints do not all fit;
            /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the error of the device.
            pub fn resized(&self, quotient_bits: u32) -> Result<$of, $crate::Error> {
                let $this = self;
                self.rewritten($layout.with_quotient_bits(quotient_bits, <$kind>::MAX_LOAD)?)
            }

            /// Doubles the number of slots: moves one bit from the remainders to the quotients.
            ///
            /// # Errors
            /// [`Error::CannotDouble`](crate::Error::CannotDouble) if remainders have one bit;
            /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the error of the device. Nothing is changed then.
            pub fn double(&mut self) -> Result<(), $crate::Error> {
                let $this = &*self;
                *self = self.rewritten($layout.doubled(<$kind>::MAX_LOAD)?)?;
                Ok(())
            }

            /// Halves the number of slots: moves one bit from the quotients to the remainders.
            ///
            /// # Errors
            /// [`Error::CannotHalve`](crate::Error::CannotHalve) if there are no fingerprints of that form; the errors
            /// of [`resized`](Self::resized). Nothing is changed then.
            pub fn halve(&mut self) -> Result<(), $crate::Error> {
                let $this = &*self;
                *self = self.rewritten($layout.halved(<$kind>::MAX_LOAD)?)?;
                Ok(())
            }
        }
    )*};
}
pub(crate) use resizes;
