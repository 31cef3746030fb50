//! Permissions of a kernel for instructions that the check of the PTX otherwise refuses.
//!
//! Each function leaves a comment in the kernel that calls it, at any place in its body, and compiles to nothing. State
//! the kernel's reason beside the call.

macro_rules! allowances {
    ($($(#[$doc:meta])* $rule:ident)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $rule() {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: the assembly is a comment.
            unsafe {
                core::arch::asm!(
                    concat!("// @allow_", stringify!($rule)),
                    options(nomem, nostack, preserves_flags)
                );
            }
        }
    )* };
}

allowances! {
    /// Functions that are not inlined.
    call
    /// Accesses to addresses of an unknown space.
    generic
    /// Arrays in local memory.
    local
    /// Registers that go to local memory, because there are too few.
    spill
    /// Accesses and fences at the scope of the whole system.
    system
}
