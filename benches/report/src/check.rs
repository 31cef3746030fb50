//! The page in a browser: scripts run without an error, no figure is empty, nothing is wider than the window, at three
//! widths.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A phone, a tablet, a desktop; and how much of the page a picture shows.
pub const WIDTHS: [u32; 3] = [390, 820, 1440];
const HEIGHT: u32 = 2600;

/// Names of browsers' programs.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|file| file.is_file())
}

/// Returns the attribute of the page's root that its script has set.
fn attribute<'a>(dom: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("data-{name}=\"");
    let from = dom.find(&start)? + start.len();
    dom[from..].split('"').next()
}

/// Opens the page at these widths, with pictures beside it; says so where there is no browser.
pub fn check(page: &Path, widths: &[u32]) -> anyhow::Result<()> {
    let Some(browser) = browser() else {
        println!("SKIPPED: none of {} is installed", NAMES.join(", "));
        return Ok(());
    };
    let page = page.canonicalize().with_context(|| format!("cannot find {}", page.display()))?;
    for &width in widths {
        // A window is not narrower than its title bar, so the page is shown in a frame of the width.
        let frame = page.with_extension(format!("{width}.html"));
        let picture = page.with_extension(format!("{width}.png"));
        let name = page.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        std::fs::write(
            &frame,
            format!(
                "<!DOCTYPE html><body style=\"margin:0\"><iframe src=\"{name}\" style=\"border:0;width:{width}px;height:{HEIGHT}px\" \
                 onload=\"Object.assign(document.documentElement.dataset, this.contentDocument.documentElement.dataset)\"></iframe>"
            ),
        )
        .with_context(|| format!("cannot write {}", frame.display()))?;
        let looked = look(&browser, &frame, &picture, width);
        let _ = std::fs::remove_file(&frame);
        let figures = looked.with_context(|| format!("{} at {width} pixels", page.display()))?;
        println!("{width} pixels: {figures} figures, none empty: {}", picture.display());
    }
    Ok(())
}

/// Opens a frame and takes a picture; returns the number of figures.
fn look(browser: &Path, frame: &Path, picture: &Path, width: u32) -> anyhow::Result<usize> {
    let run = |more: &[String]| {
        let mut command = Command::new(browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
        ]);
        command.args(["--enable-logging=stderr", "--virtual-time-budget=5000"]).args(more);
        command
            .arg(format!("file://{}", frame.display()))
            .output()
            .with_context(|| format!("cannot run {}", browser.display()))
    };
    let opened = run(&["--dump-dom".into()])?;
    let (dom, said) = (String::from_utf8_lossy(&opened.stdout), String::from_utf8_lossy(&opened.stderr));
    let errors: Vec<&str> =
        said.lines().filter(|line| line.contains(":CONSOLE") || line.contains("Uncaught")).collect();
    ensure!(errors.is_empty(), "the browser says: {}", errors.join("; "));
    let figures: usize =
        attribute(&dom, "figures").and_then(|count| count.parse().ok()).context("the page's script did not run")?;
    let empty = attribute(&dom, "empty").unwrap_or_default();
    ensure!(empty.is_empty(), "figures without a drawing: {empty}");
    let overflow = attribute(&dom, "overflow").unwrap_or_default();
    ensure!(overflow == "0", "the page is {overflow} pixels wider than its window");
    run(&[format!("--screenshot={}", picture.display()), format!("--window-size={},{HEIGHT}", width.max(500))])?;
    ensure!(picture.is_file(), "no picture was taken");
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Page;
    use bench_record::Record;
    use bench_record::file::Run;

    #[test]
    fn attributes_are_read() {
        let dom = "<html data-figures=\"3\" data-empty=\"\">";
        assert_eq!(
            (attribute(dom, "figures"), attribute(dom, "empty"), attribute(dom, "x")),
            (Some("3"), Some(""), None)
        );
    }

    /// Checks a small page; without a browser, prints that nothing is checked.
    #[test]
    fn a_small_page_passes() {
        let row = |bytes: u64| {
            let row = Record::new("bloom", "insert", 1000).param("variant", "split block").param("input", "generated");
            row.param("key", "u64").param("threads", 1).param("filter_bytes", bytes).time(0.5)
        };
        let page = Page::of(vec![Run { rows: vec![row(1024), row(4096)], ..Run::default() }]);
        let folder = std::env::temp_dir().join(format!("warpset-page-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("page.html"), page.html(true)).unwrap();
        let checked = check(&folder.join("page.html"), &WIDTHS[..1]);
        std::fs::remove_dir_all(&folder).unwrap();
        checked.unwrap();
    }
}
