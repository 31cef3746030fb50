//! Files of every structure, as programs meet them: saved, loaded, mapped, viewed; and what is no such file.

use std::error::Error;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use warpset::lsm::FileError;
use warpset::prelude::*;

type Outcome<T> = Result<T, Box<dyn Error>>;
/// Answers of a structure to some questions.
type Answers = Vec<u64>;
/// Opens a file and asks.
type Open = fn(&Path) -> Outcome<Answers>;

/// A structure, and the ways to its answers.
struct Case {
    /// The type as it is written in messages.
    name: &'static str,
    /// That type in an expression.
    path: &'static str,
    built: fn() -> Outcome<Answers>,
    bytes: fn() -> Vec<u8>,
    save: fn(&Path) -> Outcome<()>,
    load: Open,
    map: Open,
    map_unverified: Open,
    view: fn(&[u8]) -> Outcome<Answers>,
    view_unverified: fn(&[u8]) -> Outcome<Answers>,
}

impl Case {
    /// Returns the ways to open a path, with their names in messages.
    fn ways(&self) -> [(&'static str, Open); 3] {
        [("read", self.load), ("map", self.map), ("map", self.map_unverified)]
    }

    /// Returns the messages of the errors from reading and mapping this path.
    fn errors(&self, path: &Path) -> impl Iterator<Item = (&'static str, String)> {
        self.ways().into_iter().map(|(doing, open)| {
            let error = open(path).expect_err(self.name);
            let told = error.to_string();
            let begin = format!("cannot {doing} {}: ", path.display());
            let cause = told.strip_prefix(&begin).unwrap_or_else(|| panic!("{}: {told}", self.name)).to_owned();
            // A report that prints every source repeats nothing.
            let mut source = error.source();
            while let Some(error) = source {
                assert!(!told.contains(&error.to_string()), "{told}: {error}");
                source = error.source();
            }
            (doing, cause)
        })
    }
}

macro_rules! case {
    ($name:literal, $path:literal, $type:ty, $view:ty, $build:expr, |$of:ident| $answers:expr) => {
        Case {
            name: $name,
            path: $path,
            built: || {
                let $of: $type = $build?;
                Ok($answers)
            },
            bytes: || $build.unwrap().to_bytes(),
            save: |path| Ok($build?.save(path)?),
            load: |path| {
                let $of = <$type>::load(path)?;
                Ok($answers)
            },
            map: |path| {
                // SAFETY: no test changes a file that it has mapped.
                let $of = unsafe { <$type>::map(path)? };
                Ok($answers)
            },
            map_unverified: |path| {
                // SAFETY: no test changes a file that it has mapped.
                let $of = unsafe { <$type>::map_unverified(path)? };
                Ok($answers)
            },
            view: |bytes| {
                let $of = <$view>::from_bytes(bytes)?;
                Ok($answers)
            },
            view_unverified: |bytes| {
                let $of = <$view>::from_bytes_unverified(bytes)?;
                Ok($answers)
            },
        }
    };
}

fn keys() -> Vec<u64> {
    (0..1000).map(|i| i * i).collect()
}

/// Returns keys, half of which the structures contain.
fn asked() -> Vec<u64> {
    (0..2000).map(|i| i * i).collect()
}

fn small_keys() -> Vec<u32> {
    (0..1000).map(|i| i * 7 % 1009).collect()
}

/// Makes a tree of several levels, with tombstones.
fn tree() -> Result<Lsm<u64, u32>, warpset::lsm::Error> {
    let mut tree = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build_from(&keys(), &small_keys())?;
    tree.remove_bulk(&keys()[..20])?;
    Ok(tree)
}

fn cases() -> Vec<Case> {
    vec![
        case!(
            "SplitBlockBloom",
            "SplitBlockBloom",
            SplitBlockBloom,
            SplitBlockBloomView,
            SplitBlockBloom::builder(1000).build_from(&keys()),
            |of| of.contains_bulk(&asked()).unwrap().into_iter().map(u64::from).chain([of.count_ones()]).collect()
        ),
        case!(
            "BlockedBloom",
            "BlockedBloom",
            BlockedBloom,
            BlockedBloomView,
            BlockedBloom::builder(1000).seed(3).build_from(&keys()),
            |of| of.contains_bulk(&asked()).unwrap().into_iter().map(u64::from).chain([of.count_ones()]).collect()
        ),
        case!(
            "RaoBloom",
            "RaoBloom",
            RaoBloom,
            RaoBloomView,
            RaoBloom::builder(1000).choices(2).build_from(&keys()),
            |of| of.contains_bulk(&asked()).unwrap().into_iter().map(u64::from).chain([of.count_ones()]).collect()
        ),
        case!("RecSplit", "RecSplit", RecSplit, RecSplitView, RecSplit::builder().build_from(&keys()), |of| of
            .get_bulk(&asked())),
        case!(
            "StaticFilter",
            "StaticFilter",
            StaticFilter,
            StaticFilterView,
            StaticFilter::builder().width(9).build_from(&keys()),
            |of| of.get_bulk(&asked()).into_iter().map(|number| number.map_or(u64::MAX, |number| number)).collect()
        ),
        case!(
            "StaticMap<u64, u32>",
            "StaticMap::<u64, u32>",
            StaticMap<u64, u32>,
            StaticMapView<u64, u32>,
            StaticMap::<u64, u32>::builder().build_from(&keys(), &small_keys()),
            |of| of.get_bulk(&asked()).into_iter().map(|value| value.map_or(u64::MAX, u64::from)).collect()
        ),
        case!(
            "BinaryFuse16",
            "BinaryFuse16",
            BinaryFuse16,
            BinaryFuse16View,
            BinaryFuse16::builder().build_from(&keys()),
            |of| asked().into_iter().map(|key| of.contains(key).into()).collect()
        ),
        case!(
            "StaticFunction",
            "StaticFunction",
            StaticFunction<u16>,
            StaticFunctionView<u16>,
            StaticFunction::<u16>::builder().filtered(5).build_from(&keys(), &[7; 1000]),
            |of| asked().into_iter().map(|key| of.get(key).map_or(u64::MAX, u64::from)).collect()
        ),
        case!(
            "RangeFilter",
            "RangeFilter",
            RangeFilter<u64>,
            RangeFilterView<u64>,
            RangeFilter::<u64>::builder().build_from(&keys()),
            |of| asked().into_iter().map(|key| of.may_contain(key..=key + 5).into()).collect()
        ),
        case!(
            "DynamicRangeFilter",
            "DynamicRangeFilter",
            DynamicRangeFilter<u64>,
            DynamicRangeFilterView<u64>,
            DynamicRangeFilter::<u64>::builder(1000).build_from(&keys()),
            |of| asked().into_iter().map(|key| of.may_contain(key..=key + 5).into()).collect()
        ),
        case!(
            "Maplet",
            "Maplet",
            Maplet,
            MapletView,
            RankSelectQuotientFilter::builder(1000).values(20).build_from(&keys(), &small_keys()),
            |of| asked().into_iter().map(|key| of.get(key).unwrap_or(u64::MAX)).collect()
        ),
        case!(
            "StandardQuotientFilter",
            "StandardQuotientFilter",
            StandardQuotientFilter,
            StandardQuotientFilterView,
            StandardQuotientFilter::builder(1000).duplicates(Duplicates::Kept).build_from(&keys()),
            |of| of.count_bulk(&asked()).unwrap().into_iter().chain(of.fingerprints()).chain([of.len()]).collect()
        ),
        case!(
            "RankSelectQuotientFilter",
            "RankSelectQuotientFilter",
            RankSelectQuotientFilter,
            RankSelectQuotientFilterView,
            RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted).build_from(&keys()),
            |of| of.count_bulk(&asked()).unwrap().into_iter().chain(of.fingerprints()).chain([of.len()]).collect()
        ),
        case!(
            "Lsm<u64, u32>",
            "Lsm::<u64, u32>",
            Lsm<u64, u32>,
            LsmView<u64, u32>,
            tree(),
            |of| of.iter().flat_map(|(key, value)| [key, value.into()]).chain([of.count_range(3..7000)]).collect()
        ),
        case!(
            "SortedArray<u32, ()>",
            "SortedArray::<u32, ()>",
            SortedArray<u32, ()>,
            SortedArrayView<u32, ()>,
            SortedArray::<u32, ()>::builder().build_from(&small_keys(), &[(); 1000]),
            |of| of.iter().map(|(key, ())| key.into()).chain([of.count_range(3..700)]).collect()
        ),
    ]
}

