//! Static functions from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_fuse::{FunctionValue, StaticFunction, StaticFunctionView};

fuzz_target!(|bytes: &[u8]| {
    load::<bool>(bytes);
    load::<u16>(bytes);
    load::<u64>(bytes);
});

fn use_it<V: FunctionValue>(view: StaticFunctionView<'_, V>) {
    let asked: Vec<u64> = (0..300).collect();
    let values = view.get_bulk(&asked);
    assert!(asked.iter().zip(values).all(|(&key, value)| view.get(key) == value));
}

fn load<V: FunctionValue>(bytes: &[u8]) {
    let use_whole = |function: StaticFunction<V>| use_it(function.view());
    warpset_fuzz::load(bytes, use_whole, |bytes| {
        if let Ok(view) = StaticFunctionView::<V>::from_bytes_unverified(bytes) {
            use_it(view);
        }
    });
}
