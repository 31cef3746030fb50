//! Lines of ours that a program compiles, in the guide's table.
//!
//! `cargo tree` says which crates a program takes, with which features. Their lines count with comments, but without
//! what a condition (`cfg`) leaves out, and without bodies of kernels where those are left out.
//!
//! `WARPSET_WRITE_GUIDE=1 cargo test -p warpset-tests --test all compiled_lines` writes the table's numbers again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Difference to the guide that is not reported, in percent.
const TOLERANCE: usize = 5;

fn workspace() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().expect("tests lie in the workspace").to_path_buf()
}

/// Lists the crates that `warpset` depends on with these features: all names, then folders and features of our own.
fn crates(features: &str) -> (BTreeSet<String>, BTreeMap<PathBuf, BTreeSet<String>>) {
    let mut tree = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.current_dir(workspace()).args(["tree", "--offline", "--package", "warpset", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{p}|{f}"]);
    if features != "default" {
        tree.args(["--no-default-features", "--features", features]);
    }
    let output = tree.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut all, mut ours) = (BTreeSet::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        all.insert(package.split(' ').next().unwrap_or_default().to_owned());
        if let Some((_, folder)) = package.trim_end_matches(" (*)").split_once(" (/") {
            let folder = PathBuf::from(format!("/{}", folder.trim_end_matches(')')));
            let features = features.trim_end_matches(" (*)").split(',').filter(|feature| !feature.is_empty());
            ours.entry(folder).or_default().extend(features.map(str::to_owned));
        }
    }
    (all, ours)
}

/// Whether a condition holds on the host, outside of tests.
fn holds(condition: &str, features: &BTreeSet<String>) -> bool {
    let condition = condition.trim().trim_end_matches(',');
    let Some((name, inner)) = condition.split_once('(').filter(|(name, _)| !name.contains(['"', ',', ' '])) else {
        return match condition.split_once(" = ") {
            Some(("feature", name)) => features.contains(name.trim_matches('"')),
            Some(("target_arch", arch)) => arch == "\"x86_64\"",
            Some(("target_os", os)) => os == "\"linux\"",
            Some(("target_pointer_width", bits)) => bits == "\"64\"",
            Some(("target_endian", endian)) => endian == "\"little\"",
            _ => condition == "unix",
        };
    };
    let inner = inner.strip_suffix(')').unwrap_or_else(|| panic!("parentheses of `{condition}`"));
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("one part at least").push(c),
        }
    }
    let mut parts = parts.iter().filter(|part| !part.trim().is_empty()).map(|part| holds(part, features));
    match name {
        "all" => parts.all(|holds| holds),
        "any" => parts.any(|holds| holds),
        "not" => !parts.next().expect("`not` has a condition"),
        other => panic!("unknown condition `{other}`"),
    }
}

/// Returns the number of brackets that a line opens, less the number that it closes.
fn depth(line: &str) -> i32 {
    let code = line.split("//").next().unwrap_or_default().replace("'{'", "").replace("'}'", "");
    code.chars().map(|c| i32::from("({[".contains(c)) - i32::from(")}]".contains(c))).sum()
}

/// Counts the lines of the item that begins at `lines[0]`, after its attributes.
fn item(lines: &[&str]) -> usize {
    let mut open = 0;
    for (i, line) in lines.iter().enumerate() {
        open += depth(line);
        let is_code = !line.trim_start().starts_with("//") && !line.trim_start().starts_with("#[");
        if open <= 0 && is_code && line.trim_end().ends_with([';', '}', ',', ')']) {
            return i + 1;
        }
    }
    lines.len()
}

