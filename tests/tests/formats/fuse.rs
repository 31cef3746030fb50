//! Binary fuse filters and static functions: a fixture of each width, form and arity; damage.

use warpset::fuse::{Arity, BinaryFuse8, BinaryFuse16, BinaryFuse32, Error, FileError, Form, StaticFunction};
use warpset_tests::files::{damage, fixture};

#[test]
fn fixtures_of_version_1() {
    let words = ["hello", "binary", "fuse", "filter"];
    let many: Vec<String> = words.iter().map(|word| word.to_string()).chain((0..60).map(|i| i.to_string())).collect();
    fixture("fuse_8.v1", &BinaryFuse8::builder().build_from(&many).unwrap());
    fixture("fuse_16_sharded.v1", &BinaryFuse16::builder().form(Form::Sharded).seed(42).build_from(&many).unwrap());
    fixture("fuse_32_four.v1", &BinaryFuse32::builder().arity(Arity::Four).build_from(&words).unwrap());
    let keys: Vec<String> = (0..200).map(|i| i.to_string()).collect();
    let values: Vec<u16> = (0..200).map(|i| i * 5).collect();
    let builder = StaticFunction::<u16>::builder().value_bits(10).filtered(3).form(Form::Sharded).seed(42);
    fixture("static_function.v1", &builder.build_from(&keys, &values).unwrap());
}

#[test]
fn files_of_other_widths_are_told() {
    let saved = BinaryFuse8::builder().build_from(&["a"]).unwrap().to_bytes();
    let Err(Error::File(error @ FileError::WrongStructure { .. })) = BinaryFuse16::from_bytes(&saved) else {
        panic!("8 bits are not 16")
    };
    assert!(error.to_string().contains("`BinaryFuse8::load`"), "{error}");
}

#[test]
fn damaged_bytes_are_refused() {
    let (keys, values): (Vec<u64>, Vec<u16>) = (0..300).map(|i| (i * i, i as u16)).unzip();
    for (arity, form) in [(Arity::Three, Form::OneGraph), (Arity::Four, Form::Sharded)] {
        let bit = |at: usize| vec![at as u32 % 8];
        damage(&BinaryFuse8::builder().arity(arity).form(form).build_from(&keys).unwrap(), bit, |_, _| ());
        let builder = StaticFunction::<u16>::builder().value_bits(9).filtered(4).arity(arity).form(form);
        damage(&builder.build_from(&keys, &values).unwrap(), bit, |_, _| ());
    }
}
