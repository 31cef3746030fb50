//! `cargo xtask ptx`: from kernels in Rust to the PTX that is checked in.
//!
//! Each module of `kernels-gpu` becomes one file `kernels-gpu/ptx/<module>.ptx`. With `--check` nothing is written:
//! the text is compiled again and has to be the checked-in one. Either way the text is linted and, where NVIDIA's
//! assembler is at hand, assembled for every architecture that we promise, with a table of what the kernels use.

mod assemble;
mod build;
mod canonical;
mod lint;
mod toolchain;

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, bail, ensure};
use warpset_kernels::{MODULES, with_launch_bounds};
use warpset_simt::Module;

use assemble::{ARCHITECTURES, Assembler, Resources};
use build::Builder;
use lint::Finding;
use toolchain::DeviceToolchain;

/// The arguments of `ptx`.
#[derive(clap::Args)]
pub struct Args {
    /// Modules to build; all if none is named
    modules: Vec<String>,
    /// Write nothing: the rebuilt text has to equal the checked-in PTX, and `ptxas` has to be there
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let modules = chosen(&args.modules)?;
    let root = crate::workspace_root();
    let toolchain = DeviceToolchain::find()?;
    let assembler = match Assembler::find() {
        Err(missing) if !args.check => {
            eprintln!("note: the PTX is not assembled: {missing}");
            None
        }
        found => Some(found?),
    };
    eprintln!("device toolchain: {toolchain}");

    let builder = Builder::new(&root, &toolchain);
    let mut faults = Vec::new();
    let mut table = Vec::new();
    for (module, checked_in) in modules {
        let path = format!("kernels-gpu/ptx/{module}.ptx");
        let ptx = builder.build(module)?;
        if args.check {
            if let Some(difference) = first_difference(checked_in, &ptx) {
                faults.push(format!("{path} is not what its sources compile to: run `cargo xtask ptx`\n{difference}"));
            }
        } else {
            fs::write(root.join(&path), &ptx).with_context(|| format!("cannot write {path}"))?;
        }
        faults.extend(grouped(&lint::lint(&ptx)).map(|finding| format!("{path}:{finding}")));
        if let Some(assembler) = &assembler {
            let loaded = with_launch_bounds(&ptx);
            for architecture in ARCHITECTURES {
                let resources = assembler.assemble(module, &loaded, architecture)?;
                let spills = resources.iter().filter(|kernel| kernel.spills() && !kernel.may_spill(&ptx));
                faults.extend(spills.map(|kernel| format!("{path}: {} spills on {architecture}", kernel.name)));
                table.push((module, architecture, resources));
            }
        }
    }
    print!("{}", render(&table));
    ensure!(faults.is_empty(), "{} in the PTX:\n{}", counted(faults.len(), "fault"), faults.join("\n"));
    eprintln!("{} {}", counted(modules_len(&args.modules), "module"), if args.check { "checked" } else { "written" });
    Ok(())
}

/// The first finding of each kind in each kernel, with the number of those like it: one slip breaks many lines.
fn grouped(findings: &[Finding]) -> impl Iterator<Item = String> {
    let of_one_kind = findings.chunk_by(|a, b| a.kernel == b.kernel && a.rule == b.rule);
    of_one_kind.map(|alike| match alike.len() {
        1 => alike[0].to_string(),
        n => format!("{} (and {} more)", alike[0], n - 1),
    })
}

/// The modules named on the command line with the PTX that is checked in, or all of them.
fn chosen(names: &[String]) -> anyhow::Result<Vec<(&'static str, &'static str)>> {
    if let Some(unknown) = names.iter().find(|name| MODULES.iter().all(|module| module.name != **name)) {
        let known: Vec<_> = MODULES.iter().map(|module| module.name).collect();
        bail!("there is no module `{unknown}`; there are {}", known.join(", "));
    }
    let is_chosen = |module: &&&Module| names.is_empty() || names.iter().any(|name| name == module.name);
    Ok(MODULES.iter().filter(is_chosen).map(|module| (module.name, module.ptx.unwrap_or_default())).collect())
}

fn modules_len(names: &[String]) -> usize {
    if names.is_empty() { MODULES.len() } else { names.len() }
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The first line in which two texts differ, from both.
fn first_difference(checked_in: &str, rebuilt: &str) -> Option<String> {
    // Git may have checked the file out with other line ends.
    let (mut old, mut new) = (checked_in.lines(), rebuilt.lines());
    for number in 1.. {
        let (old, new) = (old.next(), new.next());
        if old == new {
            old?;
            continue;
        }
        let show = |line: Option<&str>| line.unwrap_or("(end of file)").chars().take(160).collect::<String>();
        return Some(format!("  line {number}, checked in: {}\n  line {number}, rebuilt:    {}", show(old), show(new)));
    }
    None
}

/// One line a kernel: registers on each architecture, static shared memory, bytes spilled.
fn render(table: &[(&str, &str, Vec<Resources>)]) -> String {
    let mut text = String::new();
    if table.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "{:<18} {:<36} {:>22} {:>7} {:>14}",
        "module",
        "kernel",
        format!("registers {}", ARCHITECTURES.map(|a| a.trim_start_matches("sm_")).join("/")),
        "shared",
        "spilled bytes"
    );
    for of_module in table.chunks(ARCHITECTURES.len()) {
        for kernel in &of_module[0].2 {
            let on_each: Vec<_> =
                of_module.iter().filter_map(|(_, _, all)| all.iter().find(|other| other.name == kernel.name)).collect();
            let joined = |number: fn(&Resources) -> u32| {
                on_each.iter().map(|kernel| number(kernel).to_string()).collect::<Vec<_>>().join("/")
            };
            let _ = writeln!(
                text,
                "{:<18} {:<36} {:>22} {:>7} {:>14}",
                of_module[0].0,
                kernel.name,
                joined(|kernel| kernel.registers),
                on_each.iter().map(|kernel| kernel.shared_bytes).max().unwrap_or(0),
                joined(|kernel| kernel.spilled_bytes)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\r\nb\r\n", "a\nb\n"), None);
    }

    #[test]
    fn the_first_difference_names_its_line() {
        let difference = first_difference("a\nb\nc\n", "a\nX\nc\n").expect("they differ");
        assert!(difference.contains("line 2, checked in: b"), "{difference}");
        assert!(difference.contains("line 2, rebuilt:    X"), "{difference}");
        assert!(first_difference("a\n", "a\nb\n").expect("one is longer").contains("(end of file)"));
    }

    #[test]
    fn findings_of_one_kind_are_one_line() {
        let body = "\tst.local.b32 [%rd1], %r1;\n".repeat(5) + "\tld.b32 %r1, [%rd1];\n";
        let lines: Vec<_> = grouped(&lint::lint(&format!(".visible .entry k()\n{{\n{body}}}\n"))).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("(and 4 more)"), "{}", lines[0]);
    }

    #[test]
    fn an_unknown_module_is_an_error() {
        let error = chosen(&["no_such_module".to_owned()]).expect_err("unknown").to_string();
        assert!(error.contains("no_such_module"), "{error}");
        assert_eq!(chosen(&[]).expect("all").len(), MODULES.len());
    }
}
