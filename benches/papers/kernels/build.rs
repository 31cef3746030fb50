//! Makes `ptx/papers_kernels.ptx` from `src`, unless it is current.

fn main() -> Result<(), warpset_builder::Error> {
    warpset_builder::Builder::new(".").checked_in("ptx/papers_kernels.ptx").build()?;
    Ok(())
}
