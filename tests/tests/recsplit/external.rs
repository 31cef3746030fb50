//! Builds from keys on disk and from iterators give the functions that builds in memory give, with little memory, and
//! leave no files.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use warpset_mphf::{Builder, Bytes, Error, External, Hash128, KeyFile, KeySource, Progress, RecSplit, Stage};

/// Sets the least buffers: some 100 thousand keys at a time.
fn tight(builder: &Builder, folder: &Path) -> External {
    builder.external().memory(0).folder(folder)
}

fn keys(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn assert_empty(folder: &Path) {
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "temporary files are left");
}

#[test]
fn same_bits_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for n in [0, 1, 2, 5, 100, 5000, 300_000] {
        for (leaf, bucket) in [(5, 5), (8, 2000), (4, 1), (6, 50_000)] {
            let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket);
            let in_memory = builder.build_from(&keys(n).collect::<Vec<_>>()).unwrap();
            let external = tight(&builder, folder.path()).build_from(|| Ok(keys(n).map(Ok))).unwrap();
            assert!(external == in_memory, "{n} keys, leaf {leaf}, bucket {bucket}");
        }
    }
    assert_empty(folder.path());
}

#[test]
fn hashes_that_crowd_together_are_spread_again() {
    // All high halves are within 2^-24 of their range: they belong to a single bucket, for which no function exists.
    let folder = tempfile::tempdir().unwrap();
    let crowd = |i: u64| Hash128 { high: i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24, low: i };
    let builder = RecSplit::builder().leaf_size(4).bucket_size(100);
    let all: Vec<Hash128> = (0..150_000).map(crowd).collect();
    let external = tight(&builder, folder.path()).build_from(|| Ok(all.iter().map(|hash| Ok(*hash))));
    // Another seed mixes the halves.
    assert!(external.unwrap() == builder.build_from(&all).unwrap());

    // Two thirds of the keys in a hundredth of the range: too large for memory at once, but many buckets.
    let crowd = |i: u64| {
        let high = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Hash128 {
            high: if i.is_multiple_of(3) { high } else { high / 100 },
            low: i.wrapping_mul(0xd6e8_feb8_6659_fd93),
        }
    };
    let all: Vec<Hash128> = (0..400_000).map(crowd).collect();
    let builder = builder.bucket_size(10);
    let external = tight(&builder, folder.path()).build_from(|| Ok(all.iter().map(|hash| Ok(*hash))));
    assert!(external.unwrap() == builder.build_from(&all).unwrap());
    assert_empty(folder.path());
}

#[test]
fn files_of_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let builder = RecSplit::builder().leaf_size(8).bucket_size(100);
    let external = tight(&builder, temporary.path());
    let path = |name: &str| folder.path().join(name);

    let words: Vec<String> = keys(20_000).map(|key| format!("{key:x}")).collect();
    fs::write(path("lines"), words.join("\n")).unwrap();
    let function = builder.build_from(&words).unwrap();
    assert!(external.build_from(KeyFile::lines(path("lines"))).unwrap() == function);
    fs::write(path("dos"), words.join("\r\n\r\n") + "\r\n").unwrap();
    assert!(external.build_from(KeyFile::lines(path("dos"))).unwrap() == function);
    assert!(words.iter().all(|word| function.get(word) == function.get(word.as_bytes())));

    let integers: Vec<u64> = keys(20_000).collect();
    let bytes: Vec<u8> = integers.iter().flat_map(|key| key.to_le_bytes()).collect();
    fs::write(path("u64"), &bytes).unwrap();
    assert!(external.build_from(KeyFile::u64s(path("u64"))).unwrap() == builder.build_from(&integers).unwrap());
    let narrow: Vec<u32> = bytes.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    let distinct: Vec<u32> = std::collections::BTreeSet::from_iter(narrow).into_iter().collect();
    fs::write(path("u32"), distinct.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    assert!(external.build_from(KeyFile::u32s(path("u32"))).unwrap() == builder.build_from(&distinct).unwrap());

    let wide: Vec<[u8; 16]> = bytes.chunks_exact(16).map(|bytes| bytes.try_into().unwrap()).collect();
    assert!(external.build_from(KeyFile::bytes(path("u64"), 16)).unwrap() == builder.build_from(&wide).unwrap());
    assert_empty(temporary.path());
}

#[test]
fn duplicates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let external = tight(&RecSplit::builder().leaf_size(5).bucket_size(5), folder.path());
    let with_duplicate = || Ok((0..200_000_u64).map(|i| Ok(if i == 150_000 { 77 } else { i })));
    match external.build_from(with_duplicate) {
        Err(Error::DuplicateKey { first, second, key }) => {
            assert_eq!((first, second, key.as_str()), (77, 150_000, "77"));
        }
        other => panic!("{other:?}"),
    }
    // More of them than a bucket, and memory, can hold.
    for n in [10, 1000, 200_000] {
        let equal = external.build_from(|| Ok((0..n).map(|_| Ok(Bytes("same")))));
        assert!(matches!(&equal, Err(Error::DuplicateKey { first: 0, second: 1, .. })), "{equal:?}");
        let equal = RecSplit::builder().bucket_size(5).build_from(&vec!["same"; n]);
        assert!(matches!(&equal, Err(Error::DuplicateKey { first: 0, second: 1, .. })), "{equal:?}");
    }
    assert_empty(folder.path());
}

