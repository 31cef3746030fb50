//! A join of two Parquet files, screened by Bloom filters: `parquet-join generate FOLDER [SALES]`, then
//! `parquet-join revenue FOLDER COUNTRY`.
//!
//! `generate` writes `stores.parquet` (store, country) and `sales.parquet` (store, cents). `revenue` is the query
//!
//! ```sql
//! SELECT store, count(*), sum(cents) FROM sales JOIN stores USING (store) WHERE country = COUNTRY GROUP BY store
//! ```
//!
//! Few sales belong to stores of one country, and a plain join reads all of them. Two filters save that, and neither
//! changes the result, because a Bloom filter never says no to a key that it holds:
//!
//! 1. Each row group of the sales has a Bloom filter of its stores, which the writer of the file put there. The program
//!    looks up the wanted stores in it, in place in the mapped file; a row group that contains none of them is not
//!    read.
//! 2. A filter of the wanted stores, of a few bytes per store, is asked for each sale of the other row groups. What it
//!    keeps is read in full and joined. The filter is small enough to be sent to whoever reads the file, and its bytes
//!    are those that Parquet prescribes.
//!
//! The program makes the plain join as well, and fails if the results differ.

mod generate;
mod join;

use std::path::Path;
use std::time::Instant;

use anyhow::{bail, ensure};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["generate", folder] => generate::write(Path::new(folder), 2_000_000),
        ["generate", folder, sales] => generate::write(Path::new(folder), sales.parse()?),
        ["revenue", folder, country] => revenue(Path::new(folder), country),
        _ => bail!("parquet-join generate FOLDER [SALES], or parquet-join revenue FOLDER COUNTRY"),
    }
}

/// Prints the amount of data read, and the country's revenue.
fn revenue(folder: &Path, country: &str) -> anyhow::Result<()> {
    let wanted = join::wanted_stores(&folder.join("stores.parquet"), country)?;
    let sales = folder.join("sales.parquet");
    let start = Instant::now();
    let plain = join::plain(&sales, &wanted)?;
    let middle = Instant::now();
    let screened = join::screened(&sales, &wanted)?;
    eprintln!("{:.1?} without filters, {:.1?} with them", middle - start, middle.elapsed());
    ensure!(plain == screened.revenue, "the filters have changed the result");

    let sum = |part: fn(&join::Revenue) -> u64| screened.revenue.values().map(part).sum::<u64>();
    println!("stores of {country}: {}, in a filter of {} bytes", wanted.len(), screened.filter_bytes);
    println!("row groups read: {} of {}", screened.groups_read, screened.groups);
    println!("sales asked for: {} of {}", screened.rows_asked, screened.rows);
    println!("sales kept: {}, of which {} were joined", screened.rows_kept, sum(|store| store.sales));
    println!("stores with sales: {}, revenue in cents: {}", screened.revenue.len(), sum(|store| store.cents));
    println!("the same as without filters");
    Ok(())
}
