//! Results of methods that cannot fail in host memory and can on a device.

use crate::error::{Failure, Result};

/// A value, or a result with the error of a structure.
pub trait Settled<T> {
    fn settled(self) -> Result<T>;
}

impl<T, E> Settled<T> for Result<T, E>
where
    Failure: From<E>,
{
    fn settled(self) -> Result<T> {
        Ok(self?)
    }
}

macro_rules! settled {
    ($([$($generic:ident)?] $type:ty;)*) => {$(
        impl<$($generic)?> Settled<$type> for $type {
            fn settled(self) -> Result<$type> {
                Ok(self)
            }
        }
    )*};
}
settled! {
    [] u64;
    [] f64;
    [] ();
    [] warpset::lsm::Bitmap;
    [T] Vec<T>;
}
