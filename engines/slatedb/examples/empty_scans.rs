//! Time of scans of ranges without rows, without a filter and with range filters. Results: `docs/log/engines.md`.
//!
//! ```sh
//! cargo run --release --example empty_scans -- [ROWS] [TABLES]
//! ```
//!
//! Rows have keys of eight bytes, random and not ordered by time, so that each table has keys of the whole range. They
//! lie in files of a temporary folder. Each scan asks for 100 consecutive keys without a row. Without a cache each scan
//! reads the filters or the indexes of all tables; with a cache of these it reads only blocks of rows.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache, SplitCache};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{BloomFilterPolicy, Db, FilterPolicy};
use tempfile::TempDir;
use warpset_slatedb::RangeFilterPolicy;

const SCANS: u64 = 2_000;
const LENGTH: u64 = 100;
const ROUNDS: usize = 5;

/// Returns the key with this number: a random one, at the start of a stretch of 1000 keys without another.
fn key(i: u64) -> u64 {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) / 1000 * 1000
}

/// Cache without a limit.
#[derive(Default)]
struct Unlimited(Mutex<HashMap<CachedKey, CachedEntry>>);

impl Unlimited {
    fn get(&self, key: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }
}

#[async_trait]
impl DbCache for Unlimited {
    async fn get_block(&self, key: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        self.get(key)
    }

    async fn get_index(&self, key: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        self.get(key)
    }

    async fn get_filter(&self, key: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        self.get(key)
    }

    async fn get_stats(&self, key: &CachedKey) -> Result<Option<CachedEntry>, slatedb::Error> {
        self.get(key)
    }

    async fn insert(&self, key: CachedKey, value: CachedEntry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    }

    async fn remove(&self, key: &CachedKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn entry_count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

async fn filled(
    folder: &Path,
    policies: Vec<Arc<dyn FilterPolicy>>,
    (rows, tables, is_cached): (u64, u64, bool),
) -> Result<Db, Box<dyn Error>> {
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder)?);
    let settings =
        Settings { compactor_options: None, l0_max_ssts: 1000, l0_max_ssts_per_key: 1000, ..Settings::default() };
    let builder = Db::builder("db", store).with_settings(settings).with_filter_policies(policies);
    let builder = match is_cached {
        // Filters and indexes, not rows.
        true => {
            builder.with_db_cache(Arc::new(SplitCache::new().with_meta_cache(Some(Arc::<Unlimited>::default()))), 0)
        }
        false => builder.with_db_cache_disabled(),
    };
    let db = builder.build().await?;
    for table in 0..tables {
        for i in (table..rows).step_by(tables as usize) {
            db.put(key(i).to_be_bytes(), [7; 100]).await?;
        }
        db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }
    Ok(db)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (rows, tables) = (args.next().unwrap_or(Ok(200_000))?, args.next().unwrap_or(Ok(8))?);
    println!("{rows} rows in {tables} tables, medians of {ROUNDS} rounds");
    measure((rows, tables, false)).await?;
    println!("filters and indexes in a cache:");
    measure((rows, tables, true)).await
}

async fn measure(shape: (u64, u64, bool)) -> Result<(), Box<dyn Error>> {
    let rows = shape.0;
    let bloom = || Arc::new(BloomFilterPolicy::new(10)) as Arc<dyn FilterPolicy>;
    let folders = [(); 4].map(|()| tempfile::tempdir());
    let folders: Vec<TempDir> = folders.into_iter().collect::<Result<_, _>>()?;
    let mut databases = Vec::new();
    databases.push(("no range filter".to_owned(), filled(folders[0].path(), vec![bloom()], shape).await?));
    for (bits, folder) in [12.0, 16.0, 20.0].into_iter().zip(&folders[1..]) {
        let range = Arc::new(RangeFilterPolicy::new(bits)?);
        databases.push((format!("{bits} bits per key"), filled(folder.path(), vec![bloom(), range], shape).await?));
    }
    let mut times = vec![Vec::new(); databases.len()];
    let mut full = times.clone();
    // Rounds alternate between the databases, so that all share a noisy time.
    for round in 0..ROUNDS as u64 {
        for (i, (_, db)) in databases.iter().enumerate() {
            let start = Instant::now();
            for scan in 0..SCANS {
                // A little after a row: where filters of prefixes fail.
                let from = key((round * SCANS + scan) % rows) + 1;
                let mut found = db.scan(from.to_be_bytes()..(from + LENGTH).to_be_bytes()).await?;
                assert!(found.next().await?.is_none());
            }
            times[i].push(start.elapsed().as_micros() as f64 / SCANS as f64);
            let start = Instant::now();
            for scan in 0..SCANS / 10 {
                let from = key((round * SCANS + scan) % rows);
                let mut found = db.scan(from.to_be_bytes()..(from + LENGTH).to_be_bytes()).await?;
                assert!(found.next().await?.is_some());
            }
            full[i].push(start.elapsed().as_micros() as f64 / (SCANS / 10) as f64);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    for (i, (name, db)) in databases.into_iter().enumerate() {
        println!(
            "{name}: {:.1} us per empty scan, {:.1} us per scan of one row",
            median(&mut times[i]),
            median(&mut full[i])
        );
        db.close().await?;
    }
    Ok(())
}
