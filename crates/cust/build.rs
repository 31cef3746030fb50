//! Makes `libcuda.a`, the delay-loading import library that `cust_raw` links.
//!
//! `cust_raw` links `-lcuda`. The archive made here meets that: it defines every driver function as a trampoline
//! that opens `libcuda.so.1` on its first call, so the same executable starts on machines without a driver.
//!
//! Which `libcuda` the linker takes must not depend on a CUDA toolkit being installed. The archive is therefore
//! bundled into this crate's own rlib as well, which comes before `-lcuda` on the linker's command line: by then
//! no driver function is undefined, and a shared library that nothing needs leaves no trace (`--as-needed`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=import");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("set by Cargo");
    let os = env::var("CARGO_CFG_TARGET_OS").expect("set by Cargo");
    let supported = os == "linux" && (arch == "x86_64" || arch == "aarch64");
    assert!(supported, "warpset-cust supports Linux on x86-64 and AArch64, not {os} on {arch}");

    let out = PathBuf::from(env::var("OUT_DIR").expect("set by Cargo"));
    let raw = functions_bound_in_c();
    let symbols = Symbols { bound: lines("cust_raw.txt").into_iter().filter(|s| !raw.contains(s)).collect(), raw };
    fs::write(out.join("symbols.inc"), symbols.table()).expect("write symbols.inc");
    let codes: String = lines("known_codes.txt").iter().map(|code| format!("case {code}:\n")).collect();
    fs::write(out.join("known_codes.inc"), codes).expect("write known_codes.inc");
    let trampolines = out.join("trampolines.S");
    fs::write(&trampolines, symbols.trampolines(&arch)).expect("write trampolines.S");

    cc::Build::new()
        .file("import/import.c")
        .file(&trampolines)
        .include(&out)
        .opt_level(2)
        .pic(true)
        .warnings(true)
        .cargo_metadata(false)
        .compile("cuda");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=cuda");
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "gnu") {
        println!("cargo:rustc-link-lib=dylib=dl"); // where glibc before 2.34 keeps `dlopen`
    }
}

fn lines(file: &str) -> Vec<String> {
    let path = Path::new("import").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect()
}

/// Lists the functions that `import.c` defines itself, with `BOUND(name, ..)`.
fn functions_bound_in_c() -> Vec<String> {
    let source = fs::read_to_string("import/import.c").expect("read import.c");
    source
        .lines()
        .filter_map(|line| line.strip_prefix("BOUND("))
        .filter_map(|rest| rest.split(',').next())
        .map(String::from)
        .collect()
}

struct Symbols {
    /// Functions under their own name, for `cust_raw`.
    bound: Vec<String>,
    /// Functions that `import.c` defines by way of a trampoline with the prefix `warpset_`.
    raw: Vec<String>,
}

impl Symbols {
    /// Returns the C table of names, in the order of the slots.
    fn table(&self) -> String {
        let mut text = String::new();
        let count = self.bound.len() + self.raw.len();
        writeln!(text, "#define SYMBOL_COUNT {count}\n#define RAW_FIRST {}", self.bound.len()).unwrap();
        writeln!(text, "static const char *const symbol_names[SYMBOL_COUNT] = {{").unwrap();
        for name in self.bound.iter().chain(&self.raw) {
            writeln!(text, "  \"{name}\",").unwrap();
        }
        text + "};\n"
    }

    fn trampolines(&self, arch: &str) -> String {
        let bound = self.bound.iter().cloned();
        let raw = self.raw.iter().map(|name| format!("warpset_{name}"));
        let mut text = String::from(".text\n");
        for (index, label) in bound.chain(raw).enumerate() {
            writeln!(text, ".globl {label}\n.hidden {label}\n.type {label},%function\n.p2align 4\n{label}:").unwrap();
            text += &if arch == "x86_64" { x86_64(index) } else { aarch64(index) };
            writeln!(text, ".size {label}, . - {label}").unwrap();
        }
        text += if arch == "x86_64" { X86_64_LAZY } else { AARCH64_LAZY };
        text + ".section .note.GNU-stack,\"\",%progbits\n"
    }
}

