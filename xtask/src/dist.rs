//! `cargo xtask dist`: packs what a GPU node needs if it has a driver but no Rust toolchain.
//!
//! ```text
//! dist/run.sh        unpacks the archive once; runs the tests, the tests under compute-sanitizer, the bench
//! dist/pack.tar.xz
//!   tests/           test executables that can drive a GPU (all with `--host-tests`), stripped
//!   bin/             the programs, those of `xtask` and the laboratory among them, stripped
//!   workspace/       the repository's files: data, fixtures, sources, PTX
//! ```
//!
//! The executables are built for this machine's target and its baseline processor; CUDA is bound when they run. Tests
//! of `xtask` and of the laboratory are not packed. Each executable holds a copy of the crates that it tests. The
//! archive is compressed as one piece, with a window larger than an executable, so that most of a copy costs nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde_json::Value;

const RUN_SCRIPT: &str = include_str!("dist/run.sh");

/// The folders that go into the archive.
const PARTS: [&str; 3] = ["bin", "tests", "workspace"];

/// The compressor, with a window that holds dozens of executables. Unpacking takes as much memory as the window.
const COMPRESSOR: &str = "xz --lzma2=preset=2,dict=192MiB";

/// The package whose feature `peers` compiles the libraries that take minutes.
const LABORATORY: &str = "warpset-benches";

/// The arguments of `dist`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to make; what an earlier run left there is replaced
    #[arg(long, default_value = "dist")]
    output: PathBuf,
    /// The largest size of the folder in MiB, compressed: nodes are often reached over a narrow path
    #[arg(long, default_value_t = 64)]
    limit: u64,
    /// Also pack the tests that never touch a GPU
    #[arg(long)]
    host_tests: bool,
    /// Pack the executables of this package alone; may be given again
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args, peers: bool) -> anyhow::Result<()> {
    let root = crate::workspace_root().canonicalize()?;
    let mut workspaces = Vec::new();
    for workspace in &WORKSPACES {
        workspaces.push((workspace, crate::package::members(&root.join(workspace.folder))?));
    }
    for name in &args.package {
        let is_there = workspaces.iter().any(|(_, members)| members.contains(name));
        ensure!(is_there, "no workspace of the repository has a package {name}");
    }
    let output = root.join(&args.output);
    if output.exists() {
        ensure!(
            output.join("run.sh").is_file(),
            "{} is there and was not made by this command: remove it first",
            output.display()
        );
        fs::remove_dir_all(&output).with_context(|| format!("cannot replace {}", output.display()))?;
    }
    let files = repository_files(&root)?;
    let mut executables = Vec::new();
    for (workspace, members) in &workspaces {
        executables.extend(build(&root, workspace, members, args, peers)?);
    }
    let executables = distinct(executables)?;
    for part in PARTS {
        fs::create_dir_all(output.join(part))?;
    }
    for executable in &executables {
        strip_into(executable, &output.join(if executable.is_test { "tests" } else { "bin" }))?;
    }
    let tests: Vec<_> = executables.into_iter().filter(|executable| executable.is_test).collect();
    for file in &files {
        let to = output.join("workspace").join(file);
        fs::create_dir_all(to.parent().expect("a file lies in a folder"))?;
        fs::copy(root.join(file), &to).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    write_run_script(&output, &root, &tests)?;
    list_largest(&output)?;
    compress(&output)?;
    let packed = size_of(&output)?;
    println!("{:>8.1} MiB  {} with {} test executables", mib(packed), output.display(), tests.len());
    ensure!(packed <= args.limit << 20, "the pack is larger than {} MiB (--limit)", args.limit);
    Ok(())
}

/// A compiled executable.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// Its name in the pack: a program's own; for tests the package's, and the target's where that differs.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// The folder of its package.
    pub package: PathBuf,
    /// Whether it runs tests.
    pub is_test: bool,
}

