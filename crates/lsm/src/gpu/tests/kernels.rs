//! First calls on the emulator: what they launch, they have named before, but for small kernels; what they name, they launch.
//! `xtask` holds the same calls to budgets of bytes.

use warpset_gpu::Device;

use crate::{CleanupPolicy, Error, Lsm, SortedArray, gpu};

/// PTX that a call may need without having named it: that of a small kernel, or two.
const UNNAMED: usize = 12_000;

struct Made {
    tree: gpu::Lsm<u32, u32>,
    array: gpu::SortedArray<u32, u32>,
    device: Device,
    keys: Vec<u32>,
}

/// Dictionaries that were made on the host, on a device that has been asked for no kernel.
fn made() -> Made {
    let device = Device::emulator(Default::default());
    let keys: Vec<u32> = (0..3000u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let mut tree = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build_from(&keys, &keys).unwrap();
    tree.remove_bulk(&keys[..20]).unwrap();
    let array = SortedArray::builder().build_from(&keys, &keys).unwrap();
    let made = Made { tree: tree.to_device(&device).unwrap(), array: array.to_device(&device).unwrap(), device, keys };
    assert_eq!(made.device.loaded_kernels(), []);
    made
}

fn check(name: &str, call: impl FnOnce(&mut Made) -> Result<(), Error>) {
    let mut made = made();
    call(&mut made).unwrap();
    let kernels = made.device.loaded_kernels();
    let bytes = || kernels.iter().map(|kernel| kernel.ptx_bytes);
    println!("{name}: {} bytes of PTX, {} in one kernel", bytes().sum::<usize>(), bytes().max().unwrap_or(0));
    assert!(kernels.iter().any(|kernel| kernel.launched), "{name} launches nothing");
    let idle: Vec<_> = kernels.iter().filter(|kernel| !kernel.launched).map(|kernel| &kernel.name).collect();
    assert!(idle.is_empty(), "{name} names {idle:?} and does not launch them");
    let unnamed: Vec<_> = kernels.iter().filter(|kernel| !kernel.ahead).collect();
    let unnamed_bytes: usize = unnamed.iter().map(|kernel| kernel.ptx_bytes).sum();
    assert!(unnamed_bytes <= UNNAMED, "{name} launches {unnamed:?} and has not named them");
}

#[test]
fn first_calls_name_their_kernels() {
    check("build_from, then get_bulk", |made| {
        let tree = Lsm::<u32, u32>::builder().on(&made.device).build_from(&made.keys, &made.keys)?;
        tree.get_bulk(&made.keys).map(drop)
    });
    check("insert_bulk that merges", |made| made.tree.insert_bulk(&made.keys[..70], &made.keys[..70]));
    check("insert_bulk that does not", |made| made.tree.insert_bulk(&made.keys[..20], &made.keys[..20]));
    check("remove_bulk", |made| made.tree.remove_bulk(&made.keys[..60]));
    check("update_bulk", |made| made.tree.update_bulk(&made.keys[..60], &made.keys[..60], &[true; 60]));
    check("cleanup", |made| made.tree.cleanup());
    check("len", |made| made.tree.len().map(drop));
    check("get_bulk", |made| made.tree.get_bulk(&made.keys).map(drop));
    check("get_bulk of few keys", |made| made.tree.get_bulk(&made.keys[..9]).map(drop));
    check("count_range_bulk", |made| made.tree.count_range_bulk(&vec![3..=70_000_000; 200]).map(drop));
    check("range_bulk", |made| made.tree.range_bulk(&vec![3..=70_000_000; 200]).map(drop));
    check("successor_bulk", |made| made.tree.successor_bulk(&made.keys).map(drop));
    check("first_key_value", |made| made.tree.first_key_value().map(drop));
    check("array insert_bulk", |made| made.array.insert_bulk(&made.keys, &made.keys));
    check("array update_bulk", |made| made.array.update_bulk(&made.keys[..60], &made.keys[..60], &[true; 60]));
    check("array get_bulk", |made| made.array.get_bulk(&made.keys).map(drop));
}
