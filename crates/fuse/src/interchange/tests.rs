//! Filters of `xorf`, built in the same process, and of the C header, in files that a program with it wrote.

use std::path::PathBuf;

use warpset_base::testing::keys;
use xorf::Filter as _;

use super::*;
use crate::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Filter};

/// Both ways: built there and queried here, built here and queried there, as values, by `bincode` and by serde.
macro_rules! exchanges_with_xorf {
    ($name:ident, $ours:ty, $theirs:ty) => {
        #[test]
        fn $name() {
            for n in [2u64, 10, 1000, 30_000] {
                let (members, others) = (keys(n, 1), keys(20_000, 2));
                let theirs = <$theirs>::try_from(&members).unwrap();
                let descriptor = XorfDescriptor {
                    seed: theirs.descriptor.seed,
                    segment_length: theirs.descriptor.segment_length,
                    segment_length_mask: theirs.descriptor.segment_length_mask,
                    segment_count_length: theirs.descriptor.segment_count_length,
                };
                let array = XorfArray { descriptor, fingerprints: theirs.fingerprints.to_vec() };
                let ours = <$ours>::from_xorf(&array).unwrap();
                let agree = |ours: &$ours, theirs: &$theirs| {
                    assert!(members.iter().all(|key| ours.contains(*key) && theirs.contains(key)));
                    assert!(others.iter().all(|key| ours.contains(*key) == theirs.contains(key)));
                };
                agree(&ours, &theirs);
                assert!((ours.len() as f64 - n as f64).abs() < 0.4 * n as f64 + 40.0, "{} of {n}", ours.len());
                assert_eq!(ours.to_xorf().unwrap(), array);

                let built = <$ours>::builder().seed(n).build_from(&members).unwrap();
                let XorfArray { descriptor, fingerprints } = built.to_xorf().unwrap();
                let read = <$theirs>::from(Parts { descriptor, fingerprints });
                agree(&built, &read);

                let standard = ::bincode::config::standard();
                let legacy = ::bincode::config::legacy();
                let bytes = [
                    (Bincode::Standard, ::bincode::encode_to_vec(&theirs, standard).unwrap()),
                    (Bincode::Legacy, ::bincode::encode_to_vec(&theirs, legacy).unwrap()),
                ];
                for (form, bytes) in bytes {
                    let again = <$ours>::from_xorf_bincode(&bytes, form).unwrap();
                    assert!(again == ours);
                    assert!(again.to_xorf_bincode(form).unwrap() == bytes);
                    for end in (0..bytes.len().min(300)).chain([bytes.len() - 1]) {
                        let cut = <$ours>::from_xorf_bincode(&bytes[..end], form);
                        assert!(matches!(cut, Err(Error::InvalidArray { .. })), "{end}");
                    }
                    let longer = [&bytes[..], &[0]].concat();
                    assert!(matches!(<$ours>::from_xorf_bincode(&longer, form), Err(Error::InvalidArray { .. })));
                }
                let bytes = built.to_xorf_bincode(Bincode::Standard).unwrap();
                agree(&built, &::bincode::decode_from_slice(&bytes, standard).unwrap().0);
                let bytes = built.to_xorf_bincode(Bincode::Legacy).unwrap();
                agree(&built, &::bincode::decode_from_slice(&bytes, legacy).unwrap().0);

                #[cfg(feature = "serde")]
                {
                    let json = serde_json::to_string(&theirs).unwrap();
                    let parsed = serde_json::from_str(&json).unwrap();
                    assert!(<$ours>::from_xorf(&parsed).unwrap() == ours);
                    assert_eq!(serde_json::to_string(&parsed).unwrap(), json);
                    let json = serde_json::to_string(&built.to_xorf().unwrap()).unwrap();
                    agree(&built, &serde_json::from_str(&json).unwrap());
                }
            }
        }
    };
}
exchanges_with_xorf!(filters_of_8_bits_go_to_xorf_and_back, BinaryFuse8, xorf::BinaryFuse8);
exchanges_with_xorf!(filters_of_16_bits_go_to_xorf_and_back, BinaryFuse16, xorf::BinaryFuse16);
exchanges_with_xorf!(filters_of_32_bits_go_to_xorf_and_back, BinaryFuse32, xorf::BinaryFuse32);

/// Fields of their types.
struct Parts<F> {
    descriptor: XorfDescriptor,
    fingerprints: Vec<F>,
}

macro_rules! from_parts {
    ($($width:ty: $theirs:ty;)*) => {$(
        impl From<Parts<$width>> for $theirs {
            fn from(Parts { descriptor, fingerprints }: Parts<$width>) -> $theirs {
                let descriptor = xorf::Descriptor {
                    seed: descriptor.seed,
                    segment_length: descriptor.segment_length,
                    segment_length_mask: descriptor.segment_length_mask,
                    segment_count_length: descriptor.segment_count_length,
                };
                Self { descriptor, fingerprints: fingerprints.into() }
            }
        }
    )*};
}
from_parts! {
    u8: xorf::BinaryFuse8;
    u16: xorf::BinaryFuse16;
    u32: xorf::BinaryFuse32;
}

fn file(name: &str) -> Vec<u8> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    std::fs::read(package.join("tests/data").join(name)).unwrap()
}