/// Lists the files that belong to the repository, tracked or new, relative to its root.
fn repository_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot start git")?;
    ensure!(listed.status.success(), "git does not list the files of {}", root.display());
    let names = String::from_utf8(listed.stdout).context("a file's name is not UTF-8")?;
    // A file that was removed and not yet committed is still listed.
    Ok(names.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// A workspace of the repository.
struct Workspace {
    /// Its folder.
    folder: &'static str,
    /// Whether its tests are packed.
    tested: bool,
}

/// The workspaces whose programs are packed.
const WORKSPACES: [Workspace; 3] = [
    Workspace { folder: ".", tested: true },
    Workspace { folder: "kmers", tested: true },
    Workspace { folder: "benches", tested: false },
];

/// Builds the executables of a workspace that go into the pack: of the chosen packages, in release mode. One command
/// builds programs and tests, so that they share all libraries.
fn build(
    root: &Path,
    workspace: &Workspace,
    members: &[String],
    args: &Args,
    peers: bool,
) -> anyhow::Result<Vec<Executable>> {
    let folder = root.join(workspace.folder);
    let asked = |name: &&String| args.package.is_empty() || args.package.contains(name);
    let built: Vec<&String> = members.iter().filter(asked).collect();
    if built.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = crate::cargo();
    command.current_dir(&folder).args(["build", "--release", "--bins", "--target-dir"]).arg(crate::target_folder(root));
    built.iter().for_each(|name| _ = command.args(["--package", name]));
    if workspace.tested {
        command.arg("--tests");
    }
    if peers && built.iter().any(|name| *name == LABORATORY) {
        command.args(["--features", "warpset-benches/peers"]);
    }
    let output = command
        // Flags such as `-Ctarget-cpu=native` would bind the executables to this machine's processor.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the workspace {} does not build", folder.display());
    let mut packed = Vec::new();
    for executable in parse_messages(&String::from_utf8(output.stdout).context("Cargo's messages are not UTF-8")?)? {
        let drives = || fs::read(&executable.path).map(|bytes| can_drive_gpu(&bytes));
        let of_tools = executable.package == root.join("xtask");
        if !executable.is_test || !of_tools && (args.host_tests || drives().context("cannot read an executable")?) {
            packed.push(executable);
        }
    }
    Ok(packed)
}

/// Parses the executables in Cargo's messages, one JSON object per line.
pub fn parse_messages(messages: &str) -> anyhow::Result<Vec<Executable>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("Cargo's messages are not JSON")?;
        let (Some("compiler-artifact"), Some(path)) = (message["reason"].as_str(), message["executable"].as_str())
        else {
            continue;
        };
        let target = message["target"]["name"].as_str().context("a target has a name")?;
        let manifest = message["manifest_path"].as_str().context("a package has a manifest")?;
        let package = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        let package_name = package_name(message["package_id"].as_str().unwrap_or_default(), package);
        let is_test = message["profile"]["test"].as_bool().unwrap_or(false);
        let same = target.replace('_', "-") == package_name;
        // Tests find a program by its own name: `CARGO_BIN_EXE_` and the name of the target.
        let mut name = if !is_test {
            target.to_owned()
        } else if same {
            package_name
        } else {
            format!("{package_name}--{target}")
        };
        if is_test && message["target"]["kind"][0] == "bin" {
            // A package's library and program have the same name, and both have tests.
            name += "--bin";
        }
        found.push(Executable { name, path: path.into(), package: package.to_path_buf(), is_test });
    }
    distinct(found)
}

/// Sorts executables by name; an error if two programs or two tests would have the same name in the pack.
fn distinct(mut executables: Vec<Executable>) -> anyhow::Result<Vec<Executable>> {
    executables.sort_by(|a, b| (a.is_test, &a.name).cmp(&(b.is_test, &b.name)));
    for pair in executables.windows(2) {
        let same = (pair[0].is_test, &pair[0].name) == (pair[1].is_test, &pair[1].name);
        ensure!(
            !same,
            "two executables are called {}: {} and {}",
            pair[0].name,
            pair[0].path.display(),
            pair[1].path.display()
        );
    }
    Ok(executables)
}

