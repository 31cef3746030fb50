//! What a number can be written as.

use crate::Error;
use bytemuck::Pod;

/// What a key's number can be written as: `u64`, or `u32` where all numbers fit. Sealed.
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
    use warpset_gpu::batch::Reply;
    #[cfg(feature = "gpu")]
    use warpset_kernels::recsplit::answers::{NUMBERS_32, NUMBERS_64};

    pub trait Number: Sized {
        /// As kernels name it.
        #[cfg(feature = "gpu")]
        const FORM: u32;
        /// As it comes back from a device.
        #[cfg(feature = "gpu")]
        const REPLY: Reply;
        /// An error unless all numbers below `values` fit.
        fn check(values: u64) -> Result<(), Error>;
        /// The numbers in the words of a reply, and maybe one more.
        #[cfg(feature = "gpu")]
        fn of_words(words: &[u64]) -> &[Self];
        /// A number that fits.
        fn narrow(number: u64) -> Self;
    }

    impl Number for u32 {
        #[cfg(feature = "gpu")]
        const FORM: u32 = NUMBERS_32;
        #[cfg(feature = "gpu")]
        const REPLY: Reply = Reply::HalfWords;
        fn check(values: u64) -> Result<(), Error> {
            if values > 1 << 32 { Err(Error::NumbersTooLarge { values }) } else { Ok(()) }
        }
        #[cfg(feature = "gpu")]
        fn of_words(words: &[u64]) -> &[u32] {
            bytemuck::cast_slice(words)
        }
        #[inline(always)]
        fn narrow(number: u64) -> u32 {
            number as u32
        }
    }

    impl Number for u64 {
        #[cfg(feature = "gpu")]
        const FORM: u32 = NUMBERS_64;
        #[cfg(feature = "gpu")]
        const REPLY: Reply = Reply::Words;
        fn check(_values: u64) -> Result<(), Error> {
            Ok(())
        }
        #[cfg(feature = "gpu")]
        fn of_words(words: &[u64]) -> &[u64] {
            words
        }
        #[inline(always)]
        fn narrow(number: u64) -> u64 {
            number
        }
    }
}
