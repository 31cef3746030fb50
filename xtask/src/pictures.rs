//! `cargo xtask pictures`: the drawings of the documentation, as SVG in `docs/pictures`.
//!
//! `crates.svg` is drawn from `cargo metadata`: a crate stands one row above the highest crate that it depends on. All
//! others are drawn from `docs/pictures/pictures.json`: rows of fields, whose widths are shares of the row (the bytes
//! of a structure), or lanes of boxes joined by arrows (a path).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Width of every picture, in pixels.
const WIDTH: f64 = 860.0;
/// Height of a box or field.
const HEIGHT: f64 = 34.0;
/// Space for the labels of rows and lanes.
const LABELS: f64 = 110.0;
/// Width of a letter, which decides how large a text may be.
const LETTER: f64 = 6.6;

/// The arguments of `pictures`.
#[derive(clap::Args)]
pub struct Args {
    /// Compare the files with what would be drawn, and write nothing
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = crate::workspace_root().join("docs/pictures");
    for (name, drawn) in draw_all()? {
        let path = folder.join(name).with_extension("svg");
        if args.check {
            let stored = fs::read_to_string(&path).unwrap_or_default();
            ensure!(stored == drawn, "{} is stale: run `cargo xtask pictures`", path.display());
        } else {
            fs::write(&path, drawn).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Draws every picture, by name.
fn draw_all() -> anyhow::Result<BTreeMap<String, String>> {
    let root = crate::workspace_root();
    let text = fs::read_to_string(root.join("docs/pictures/pictures.json"))?;
    let described: BTreeMap<String, Value> = serde_json::from_str(&text).context("pictures.json")?;
    let mut all = BTreeMap::from([("crates".to_owned(), crates()?)]);
    for (name, picture) in described {
        let drawn = if picture["rows"].is_array() { rows(&picture) } else { lanes(&picture) };
        all.insert(name.clone(), drawn.with_context(|| name)?);
    }
    Ok(all)
}

/// An SVG under construction.
struct Canvas {
    body: String,
    height: f64,
}

impl Canvas {
    fn new() -> Self {
        Canvas { body: String::new(), height: 0.0 }
    }

    /// Draws a box with a centred text, which shrinks until it fits.
    fn field(&mut self, x: f64, y: f64, width: f64, text: &str, fill: &str) {
        let size = (12.0 * (width - 6.0) / (LETTER * text.chars().count().max(1) as f64)).clamp(6.0, 12.0);
        let (middle, line) = (x + width / 2.0, y + HEIGHT / 2.0 + 4.0);
        let _ = writeln!(
            self.body,
            r##"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{HEIGHT}" rx="3" fill="{fill}" stroke="#57606a"/>
<text x="{middle:.1}" y="{line:.1}" font-size="{size:.1}" text-anchor="middle">{}</text>"##,
            escape(text)
        );
        self.height = self.height.max(y + HEIGHT);
    }

    fn label(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" font-size="12">{}</text>"#, escape(text));
        self.height = self.height.max(y + 4.0);
    }

    fn arrow(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            r##"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="#8c959f" marker-end="url(#head)"/>"##
        );
    }

    fn finish(self, title: &str) -> String {
        let height = self.height + 12.0;
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.1}" font-family="sans-serif" fill="#1f2328">
<title>{}</title>
<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto"><path d="M0,0 L7,3 L0,6 Z" fill="#8c959f"/></marker></defs>
<rect width="{WIDTH}" height="{height:.1}" fill="#ffffff"/>
{}</svg>
"##,
            escape(title),
            self.body
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn text<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    value[name].as_str().with_context(|| format!("no {name}"))
}

fn list<'a>(value: &'a Value, name: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[name].as_array().with_context(|| format!("no list {name}"))
}

/// Draws rows of fields: each field is a text and a share of the width.
fn rows(picture: &Value) -> anyhow::Result<String> {
    let mut canvas = Canvas::new();
    let mut y = 8.0;
    for row in list(picture, "rows")? {
        let fields = list(row, "fields")?;
        let share = |field: &Value| field[1].as_f64().unwrap_or(1.0);
        let sum: f64 = fields.iter().map(share).sum();
        canvas.label(4.0, y + HEIGHT / 2.0 + 4.0, text(row, "label")?);
        let mut x = LABELS;
        for (number, field) in fields.iter().enumerate() {
            let width = (WIDTH - LABELS - 8.0) * share(field) / sum;
            let fill = if number % 2 == 0 { "#ddf4ff" } else { "#fff8c5" };
            canvas.field(x, y, width, field[0].as_str().context("a field begins with its text")?, fill);
            x += width;
        }
        y += HEIGHT + 4.0;
        if let Some(note) = row["note"].as_str() {
            canvas.label(LABELS, y + 10.0, note);
            y += 20.0;
        }
        y += 6.0;
    }
    Ok(canvas.finish(text(picture, "title")?))
}

/// Draws lanes of boxes, one lane below the other, arrows from box to box.
fn lanes(picture: &Value) -> anyhow::Result<String> {
    let mut canvas = Canvas::new();
    let mut y = 8.0;
    for lane in list(picture, "lanes")? {
        let boxes = list(lane, "boxes")?;
        canvas.label(4.0, y + HEIGHT / 2.0 + 4.0, text(lane, "label")?);
        let (gap, all) = (18.0, boxes.len() as f64);
        let width = (WIDTH - LABELS - 8.0 - gap * (all - 1.0)) / all;
        for (number, step) in boxes.iter().enumerate() {
            let x = LABELS + number as f64 * (width + gap);
            let lines: Vec<&str> = step.as_str().context("a box is a text")?.split('\n').collect();
            canvas.field(x, y, width, lines[0], "#ddf4ff");
            for (line, below) in lines[1..].iter().enumerate() {
                canvas.label(x, y + HEIGHT + 14.0 + 14.0 * line as f64, below);
            }
            if number > 0 {
                let middle = y + HEIGHT / 2.0;
                canvas.arrow((x - gap + 1.0, middle), (x - 1.0, middle));
            }
        }
        y = canvas.height + 18.0;
    }
    Ok(canvas.finish(text(picture, "title")?))
}

/// Draws the crates of the library's workspace and their dependencies.
fn crates() -> anyhow::Result<String> {
    let output = crate::cargo()
        .current_dir(crate::workspace_root())
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    // Crates of the library: what `crates/` and `kernels-gpu` hold. Dependencies of tests alone have a kind.
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in list(&metadata, "packages")? {
        let path = text(package, "manifest_path")?.replace('\\', "/");
        if !(path.contains("/crates/") || path.ends_with("kernels-gpu/Cargo.toml")) {
            continue;
        }
        let dependencies = list(package, "dependencies")?.iter().filter(|dependency| dependency["kind"].is_null());
        let names = dependencies.filter_map(|dependency| dependency["name"].as_str()).map(String::from);
        needs.insert(text(package, "name")?.to_owned(), names.collect());
    }
    let known: Vec<String> = needs.keys().cloned().collect();
    needs.values_mut().for_each(|names| names.retain(|name| known.contains(name)));
    let mut floors: Vec<Vec<String>> = Vec::new();
    let mut placed: BTreeMap<String, usize> = BTreeMap::new();
    while placed.len() < needs.len() {
        let free =
            |name: &&String| !placed.contains_key(*name) && needs[*name].iter().all(|need| placed.contains_key(need));
        let floor: Vec<String> = known.iter().filter(free).cloned().collect();
        ensure!(!floor.is_empty(), "crates depend on each other in a circle");
        placed.extend(floor.iter().map(|name| (name.clone(), floors.len())));
        floors.push(floor);
    }
    let mut canvas = Canvas::new();
    let mut places: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    for (number, floor) in floors.iter().rev().enumerate() {
        let y = 8.0 + number as f64 * 72.0;
        let width = ((WIDTH - 16.0) / floor.len() as f64 - 12.0).min(150.0);
        let left = (WIDTH - floor.len() as f64 * (width + 12.0) + 12.0) / 2.0;
        for (place, name) in floor.iter().enumerate() {
            places.insert(name, (left + place as f64 * (width + 12.0), y, width));
        }
    }
    // An arrow that other arrows already lead along says nothing new.
    let reaches = |from: &str, to: &str| {
        let mut open: Vec<&str> = vec![from];
        while let Some(name) = open.pop() {
            if name == to {
                return true;
            }
            open.extend(needs[name].iter().map(String::as_str));
        }
        false
    };
    for (name, below) in &needs {
        let (x1, y1, width1) = places[name.as_str()];
        let direct = |need: &&String| !below.iter().any(|other| other != *need && reaches(other, need));
        for need in below.iter().filter(direct) {
            let (x2, y2, width2) = places[need.as_str()];
            canvas.arrow((x1 + width1 / 2.0, y1 + HEIGHT), (x2 + width2 / 2.0, y2 - 1.0));
        }
    }
    for (name, (x, y, width)) in &places {
        canvas.field(*x, *y, *width, name.strip_prefix("warpset-").unwrap_or(name), "#ddf4ff");
    }
    Ok(canvas.finish("Crates of Warpset; an arrow leads to a dependency"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pictures_are_as_the_command_draws_them() {
        super::run(&super::Args { check: true }).unwrap();
    }
}
