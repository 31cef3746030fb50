//! Sequence filters: fixtures, damage.

use warpset::sequence::{SequenceFilter, SequenceFilterView};
use warpset_tests::files::{damage, fixture, to_words};

/// A sequence of all kinds of windows, some with other letters.
const SEQUENCE: &[u8] =
    b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACGNTTACGGATCCATTAGGACCATTTACGAGGCTA";

#[test]
fn fixtures_of_version_1() {
    let build = |k: u32| SequenceFilter::builder(100).k(k).build_from(&[SEQUENCE]).unwrap();
    fixture("sequence_filter.v1", &build(31));
    fixture("sequence_filter_9.v1", &build(9));
    let builder = SequenceFilter::builder(100).k(32).s(20).m(18).bits_per_key(10.0);
    fixture("sequence_filter_32.v1", &builder.build_from(&[SEQUENCE]).unwrap());
}

#[test]
fn damaged_files_are_refused_and_harmless() {
    let filter = SequenceFilter::builder(30).k(11).build_from(&[&SEQUENCE[..40]]).unwrap();
    damage(
        &filter,
        |at| if at < 64 { (0..8).collect() } else { vec![at as u32 % 8] },
        |bytes, _| {
            if let Ok(filter) = SequenceFilter::from_bytes(bytes) {
                assert!(filter.count(SEQUENCE).found <= SEQUENCE.len() as u64);
                let words = to_words(bytes);
                let view =
                    SequenceFilterView::from_bytes_unverified(&bytemuck::cast_slice(&words)[..bytes.len()]).unwrap();
                assert_eq!(view.count(SEQUENCE), filter.count(SEQUENCE));
            }
        },
    );
}
