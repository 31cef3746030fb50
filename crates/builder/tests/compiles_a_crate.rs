//! A tiny crate of kernels, compiled by the device compiler where there is one.
//!
//! The crate depends on nothing, so that it shows what the builder does and needs no registry: it writes itself what
//! `warpset_simt::kernel!` writes for others.

use std::fs;
use std::path::{Path, PathBuf};

use warpset_builder::{Assembler, Builder, DeviceToolchain, Error, Rule, lint};

const SOURCE: &str = r#"
#![no_std]
#![feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Sets `words[thread]`, a word for each thread of one block.
///
/// # Safety
/// `words` is valid for as many words as the block has threads, and no other thread accesses them.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn fill(words: *mut u32, value: u32) {
    // SAFETY: the assembly is a comment; a word for each thread is the caller's promise.
    unsafe {
        core::arch::asm!("// @launch_bounds 128 4", options(nomem, nostack, preserves_flags));
        *words.add(core::arch::nvptx::_thread_idx_x() as usize) = value;
    }
}

/// Uses a pointer that lost its address space, because it is read from memory.
///
/// # Safety
/// `words` points to a pointer to a word that no other thread accesses.
#[cfg(warpset_module = "generic")]
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn indirect(words: *const *mut u32) {
    // SAFETY: the caller's promise.
    unsafe { **words = 1 };
}
"#;

/// Writes the crate to a folder and under a name of its own: tests share one folder of the device build.
fn tiny(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).expect("a folder for the test");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lints.rust]\nunexpected_cfgs = \"allow\"\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("writable");
    fs::write(folder.join("src/lib.rs"), SOURCE).expect("writable");
    folder
}

fn builder(folder: &Path) -> Builder {
    // One folder for all tests: `core` is compiled once.
    Builder::new(folder).target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("device"))
}

fn toolchain() -> Option<DeviceToolchain> {
    let found = DeviceToolchain::find();
    if let Err(missing) = &found {
        eprintln!("SKIPPED: {missing}");
    }
    found.ok()
}

#[test]
fn kernels_become_ptx_that_is_kept_until_the_sources_change() {
    let Some(toolchain) = toolchain() else { return };
    let folder = tiny("tiny");
    let _ = fs::remove_file(folder.join("ptx/tiny.ptx"));
    let builder = builder(&folder).checked_in("ptx/tiny.ptx");

    let ptx = builder.build().expect("compiles");
    assert!(ptx.path.ends_with("device/tiny.ptx"), "{}", ptx.path.display());
    assert!(ptx.text.contains("//   src/lib.rs\n"), "{}", ptx.text);
    assert!(ptx.text.contains(".entry fill("), "{}", ptx.text);
    assert!(ptx.text.contains(".maxntid 128, 1, 1\n.minnctapersm 4\n{"), "{}", ptx.text);
    assert!(!ptx.text.contains("indirect"));
    assert_eq!(fs::read_to_string(&ptx.path).expect("written"), ptx.text);
    assert_eq!(fs::read_to_string(folder.join("ptx/tiny.ptx")).expect("kept"), ptx.text);
    builder.check_stamp(&ptx.text).expect("current");
    assert_eq!(builder.compile(&toolchain).expect("compiles again"), ptx.text);

    fs::write(folder.join("src/lib.rs"), SOURCE.replace("fn fill", "fn fill_words")).expect("writable");
    builder.check_stamp(&ptx.text).expect_err("the source has changed");
    let changed = builder.build().expect("compiles");
    assert!(changed.text.contains(".entry fill_words("), "{}", changed.text);
    assert_eq!(fs::read_to_string(folder.join("ptx/tiny.ptx")).expect("kept"), changed.text);

    if let Ok(assembler) = Assembler::find() {
        let kernels = assembler.assemble("tiny", &changed.text, "sm_90").expect("assembles").kernels;
        assert_eq!(kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(), ["fill_words"]);
    }
}

#[test]
fn slips_are_refused_and_errors_of_the_compiler_are_errors() {
    let Some(toolchain) = toolchain() else { return };
    let folder = tiny("tiny-wrong");
    let generic = builder(&folder).module("generic");
    let findings = lint(&generic.compile(&toolchain).expect("compiles"));
    assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [Rule::Generic]);
    let error = generic.build().expect_err("refused");
    assert!(matches!(&error, Error::Refused { name, .. } if name == "generic"), "{error}");
    assert!(error.to_string().contains("indirect: generic access"), "{error}");
    assert!(error.to_string().contains("`Global` or `GlobalMut`"), "{error}");

    fs::write(folder.join("src/lib.rs"), "this is not Rust").expect("writable");
    let error = builder(&folder).build().expect_err("does not compile");
    assert!(matches!(error, Error::DoesNotCompile { .. }), "{error}");
}