/// Passes on the bytes at an address that is a multiple of 8.
fn at_words<T>(bytes: &[u8], of: impl FnOnce(&[u8]) -> T) -> T {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    let aligned = &mut bytemuck::cast_slice_mut(&mut words)[..bytes.len()];
    aligned.copy_from_slice(bytes);
    of(aligned)
}

#[test]
fn every_way_gives_the_same_answers() -> Outcome<()> {
    let folder = TempDir::new()?;
    for case in cases() {
        let path = folder.path().join(case.name);
        let expected = (case.built)()?;
        assert!(expected.len() >= 1000);
        (case.save)(&path)?;
        assert!(fs::read(&path)? == (case.bytes)(), "{}", case.name);
        for (doing, open) in case.ways() {
            assert!(open(&path)? == expected, "{doing} {}", case.name);
        }
        at_words(&(case.bytes)(), |bytes| {
            assert!((case.view)(bytes)? == expected && (case.view_unverified)(bytes)? == expected, "{}", case.name);
            Outcome::Ok(())
        })?;
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), cases().len(), "something else is left");
    Ok(())
}

#[test]
fn another_structure_is_named() -> Outcome<()> {
    let folder = TempDir::new()?;
    for found in cases() {
        let path = folder.path().join("x");
        (found.save)(&path)?;
        for expected in cases().iter().filter(|case| case.name != found.name) {
            let (kind, _) = expected.name.split_once('<').unwrap_or((expected.name, ""));
            let told = format!(
                "this is a saved `{}`, where a `{kind}` was expected: load it with `{}::load` or `from_bytes`",
                found.name, found.path
            );
            expected.errors(&path).for_each(|(_, cause)| assert_eq!(cause, told));
        }
    }
    // Keys and values are told apart too.
    let path = folder.path().join("elements");
    Lsm::<u32, u64>::builder().build()?.save(&path)?;
    let told = Lsm::<u64, ()>::load(&path).unwrap_err().to_string();
    let expected =
        "this is a saved `Lsm<u32, u64>`, where a `Lsm<u64, ()>` was expected: load it with `Lsm::<u32, u64>";
    assert!(told.contains(expected), "{told}");
    Ok(())
}

