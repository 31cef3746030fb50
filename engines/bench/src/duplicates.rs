//! Rows that occur in several files: exact counts, with a quotient filter that keeps most rows out of the hash table.

use datafusion::error::Result;

use crate::jobs::{Engines, Job, Query};

/// Files.
const FILES: u64 = 8;
/// One row in this many repeats a row of the previous file.
const REPEATED: u64 = 50;

pub async fn run(rows: u64, engines: Engines) -> Result<()> {
    let mut job = Job::new()?;
    let per_file = rows / FILES;
    let file = |file: u64| {
        // A row is the text of a number; only rows repeated on purpose are equal.
        let (start, end) = (per_file * file, per_file * (file + 1));
        let number =
            format!("CASE WHEN value % {REPEATED} = 0 AND {file} > 0 THEN value - {per_file} + 1 ELSE value END");
        format!("SELECT {file} AS file, 'https://example.org/page/' || ({number}) AS url FROM range({start}, {end})")
    };
    job.write("pages", (0..FILES).map(file)).await?;

    let counts = "SELECT count(*) AS urls, sum(copies) AS page_rows FROM
         (SELECT url, count(*) AS copies FROM pages GROUP BY url HAVING min(file) <> max(file))";
    let candidates = |filter: &str| {
        let candidates =
            format!("SELECT * FROM pages WHERE quotient_filter_contains((SELECT {filter} FROM pages), url, 2)");
        counts.replace("FROM pages", &format!("FROM ({candidates})"))
    };
    let filter = format!("quotient_filter_agg(url, {rows}, 0.01)");
    job.queries = vec![
        Query::new("GROUP BY", counts),
        Query::new("of what a quotient filter counted twice", candidates(&filter)),
        Query::new("of what a shared one counted twice", candidates(&format!("shared_filter({filter})"))),
    ];
    println!(
        "{rows} rows in {FILES} files, one in {REPEATED} is repeated in the next file, {} partitions\n",
        engines.partitions
    );
    job.run(engines).await
}
