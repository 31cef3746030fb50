//! Saved binary fuse filters and static functions: a fixture of each width, form and arity; mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test fuse_format` writes the fixtures of a new version.

use std::path::PathBuf;

use warpset::fuse::{
    Arity, BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Error, FileError, Form, StaticFunction, Width,
};

fn path_of(name: &str) -> PathBuf {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(package).join("data").join(name)
}

fn fixture<F: Width>(name: &str, filter: &BinaryFuse<F>) {
    let path = path_of(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        filter.save(&path).unwrap();
    }
    assert!(BinaryFuse::<F>::load(&path).unwrap() == *filter, "{name}: hashes, slots or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes(), "{name}");
    // SAFETY: nothing changes the file meanwhile.
    let (mapped, unverified) =
        unsafe { (BinaryFuse::<F>::map(&path).unwrap(), BinaryFuse::<F>::map_unverified(&path).unwrap()) };
    let words = ["hello", "binary", "fuse", "filter"];
    assert!(words.iter().all(|word| mapped.contains(word) && unverified.contains(word)));
    assert_eq!((mapped.len(), mapped.memory_bytes()), (filter.len(), filter.memory_bytes()));
}

#[test]
fn fixtures_of_version_1() {
    let words = ["hello", "binary", "fuse", "filter"];
    let many: Vec<String> = words.iter().map(|word| word.to_string()).chain((0..60).map(|i| i.to_string())).collect();
    fixture("fuse_8.v1", &BinaryFuse8::builder().build_from(&many).unwrap());
    fixture("fuse_16_sharded.v1", &BinaryFuse16::builder().form(Form::Sharded).seed(42).build_from(&many).unwrap());
    fixture("fuse_32_four.v1", &BinaryFuse32::builder().arity(Arity::Four).build_from(&words).unwrap());
}

#[test]
fn function_of_version_1() {
    let keys: Vec<String> = (0..200).map(|i| i.to_string()).collect();
    let values: Vec<u16> = (0..200).map(|i| i * 5).collect();
    let builder = StaticFunction::<u16>::builder().value_bits(10).filtered(3).form(Form::Sharded).seed(42);
    let function = builder.build_from(&keys, &values).unwrap();
    let path = path_of("static_function.v1");
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        function.save(&path).unwrap();
    }
    assert!(StaticFunction::<u16>::load(&path).unwrap() == function, "hashes, slots or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), function.to_bytes());
    // SAFETY: nothing changes the file meanwhile.
    let (mapped, unverified) =
        unsafe { (StaticFunction::<u16>::map(&path).unwrap(), StaticFunction::<u16>::map_unverified(&path).unwrap()) };
    assert!(mapped.get_bulk(&keys).into_iter().eq(values.iter().copied().map(Some)));
    assert_eq!((unverified.get("17"), mapped.memory_bytes()), (Some(85), function.memory_bytes()));
}

#[test]
fn files_of_other_widths_are_told() {
    let saved = BinaryFuse8::builder().build_from(&["a"]).unwrap().to_bytes();
    let Err(Error::File(error @ FileError::WrongStructure { .. })) = BinaryFuse16::from_bytes(&saved) else {
        panic!("8 bits are not 16")
    };
    assert!(error.to_string().contains("`BinaryFuse8::load`"), "{error}");
}
