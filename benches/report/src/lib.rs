//! `cargo xtask report`: the rows of `bench` as one self-contained HTML page, the papers' figures
//! redrawn from our measurements.

mod bloom;
mod chart;
mod check;
mod choice;
pub mod headline;
mod lsm;
mod page;
mod pages;
mod papers;
mod primitives;
mod quotient;
mod recsplit;
mod rows;
mod sets;

use std::path::PathBuf;

use anyhow::Context;

use bench_record::Record;
use bench_record::file::Run;
use chart::{Axis, Chart, Series};

/// The arguments of `report`.
#[derive(clap::Args)]
pub struct Args {
    /// Files of `bench --json`; rows of several files are combined, of repeats of one run the medians
    #[arg(required = true, value_name = "JSON")]
    json: Vec<PathBuf>,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Also write each figure to a file of its own in this folder, as the documentation shows them
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Also write the rates as Markdown into this folder, a page per structure, as `docs/performance` has them
    #[arg(long, value_name = "FOLDER")]
    pages: Option<PathBuf>,
    /// Leave the list of all rows out: the page is smaller by half
    #[arg(long)]
    without_rows: bool,
    /// Open the page in headless Chromium at three widths, with pictures beside it
    #[arg(long)]
    check: bool,
}

/// One figure of the page.
pub struct Figure {
    /// Its file name without the ending, and its anchor on the page.
    pub name: String,
    /// Content of the figure, and its reference.
    pub caption: String,
    /// The chart.
    pub chart: Chart,
}

impl Figure {
    /// Makes a figure; empty if no series has a point.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Self {
        Self { name: name.into(), caption: caption.into(), chart: Chart { title: title.into(), x, y, series } }
    }
}

/// Everything that rows of some runs give a page.
pub struct Page {
    runs: Vec<Run>,
    figures: Vec<Figure>,
    tables: Vec<page::Grid>,
}

impl Page {
    /// Makes the page of these runs; all their rows are combined.
    pub fn of(runs: Vec<Run>) -> Page {
        let records: Vec<Record> = runs.iter().flat_map(|run| run.rows.iter().cloned()).collect();
        let mut figures = sets::figures(&records);
        figures.extend(choice::figures(&records));
        figures.extend(bloom::figures(&records));
        figures.extend(quotient::figures(&records));
        figures.extend(lsm::figures(&records));
        figures.extend(primitives::figures(&records));
        figures.extend(recsplit::figures(&records));
        papers::add(&mut figures);
        figures.retain(|figure| !figure.chart.is_empty());
        let mut tables = sets::tables(&records);
        tables.extend(choice::tables(&records));
        tables.extend(bloom::tables(&records));
        tables.extend(quotient::tables(&records));
        tables.extend(lsm::tables(&records));
        tables.extend(recsplit::tables(&records));
        Page { runs, figures, tables }
    }

    /// Renders the page as HTML, with or without the list of all rows.
    pub fn html(&self, with_rows: bool) -> String {
        page::render(&self.runs, &self.figures, &self.tables, with_rows)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runs = args.json.iter().map(|path| Run::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut runs = Run::join_repeats(runs);
    // Files of earlier versions were compared by other rules.
    runs.iter_mut().for_each(|run| bench_record::compare_with_peers(&mut run.rows));
    let rows: usize = runs.iter().map(|run| run.rows.len()).sum();
    if let Some(folder) = &args.pages {
        pages::write(&runs, folder)?;
    }
    let page = Page::of(runs);
    let written = |path: &PathBuf, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    written(&args.out, page.html(!args.without_rows))?;
    println!("{}: {rows} rows, {} figures", args.out.display(), page.figures.len());
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for figure in &page.figures {
            written(&folder.join(&figure.name).with_extension("svg"), figure.chart.svg() + "\n")?;
        }
    }
    if args.check { check::check(&args.out, &check::WIDTHS) } else { Ok(()) }
}
