//! `cargo xtask faults`: plants the faults of `tests/faults/faults.txt`, one at a time, in a copy of the repository,
//! and reports which of them the tests find.
//!
//! A fault is found if the tests fail or are still running after [`SECONDS`]. The copy is in
//! `target/faults/tree`; compiled files stay, so that the next fault compiles what it changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

/// Variable that selects the tier of tests.
const TIER: &str = "WARPSET_TESTS";
/// Seconds for one command of a fault's tests, compilation included.
const SECONDS: u64 = 3600;

/// The arguments of `faults`.
#[derive(clap::Args)]
pub struct Args {
    /// Tier of tests that looks for them
    #[arg(long, default_value = "default", value_parser = ["default", "thorough"])]
    tier: String,
    /// List the faults, and check that each can be planted
    #[arg(long)]
    list: bool,
    /// Faults by number or group; default: all
    chosen: Vec<String>,
}

/// A fault and its tests.
#[derive(Debug, PartialEq)]
struct Fault {
    group: String,
    file: PathBuf,
    what: String,
    old: String,
    new: String,
}

/// The faults, and the arguments of `cargo test` by group.
type Records = (Vec<Fault>, Vec<(String, String)>);

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = crate::workspace_root().canonicalize()?;
    let (faults, tests) = parse(&fs::read_to_string(root.join("tests/faults/faults.txt"))?)?;
    let is_chosen = |number: usize, fault: &Fault| {
        args.chosen.is_empty() || args.chosen.iter().any(|word| *word == fault.group || *word == number.to_string())
    };
    let chosen: Vec<(usize, &Fault)> = faults
        .iter()
        .enumerate()
        .map(|(i, fault)| (i + 1, fault))
        .filter(|(number, fault)| is_chosen(*number, fault))
        .collect();
    ensure!(!chosen.is_empty(), "no fault is called {}", args.chosen.join(" or "));
    if args.list {
        let mut stale = 0;
        for (number, fault) in &chosen {
            let note = fault.planted(&root).err().map_or_else(String::new, |error| format!(" STALE: {error:#}"));
            stale += usize::from(!note.is_empty());
            println!("{number:3} {:10} {}: {}{note}", fault.group, fault.file.display(), fault.what);
        }
        ensure!(stale == 0, "{stale} faults cannot be planted");
        return Ok(());
    }
    let tree = crate::target_folder(&root).join("faults/tree");
    copy(&root, &tree)?;
    let commands = |wanted: &str| {
        let of_group = tests.iter().filter(|(group, _)| group == wanted);
        of_group.map(|(_, arguments)| arguments.as_str()).collect::<Vec<_>>()
    };
    let mut sound_with = BTreeSet::new();
    let mut missed = 0;
    for (number, fault) in &chosen {
        let (path, started) = (tree.join(&fault.file), Instant::now());
        let sound = fs::read_to_string(&path)?;
        fs::write(&path, fault.planted(&tree)?)?;
        let found = find(&tree, &commands(&fault.group), &args.tier);
        fs::write(&path, sound)?;
        let by = found?;
        if let Some(arguments) = by.filter(|arguments| sound_with.insert(*arguments)) {
            let fails = find(&tree, &[arguments], &args.tier)?.is_some();
            ensure!(!fails, "`cargo test {arguments}` fails without a fault");
        }
        missed += usize::from(by.is_none());
        let by = by.map_or_else(|| "NOT FOUND".to_owned(), |by| format!("found by {by}"));
        println!("{number:3} {:10} {:5} s  {by}: {}", fault.group, started.elapsed().as_secs(), fault.what);
    }
    println!("{} faults, {missed} not found by the {} tier", chosen.len(), args.tier);
    Ok(())
}

impl Fault {
    /// Returns the file's text with the fault in it.
    fn planted(&self, root: &Path) -> anyhow::Result<String> {
        let path = root.join(&self.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let count = text.matches(&self.old).count();
        ensure!(count == 1, "{}: `{}` occurs {count} times, where once is needed", self.file.display(), self.old);
        Ok(text.replacen(&self.old, &self.new, 1))
    }
}

/// Reads the list.
fn parse(text: &str) -> anyhow::Result<Records> {
    let (mut faults, mut tests): Records = Default::default();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((group, arguments)) = line.strip_prefix("tests ").and_then(|rest| rest.split_once(' ')) {
            tests.push((group.to_owned(), arguments.to_owned()));
        } else if let Some((group, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            let (file, what) = rest.split_once(": ").with_context(|| format!("no file in `{line}`"))?;
            let (old, new) = (String::new(), String::new());
            faults.push(Fault { group: group.into(), file: file.into(), what: what.into(), old, new });
        } else {
            let fault = faults.last_mut().with_context(|| format!("no fault above `{line}`"))?;
            match line.split_at(1) {
                ("-", old) => fault.old = old.trim().to_owned(),
                ("+", new) => fault.new = new.trim().to_owned(),
                _ => bail!("`{line}` is no part of a fault"),
            }
        }
    }
    for fault in &faults {
        ensure!(!fault.old.is_empty() && fault.old != fault.new, "no change: {}", fault.what);
        ensure!(tests.iter().any(|(group, _)| *group == fault.group), "no tests for the group {}", fault.group);
    }
    Ok((faults, tests))
}

/// Brings `tree` to the state of the repository's tracked files; files that are equal keep their times.
fn copy(root: &Path, tree: &Path) -> anyhow::Result<()> {
    let listed =
        Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output().context("cannot start git")?;
    ensure!(listed.status.success(), "git cannot list the files of {}", root.display());
    for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::write(&to, bytes)?;
    }
    Ok(())
}

/// Returns the arguments of the first command whose tests fail, if one's do. A fault must compile.
fn find<'a>(tree: &Path, commands: &[&'a str], tier: &str) -> anyhow::Result<Option<&'a str>> {
    for arguments in commands {
        let succeeds = |more: &[&str]| {
            // `timeout` ends the tests too, which killing Cargo does not.
            let mut command = Command::new("timeout");
            command.arg(SECONDS.to_string()).arg(crate::cargo().get_program());
            command.current_dir(tree).arg("test").arg("--quiet").args(arguments.split(' ')).args(more);
            let folder = std::env::var_os("CARGO_TARGET_DIR");
            command.env("CARGO_TARGET_DIR", folder.unwrap_or_else(|| tree.with_file_name("compiled").into()));
            // Inputs that found one fault would be tried first for the next.
            command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
            command.env("RUST_BACKTRACE", "0").env(TIER, tier);
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            anyhow::Ok(status.context("cannot start `timeout`")?.success())
        };
        ensure!(succeeds(&["--no-run"])?, "`cargo test {arguments}` does not compile");
        if !succeeds(&[])? {
            return Ok(Some(arguments));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_tests_and_a_change() {
        let text = "# a list\ntests a -p a --lib\n\n[a] a/lib.rs: a sign\n- x - y\n+ x + y\n\n[a] b.rs: nothing waits\n- wait();\n+\n";
        let (faults, tests) = parse(text).unwrap();
        assert_eq!(tests, [("a".to_owned(), "-p a --lib".to_owned())]);
        assert_eq!((faults[0].old.as_str(), faults[0].new.as_str()), ("x - y", "x + y"));
        assert!(faults[1].new.is_empty() && faults[1].what == "nothing waits");
        for bad in [
            "- x",
            "tests a b\n[a] f: w\n- x\n+ x",
            "[a] f: w\n- x\n+ y",
            "tests a b\n[a] no file",
            "tests a b\n[a] f: w\n*",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
