//! Scans of the real engine, compared with a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::memory::InMemory;
use slatedb::{BloomFilterPolicy, Db, FilterPolicy};
use warpset_slatedb::RangeFilterPolicy;

/// Change of a database, or a scan.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>),
    /// Writes a table.
    Flush,
    /// Opens the database again without closing it, as after the end of its process.
    Kill,
    Scan(Vec<u8>, Vec<u8>),
    ScanPrefix(Vec<u8>),
    Get(Vec<u8>),
}

/// Keys near each other: a word, and a number of few values in one to eight bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec!["", "a", "order/", "order/x"]);
    let number = prop_oneof![0u64..40, 250u64..262, Just(u64::MAX)];
    (word, number, 1usize..9)
        .prop_map(|(word, number, len)| [word.as_bytes(), &number.to_be_bytes()[8 - len..]].concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => key().prop_map(Step::Delete),
        1 => Just(Step::Flush),
        1 => Just(Step::Kill),
        6 => (key(), key()).prop_map(|(from, to)| Step::Scan(from, to)),
        1 => key().prop_map(Step::ScanPrefix),
        2 => key().prop_map(Step::Get),
    ]
}

async fn open(store: &Arc<dyn ObjectStore>, policy: RangeFilterPolicy, bloom: bool) -> Db {
    let mut policies: Vec<Arc<dyn FilterPolicy>> = vec![Arc::new(policy)];
    if bloom {
        policies.push(Arc::new(BloomFilterPolicy::new(10)));
    }
    let settings = Settings { min_filter_keys: 0, compactor_options: None, ..Settings::default() };
    let builder = Db::builder("db", store.clone()).with_settings(settings);
    builder.with_filter_policies(policies).build().await.unwrap()
}

async fn rows(mut rows: slatedb::DbIterator) -> Vec<(Vec<u8>, u8)> {
    let mut all = Vec::new();
    while let Some(row) = rows.next().await.unwrap() {
        all.push((row.key.to_vec(), row.value[0]));
    }
    all
}

async fn run(steps: Vec<Step>, policy: RangeFilterPolicy, bloom: bool) -> Result<(), TestCaseError> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (mut db, mut model) = (open(&store, policy, bloom).await, BTreeMap::new());
    for step in steps {
        match step {
            Step::Put(key, value) => {
                db.put(&key, [value]).await.unwrap();
                model.insert(key, value);
            }
            Step::Delete(key) => {
                db.delete(&key).await.unwrap();
                model.remove(&key);
            }
            Step::Flush => {
                db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await.unwrap();
            }
            Step::Kill => {
                // Rows after the last flush would be lost with any policy.
                db.flush().await.unwrap();
                db = open(&store, policy, bloom).await;
            }
            Step::Scan(from, to) => {
                // The engine takes no empty ranges.
                let (from, to) = if from < to { (from, to) } else { (to, [&from[..], b"\0"].concat()) };
                let found = rows(db.scan(from.clone()..to.clone()).await.unwrap()).await;
                let wanted: Vec<_> = model.range(from..to).map(|(key, &value)| (key.clone(), value)).collect();
                prop_assert_eq!(found, wanted);
            }
            Step::ScanPrefix(prefix) => {
                let found = rows(db.scan_prefix(&prefix, ..).await.unwrap()).await;
                let wanted = model.iter().filter(|(key, _)| key.starts_with(&prefix));
                prop_assert_eq!(found, wanted.map(|(key, &value)| (key.clone(), value)).collect::<Vec<_>>());
            }
            Step::Get(key) => {
                let found = db.get(&key).await.unwrap().map(|value| value[0]);
                prop_assert_eq!(found, model.get(&key).copied());
            }
        }
    }
    db.close().await.unwrap();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Checks that no row is lost and no removed row comes back, with tables of any keys, and the process killed in
    /// between.
    #[test]
    fn scans_find_the_rows_of_a_map(
        steps in prop::collection::vec(step(), 1..60),
        bits in prop::sample::select(vec![3.0, 8.0, 20.0]),
        bytes in prop::sample::select(vec![1, 2, 8, 16]),
        bloom in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(run(steps, RangeFilterPolicy::new(bits).unwrap().key_bytes(bytes), bloom))?;
    }
}
