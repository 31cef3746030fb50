//! Files of k-mer labels from any bytes: no panic, no memory that the bytes do not justify; what loads answers.
//!
//! Checksums keep a fuzzer out, so wrong ones, of the labels and of their function, are made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_base::file::{FileKind, HEADER_BYTES, Header};
use warpset_kmers::{Error, Label, Labels};

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("warpset-labels-{}", std::process::id()));
    let mut bytes = bytes.to_vec();
    loop {
        std::fs::write(&path, &bytes).expect("a writable folder");
        match Labels::load(&path) {
            Ok(labels) => return ask(&labels),
            Err(Error::NotLabels { reason, .. }) if mend(&mut bytes, &reason).is_some() => {}
            Err(_) => return,
        }
    }
});

/// Replaces the checksum that an error names by the right one.
fn mend(bytes: &mut [u8], reason: &str) -> Option<()> {
    let number = |text: &str| u64::from_str_radix(text.get(..16)?, 16).ok();
    let (right, wrong) = reason.split_once("checksum 0x")?.1.split_once(" instead of 0x")?;
    let (right, wrong) = (number(right)?.to_le_bytes(), number(wrong)?.to_le_bytes());
    let labels = Header::parse(bytes.first_chunk()?, FileKind::KMERS_LABELS).ok()?;
    let of_function = (2 * HEADER_BYTES).checked_add(usize::try_from(labels.payload_bytes).ok()?)?;
    let places = [HEADER_BYTES, of_function].map(|end| end - 8..end);
    let place = places.into_iter().find(|place| bytes.get(place.clone()).is_some_and(|found| found == wrong))?;
    bytes[place].copy_from_slice(&right);
    Some(())
}

fn ask(labels: &Labels) {
    for letter in b"ACGT" {
        let label = labels.get(&vec![*letter; labels.k().get() as usize]).expect("letters of a k-mer");
        assert!(label.is_none_or(|label| labels.kmers(label) <= labels.len()));
        assert!(!matches!(label, Some(Label::Genome(genome)) if genome >= labels.genomes().len()));
    }
}
