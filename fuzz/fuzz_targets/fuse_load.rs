//! Binary fuse filters from any bytes, saved ones and arrays of other programs: no panic, no memory that the bytes do
//! not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_fuse::{BinaryFuse, Bincode, CWidth, Filter, View, Width};

fn use_it<F: Width>(filter: &BinaryFuse<F>) {
    let asked: Vec<u64> = (0..300).collect();
    let answers = filter.contains_bulk(&asked).unwrap();
    assert!(asked.iter().zip(answers).all(|(&key, answer)| filter.contains(key) == answer));
    if let Ok(array) = filter.to_xorf() {
        let again = BinaryFuse::<F>::from_xorf(&array).unwrap();
        assert!(again.words() == filter.words());
    }
}

fuzz_target!(|bytes: &[u8]| {
    load::<u8>(bytes);
    load::<u16>(bytes);
    load::<u32>(bytes);
    load_of_c::<u8>(bytes);
    load_of_c::<u16>(bytes);
});

fn load<F: Width>(bytes: &[u8]) {
    let use_whole = |filter: BinaryFuse<F>| use_it(&filter);
    warpset_fuzz::load(bytes, use_whole, |bytes| {
        if let Ok(view) = View::<F>::from_bytes_unverified(bytes) {
            view.contains("key");
            view.contains_bulk(&(0..300u64).collect::<Vec<_>>()).unwrap();
        }
    });
    for form in [Bincode::Standard, Bincode::Legacy] {
        if let Ok(filter) = BinaryFuse::<F>::from_xorf_bincode(bytes, form) {
            use_it(&filter);
        }
    }
}

fn load_of_c<F: CWidth>(bytes: &[u8]) {
    if let Ok(filter) = BinaryFuse::<F>::from_c_bytes(bytes) {
        use_it(&filter);
        let again = BinaryFuse::<F>::from_c_bytes(&filter.to_c_bytes().unwrap()).unwrap();
        assert!(again == filter);
    }
}
