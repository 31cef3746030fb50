//! The program, on files that it makes itself.

use std::process::Command;

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_where-is-it")).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn ids_are_found_in_their_row_groups() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    assert_eq!(run(&["generate", path, "3", "25000"]), "3 files of 25000 rows\n");
    let told = run(&["find", path, "20"]);
    assert!(told.starts_with("75000 ids in 9 row groups: 2"), "{told}");
    assert!(told.ends_with("10 of 20 ids found, equally by both\n"), "{told}");
    let bytes = |line: usize| {
        let line = told.lines().nth(line).expect("a line");
        line.split(&[':', ' ']).find_map(|word| word.parse::<u64>().ok()).expect("a number")
    };
    assert!(bytes(1) < bytes(2), "{told}");
}
