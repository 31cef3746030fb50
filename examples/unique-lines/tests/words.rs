//! The program, on words that come again and again, against a `HashSet`.

use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn each_line_once_and_in_order() {
    // 300,000 lines of 70,000 words, some empty, the last without an end.
    let lines: Vec<String> = (0..300_000u64)
        .map(|i| match i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 {
            0..200 => String::new(),
            number => format!("word {}", number % 70_000),
        })
        .collect();
    let mut seen = HashSet::new();
    let expected: Vec<&str> = lines.iter().map(String::as_str).filter(|line| seen.insert(*line)).collect();

    // The environment names the program where both have left the machine that compiled them.
    let place = std::env::var("CARGO_BIN_EXE_unique-lines");
    let mut program = Command::new(place.as_deref().unwrap_or(env!("CARGO_BIN_EXE_unique-lines")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("a pipe");
    let text = lines.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = program.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("all is read");
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(printed.lines().eq(expected.iter().copied()), "a line is missing, too many, or elsewhere");
}