fn x86_64(index: usize) -> String {
    let offset = 8 * index;
    format!(
        " endbr64\n mov warpset_cuda_slots+{offset}(%rip), %rax\n test %rax, %rax\n jz 1f\n jmp *%rax\n\
         1: mov ${index}, %eax\n jmp warpset_cuda_lazy\n"
    )
}

/// Saves every register that can carry an argument (System V ABI), resolves, and jumps to the function.
const X86_64_LAZY: &str = "\
.type warpset_cuda_lazy,%function
warpset_cuda_lazy:
 .cfi_startproc
 push %rdi
 push %rsi
 push %rdx
 push %rcx
 push %r8
 push %r9
 sub $136, %rsp
 .cfi_adjust_cfa_offset 184
 movups %xmm0, (%rsp)
 movups %xmm1, 16(%rsp)
 movups %xmm2, 32(%rsp)
 movups %xmm3, 48(%rsp)
 movups %xmm4, 64(%rsp)
 movups %xmm5, 80(%rsp)
 movups %xmm6, 96(%rsp)
 movups %xmm7, 112(%rsp)
 mov %rax, %rdi
 call warpset_cuda_resolve
 movups (%rsp), %xmm0
 movups 16(%rsp), %xmm1
 movups 32(%rsp), %xmm2
 movups 48(%rsp), %xmm3
 movups 64(%rsp), %xmm4
 movups 80(%rsp), %xmm5
 movups 96(%rsp), %xmm6
 movups 112(%rsp), %xmm7
 add $136, %rsp
 pop %r9
 pop %r8
 pop %rcx
 pop %rdx
 pop %rsi
 pop %rdi
 .cfi_adjust_cfa_offset -184
 jmp *%rax
 .cfi_endproc
.size warpset_cuda_lazy, . - warpset_cuda_lazy
";

fn aarch64(index: usize) -> String {
    let offset = 8 * index;
    format!(
        " hint #34\n adrp x16, warpset_cuda_slots+{offset}\n ldr x16, [x16, :lo12:warpset_cuda_slots+{offset}]\n \
         cbz x16, 1f\n br x16\n1: mov w17, #{index}\n b warpset_cuda_lazy\n"
    )
}

/// Trampolines for AAPCS64: x0-x8 and q0-q7 carry arguments, x16 and x17 are free between calls.
const AARCH64_LAZY: &str = "\
.type warpset_cuda_lazy,%function
warpset_cuda_lazy:
 .cfi_startproc
 stp x29, x30, [sp, #-224]!
 .cfi_def_cfa_offset 224
 .cfi_offset 29, -224
 .cfi_offset 30, -216
 mov x29, sp
 stp x0, x1, [sp, #16]
 stp x2, x3, [sp, #32]
 stp x4, x5, [sp, #48]
 stp x6, x7, [sp, #64]
 str x8, [sp, #80]
 stp q0, q1, [sp, #96]
 stp q2, q3, [sp, #128]
 stp q4, q5, [sp, #160]
 stp q6, q7, [sp, #192]
 mov w0, w17
 bl warpset_cuda_resolve
 mov x16, x0
 ldp x0, x1, [sp, #16]
 ldp x2, x3, [sp, #32]
 ldp x4, x5, [sp, #48]
 ldp x6, x7, [sp, #64]
 ldr x8, [sp, #80]
 ldp q0, q1, [sp, #96]
 ldp q2, q3, [sp, #128]
 ldp q4, q5, [sp, #160]
 ldp q6, q7, [sp, #192]
 ldp x29, x30, [sp], #224
 .cfi_restore 29
 .cfi_restore 30
 .cfi_def_cfa_offset 0
 br x16
 .cfi_endproc
.size warpset_cuda_lazy, . - warpset_cuda_lazy
";
