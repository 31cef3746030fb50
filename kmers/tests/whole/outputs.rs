//! Files that the program writes: none replaces a file of the call, all appear together or not at all, and nothing else
//! is left behind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::files::{Files, bases, place};
use crate::reads::fastq;

/// Returns the program in the folder of a test.
fn program(files: &Files) -> Command {
    let mut command = Command::new(place("CARGO_BIN_EXE_kmers", env!("CARGO_BIN_EXE_kmers")));
    command.current_dir(files.path("")).stdin(Stdio::null());
    command
}

fn run(files: &Files, args: &[&str]) -> Output {
    program(files).args(args).output().unwrap()
}

fn done(files: &Files, args: &[&str]) -> Output {
    let output = run(files, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refused(files: &Files, args: &[&str]) -> String {
    let output = run(files, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.starts_with("error: ") && output.stdout.is_empty(), "{args:?}: {said}");
    said
}

/// Generates a genome, reads, two tables and an index.
fn prepared() -> Files {
    let files = Files::new();
    let genome = bases(1, 3000);
    files.write("genome.fa", [b">g\n", &genome[..], b"\n"].concat());
    let reads: Vec<Vec<u8>> =
        (0..40).map(|i| if i % 2 == 0 { genome[i..i + 150].to_vec() } else { bases(9, 150) }).collect();
    files.write("reads.fq", fastq(&reads));
    files.write("mates.fq", fastq(&reads));
    done(&files, &["count", "genome.fa", "-o", "genome.kmers"]);
    done(&files, &["count", "reads.fq", "-o", "reads.kmers"]);
    done(&files, &["index", "genome.fa", "-o", "genome.index"]);
    files
}

/// Returns names and contents of all files, and whether they are links.
fn contents(files: &Files) -> BTreeMap<OsString, (bool, Vec<u8>)> {
    let entries = fs::read_dir(files.path("")).unwrap().map(|entry| entry.unwrap());
    let of = |path: PathBuf| (path.is_symlink(), fs::read(&path).unwrap_or_default());
    entries.map(|entry| (entry.file_name(), of(entry.path()))).collect()
}

/// Checks every output of every command, under every kind of name of every file that the call reads.
#[test]
fn no_output_replaces_an_input() {
    let files = prepared();
    fs::create_dir(files.path("inner")).unwrap();
    symlink(files.path(""), files.path("inner/here")).unwrap();
    let calls: &[(&[&str], &[&str], &[&str])] = &[
        (&["count", "genome.fa", "reads.fq"], &["-o"], &["genome.fa", "reads.fq"]),
        (&["index", "genome.fa", "--without", "mates.fq"], &["-o"], &["genome.fa", "mates.fq"]),
        (&["merge", "genome.kmers", "reads.kmers"], &["-o"], &["genome.kmers", "reads.kmers"]),
        (
            &["screen", "genome.index", "reads.fq"],
            &["--matched", "--unmatched", "--counts", "--summary"],
            &["genome.index", "reads.fq"],
        ),
        (
            &["screen", "genome.kmers", "reads.fq", "mates.fq", "--paired", "--matched", "x", "--unmatched", "y"],
            &["--matched-mates", "--unmatched-mates", "--summary"],
            &["genome.kmers", "reads.fq", "mates.fq", "x", "y"],
        ),
    ];
    for (call, options, taken) in calls {
        for taken in *taken {
            let is_there = files.path(taken).exists();
            if is_there {
                fs::hard_link(files.path(taken), files.path("hard")).unwrap();
            }
            symlink(taken, files.path("soft")).unwrap();
            let before = contents(&files);
            let names =
                [taken.to_string(), format!("./{taken}"), format!("inner/../{taken}"), format!("inner/here/{taken}")];
            let links = ["soft".to_owned(), "hard".to_owned()];
            for name in names.iter().chain(&links[..if is_there { 2 } else { 1 }]) {
                for option in *options {
                    let said = refused(&files, &[*call, &[*option, name][..]].concat());
                    assert!(said.contains("name another file for the output"), "{said}");
                    assert!(contents(&files) == before, "{call:?} {option} {name}");
                }
            }
            let _ = fs::remove_file(files.path("hard"));
            fs::remove_file(files.path("soft")).unwrap();
        }
    }
    // Two outputs, existing or not, and a file that is the standard input.
    let outputs = ["--matched", "--unmatched", "--counts", "--summary"];
    files.write("old", "old");
    for name in ["old", "new"] {
        for first in outputs {
            for second in outputs.iter().filter(|second| **second != first) {
                let other = format!("./{name}");
                let said = refused(&files, &["screen", "genome.index", "reads.fq", first, name, second, &other]);
                assert!(said.contains("written twice"), "{said}");
            }
        }
    }
    let mut redirected = program(&files);
    redirected.args(["screen", "genome.index", "-", "--unmatched", "reads.fq"]);
    let output = redirected.stdin(File::open(files.path("reads.fq")).unwrap()).output().unwrap();
    assert!(!output.status.success());
    assert!(fs::metadata(files.path("reads.fq")).unwrap().len() > 10_000);
    // Devices may be named several times.
    done(&files, &["screen", "genome.index", "reads.fq", "--matched", "/dev/null", "--unmatched", "/dev/null"]);
}

/// Checks that an output that cannot be opened, written or named leaves none of the others.
#[test]
fn outputs_appear_together_or_not_at_all() {
    let files = prepared();
    fs::create_dir(files.path("folder")).unwrap();
    files.write("old.fq", "old");
    let before = contents(&files);
    for bad in ["no/such.json", "folder", "/dev/full"] {
        for option in ["--summary", "--counts", "--matched"] {
            let others = ["--unmatched", "old.fq", "--matched-mates", "new.fq", "--paired", option, bad];
            let matched: &[&str] = if option == "--matched" { &[] } else { &["--matched", "m.fq.gz"] };
            refused(&files, &[&["screen", "genome.index", "reads.fq", "mates.fq"][..], &others, matched].concat());
            assert!(contents(&files) == before, "{option} {bad}");
        }
        if bad != "/dev/full" {
            for call in [["count", "genome.fa"], ["index", "genome.fa"], ["merge", "reads.kmers"]] {
                refused(&files, &[&call[..], &["-o", bad]].concat());
                assert!(contents(&files) == before, "{call:?} {bad}");
            }
        }
    }
}

/// Returns a shell that runs a script in the folder of a test, with the program as `$0`.
fn shell(files: &Files, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program(files).get_program()).current_dir(files.path(""));
    shell
}

/// Checks that an output beyond the limit of file sizes is an error that leaves nothing.
#[test]
fn too_large_outputs_leave_nothing() {
    let files = prepared();
    let before = contents(&files);
    let output = shell(&files, "ulimit -f 2; exec \"$0\" count -k 41 genome.fa -o x").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.starts_with("error: cannot write x: "), "{said}");
    assert!(contents(&files) == before);
}

