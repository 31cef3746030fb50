//! The pages of the repository as a browser shows them: links lead somewhere, programs are whole, tables fit.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

struct Page {
    path: PathBuf,
    /// Blocks of code: what their first line says after the fence, and their text.
    blocks: Vec<(String, String)>,
    /// All other lines, numbered.
    lines: Vec<(usize, String)>,
}

impl Page {
    fn read(path: PathBuf) -> Page {
        let text = fs::read_to_string(&path).unwrap();
        let (mut blocks, mut lines) = (Vec::new(), Vec::new());
        let mut numbered = text.lines().enumerate();
        while let Some((number, line)) = numbered.next() {
            match line.trim_start().strip_prefix("```") {
                Some(info) => {
                    let code = numbered.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
                    blocks.push((info.to_owned(), code.flat_map(|line| [line, "\n"]).collect()));
                }
                None => lines.push((number + 1, line.to_owned())),
            }
        }
        Page { path, blocks, lines }
    }

    /// Returns the targets of `#`: each heading in lower case, with hyphens for spaces and without punctuation.
    fn anchors(&self) -> HashSet<String> {
        let headings = self.lines.iter().filter_map(|(_, line)| line.strip_prefix('#'));
        let kept = |c: &char| c.is_alphanumeric() || "-_".contains(*c);
        let text = |heading: &str| heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        headings.map(|heading| text(heading).chars().filter(kept).collect()).collect()
    }

    /// Returns the texts between `open` and `close`, with their lines, outside of inline code.
    fn between(&self, open: &str, close: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in &self.lines {
            let text: String = line.split('`').step_by(2).collect();
            let all = text.split(open).skip(1).filter_map(|rest| rest.split_once(close));
            found.extend(all.map(|(inside, _)| (*number, inside.to_owned())));
        }
        found
    }

    /// Returns the links that are defined apart from the text: labels in lower case, and targets.
    fn definitions(&self) -> HashMap<String, &str> {
        let all = self.lines.iter().filter_map(|(_, line)| line.strip_prefix('[')?.split_once("]: "));
        all.map(|(label, target)| (label.replace('`', "").to_lowercase(), target)).collect()
    }
}

fn pages() -> Vec<Page> {
    fn below(folder: &Path, found: &mut Vec<Page>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(Page::read(path));
            }
        }
    }
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&manifest).join("..");
    let mut found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md", "python/README.md"]
        .map(|name| Page::read(root.join(name)))
        .into();
    below(&root.join("docs"), &mut found);
    found
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    let anchors: HashMap<PathBuf, HashSet<String>> =
        pages.iter().map(|page| (page.path.canonicalize().unwrap(), page.anchors())).collect();
    let mut dead = Vec::new();
    for page in &pages {
        let definitions = page.definitions();
        let mut targets = page.between("](", ")");
        targets.extend(definitions.values().map(|target| (0, target.to_string())));
        for (line, target) in targets.iter().filter(|(_, target)| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.path.clone() } else { page.path.with_file_name("").join(file) };
            let there = path.canonicalize().ok();
            let named = |path: &PathBuf| anchor.is_empty() || anchors.get(path).is_some_and(|all| all.contains(anchor));
            if !there.as_ref().is_some_and(named) {
                dead.push(format!("{}:{line}: {target}", page.path.display()));
            }
        }
        for (line, label) in page.between("][", "]") {
            if !definitions.contains_key(&label.to_lowercase()) {
                dead.push(format!("{}:{line}: [{label}] is not defined", page.path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// Checks that blocks have no hidden lines and a `fn main`: a page on the web shows a block as it is, and readers paste
/// it. README, guide and migration page are compiled and run with the documentation of `warpset`, the pages of
/// structures with that of this package. Other pages hold fragments, marked `rust,ignore`.
#[test]
fn programs_are_whole() {
    let compiled = ["../README.md", "docs/guide.md", "docs/migration.md", "docs/engines.md"]
        .into_iter()
        .chain(warpset_tests::PAGES);
    let compiled: Vec<&str> = compiled.collect();
    for page in pages() {
        let compiled = compiled.iter().any(|end| page.path.ends_with(end));
        for (info, code) in page.blocks.iter().filter(|(info, _)| info.split(',').next() == Some("rust")) {
            let start = format!("{}: {}", page.path.display(), code.lines().next().unwrap_or_default());
            let hidden = code.lines().any(|line| line.trim() == "#" || line.trim_start().starts_with("# "));
            assert!(!hidden, "{start}: a line that begins with `# ` is hidden in documentation, but not on the web");
            if info != "rust,ignore" {
                assert!(compiled, "{start}: mark this fragment `rust,ignore`");
                assert!(code.contains("fn main()"), "{start}: give this program its `fn main`");
            }
        }
    }
}

/// Checks that no page has marks of an unresolved merge.
#[test]
fn merges_are_resolved() {
    for page in pages() {
        let marks = |line: &String| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark));
        let found = page.lines.iter().find(|(_, line)| marks(line));
        assert!(found.is_none(), "{}: {found:?}", page.path.display());
    }
}

/// Checks tables: a browser shows seven columns and a cell of a few lines without a scroll bar.
#[test]
fn tables_fit() {
    let mut wide = Vec::new();
    for page in pages() {
        if page.path.components().any(|part| ["log", "performance"].iter().any(|folder| part.as_os_str() == *folder)) {
            continue; // tables of measurements, as wide as what was measured
        }
        for (line, row) in page.lines.iter().filter(|(_, line)| line.starts_with('|')) {
            let cells: Vec<_> = row.trim_matches('|').split('|').collect();
            // Not the targets of links.
            let shown = |cell: &&str| {
                let (first, links) = cell.trim().split_once("](").unwrap_or((cell.trim(), ""));
                let texts =
                    links.split("](").map(|link| link.split_once(')').map_or(0, |(_, text)| text.chars().count()));
                first.chars().count() + texts.sum::<usize>()
            };
            let widest = cells.iter().map(shown).max().unwrap_or_default();
            if cells.len() > 7 || widest > 160 {
                wide.push(format!("{}:{line}: {} columns, a cell of {widest}", page.path.display(), cells.len()));
            }
        }
    }
    assert!(wide.is_empty(), "tables too wide for a browser:\n{}", wide.join("\n"));
}
