//! The program, on a small table.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_table-on-disk")).args(arguments).output().expect("the program starts")
}

#[test]
fn every_key_has_its_value_and_no_other_key_has_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, table) = (folder.path().join("input"), folder.path().join("table"));
    let (input, table) = (input.to_str().expect("text"), table.to_str().expect("text"));
    let lines: String = (0..20_000).map(|i| format!("key {i}\tvalue {}\n", i * i)).collect();
    std::fs::write(input, lines).expect("written");
    let built = run(&["build", input, table]);
    assert!(built.status.success(), "{built:?}");

    // The input is not replaced by its table, whatever its name.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(input, &link).expect("a link");
    for same in [input, link.to_str().expect("text")] {
        let refused = run(&["build", input, same]);
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("name another file"));
    }
    assert!(std::fs::read_to_string(input).expect("text").starts_with("key 0\t"));

    let asked: Vec<String> = (0..20_000).step_by(997).map(|i| format!("key {i}")).collect();
    let mut arguments = vec!["get", table, "another key"];
    arguments.extend(asked.iter().map(String::as_str));
    let answered = run(&arguments);
    let mut expected = String::from("another key is not in the table\n");
    expected.extend((0..20_000).step_by(997).map(|i| format!("key {i}\tvalue {}\n", i * i)));
    assert_eq!(String::from_utf8_lossy(&answered.stdout), expected);

    // A file that was cut gives an error and no answer.
    let bytes = std::fs::read(table).expect("readable");
    std::fs::write(table, &bytes[..bytes.len() / 2]).expect("written");
    let cut = run(&["get", table, "key 19999", "key 1", "key 2", "key 3"]);
    assert!(!cut.status.success() && String::from_utf8_lossy(&cut.stderr).contains("cut"), "{cut:?}");
    assert!(!run(&["build", table, "nowhere"]).status.success() && !run(&[]).status.success());
}