/// Checks that messages without a reader change neither results nor the exit status.
#[test]
fn messages_need_no_reader() {
    let files = prepared();
    for (args, status) in [(&["count", "genome.fa", "-o", "x"][..], 0), (&["info", "x"], 0), (&["info", "none"], 1)] {
        let ended = program(&files).args(args).stderr(closed_pipe()).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{args:?}");
    }
}

/// Waits until `is_so`.
fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
}

fn has_parts(files: &Files) -> bool {
    files.names().iter().any(|name| name.ends_with(".part"))
}

/// Starts a run that waits for the end of its input, with outputs begun.
fn waiting(files: &Files, mut command: Command) -> Child {
    command.args([
        "screen",
        "genome.index",
        "-",
        "--unmatched",
        "out.fq",
        "--matched",
        "m.fq.gz",
        "--summary",
        "s.json",
    ]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let text = fs::read(files.path("reads.fq")).unwrap().repeat(500);
    let mut input = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut input, &text);
        input
    });
    wait_until(|| has_parts(files));
    child.stdin = Some(writing.join().unwrap());
    child
}

/// Whether this process was started to ignore a signal, as background jobs of shells are; its child processes ignore it
/// too.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Checks that interrupted runs leave nothing, and that the next run removes files of killed ones.
#[test]
fn interrupted_runs_leave_nothing() {
    let files = prepared();
    files.write("out.fq", "old");
    let before = contents(&files);
    let kill = |child: &Child, signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        if is_ignored(number) {
            eprintln!("SKIPPED: {signal}, which this test was started to ignore");
            continue;
        }
        let mut child = waiting(&files, program(&files));
        kill(&child, signal);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert!(contents(&files) == before, "{signal}");
    }
    // Started as by `nohup`, the run goes on.
    let mut child = waiting(&files, shell(&files, "trap '' HUP; exec \"$0\" \"$@\""));
    kill(&child, "-HUP");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    for name in ["m.fq.gz", "s.json"] {
        fs::remove_file(files.path(name)).unwrap();
    }
    files.write("out.fq", "old");

    let mut killed = waiting(&files, program(&files));
    kill(&killed, "-KILL");
    killed.wait().unwrap();
    assert!(has_parts(&files));
    let mut other = waiting(&files, program(&files));
    // The parts belong to the run that goes on.
    let parts = || files.names().iter().filter(|name| name.ends_with(".part")).count();
    assert_eq!(parts(), 3);
    done(&files, &["screen", "genome.index", "reads.fq", "--unmatched", "out.fq"]);
    assert_eq!(parts(), 3);
    kill(&other, "-TERM");
    other.wait().unwrap();
    assert!(!has_parts(&files));
}

