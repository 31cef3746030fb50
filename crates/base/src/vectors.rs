//! Functions compiled for the vector instructions of the processor that runs them.

/// Calls an `#[inline(always)]` function, compiled for the best vector instructions of this processor, as the last
/// expression of a function with these arguments. After the name: generic parameters of the function, and their values.
///
/// The function is a loop over arrays without branches, which the compiler turns into vector instructions.
///
/// ```
/// #[inline(always)]
/// fn squares<const ADD: u64>(of: &[u64], to: &mut [u64]) {
///     to.iter_mut().zip(of).for_each(|(to, of)| *to = of * of + ADD);
/// }
/// fn fast<const ADD: u64>(of: &[u64], to: &mut [u64]) {
///     warpset_base::with_vectors!(squares[const ADD: u64][ADD](of: &[u64], to: &mut [u64]))
/// }
/// let mut to = [0; 3];
/// fast::<1>(&[1, 2, 3], &mut to);
/// assert_eq!(to, [2, 5, 10]);
/// ```
#[macro_export]
macro_rules! with_vectors {
    ($work:ident $([$($generics:tt)*] [$($given:tt)*])? ($($argument:ident: $ty:ty),*) $(-> $result:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512 $(<$($generics)*>)? ($($argument: $ty),*) $(-> $result)? {
                $work $(::<$($given)*>)? ($($argument),*)
            }
            #[target_feature(enable = "avx2")]
            fn avx2 $(<$($generics)*>)? ($($argument: $ty),*) $(-> $result)? {
                $work $(::<$($given)*>)? ($($argument),*)
            }
            if std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: the processor has these features, detected above; each of them implies AVX-512F.
                return unsafe { avx512 $(::<$($given)*>)? ($($argument),*) };
            }
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, detected above.
                return unsafe { avx2 $(::<$($given)*>)? ($($argument),*) };
            }
        }
        $work $(::<$($given)*>)? ($($argument),*)
    }};
}
