//! Where PTX comes from: kernels of `warpset-kernels` bring theirs; that of others a program registers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(any(test, feature = "cuda"))]
use warpset_simt::Module;

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
    let mut registered = registered();
    let registered = registered.get_or_insert_default();
    match registered.get(&module) {
        Some(known) if *known == ptx => Ok(()),
        Some(_) => Err(GpuError::ModuleExists { module }),
        None => {
            registered.insert(module, ptx);
            Ok(())
        }
    }
}

/// The PTX of `module`: its own, or else what has been registered under its name.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn text(module: &Module) -> Option<Cow<'static, str>> {
    module.ptx.map(Cow::Borrowed).or_else(|| registered().as_ref()?.get(module.name).cloned())
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
        assert_eq!(text(&Module { name: "ptx_test_module", ptx: None }).as_deref(), Some("one"));
    }
}