/// Checks that leftovers of a killed run that the next one reads are kept.
#[test]
fn leftovers_that_are_read_stay() {
    let files = prepared();
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let part = format!("out.fq.{}.0.part", ended.id());
    fs::copy(files.path("reads.fq"), files.path(&part)).unwrap();
    done(&files, &["screen", "genome.index", &part, "--unmatched", "out.fq"]);
    assert!(files.path(&part).exists());
    done(&files, &["screen", "genome.index", "reads.fq", "--unmatched", "out.fq"]);
    assert!(!files.path(&part).exists());
}

#[test]
fn replaced_files_keep_their_permissions() {
    let files = prepared();
    for args in [
        &["screen", "genome.index", "reads.fq", "--unmatched", "old"][..],
        &["screen", "genome.index", "reads.fq", "--summary", "old"],
        &["count", "genome.fa", "-o", "old"],
        &["index", "genome.fa", "-o", "old"],
        &["merge", "genome.kmers", "-o", "old"],
    ] {
        for mode in [0o640, 0o600, 0o444] {
            let _ = fs::remove_file(files.path("old"));
            files.write("old", "old");
            fs::set_permissions(files.path("old"), fs::Permissions::from_mode(mode)).unwrap();
            done(&files, args);
            let there = fs::metadata(files.path("old")).unwrap();
            assert!(there.len() > 3 && there.mode() & 0o7777 == mode, "{args:?} {mode:o}");
        }
    }
}

/// Checks that `-` is the standard input or output in every place, or refused.
#[test]
fn a_dash_is_a_stream_everywhere() {
    let files = prepared();
    for (args, name) in [
        (["count", "genome.fa", "-o"], "genome.kmers"),
        (["index", "genome.fa", "-o"], "genome.index"),
        (["merge", "genome.kmers", "-o"], "genome.kmers"),
    ] {
        assert!(done(&files, &[&args[..], &["-"]].concat()).stdout == fs::read(files.path(name)).unwrap(), "{args:?}");
    }
    // Others may write to the same open file, before and afterwards.
    let table = fs::read(files.path("genome.kmers")).unwrap();
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let script = format!("(echo a; \"$0\" merge genome.kmers -o {name}; echo b) > x");
        assert!(shell(&files, &script).status().unwrap().success());
        assert!(fs::read(files.path("x")).unwrap() == [b"a\n", &table[..], b"b\n"].concat(), "{name}");
    }
    // Nothing is written twice, because each write of a file that is open for appending goes to its end. Small tables
    // are written at once anyway.
    files.write("large.fa", [b">g\n", &bases(2, 400_000)[..], b"\n"].concat());
    done(&files, &["count", "large.fa", "-o", "large.kmers"]);
    let table = fs::read(files.path("large.kmers")).unwrap();
    let script = "(echo a; \"$0\" merge large.kmers -o -; echo b) >> appended";
    assert!(table.len() > 1 << 20 && shell(&files, script).status().unwrap().success());
    assert!(fs::read(files.path("appended")).unwrap() == [b"a\n", &table[..], b"b\n"].concat());
    for option in ["--matched", "--unmatched", "--counts", "--summary"] {
        let found = done(&files, &["screen", "genome.index", "reads.fq", option, "-"]).stdout;
        done(&files, &["screen", "genome.index", "reads.fq", option, "file"]);
        let file = fs::read(files.path("file")).unwrap();
        assert!(!found.is_empty() && (option == "--summary" || found == file), "{option}");
    }
    for (args, text) in [(["count", "-", "-o", "x"], "genome.kmers"), (["index", "-", "-o", "x"], "genome.index")] {
        let input = File::open(files.path("genome.fa")).unwrap();
        assert!(program(&files).args(args).stdin(input).status().unwrap().success());
        assert!(fs::read(files.path("x")).unwrap() == fs::read(files.path(text)).unwrap());
    }
    for args in [
        &["screen", "-", "reads.fq"][..],
        &["screen", "genome.index", "-", "-", "--paired"],
        &["count", "-", "-", "-o", "y"],
        &["index", "genome.fa", "-", "--without", "-", "-o", "y"],
        &["screen", "genome.index", "reads.fq", "--matched", "-", "--unmatched", "-"],
        &["info", "-"],
        &["list", "-"],
        &["histogram", "-"],
        &["merge", "-", "-o", "y"],
    ] {
        let said = refused(&files, args);
        assert!(said.contains("standard"), "{said}");
    }
    assert!(!files.path("-").exists() && !files.path("y").exists());
    // A file of that name has a folder before it.
    done(&files, &["count", "genome.fa", "-o", "./-"]);
    assert!(files.path("./-").exists());
}

