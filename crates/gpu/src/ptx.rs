//! Where PTX comes from: the modules of `warpset-kernels`, and those that a program registers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{GpuError, Result};

static REGISTERED: Mutex<Option<HashMap<String, Cow<'static, str>>>> = Mutex::new(None);

fn registered() -> MutexGuard<'static, Option<HashMap<String, Cow<'static, str>>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the PTX of kernels that live outside this workspace known to every device, under the name of the module in
/// which [`kernel!`](warpset_simt::kernel!) declares them (the first segment after the crate's name).
///
/// The text is compiled by the driver on first use. Comments `// @launch_bounds THREADS [BLOCKS]` in a kernel's body
/// become directives. The emulator needs no PTX.
///
/// # Errors
/// [`GpuError::ModuleExists`] if the name already stands for another text.
pub fn register_ptx(module: impl Into<String>, ptx: impl Into<Cow<'static, str>>) -> Result<()> {
    let (module, ptx) = (module.into(), ptx.into());
    match text(&module) {
        Some(known) if known == ptx => Ok(()),
        Some(_) => Err(GpuError::ModuleExists { module }),
        None => {
            registered().get_or_insert_default().insert(module, ptx);
            Ok(())
        }
    }
}

/// The PTX of `module`.
pub(crate) fn text(module: &str) -> Option<Cow<'static, str>> {
    match warpset_kernels::ptx(module) {
        Some(text) => Some(Cow::Borrowed(text)),
        None => registered().as_ref()?.get(module).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_text() {
        register_ptx("ptx_test_module", "one").unwrap();
        register_ptx("ptx_test_module", "one").unwrap();
        let error = register_ptx("ptx_test_module", "two").unwrap_err();
        assert!(matches!(error, GpuError::ModuleExists { .. }), "{error}");
        assert_eq!(text("ptx_test_module").as_deref(), Some("one"));
    }
}
