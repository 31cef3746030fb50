//! Kernels in the driver: compiled text that holds one of them, or the device code of a whole module.
//!
//! A library of the driver rather than a module. While the driver compiles the text of a module, it holds a lock of the
//! context, so that the texts of several threads are compiled one after the other. Texts of libraries are compiled in
//! parallel. The result is the same, in the same cache.

use std::ffi::{CStr, CString, c_void};

use super::binding;
use super::driver::{self, Failure, Handle, check};
use crate::error::DriverCode;

/// A library of the driver. A library of text holds one kernel, so that a first launch waits for the compilation of
/// that kernel only.
pub(super) struct Library {
    raw: Handle,
    /// Its contents in the context that was current when it was loaded.
    module: Handle,
}

// SAFETY: the handles of libraries and modules may be used from any thread in which the context is current.
unsafe impl Send for Library {}
// SAFETY: the driver locks internally.
unsafe impl Sync for Library {}

impl Library {
    /// Compiles PTX for the current context; a refusal comes with the compiler's log.
    pub(super) fn compile(text: &CStr) -> Result<Self, (Failure, String)> {
        // SAFETY: text that ends with a zero.
        unsafe { Self::load(text.as_ptr().cast()) }
    }

    /// Loads the code for the current context's device from a container; the driver refuses one without such code.
    pub(super) fn load_code(container: &[u8]) -> Result<Self, Failure> {
        if !is_whole(container) {
            return Err(Failure { call: "cuLibraryLoadData", code: DriverCode::INVALID_IMAGE });
        }
        // SAFETY: the container is whole: its length agrees with its header.
        unsafe { Self::load(container.as_ptr().cast()) }.map_err(|(failure, _)| failure)
    }

    /// Loads device code.
    ///
    /// # Safety
    /// `image` is text that ends with a zero, or a whole container.
    unsafe fn load(image: *const c_void) -> Result<Self, (Failure, String)> {
        let mut log = vec![0u8; 16 << 10];
        let mut options = [driver::JIT_ERROR_LOG_BUFFER, driver::JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The driver takes integers by value in this array of pointers.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut this = Self { raw: std::ptr::null_mut(), module: std::ptr::null_mut() };
        // SAFETY: two options of the compiler with their two values, and none of the library's; `image` is whole, by
        // this function's contract; `log` has the size stated.
        let code = unsafe {
            binding::cuLibraryLoadData(
                &mut this.raw,
                image,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
                2,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
            )
        };
        let loaded = check("cuLibraryLoadData", code).and_then(|()| {
            // The driver's message about text that its compiler has refused. SAFETY: the library is loaded, and the
            // result goes to a field of ours.
            check("cuLibraryGetModule", unsafe { binding::cuLibraryGetModule(&mut this.module, this.raw) })
        });
        loaded.map_err(|failure| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let words = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            (failure, if words.is_empty() { "the driver's compiler left no log".into() } else { words })
        })?;
        Ok(this)
    }

    pub(super) fn function(&self, name: &str) -> Result<Handle, Failure> {
        let not_found = Failure { call: "cuModuleGetFunction", code: DriverCode::NOT_FOUND };
        let name = CString::new(name).map_err(|_| not_found)?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero, and the result goes to a local variable.
        let code = unsafe { binding::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(function)
    }
}

/// Whether the length of a container agrees with its header: a magic number, version and header length, then the length
/// of the rest.
fn is_whole(container: &[u8]) -> bool {
    const MAGIC: [u8; 4] = 0xba55_ed50u32.to_le_bytes();
    let Some((header, rest)) = container.split_first_chunk::<16>() else { return false };
    let [.., a, b, c, d, e, f, g, h] = *header;
    header.starts_with(&MAGIC) && u64::from_le_bytes([a, b, c, d, e, f, g, h]) <= rest.len() as u64
}

impl Drop for Library {
    /// Unloads the library. The context is current: the device drops its kernels before its context.
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: loaded once, and every kernel of it holds it.
            unsafe { binding::cuLibraryUnload(self.raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn containers_are_as_long_as_they_say() {
        for module in warpset_kernels::MODULES {
            // A checkout has no device code, and some modules never have.
            let Some(code) = module.code.filter(|code| !code.is_empty()) else { continue };
            assert!(is_whole(code) && !is_whole(&code[..code.len() - 1]), "{}", module.name);
            assert_eq!(code.as_ptr().addr() % 16, 0, "{}", module.name);
        }
        assert!(!is_whole(&[]) && !is_whole(&[0; 64]));
    }
}