/// Checks that names that are no text work for all files, and appear in the summary as far as possible.
#[test]
fn names_need_not_be_utf8() {
    let files = prepared();
    let name = |start: &str| OsString::from_vec([start.as_bytes(), b"\xff.fq"].concat());
    let path = |start: &str| files.path("").join(name(start));
    for from in ["genome.fa", "reads.fq", "mates.fq"] {
        fs::copy(files.path(from), path(from)).unwrap();
    }
    let run = |args: &[&OsStr]| {
        let output = program(&files).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let text = OsStr::new;
    run(&[text("index"), &name("genome.fa"), text("-o"), &name("index")]);
    run(&[text("count"), &name("genome.fa"), text("-o"), &name("table")]);
    run(&[text("merge"), &name("table"), text("-o"), &name("sum")]);
    let all = [
        [text("--matched"), &name("1")],
        [text("--matched-mates"), &name("2")],
        [text("--unmatched"), &name("3")],
        [text("--unmatched-mates"), &name("4")],
        [text("--counts"), &name("5")],
        [text("--summary"), &name("6")],
    ];
    let call = [text("screen"), &name("index"), &name("reads.fq"), &name("mates.fq"), text("--paired")];
    run(&[&call[..], &all.concat()].concat());
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(path("6")).unwrap()).unwrap();
    for (field, start) in [("index", "index"), ("matched", "1"), ("counts", "5")] {
        assert_eq!(summary[field], format!("{start}\u{fffd}.fq"));
    }
    assert_eq!((&summary["files"][1], &summary["pairs"]), (&"mates.fq\u{fffd}.fq".into(), &40.into()));
    assert!(name("x").as_bytes().contains(&0xff) && path("4").exists());
}

/// Checks that files are in the form of their names.
#[test]
fn endings_are_honoured_or_refused() {
    let files = prepared();
    let before = contents(&files);
    for ending in ["xz", "bz2", "LZ4", "lzma", "zip", "Z", "br", "7z", "tar", "bam"] {
        for option in ["--matched", "--unmatched", "--counts", "--summary"] {
            let said = refused(&files, &["screen", "genome.index", "reads.fq", option, &format!("out.{ending}")]);
            assert!(said.contains("another ending"), "{said}");
        }
    }
    for ending in ["gz", "zst", "xz", "bz2"] {
        for call in [["count", "genome.fa"], ["index", "genome.fa"], ["merge", "genome.kmers"]] {
            let said = refused(&files, &[&call[..], &["-o", &format!("out.{ending}")]].concat());
            assert!(said.contains("written unpacked"), "{said}");
        }
    }
    assert!(contents(&files) == before);
    done(&files, &["screen", "genome.index", "reads.fq", "--summary", "s.json.gz", "--counts", "c.tsv.gz"]);
    for name in ["s.json.gz", "c.tsv.gz"] {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(File::open(files.path(name)).unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
    }
    // A run whose only output lost its reader does not fail; one that also loses other outputs does.
    let gone = |more: &[&str]| {
        let mut command = program(&files);
        command.args(["screen", "genome.index", "reads.fq", "--unmatched", "-"]).args(more);
        command.stdout(closed_pipe()).stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(gone(&[]) && !gone(&["--matched", "lost.fq"]));
}

/// Returns the writing end of a pipe without a reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}
