//! Saved functions and static filters from any bytes: no panic, no memory that the bytes do not justify; what loads is
//! whole, and answers every key below its number of values.
//!
//! Magic, lengths and checksum keep a fuzzer out, so the bytes are also tried as everything that follows a header that
//! is right, as a function and as a function within a filter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_base::file::HEADER_BYTES;
use warpset_fuzz::with_header;
use warpset_mphf::{ConsensusKind, HashKind, PerfectHash, PlacementKind, RecSplitKind, StaticFilter, StaticFilterView};

/// The number of a filter.
const FILTER: u16 = 17;

fn ask<M: HashKind>(function: PerfectHash<M, &[u64]>) {
    let keys = [0, 1, 2, 3, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef];
    for (key, number) in keys.iter().zip(function.get_bulk(&keys)) {
        assert_eq!(function.get(key), number);
        assert!(number < function.values().max(1));
    }
    function.get("key");
    function.bits_per_key();
    function.space();
}

fn load<M: HashKind>(bytes: &[u8]) {
    if let Ok(function) = PerfectHash::<M>::read_from(bytes) {
        assert!(bytes.starts_with(&function.to_bytes()));
        ask(function.view());
        ask(PerfectHash::<M, &[u64]>::from_words(function.words()).unwrap());
    }
    if let Ok(filter) = StaticFilter::<M>::read_from(bytes) {
        assert!(bytes.starts_with(&filter.to_bytes()));
        ask(filter.function());
        assert!(StaticFilterView::<M>::from_words(filter.words()).unwrap() == filter.view());
        for key in 0..8u64 {
            assert_eq!(filter.contains(&key), filter.get(&key).is_some());
            assert!(filter.get(&key).is_none_or(|number| number < filter.function().len()));
        }
    }
}

fn load_all<M: HashKind>(bytes: &[u8]) {
    load::<M>(bytes);
    let function = with_header(M::KIND as u16, bytes);
    load::<M>(&function);
    // A filter: width and words of the function, then the function, then fingerprints for as many keys as it has.
    let width = bytes.first().map_or(8, |byte| u64::from(byte % 34));
    let keys = function[24..32].try_into().map_or(0, u64::from_le_bytes);
    let mut filter = [width.to_le_bytes(), (function.len() as u64 / 8).to_le_bytes()].concat();
    filter.resize(HEADER_BYTES - 24, 0);
    filter.extend_from_slice(&function);
    let fingerprints = (keys.min(1 << 12) * width).div_ceil(64) + 1;
    filter.resize(filter.len() + 8 * fingerprints as usize, bytes.last().copied().unwrap_or(0));
    load::<M>(&with_header(FILTER, &filter));
}

fuzz_target!(|bytes: &[u8]| {
    load_all::<RecSplitKind>(bytes);
    load_all::<ConsensusKind>(bytes);
    load_all::<PlacementKind>(bytes);
});
