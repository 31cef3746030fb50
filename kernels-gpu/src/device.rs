//! What the device build needs once: the panic handler.

/// A failed check ends the launch. The build uses immediate aborts, so this only satisfies the language.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: `trap` has no preconditions.
    unsafe { core::arch::nvptx::trap() }
}
