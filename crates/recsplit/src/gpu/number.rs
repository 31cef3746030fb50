//! What a number can be written as.

use bytemuck::{Pod, cast_slice};
use warpset_gpu::batch::Reply;
use warpset_kernels::recsplit::lookup::{NUMBERS_32, NUMBERS_64};

use crate::Error;

/// What a key's number can be written as: `u64`, or `u32` where all numbers fit. Sealed.
pub trait Number: Pod + Send + Sync + sealed::Number {}

impl Number for u32 {}
impl Number for u64 {}

pub(super) mod sealed {
    use super::*;

    pub trait Number: Sized {
        /// As kernels name it.
        const FORM: u32;
        /// As it comes back from a device.
        const REPLY: Reply;
        /// An error unless all numbers below `values` fit.
        fn check(values: u64) -> Result<(), Error>;
        /// The numbers in the words of a reply, and maybe one more.
        fn of_words(words: &[u64]) -> &[Self];
        /// A number that fits.
        fn narrow(number: u64) -> Self;
    }

    impl Number for u32 {
        const FORM: u32 = NUMBERS_32;
        const REPLY: Reply = Reply::HalfWords;
        fn check(values: u64) -> Result<(), Error> {
            if values > 1 << 32 { Err(Error::NumbersTooLarge { values }) } else { Ok(()) }
        }
        fn of_words(words: &[u64]) -> &[u32] {
            cast_slice(words)
        }
        fn narrow(number: u64) -> u32 {
            number as u32
        }
    }

    impl Number for u64 {
        const FORM: u32 = NUMBERS_64;
        const REPLY: Reply = Reply::Words;
        fn check(_values: u64) -> Result<(), Error> {
            Ok(())
        }
        fn of_words(words: &[u64]) -> &[u64] {
            words
        }
        fn narrow(number: u64) -> u64 {
            number
        }
    }
}
