//! The forms of Parquet, Milvus and Spark from any bytes: no panic; what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_bloom::{PhysicalType, SparkBloom, SparkBloomView, SplitBlockBloom, SplitBlockLayout, View};

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
    if let Ok((view, header)) = View::from_milvus(bytes) {
        view.contains("key");
        let written = view.to_milvus(header).unwrap();
        // A rate that is no number may have other bits.
        assert!(written[..16] == bytes[..16] && written[24..] == bytes[24..]);
    }
    if let Ok(view) = SparkBloomView::from_bytes(bytes) {
        let mut filter = SparkBloom::from_bytes(bytes.to_vec()).unwrap();
        assert!(filter.as_bytes() == bytes && filter.contains("key") == view.contains("key"));
        filter.insert(-7i64);
        assert!(filter.contains(-7i64));
    }
});