#[test]
fn a_true_collision_takes_another_pass() {
    let folder = tempfile::tempdir().unwrap();
    // Under seed 0, at which ready-made hashes are taken as they are, two keys have one bucket and one low half.
    let hash = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = move |i| Hash128 { high: hash(i), low: if i == 5 { hash(4) } else { hash(i) } };
    let passes = AtomicU64::new(0);
    let source = || {
        passes.fetch_add(1, Ordering::Relaxed);
        Ok((0..1000).map(move |i| Ok(key(i))))
    };
    let function = tight(&RecSplit::builder(), folder.path()).build_from(source).unwrap();
    assert_ne!(function.seed(), 0);
    // Once for the hashes, once to look for duplicates, once under the other seed.
    assert_eq!(passes.into_inner(), 3);
    let numbers: std::collections::BTreeSet<u64> = (0..1000).map(|i| function.get(key(i))).collect();
    assert_eq!(numbers.len(), 1000);
}

#[test]
fn faults_are_errors_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let external = tight(&RecSplit::builder(), folder.path());
    let path = folder.path().join("no such file");
    let missing = external.build_from(KeyFile::lines(&path)).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("cannot read {}: No such file", path.display())), "{missing}");
    let broken = || Ok(keys(200_000).map(Ok).chain([Err(io::Error::from(io::ErrorKind::BrokenPipe))]));
    let broken = external.build_from(broken);
    assert!(matches!(&broken, Err(Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe), "{broken:?}");
    let closed =
        external.build_from(|| Err::<[io::Result<u64>; 0], _>(io::Error::from(io::ErrorKind::PermissionDenied)));
    assert!(matches!(closed, Err(Error::Io(_))));
    let nowhere = external.clone().folder(folder.path().join("no such folder")).build_from(|| Ok(keys(9).map(Ok)));
    assert!(matches!(nowhere, Err(Error::Io(error)) if error.to_string().contains("no such folder")));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        external
            .build_from(|| Ok(keys(200_000).map(|key| if key == 0 { panic!("the key's own fault") } else { Ok(key) })))
    }));
    assert!(panics.is_err());
    assert_empty(folder.path());

    let cut = tempfile::NamedTempFile::new().unwrap();
    fs::write(cut.path(), [0; 21]).unwrap();
    let cut_short = external.build_from(KeyFile::u64s(cut.path()));
    assert!(matches!(cut_short, Err(Error::PartialKey { width: 8, rest: 5 })), "{cut_short:?}");
    assert!(matches!(external.build_from(KeyFile::bytes(cut.path(), 0)), Err(Error::InvalidParameter { .. })));
    assert!(matches!(
        RecSplit::builder().leaf_size(1).external().build_from(|| Ok(keys(9).map(Ok))),
        Err(Error::InvalidShape { .. })
    ));
}

#[test]
fn keys_that_change_between_passes_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    // A duplicate makes a second pass, which finds fewer keys and no duplicate.
    let pass = Cell::new(0);
    let source = move || {
        pass.set(pass.get() + 1);
        let duplicate = pass.get() == 1;
        Ok((0..1000_u64).map(move |i| if duplicate && i == 999 { 0 } else { i }).take(1000 - pass.get() + 1).map(Ok))
    };
    let changed = tight(&RecSplit::builder(), folder.path()).build_from(source);
    assert!(matches!(changed, Err(Error::InputChanged { first: 1000, later: 999 })), "{changed:?}");
}

#[test]
fn progress_covers_both_stages() {
    let folder = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let into = seen.clone();
    let builder =
        RecSplit::builder().leaf_size(4).bucket_size(5).progress(move |progress| into.lock().unwrap().push(progress));
    tight(&builder, folder.path()).build_from(|| Ok(keys(200_000).map(Ok))).unwrap();
    let seen = seen.lock().unwrap();
    let most = |stage| seen.iter().filter(|progress| progress.stage == stage).map(|progress| progress.keys_done).max();
    assert_eq!((most(Stage::Hashing), most(Stage::Building)), (Some(200_000), Some(200_000)));
    assert!(seen.iter().all(|progress| progress.keys == if progress.stage == Stage::Hashing { 0 } else { 200_000 }));
}

/// A source that users write.
struct Countdown(u64);

impl KeySource for Countdown {
    type Key = str;

    fn pass(&mut self, take: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
        (0..self.0).rev().try_for_each(|i| take(&i.to_string()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_source_any_setting(n in 0_u64..3000, leaf in 2_u32..12, bucket in 1_u32..3000, seed: u64) {
        let folder = tempfile::tempdir().unwrap();
        let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).seed(seed).threads(1);
        let in_memory = builder.build_from(&(0..n).map(|i| i.to_string()).collect::<Vec<_>>()).unwrap();
        prop_assert!(tight(&builder, folder.path()).build_from(Countdown(n)).unwrap() == in_memory);
    }
}