/// Returns the package's name in an id such as `path+file:///w/crates/core#warpset-core@0.1.0`. The id leaves out a
/// name that is the folder's: `path+file:///w/xtask#0.1.0`.
fn package_name(id: &str, folder: &Path) -> String {
    match id.rsplit_once('#').and_then(|(_, name)| name.split_once('@')) {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    }
}

/// Copies an executable without symbols and debug information.
fn strip_into(executable: &Executable, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let to = folder.join(&executable.name);
    let status = Command::new("strip")
        .arg("-o")
        .arg(&to)
        .arg(&executable.path)
        .status()
        .context("cannot start `strip` (package binutils)")?;
    ensure!(status.success(), "cannot strip {}", executable.path.display());
    Ok(())
}

fn write_run_script(output: &Path, root: &Path, tests: &[Executable]) -> anyhow::Result<()> {
    let script = output.join("run.sh");
    fs::write(&script, run_script(root, tests)?)?;
    #[cfg(unix)]
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

fn run_script(root: &Path, tests: &[Executable]) -> anyhow::Result<String> {
    let mut entries = Vec::new();
    for test in tests {
        let package = test.package.strip_prefix(root).context("a package lies in the workspace")?;
        let uses = if can_drive_gpu(&fs::read(&test.path)?) { "cuda" } else { "host" };
        entries.push(format!("    \"{} {} {uses}\"", test.name, package.display()));
    }
    Ok(RUN_SCRIPT.replace("@TESTS@", &entries.join("\n")))
}

/// Whether an executable binds the CUDA driver when it runs: then it names the driver's library.
fn can_drive_gpu(executable: &[u8]) -> bool {
    const LIBRARY: &[u8] = b"libcuda.so";
    executable.windows(LIBRARY.len()).any(|window| window == LIBRARY)
}

/// Prints what goes into the archive, largest first.
fn list_largest(output: &Path) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    for part in PARTS {
        sizes.push((size_of(&output.join(part))?, format!("{part}/")));
        if part != "workspace" {
            for entry in fs::read_dir(output.join(part))? {
                let entry = entry?;
                sizes.push((entry.metadata()?.len(), format!("{part}/{}", entry.file_name().to_string_lossy())));
            }
        }
    }
    sizes.sort_by(|a, b| b.cmp(a));
    for (size, name) in &sizes {
        println!("{:>8.1} MiB  {name}", mib(*size));
    }
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// Turns the parts into the archive.
fn compress(output: &Path) -> anyhow::Result<()> {
    let status = Command::new("tar")
        .current_dir(output)
        .args(["--use-compress-program", COMPRESSOR, "-cf", "pack.tar.xz"])
        .args(PARTS)
        .status()
        .context("cannot start `tar`")?;
    ensure!(status.success(), "cannot compress the pack (`tar` and `xz` have to be installed)");
    for part in PARTS {
        fs::remove_dir_all(output.join(part))?;
    }
    Ok(())
}

fn size_of(path: &Path) -> anyhow::Result<u64> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut size = 0;
    for entry in fs::read_dir(path)? {
        size += size_of(&entry?.path())?;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/core#warpset-core@0.1.0","manifest_path":"/w/crates/core/Cargo.toml","target":{"name":"warpset_core"},"profile":{"test":true},"executable":"/w/target/release/deps/warpset_core-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/core#warpset-core@0.1.0","manifest_path":"/w/crates/core/Cargo.toml","target":{"name":"warpset_core"},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/tests#warpset-tests@0.1.0","manifest_path":"/w/tests/Cargo.toml","target":{"name":"bloom_model"},"profile":{"test":true},"executable":"/w/target/release/deps/bloom_model-2"}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":false},"executable":"/w/target/release/xtask"}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":true},"executable":"/w/target/release/deps/xtask-3"}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"kind":["lib"],"name":"xtask"},"profile":{"test":true},"executable":"/w/target/release/deps/xtask-4"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/words#warpset-words@0.1.0","manifest_path":"/w/crates/words/Cargo.toml","target":{"kind":["bin"],"name":"words"},"profile":{"test":false},"executable":"/w/target/release/words"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/words#warpset-words@0.1.0","manifest_path":"/w/crates/words/Cargo.toml","target":{"kind":["bin"],"name":"words"},"profile":{"test":true},"executable":"/w/target/release/deps/words-5"}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn executables_are_found_in_messages() {
        let found = parse_messages(MESSAGES).expect("well formed");
        let names: Vec<_> = found.iter().map(|executable| (executable.is_test, executable.name.as_str())).collect();
        assert_eq!(
            names,
            [
                // The program of `warpset-words` keeps its name, by which tests find it.
                (false, "words"),
                (false, "xtask"),
                (true, "warpset-core"),
                (true, "warpset-tests--bloom_model"),
                (true, "warpset-words--words--bin"),
                (true, "xtask"),
                (true, "xtask--bin")
            ]
        );
        assert_eq!(found[2].package, Path::new("/w/crates/core"));
        assert!(parse_messages("{ broken").is_err());
        let twice = MESSAGES.repeat(2);
        assert!(parse_messages(&twice).expect_err("same name").to_string().contains("two executables"));
    }

    /// Runs the script's variables for programs, as tests on a node get them.
    #[cfg(unix)]
    #[test]
    fn tests_find_packed_programs_by_the_names_of_their_targets() {
        let node = std::env::temp_dir().join(format!("warpset-node-{}", std::process::id()));
        for part in PARTS {
            fs::create_dir_all(node.join(part)).expect("a folder for the test");
        }
        let found = parse_messages(MESSAGES).expect("well formed");
        for program in found.iter().filter(|executable| !executable.is_test) {
            fs::write(node.join("bin").join(&program.name), "").expect("writable");
            fs::set_permissions(
                node.join("bin").join(&program.name),
                std::os::unix::fs::PermissionsExt::from_mode(0o755),
            )
            .expect("own file");
        }
        let test = "#!/bin/sh\n[ -x \"$(printenv CARGO_BIN_EXE_words)\" ] && [ -d \"$CARGO_MANIFEST_DIR\" ]\n";
        let path = node.join("tests/warpset-words");
        fs::write(&path, test).expect("writable");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("own file");
        fs::create_dir_all(node.join("workspace/crates/words")).expect("a folder for the test");
        let test =
            Executable { name: "warpset-words".to_owned(), path, package: node.join("crates/words"), is_test: true };
        write_run_script(&node, &node, &[test]).expect("readable");
        compress(&node).expect("tar and xz");
        let run = Command::new(node.join("run.sh")).args(["test", "warpset-words"]).output().expect("bash");
        fs::remove_dir_all(&node).expect("own folder");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    }

    #[test]
    fn the_script_lists_executables_with_their_packages() {
        let root = std::env::temp_dir().join(format!("warpset-dist-{}", std::process::id()));
        fs::create_dir_all(&root).expect("a folder for the test");
        let executable = |name: &str, content: &str| {
            let path = root.join(name);
            fs::write(&path, content).expect("writable");
            Executable { name: name.to_owned(), path, package: root.join("crates").join(name), is_test: true }
        };
        let tests = [executable("core", "\x7fELF"), executable("gpu", "\x7fELF … libcuda.so.1 …")];
        let script = run_script(&root, &tests).expect("readable");
        assert!(script.contains("tests=(\n    \"core crates/core host\"\n    \"gpu crates/gpu cuda\"\n)"), "{script}");
        assert!(run_script(Path::new("/other"), &tests).is_err());
        fs::remove_dir_all(&root).expect("own folder");
    }

    #[cfg(unix)]
    #[test]
    fn the_script_is_valid_bash() {
        let checked = Command::new("bash").args(["-n", "-c", RUN_SCRIPT]).status();
        assert!(checked.is_ok_and(|status| status.success()));
    }
}
