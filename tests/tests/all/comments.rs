//! The rule of comments, over every source file and page of the repository.
//!
//! A doc comment on a function starts with a verb in the third person, any other comment with a noun phrase. A few
//! openers and phrases are refused because they hide the subject of a sentence. A line has at most 120 columns.

use std::fs;
use std::path::{Path, PathBuf};

/// First words that announce a clause instead of a subject.
const OPENERS: [&str; 8] = ["What", "How", "Where", "Which", "Why", "Of", "Those", "As"];

/// Phrases that a reader has to resolve.
const PHRASES: [&str; 10] = [
    "of which there are",
    "of which there is",
    "come to",
    "comes to",
    "came to",
    "stand for",
    "stands for",
    "for want of",
    "nobody",
    "so many",
];

/// Columns of a line of a comment. Rows of tables, code and links cannot be wrapped.
const COLUMNS: usize = 120;

/// Folders without text of ours.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", "log"];

/// Adds the files below `folder` with this extension to `found`. Pages of the log of experiments are skipped, because
/// they quote.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !SKIPPED.contains(&&*name) && !path.is_symlink() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
}

/// Splits a line into the mark of its comment (`//`, `///` or `//!`) and the text; `None` for code.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let slashes = line.len() - line.trim_start_matches('/').len();
    let mark = match slashes {
        2 if line[2..].starts_with('!') => 3,
        2 | 3 => slashes,
        _ => return None,
    };
    let (mark, text) = line.split_at(mark);
    Some((mark, text.strip_prefix(' ').unwrap_or(text)))
}

/// Whether the text contains the phrase as whole words, in any case.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let mut at = 0;
    while let Some(found) = text[at..].find(phrase) {
        let (begin, end) = (at + found, at + found + phrase.len());
        if ends(text[..begin].chars().next_back()) && ends(text[end..].chars().next()) {
            return true;
        }
        at = end;
    }
    false
}

/// Whether an item that begins on this line is a function with a name; those of macros have the documentation of the
/// macro's caller.
fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub")
            || word.starts_with('"')
            || ["default", "const", "async", "unsafe", "extern"].contains(word)
            || (word.ends_with(')') && !word.contains("fn"))
    });
    words.next() == Some("fn") && words.next().is_some_and(|name| !name.starts_with('$'))
}

/// Whether the first word of the text ends like a verb in the third person.
fn starts_with_verb(text: &str) -> bool {
    let word: &str = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_capital = word.starts_with(|c: char| c.is_ascii_uppercase());
    word == "Whether" || (is_capital && word.ends_with('s') && word[1..].chars().all(|c| c.is_ascii_lowercase()))
}

/// Returns the first line after a doc comment that is neither blank nor part of an attribute.
fn item_after<'a>(lines: &[&'a str], from: usize) -> &'a str {
    let mut open = 0i32;
    for line in &lines[from..] {
        let text = line.trim();
        if open == 0 && !text.is_empty() && !text.starts_with("#[") && !text.starts_with("#!") {
            return line;
        }
        let brackets = |bracket| text.matches(bracket).count() as i32;
        open += brackets('[') - brackets(']');
    }
    ""
}