#[test]
fn what_is_wrong_is_told_with_the_path() -> Outcome<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("x.warpset");
    for case in cases() {
        let check = |expected: &str| {
            case.errors(&path).for_each(|(_, cause)| assert!(cause.contains(expected), "{}: {cause}", case.name));
        };
        let good = (case.bytes)();
        for cut in [0, 5, 127, 128, good.len() - 8, good.len() - 1] {
            fs::write(&path, &good[..cut])?;
            check(" found: the file was cut short");
        }
        fs::write(&path, [&good[..], &[0; 8]].concat())?;
        check("8 bytes after the end of the structure");
        fs::write(&path, vec![b'x'; good.len()])?;
        check("not a Warpset file");
        let mut newer = good.clone();
        newer[8] = 2;
        fs::write(&path, newer)?;
        check("version 2 of the structure's format");
        fs::remove_file(&path)?;
        check("No such file or directory (os error 2)");

        // The words alone are damaged: without the checksum the file opens.
        let mut damaged = good.clone();
        *damaged.last_mut().unwrap() ^= 0x10;
        fs::write(&path, damaged)?;
        for (open, doing) in [(case.load, "read"), (case.map, "map")] {
            let told = open(&path).unwrap_err().to_string();
            assert!(told.starts_with(&format!("cannot {doing} {}: checksum 0x", path.display())), "{told}");
        }
        assert!((case.map_unverified)(&path).is_ok(), "{}", case.name);
        fs::remove_file(&path)?;
    }
    Ok(())
}

