//! Scans after the process of a writer was killed by the system.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use slatedb::config::{CompactorOptions, FlushOptions, FlushType, Settings};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{BloomFilterPolicy, Db, FilterPolicy, WriteBatch};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use warpset_slatedb::RangeFilterPolicy;

/// Folder of the database; set for the process that is killed.
const FOLDER: &str = "WARPSET_KILLED_FOLDER";
/// Number of the process.
const LIFE: &str = "WARPSET_KILLED_LIFE";
/// Processes that are killed.
const LIVES: u64 = 12;
/// One batch in this many is followed by a new table.
const TABLE_EVERY: u64 = 4;
/// Numbers of rows: clusters of three, far from each other.
const CLUSTERS: u64 = 4_000;

/// Rows by their key.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

struct Random(u64);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % end
    }
}

fn key(number: u64) -> Vec<u8> {
    [b"row/", &number.to_be_bytes()[..]].concat()
}

/// Returns the changes of a batch: keys with values, or without one if the row is deleted.
fn batch(life: u64, number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random(life << 32 | number);
    let change = |_| {
        let row = random.below(CLUSTERS) * 1_000 + random.below(3);
        let value = format!("{life} {number}").into_bytes();
        (key(row), (random.below(5) > 0).then_some(value))
    };
    (0..40).map(change).collect()
}

fn apply(rows: &mut Rows, life: u64, number: u64) {
    for (key, value) in batch(life, number) {
        match value {
            Some(value) => rows.insert(key, value),
            None => rows.remove(&key),
        };
    }
}

async fn open(folder: &Path) -> Db {
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder).unwrap());
    let policies: Vec<Arc<dyn FilterPolicy>> =
        vec![Arc::new(BloomFilterPolicy::new(10)), Arc::new(RangeFilterPolicy::new(12.0).unwrap())];
    let compactor = CompactorOptions { poll_interval: Duration::from_millis(50), ..CompactorOptions::default() };
    let settings = Settings {
        flush_interval: Some(Duration::from_millis(2)),
        min_filter_keys: 0,
        compactor_options: Some(compactor),
        ..Settings::default()
    };
    Db::builder("db", store).with_settings(settings).with_filter_policies(policies).build().await.unwrap()
}

/// Writes batches until the process is killed, and a byte into a file after each batch that is durable. Does nothing in
/// a run of all tests.
#[test]
fn writer() {
    let (Ok(folder), Ok(life)) = (std::env::var(FOLDER), std::env::var(LIFE)) else { return };
    let (folder, life) = (Path::new(&folder), life.parse().unwrap());
    let mut durable = OpenOptions::new().append(true).open(folder.join("durable")).unwrap();
    Runtime::new().unwrap().block_on(async {
        let db = open(folder).await;
        for number in 0.. {
            let mut changes = WriteBatch::new();
            for (key, value) in batch(life, number) {
                match value {
                    Some(value) => changes.put(key, value),
                    None => changes.delete(key),
                }
            }
            db.write(changes).await.unwrap().await_durable().await.unwrap();
            durable.write_all(b".").unwrap();
            if number % TABLE_EVERY == 0 {
                db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
            }
        }
    });
}

/// Runs a writer, kills it after some of its batches, and returns the number of batches that it called durable.
fn killed_writer(folder: &Path, life: u64, batches: u64, pause: Duration) -> u64 {
    let durable = folder.join("durable");
    File::create(&durable).unwrap();
    let written = || durable.metadata().unwrap().len();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer"])
        .env(FOLDER, folder)
        .env(LIFE, life.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while written() < batches {
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(pause);
    // SIGKILL: nothing of the process runs any more.
    writer.kill().unwrap();
    writer.wait().unwrap();
    written()
}

async fn scan(db: &Db, keys: Range<Vec<u8>>) -> Rows {
    let mut found = db.scan(keys).await.unwrap();
    let mut rows = Rows::new();
    while let Some(row) = found.next().await.unwrap() {
        rows.insert(row.key.to_vec(), row.value.to_vec());
    }
    rows
}

/// Checks that a writer that is killed at any point loses no row that was durable, neither in a scan of everything nor
/// in short scans, which the filters answer.
#[test]
fn killed_writers_lose_no_durable_row() {
    let folder = TempDir::new().unwrap();
    let (mut rows, mut random) = (Rows::new(), Random(7));
    for life in 0..LIVES {
        let (batches, pause) = (1 + random.below(30), Duration::from_micros(random.below(20_000)));
        let durable = killed_writer(folder.path(), life, batches, pause);
        (0..durable).for_each(|number| apply(&mut rows, life, number));
        Runtime::new().unwrap().block_on(async {
            let db = open(folder.path()).await;
            let found = scan(&db, key(0)..key(u64::MAX)).await;
            if found != rows {
                // The batch that was under way is there as a whole, or not at all.
                apply(&mut rows, life, durable);
            }
            assert!(found == rows, "life {life}, {durable} durable batches");
            for _ in 0..300 {
                let from = random.below(CLUSTERS) * 1_000 + random.below(4);
                let keys = key(from)..key(from + 1 + random.below(1_500));
                let expected =
                    rows.range(keys.clone()).map(|(key, value)| (key.clone(), value.clone())).collect::<Rows>();
                assert_eq!(scan(&db, keys).await, expected, "life {life}, from {from}");
            }
            db.close().await.unwrap();
        });
    }
    assert!(rows.len() > 1_000, "too few rows: {}", rows.len());
}