/// Reads the files: filters of the squares of 0 to 999, and the answers of the C header to 0 to 7999, one bit each.
fn reads_the_header<F: CWidth>(name: &str) {
    let (bytes, answers) = (file(&format!("{name}.filter")), file(&format!("{name}.answers")));
    let filter = BinaryFuse::<F>::from_c_bytes(&bytes).unwrap();
    assert_eq!(filter.len(), 1000);
    assert!((0..1000u64).all(|i| filter.contains(i * i)));
    let asked: Vec<u64> = (0..8000).collect();
    let bit = |i: u64| answers[i as usize / 8] >> (i % 8) & 1 == 1;
    assert!(asked.iter().all(|&key| filter.contains(key) == bit(key)));
    assert_eq!(filter.to_c_bytes().unwrap(), bytes);
    for end in 0..bytes.len() {
        assert!(matches!(BinaryFuse::<F>::from_c_bytes(&bytes[..end]), Err(Error::InvalidArray { .. })));
    }
    assert!(BinaryFuse::<F>::from_c_bytes(&[&bytes[..], &[0]].concat()).is_err());
    // Absurd lengths: an error, or a filter that answers.
    for field in [8, 12, 16, 20, 24] {
        for value in [0, 1, 3, 4, 1 << 18, 1 << 19, 1 << 31, u32::MAX - 3, u32::MAX] {
            let mut broken = bytes.clone();
            broken[field..field + 4].copy_from_slice(&u32::to_le_bytes(value));
            if let Ok(filter) = BinaryFuse::<F>::from_c_bytes(&broken) {
                filter.contains_bulk(&asked).unwrap();
            }
        }
    }
}

#[test]
fn filters_of_the_c_header_answer_the_same() {
    reads_the_header::<u8>("c_header_8");
    reads_the_header::<u16>("c_header_16");
}

/// Compares with the bytes that the C header read, and for which it gave the answers in the other file.
#[test]
fn our_filters_answer_the_same_in_the_c_header() {
    fn bytes_are_those<F: CWidth>(name: &str) {
        let squares: Vec<u64> = (0..1000).map(|i| i * i).collect();
        let filter = BinaryFuse::<F>::builder().build_from(&squares).unwrap();
        if std::env::var_os("WARPSET_WRITE_C_FILTERS").is_some() {
            let path = std::env::temp_dir().join(format!("{name}.filter"));
            std::fs::write(path, filter.to_c_bytes().unwrap()).unwrap();
            return;
        }
        assert!(filter.to_c_bytes().unwrap() == file(&format!("{name}.filter")), "the header has to be asked again");
        let answers = file(&format!("{name}.answers"));
        assert!((0..8000u64).all(|key| filter.contains(key) == (answers[key as usize / 8] >> (key % 8) & 1 == 1)));
    }
    bytes_are_those::<u8>("ours_in_c_8");
    bytes_are_those::<u16>("ours_in_c_16");
}

#[test]
fn what_others_do_not_have_is_refused() {
    let builder = BinaryFuse8::builder();
    let refused = |filter: BinaryFuse8| {
        assert!(matches!(filter.to_xorf(), Err(Error::NotInterchangeable { .. })));
        assert!(matches!(filter.to_xorf_bincode(Bincode::Legacy), Err(Error::NotInterchangeable { .. })));
        assert!(matches!(filter.to_c_bytes(), Err(Error::NotInterchangeable { .. })));
    };
    refused(builder.for_space().build_from(&keys(100, 1)).unwrap());
    refused(builder.for_build().build_from(&keys(100, 1)).unwrap());
    refused(builder.build_from::<u64>(&[]).unwrap());
}

#[test]
fn absurd_arrays_are_refused() {
    let good = BinaryFuse8::builder().build_from(&keys(1000, 1)).unwrap().to_xorf().unwrap();
    let refused = |change: &dyn Fn(&mut XorfArray<u8>)| {
        let mut array = good.clone();
        change(&mut array);
        assert!(matches!(BinaryFuse8::from_xorf(&array), Err(Error::InvalidArray { .. })), "{:?}", array.descriptor);
    };
    for value in [0, 3, 1 << 19, u32::MAX] {
        refused(&|array| array.descriptor.segment_length = value);
    }
    for value in [0, 1, 1 << 31, u32::MAX - 511, u32::MAX] {
        refused(&|array| array.descriptor.segment_count_length = value);
    }
    refused(&|array| array.descriptor.segment_length_mask = 0);
    refused(&|array| array.fingerprints.clear());
    refused(&|array| array.fingerprints.truncate(array.fingerprints.len() - 1));
    // A length that memory has no room for, in bytes that are few.
    for len in [u64::MAX, 1 << 62, 1 << 40] {
        let mut bytes = vec![5, 4, 3, 4, 253];
        bytes.extend_from_slice(&len.to_le_bytes());
        assert!(matches!(
            BinaryFuse8::from_xorf_bincode(&bytes, Bincode::Standard),
            Err(Error::InvalidArray { what: "the number of fingerprints", .. })
        ));
    }
    // The length of a segment in eight bytes, where there are four.
    let mut bytes = vec![5, 253];
    bytes.extend_from_slice(&(1u64 << 32 | 4).to_le_bytes());
    bytes.extend([3, 4, 12]);
    bytes.extend([0; 12]);
    assert!(matches!(
        BinaryFuse8::from_xorf_bincode(&bytes, Bincode::Standard),
        Err(Error::InvalidArray { what: "an integer", .. })
    ));
    // Longer arrays are cut: no key has the rest.
    let mut longer = good.clone();
    longer.fingerprints.extend([7; 100]);
    assert_eq!(BinaryFuse8::from_xorf(&longer).unwrap().to_xorf().unwrap(), good);
}