/// Matches the error that a file's error contains, as a program does to find the cause.
#[test]
fn the_cause_can_be_matched() {
    let missing = Path::new("/no/such/folder/x.warpset");
    let Err(warpset::lsm::Error::File(error)) = Lsm::<u32, u32>::load(missing) else { panic!("there is one") };
    assert!(matches!(&error, FileError::At { path, .. } if path == missing));
    assert!(matches!(error.reason(), FileError::Io(error) if error.kind() == std::io::ErrorKind::NotFound));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn folders_and_forbidden_files_are_told() -> Outcome<()> {
        let folder = TempDir::new()?;
        let path = folder.path().join("forbidden");
        fs::write(&path, b"x")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000))?;
        // Root may read it.
        let is_forbidden = fs::read(&path).is_err();
        for case in cases() {
            for (doing, cause) in case.errors(folder.path()) {
                let expected = if doing == "read" { "Is a directory" } else { "only regular files can be mapped" };
                assert!(cause.starts_with(expected), "{}: {cause}", case.name);
            }
            let told = (case.save)(folder.path()).unwrap_err().to_string();
            assert!(told.starts_with(&format!("cannot write {}: Is a directory", folder.path().display())), "{told}");
            for (_, cause) in is_forbidden.then(|| case.errors(&path)).into_iter().flatten() {
                assert!(cause.starts_with("Permission denied"), "{}: {cause}", case.name);
            }
        }
        Ok(())
    }

    #[test]
    fn links_and_pipes_stay() -> Outcome<()> {
        let folder = TempDir::new()?;
        let [target, link, pipe] = ["target", "link", "pipe"].map(|name| folder.path().join(name));
        symlink("target", &link)?;
        assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
        for case in cases() {
            let expected = (case.built)()?;
            (case.save)(&link)?;
            assert!(fs::symlink_metadata(&link)?.is_symlink());
            assert!(fs::read(&target)? == (case.bytes)() && (case.load)(&link)? == expected, "{}", case.name);
            thread::scope(|scope| {
                let loaded = scope.spawn(|| (case.load)(&pipe).map_err(|error| error.to_string()));
                (case.save)(&pipe).unwrap();
                assert!(loaded.join().unwrap().unwrap() == expected, "{}", case.name);
            });
            assert!(fs::symlink_metadata(&pipe)?.file_type().is_fifo());
            assert!((case.map)(&pipe).unwrap_err().to_string().contains("only regular files can be mapped"));
            fs::remove_file(&target)?;
        }
        assert_eq!(fs::read_dir(folder.path())?.count(), 2, "something else is left");
        Ok(())
    }
}

/// Replaces a file while it is mapped: the map keeps the old one.
#[cfg(unix)]
#[test]
fn a_mapped_file_can_be_replaced() -> Outcome<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("x");
    let builder = SplitBlockBloom::builder(100);
    builder.build_from(&["old"])?.save(&path)?;
    // SAFETY: the file is replaced, and stays as it is.
    let mapped: MappedSplitBlockBloom = unsafe { SplitBlockBloom::map(&path)? };
    builder.build_from(&["new"])?.save(&path)?;
    assert!(mapped.contains("old") && !mapped.contains("new"));
    assert!(Filter::contains_bulk(&mapped, &["old", "new"])? == [true, false]);
    let loaded = SplitBlockBloom::load(&path)?;
    assert!(loaded.contains("new") && !loaded.contains("old"));
    Ok(())
}
