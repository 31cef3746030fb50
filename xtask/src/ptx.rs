//! `cargo xtask ptx`: from kernels in Rust to the PTX that is checked in.
//!
//! Each module of `kernels-gpu` becomes one file `kernels-gpu/ptx/<module>.ptx`, by `warpset-builder`. With `--check`
//! nothing is written: what the sources compile to has to equal the file. Either way the text is linted and, where
//! there is a `ptxas`, assembled for every architecture that we promise, with a table of what the kernels use. With
//! `--code`, which is for releases, what it was assembled to becomes `kernels-gpu/code/<module>.fatbin`; until then
//! drivers compile the PTX of a module that has changed. If one module does not compile, nothing is written.

use std::{
    fmt::Write as _,
    fs, panic,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, bail, ensure};
use warpset_builder::{Assembled, Assembler, Builder, Containers, DeviceToolchain, lint, summary};

/// The arguments of `ptx`.
#[derive(clap::Args)]
pub struct Args {
    /// Modules to build; all if none is named
    modules: Vec<String>,
    /// Write nothing: the rebuilt text has to equal the checked-in PTX, and `ptxas` has to be there
    #[arg(long)]
    check: bool,
    /// Also write the device code, which takes NVIDIA's tools: for a release, and before times on a GPU are measured
    #[arg(long, conflicts_with = "check")]
    code: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let units = chosen(&crate::workspace_root(), &args.modules)?;
    let toolchain = DeviceToolchain::find()?;
    let assembler = match Assembler::find() {
        Err(missing) if !args.check && !args.code => {
            eprintln!("note: the PTX is not assembled: {missing}");
            None
        }
        found => Some(found?),
    };
    let containers = args.code.then(Containers::find).transpose()?;
    eprintln!("device toolchain: {toolchain}");

    let root = crate::workspace_root();
    let mut faults = Vec::new();
    let mut table = Vec::new();
    let made = make(&units, &toolchain, assembler.as_ref(), if containers.is_some() { &ALSO } else { &[] })?;
    for (Unit { name, path, code, .. }, Made { ptx, on_each }) in units.iter().zip(made) {
        if let (Some(code), Some(containers)) = (code, &containers) {
            let is_empty = UNCODED.contains(&name.as_str());
            let container = if is_empty { Vec::new() } else { containers.bind(name, &ptx, &on_each)? };
            let path = root.join(code);
            fs::create_dir_all(path.parent().unwrap_or(&root))?;
            fs::write(path, container).with_context(|| format!("cannot write {code}"))?;
        }
        if args.check {
            let checked_in = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            if let Some(difference) = first_difference(&checked_in, &ptx) {
                faults.push(format!("{path} is not what its sources compile to: run `cargo xtask ptx`\n{difference}"));
            }
        } else {
            fs::write(root.join(path), &ptx).with_context(|| format!("cannot write {path}"))?;
        }
        faults.extend(summary(&lint(&ptx)).into_iter().map(|finding| format!("{path}:{finding}")));
        if assembler.is_some() {
            for Assembled { architecture, kernels, .. } in on_each.iter().filter(|one| is_promised(one)) {
                let spills = kernels.iter().filter(|kernel| kernel.spills() && !kernel.may_spill(&ptx));
                faults.extend(spills.map(|kernel| format!("{path}: {} spills on {architecture}", kernel.name)));
            }
            table.push(Row { module: name, on_each });
        }
    }
    print!("{}", render(&table));
    ensure!(faults.is_empty(), "{} in the PTX:\n{}", counted(faults.len(), "fault"), faults.join("\n"));
    eprintln!("{} {}", counted(units.len(), "module"), if args.check { "checked" } else { "written" });
    Ok(())
}

/// Whether kernels must not spill on that architecture.
fn is_promised(one: &Assembled) -> bool {
    !ALSO.contains(&one.architecture.as_str())
}

/// Source of one PTX file.
struct Unit {
    name: String,
    /// The file, relative to the workspace.
    path: String,
    /// The file of its device code, if it has one.
    code: Option<String>,
    builder: Builder,
}

/// Modules that measurements and tests alone launch: their files of device code stay empty, so that a registry takes
/// the crate, and drivers compile their PTX.
const UNCODED: [&str; 3] = ["limits", "primitives_segmented_sort", "selftest"];

/// Crates outside the library that keep the PTX of their own kernels: folder, and name of the library.
const KERNELS_OF_OTHERS: [(&str, &str); 2] =
    [("examples/own-kernel", "own_kernel"), ("benches/papers/kernels", "papers_kernels")];

/// Returns every source of PTX.
fn units(root: &Path) -> anyhow::Result<Vec<Unit>> {
    let modules = modules(root)?;
    let modules = modules.iter().map(|name| {
        let builder = Builder::new(root.join("kernels-gpu"))
            .root(root)
            .feature("bodies")
            .not_stamped("kernels-gpu/src/lib.rs")
            .not_stamped("kernels-gpu/src/modules.rs")
            .not_stamped("kernels-gpu/build.rs")
            .module(name)
            .cfg(format!("warpset_folder=\"{}\"", name.split('_').next().unwrap_or(name)));
        Unit {
            name: name.to_owned(),
            path: format!("kernels-gpu/ptx/{name}.ptx"),
            code: Some(format!("kernels-gpu/code/{name}.fatbin")),
            builder,
        }
    });
    let others = KERNELS_OF_OTHERS.iter().map(|(folder, name)| Unit {
        name: (*name).to_owned(),
        path: format!("{folder}/ptx/{name}.ptx"),
        code: None,
        builder: Builder::new(root.join(folder)), // as its build script does
    });
    Ok(modules.chain(others).collect())
}