/// Checks one block: consecutive comments with one mark, from line `begin` on, and the item after it.
fn check_block(mark: &str, texts: &[&str], begin: usize, item: &str, report: &mut dyn FnMut(usize, String)) {
    let mut fence = false;
    let mut prose = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        if text.trim_start().starts_with("```") {
            fence = !fence;
        } else if !fence {
            prose.push((i, *text));
        }
    }
    let Some(&(at, first)) = prose.iter().find(|(_, text)| !text.trim().is_empty()) else { return };
    let first = first.trim_start();
    let opener = OPENERS.iter().find(|opener| {
        first.strip_prefix(**opener).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    if let Some(opener) = opener.copied().or(first.starts_with("The same").then_some("The same")) {
        report(begin + at, format!("opens with \"{opener}\"; open with the subject"));
    }
    // A block that begins empty continues documentation from a macro.
    let is_whole = !texts[0].trim().is_empty();
    if mark == "///" && is_whole && is_function(item) && !starts_with_verb(first) {
        report(begin + at, format!("a function's comment starts with a verb (\"Returns\"), not with \"{first}\""));
    }
    let all: Vec<&str> = prose.iter().map(|(_, text)| *text).collect();
    let all = all.join(" ").to_lowercase();
    for phrase in PHRASES.iter().filter(|phrase| has_phrase(&all, phrase)) {
        report(begin, format!("says \"{phrase}\""));
    }
}

fn check_source(source: &str, report: &mut dyn FnMut(usize, String)) {
    let lines: Vec<&str> = source.lines().collect();
    if lines.iter().take(5).any(|line| line.contains("@generated")) {
        return;
    }
    let mut at = 0;
    while at < lines.len() {
        let Some((mark, _)) = comment(lines[at]) else {
            at += 1;
            continue;
        };
        let block = lines[at..].iter().map_while(|line| comment(line).filter(|(other, _)| *other == mark));
        let texts: Vec<&str> = block.map(|(_, text)| text).collect();
        check_block(mark, &texts, at + 1, item_after(&lines, at + texts.len()), report);
        let mut fence = false;
        for (i, text) in texts.iter().enumerate() {
            fence ^= text.trim_start().starts_with("```");
            let is_wide = lines[at + i].chars().count() > COLUMNS;
            if is_wide && !fence && !text.starts_with('|') && !text.contains("http") {
                report(at + 1 + i, format!("is wider than {COLUMNS} columns"));
            }
        }
        at += texts.len();
    }
}

fn check_page(page: &str, report: &mut dyn FnMut(usize, String)) {
    let mut fence = false;
    for (i, line) in page.lines().enumerate() {
        fence ^= line.trim_start().starts_with("```");
        let text = line.to_lowercase();
        for phrase in PHRASES.iter().filter(|phrase| !fence && has_phrase(&text, phrase)) {
            report(i + 1, format!("says \"{phrase}\""));
        }
    }
}

#[test]
fn comments_and_pages_follow_the_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut sources, mut pages) = (Vec::new(), vec![root.join("README.md")]);
    files(&root, "rs", &mut sources);
    files(&root.join("docs"), "md", &mut pages);
    let mut wrong = Vec::new();
    for path in sources.iter().chain(&pages) {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let mut report = |line: usize, reason: String| wrong.push(format!("{name}:{line}: {reason}"));
        match path.extension().is_some_and(|extension| extension == "rs") {
            // This file lists what it refuses.
            true if name.ends_with("all/comments.rs") => {}
            true => check_source(&text, &mut report),
            false => check_page(&text, &mut report),
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{} comments to rewrite:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_rule_sees_what_it_should() {
    let found = |source: &str| {
        let mut lines = Vec::new();
        check_source(source, &mut |line, _| lines.push(line));
        lines
    };
    assert_eq!(found("/// What this is.\nstruct A;\n/// Index of a level.\nstruct B;"), [1]);
    assert_eq!(found("/// The rank.\n#[cfg(\n  test\n)]\n#[inline]\npub(crate) const unsafe fn rank() {}"), [1]);
    assert_eq!(
        found("/// Returns the rank.\n#[inline]\nfn rank() {}\n/// Whether it is.\npub fn is() -> bool {}"),
        [0; 0]
    );
    assert_eq!(found("/// # Safety\n/// None.\nunsafe extern \"C\" fn f() {}"), [1]);
    assert_eq!(found("/// # Safety\n/// None.\nunsafe fn $name() {}"), [0; 0]);
    assert_eq!(found("// Nobody reads it, as two lines come\n// to one."), [1, 1]);
    assert_eq!(found("/// A fence:\n/// ```\n/// // How it works: nobody knows.\n/// ```\nstruct A;"), [0; 0]);
    let wide = "x".repeat(COLUMNS);
    assert_eq!(found(&format!("// {wide}\n// | {wide}\n//! {wide}")), [1, 3]);
    assert_eq!(found(&format!("// @generated\n// {wide}")), [0; 0]);
    let mut lines = Vec::new();
    check_page("It comes to this.\n```\nnobody\n```\nA newcomes today.", &mut |line, _| lines.push(line));
    assert_eq!(lines, [1]);
}
