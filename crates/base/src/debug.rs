//! `Debug` of errors.

/// Implements `Debug` of errors by `Display`: `unwrap`, and a program whose `main` returns the error, print it by
/// `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),*) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}
