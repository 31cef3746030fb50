//! Sources of PTX: kernels of `warpset-kernels` contain theirs; a program registers that of others. The driver gets one
//! kernel at a time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpset_simt::{Module, Ptx};

use crate::error::{GpuError, Result};

static REGISTERED: Mutex<Option<HashMap<String, Cow<'static, str>>>> = Mutex::new(None);

fn registered() -> MutexGuard<'static, Option<HashMap<String, Cow<'static, str>>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the PTX of kernels that live outside this workspace known to every device, under the name of the module in
/// which [`kernel!`](warpset_simt::kernel!) declares them (the first segment after the crate's name).
///
/// The text is compiled by the driver on first use, as it is: launch bounds are directives in what `warpset-builder`
/// makes. The emulator needs no PTX.
///
/// # Errors
/// [`GpuError::ModuleExists`] if another text is registered under the name.
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

/// Returns the PTX of `module`: its own, or else the text registered under its name.
pub(crate) fn text(module: &Module) -> Option<Cow<'static, str>> {
    module.ptx.map(Ptx::text).or_else(|| registered().as_ref()?.get(module.name).cloned())
}

/// Lists the names of all kernels in `ptx`.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn kernels(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().filter_map(entry_name)
}

/// Returns `ptx` without the bodies of other kernels, so that the driver compiles no others; `None` if this kernel is
/// missing. Everything that kernels share (declarations, functions, constants) stays.
pub(crate) fn kernel_alone(ptx: &str, kernel: &str) -> Option<String> {
    let mut text = String::new();
    // Inside of a kernel: whether it is the one, and how many braces are open, if there were any yet.
    let mut inside: Option<(bool, Option<usize>)> = None;
    let mut found = false;
    for line in ptx.split_inclusive('\n') {
        if inside.is_none()
            && let Some(name) = entry_name(line)
        {
            found |= name == kernel;
            inside = Some((name == kernel, None));
        }
        let Some((wanted, braces)) = &mut inside else {
            text.push_str(line);
            continue;
        };
        if *wanted {
            text.push_str(line);
        }
        let code = line.split("//").next().unwrap_or_default();
        for byte in code.bytes() {
            match (byte, &mut *braces) {
                (b'{', open) => *open = Some(open.unwrap_or(0) + 1),
                (b'}', Some(open)) => *open -= 1,
                _ => {}
            }
        }
        if *braces == Some(0) {
            inside = None;
        }
    }
    found.then_some(text)
}

/// Returns the name of the kernel that an `.entry` directive on this line begins.
fn entry_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix(".visible ").or_else(|| line.strip_prefix(".weak ")).unwrap_or(line);
    let rest = line.strip_prefix(".entry ")?;
    Some(rest[..rest.find(['(', ' ', '\r', '\n']).unwrap_or(rest.len())].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_of_every_module_stands_alone() {
        for module in warpset_kernels::MODULES {
            let ptx = &*module.ptx.expect("ours bring their text").text();
            let names: Vec<_> = kernels(ptx).collect();
            assert_eq!(names.len(), ptx.matches(".entry ").count(), "{}", module.name);
            for name in &names {
                let alone = kernel_alone(ptx, name).expect("it is there");
                assert_eq!(kernels(&alone).collect::<Vec<_>>(), [*name]);
                assert_eq!(alone.matches('{').count(), alone.matches('}').count(), "{name}");
                assert!(alone.starts_with(&ptx[..ptx.find(".visible .entry").expect("a first kernel")]));
            }
            assert_eq!(kernel_alone(ptx, "no_such_kernel"), None);
        }
    }

    #[test]
    fn what_kernels_share_stays() {
        let ptx = ".version 8.0\n.global .b8 table[4] = {1, 2, 3, 4};\n.visible .entry a(\n\t.param .u64 p\n)\n{\n\t{ .reg .b32 r; }\n\t// }\n\tret;\n}\n.func f()\n{\n\tret;\n}\n.entry b()\n{\n\tret;\n}\n";
        let b = kernel_alone(ptx, "b").unwrap();
        assert_eq!(
            b,
            ".version 8.0\n.global .b8 table[4] = {1, 2, 3, 4};\n.func f()\n{\n\tret;\n}\n.entry b()\n{\n\tret;\n}\n"
        );
        let a = kernel_alone(ptx, "a").unwrap();
        assert!(a.contains("// }") && a.ends_with(".func f()\n{\n\tret;\n}\n"));
        assert_eq!(kernels(ptx).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_name_stands_for_one_text() {
        register_ptx("ptx_test_module", "one").unwrap();
        register_ptx("ptx_test_module", "one").unwrap();
        let error = register_ptx("ptx_test_module", "two").unwrap_err();
        assert!(matches!(error, GpuError::ModuleExists { .. }), "{error}");
        assert_eq!(text(&Module { name: "ptx_test_module", ptx: None, code: None }).as_deref(), Some("one"));
    }
}
