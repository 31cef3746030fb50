//! The program, on files that it makes itself.

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parquet-join")).args(arguments).output().expect("the program starts")
}

fn revenue(folder: &Path, country: &str) -> String {
    let output = run(&["revenue", folder.to_str().expect("text"), country]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_country_is_joined_from_its_row_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = run(&["generate", folder.path().to_str().expect("text"), "40000"]);
    assert!(written.status.success(), "{written:?}");
    assert_eq!(String::from_utf8_lossy(&written.stdout), "3200 stores of country-0 to country-63, 40000 sales\n");

    // All sales of the country are in one of the 16 row groups, among those of three other countries.
    let expected = "\
        stores of country-11: 50, in a filter of 96 bytes\n\
        row groups read: 1 of 16\n\
        sales asked for: 2500 of 40000\n\
        sales kept: 631, of which 615 were joined\n\
        stores with sales: 50, revenue in cents: 3054127\n\
        the same as without filters\n";
    assert_eq!(revenue(folder.path(), "country-11"), expected);
    // Nothing is read for a country without stores.
    let nothing = revenue(folder.path(), "Atlantis");
    assert!(nothing.contains("row groups read: 0 of 16\n") && nothing.contains("revenue in cents: 0\n"), "{nothing}");

    // A file that was cut is an error, and so are other words.
    let sales = folder.path().join("sales.parquet");
    let bytes = std::fs::read(&sales).expect("readable");
    std::fs::write(&sales, &bytes[..bytes.len() - 100]).expect("written");
    assert!(!run(&["revenue", folder.path().to_str().expect("text"), "country-5"]).status.success());
    assert!(!run(&["revenue"]).status.success() && !run(&[]).status.success());
}
