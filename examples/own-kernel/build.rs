//! Makes `ptx/own_kernel.ptx` from `src/lib.rs`, unless it is current; then no device compiler is needed.

fn main() -> Result<(), warpset_builder::Error> {
    warpset_builder::Builder::new(".").checked_in("ptx/own_kernel.ptx").build()?;
    Ok(())
}