/// Returns the modules of `kernels-gpu`, by their files of PTX; a test of that crate compares them with its table.
fn modules(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("kernels-gpu/ptx");
    let files = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for file in files {
        let name = file?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".ptx").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Architectures whose device code is checked in too: code for `sm_80` also runs on 8.6 and 8.9, but not on later ones.
/// What spills there, a little, is not refused.
const ALSO: [&str; 1] = ["sm_120"];

/// Compilers at once, at most: each compiles `core` first.
const AT_ONCE: usize = 8;

/// Output of a unit: its PTX, and its code for each architecture if there is an assembler.
struct Made {
    ptx: String,
    on_each: Vec<Assembled>,
}

/// Compiles and assembles all units. Either takes one thread per unit, so as many units are in work as there are
/// processors.
fn make(
    units: &[Unit],
    toolchain: &DeviceToolchain,
    assembler: Option<&Assembler>,
    also: &[&str],
) -> anyhow::Result<Vec<Made>> {
    let root = crate::workspace_root();
    let one = |Unit { name, builder, .. }: &Unit, folder: &Path| -> anyhow::Result<Made> {
        let ptx = builder.clone().target_dir(folder).compile(toolchain)?;
        let assemble = |assembler: &Assembler| {
            let architectures = builder.architectures();
            let all = architectures.iter().map(String::as_str).chain(also.iter().copied());
            all.map(|architecture| assembler.assemble(name, &ptx, architecture)).collect()
        };
        let on_each = assembler.map_or_else(|| Ok(Vec::new()), assemble)?;
        Ok(Made { ptx, on_each })
    };
    let next = AtomicUsize::new(0);
    let work = &|folder: PathBuf| {
        let mut made = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(i) else { return made };
            let one = one(unit, &folder);
            if one.is_err() {
                next.store(units.len(), Ordering::Relaxed); // no worker begins another
            }
            made.push((i, one));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |processors| processors.get()).min(AT_ONCE);
    let mut made: Vec<_> = thread::scope(|scope| {
        let folders = (0..workers.min(units.len())).map(|worker| device_folder(&root, worker));
        let threads: Vec<_> = folders.map(|folder| scope.spawn(move || work(folder))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause)))
            .collect()
    });
    made.sort_by_key(|(i, _)| *i);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Returns a folder of the device build: one per compiler at work, because Cargo locks it.
fn device_folder(root: &Path, worker: usize) -> PathBuf {
    crate::target_folder(root).join(if worker == 0 { "device".to_owned() } else { format!("device-{worker}") })
}

/// Returns the units that the command line names, or all.
fn chosen(root: &Path, names: &[String]) -> anyhow::Result<Vec<Unit>> {
    let mut units = units(root)?;
    if let Some(unknown) = names.iter().find(|name| !units.iter().any(|unit| unit.name == **name)) {
        let known: Vec<_> = units.iter().map(|unit| unit.name.as_str()).collect();
        bail!("there is no module `{unknown}`; there are {}", known.join(", "));
    }
    units.retain(|unit| names.is_empty() || names.contains(&unit.name));
    Ok(units)
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Returns the first line in which two texts differ, from both.
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

/// Resources of the kernels of one module on each architecture.
struct Row<'a> {
    module: &'a str,
    on_each: Vec<Assembled>,
}

/// Renders one line per kernel: registers on each architecture, static shared memory, bytes spilled.
fn render(table: &[Row]) -> String {
    let mut text = String::new();
    let Some(first) = table.first() else { return text };
    let numbers: Vec<_> = first.on_each.iter().map(|one| one.architecture.trim_start_matches("sm_")).collect();
    let _ = writeln!(
        text,
        "{:<18} {:<36} {:>22} {:>7} {:>14}",
        "module",
        "kernel",
        format!("registers {}", numbers.join("/")),
        "shared",
        "spilled bytes"
    );
    for Row { module, on_each } in table {
        for kernel in on_each.first().into_iter().flat_map(|one| &one.kernels) {
            let all = on_each.iter().map(|one| &one.kernels);
            let on_each: Vec<_> =
                all.filter_map(|kernels| kernels.iter().find(|other| other.name == kernel.name)).collect();
            let joined = |number: fn(&warpset_builder::Resources) -> u32| {
                on_each.iter().map(|kernel| number(kernel).to_string()).collect::<Vec<_>>().join("/")
            };
            let _ = writeln!(
                text,
                "{module:<18} {:<36} {:>22} {:>7} {:>14}",
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
    fn an_unknown_module_is_an_error() {
        let root = crate::workspace_root();
        let error = chosen(&root, &["no_such_module".to_owned()]).err().expect("unknown").to_string();
        assert!(error.contains("no_such_module"), "{error}");
        assert!(chosen(&root, &[]).expect("all").len() > 1);
    }
}
