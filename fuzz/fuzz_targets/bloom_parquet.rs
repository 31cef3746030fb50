//! Parquet's form from any bytes: no panic; what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_bloom::{PhysicalType, SplitBlockBloom, SplitBlockLayout, View};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    if let Ok(filter) = SplitBlockBloom::read_parquet(&mut rest, PhysicalType::Int32) {
        let mut written = Vec::new();
        filter.write_parquet(&mut written, PhysicalType::Int32).unwrap();
        assert_eq!(SplitBlockBloom::read_parquet(&written[..], PhysicalType::Int32).unwrap(), filter);
        assert!(bytes[..bytes.len() - rest.len()].ends_with(filter.bitset()));
    }
    if let Ok((view, taken)) = View::<SplitBlockLayout>::from_parquet(bytes, PhysicalType::Int32) {
        assert!(taken <= bytes.len());
        view.contains("key");
        view.fpr();
    }
});
