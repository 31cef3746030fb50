//! Types of a key's number.

use crate::Error;
use bytemuck::Pod;

/// Type of a key's number: `u64`, or `u32` where all numbers fit. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the number of a key",
    note = "use `u64`, or `u32` where all numbers fit"
)]
pub trait Number: Pod + Send + Sync + sealed::Number {}

impl Number for u32 {}
impl Number for u64 {}

pub(crate) mod sealed {
    use super::*;
    #[cfg(feature = "gpu")]
    use warpset_kernels::recsplit::answers::{NUMBERS_32, NUMBERS_64};

    pub trait Number: Sized {
        /// Form of the numbers in kernels.
        #[cfg(feature = "gpu")]
        const FORM: u32;
        /// Fails unless all numbers below `values` fit.
        fn check(values: u64) -> Result<(), Error>;
        /// Converts a number that fits.
        fn narrow(number: u64) -> Self;
    }

    impl Number for u32 {
        #[cfg(feature = "gpu")]
        const FORM: u32 = NUMBERS_32;
        fn check(values: u64) -> Result<(), Error> {
            if values > 1 << 32 { Err(Error::NumbersTooLarge { values }) } else { Ok(()) }
        }
        #[inline(always)]
        fn narrow(number: u64) -> u32 {
            number as u32
        }
    }

    impl Number for u64 {
        #[cfg(feature = "gpu")]
        const FORM: u32 = NUMBERS_64;
        fn check(_values: u64) -> Result<(), Error> {
            Ok(())
        }
        #[inline(always)]
        fn narrow(number: u64) -> u64 {
            number
        }
    }
}