/// Counts the compiled lines of a file and of the files of its modules.
fn lines_of(file: &Path, features: &BTreeSet<String>, without_bodies: bool) -> usize {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<_> = text.lines().collect();
    let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "mod") => file.parent().expect("a file has a folder").to_path_buf(),
        _ => file.with_extension(""),
    };
    let (mut count, mut at, mut kernel, mut path) = (0, 0, None, Vec::<(usize, String)>::new());
    while at < lines.len() {
        let line = lines[at];
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let attribute = code.split(" //").next().unwrap_or_default();
        if attribute.starts_with("#[cfg(") && attribute.ends_with([']', '(']) {
            let (mut end, mut attribute) = (at + 1, attribute.to_owned());
            while !attribute.ends_with(")]") {
                attribute += lines[end].trim();
                end += 1;
            }
            let condition = attribute.strip_prefix("#[cfg(").and_then(|rest| rest.strip_suffix(")]"));
            if holds(condition.expect("a condition on lines of its own"), features) {
                count += end - at;
                at = end;
            } else {
                at = end + item(&lines[end..]);
            }
            continue;
        }
        if !code.is_empty() {
            path.retain(|(outer, _)| *outer < indent);
        }
        let declared =
            code.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        if let Some(module) = declared.strip_prefix("mod ") {
            let name = module.trim_end_matches([';', '{', ' ']).to_owned();
            if module.ends_with('{') {
                path.push((indent, name));
            } else if module.ends_with(';') {
                let inner = path.iter().fold(folder.clone(), |folder, (_, name)| folder.join(name));
                let own = inner.join(format!("{name}.rs"));
                let file = if own.is_file() { own } else { inner.join(name).join("mod.rs") };
                count += lines_of(&file, features, without_bodies);
            }
        }
        if code.ends_with("kernel! {") {
            kernel = Some(indent);
        } else if code == "}" && kernel == Some(indent) {
            kernel = None;
        }
        if without_bodies && kernel.is_some() && code.starts_with("pub unsafe fn ") {
            // The signature counts, to the line that opens the body.
            let body = (at..lines.len()).find(|&i| lines[i].trim_end().ends_with('{')).expect("a kernel has a body");
            count += body + 1 - at;
            at = body + item(&lines[body..]);
            continue;
        }
        count += 1;
        at += 1;
    }
    count
}

/// Counts the crates, and our own lines, of a program with these features.
fn counted(features: &str) -> (usize, usize) {
    let (all, ours) = crates(features);
    let lines = ours.iter().map(|(folder, features)| {
        let without_bodies = folder.ends_with("kernels-gpu") && !features.contains("bodies");
        lines_of(&folder.join("src/lib.rs"), features, without_bodies)
    });
    (all.len(), lines.sum())
}

/// Renders a number with a separator of thousands.
fn grouped(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

#[test]
fn the_guide_says_what_a_program_compiles() {
    let path = workspace().join("docs/guide.md");
    let guide = fs::read_to_string(&path).expect("the guide");
    let head = guide.lines().position(|line| line.starts_with("| a program that asks one |")).expect("the table");
    let mut lines: Vec<_> = guide.lines().map(str::to_owned).collect();
    let mut stale = Vec::new();
    for row in lines[head + 2..].iter_mut().take_while(|line| line.starts_with('|')) {
        let mut cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let features = cells[2].replace(['`', ' '], "");
        let (crates, ours) = counted(&features);
        let now = [crates.to_string(), grouped(ours.next_multiple_of(100))];
        let number = |cell: &str| cell.replace(',', "").parse().unwrap_or(usize::MAX);
        let differs =
            |i: usize| number(&cells[i]).abs_diff(number(&now[i - 3])) * 100 > TOLERANCE * number(&now[i - 3]);
        if differs(3) || differs(4) {
            stale.push(format!("{features}: {} and {}, not {} and {}", now[0], now[1], cells[3], cells[4]));
        }
        cells.splice(3..5, now);
        *row = cells.join(" | ").trim().to_owned();
    }
    if env::var_os("WARPSET_WRITE_GUIDE").is_some() {
        fs::write(&path, lines.join("\n") + "\n").expect("the guide is written");
    } else {
        let help = "WARPSET_WRITE_GUIDE=1 cargo test -p warpset-tests --test all compiled_lines";
        assert!(
            stale.is_empty(),
            "crates and lines of ours in docs/guide.md are stale; write them with\n  {help}\n{stale:#?}"
        );
    }
}

#[test]
fn conditions_are_understood() {
    let features = BTreeSet::from(["gpu".to_owned()]);
    for (condition, expected) in [
        ("feature = \"gpu\"", true),
        ("not(feature = \"gpu\")", false),
        ("any(feature = \"emulator\", not(target_arch = \"nvptx64\"))", true),
        ("all(test, feature = \"gpu\")", false),
        ("any(warpset_module = \"lsm_list\", all(unix, feature = \"gpu\"))", true),
    ] {
        assert_eq!(holds(condition, &features), expected, "{condition}");
    }
}
