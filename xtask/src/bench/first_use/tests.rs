//! First calls on the emulator: the kernels that they ask for are within budget, and named before the first launch.

use std::fmt::Write as _;

use super::*;

/// The most PTX that a first call may ask for: of all its kernels, which cores share, and of its largest, which one thread
/// compiles. An H200's driver takes about 2 ms per 1000 bytes, so 100,000 bytes in one kernel are a fifth of a second.
const BUDGETS: &[(&str, usize, usize)] = &[
    ("split-block insert_bulk", 12_000, 12_000),
    ("split-block contains_bulk", 12_000, 12_000),
    ("split-block test_and_insert_bulk", 40_000, 21_000),
    ("split-block test_and_insert_bulk, by parts", 130_000, 60_000),
    ("blocked test_and_insert_bulk, by parts", 135_000, 60_000),
    ("split-block insert_bulk, 1 GiB", 12_000, 12_000),
    ("split-block insert_device, grouped", 190_000, 120_000),
    ("blocked insert_bulk", 14_000, 14_000),
    ("blocked contains_bulk", 12_000, 12_000),
    ("Rao insert_bulk", 52_000, 14_000),
    ("Rao contains_bulk", 12_000, 12_000),
    ("Rao test_and_insert_bulk", 110_000, 38_000),
    ("quotient build_from", 180_000, 90_000),
    ("quotient build_from, 64-bit fingerprints", 200_000, 100_000),
    ("quotient contains_bulk", 25_000, 25_000),
    ("quotient insert_bulk", 180_000, 90_000),
    ("quotient insert_bulk, few keys", 100_000, 84_000),
    ("quotient remove_bulk", 180_000, 90_000),
    ("quotient count_bulk", 102_000, 85_000),
    ("quotient merge", 170_000, 85_000),
    ("quotient intersect", 185_000, 85_000),
    ("quotient intersection_count", 95_000, 85_000),
    ("quotient double", 140_000, 85_000),
    ("recsplit build_from", 395_000, 75_000),
    ("recsplit build_from, leaf 12", 375_000, 75_000),
    ("recsplit get_bulk", 95_000, 95_000),
    ("static filter contains_bulk", 95_000, 95_000),
    ("lsm build_from", 110_000, 105_000),
    ("lsm build_from, then get_bulk", 155_000, 95_000),
    ("lsm insert_bulk", 210_000, 95_000),
    ("lsm remove_bulk", 210_000, 90_000),
    ("lsm update_bulk", 312_000, 95_000),
    ("lsm cleanup", 160_000, 118_000),
    ("lsm get_bulk", 112_000, 30_000),
    ("lsm get_bulk, few keys", 21_000, 21_000),
    ("lsm count_range_bulk", 107_000, 36_000),
    ("lsm range_bulk", 170_000, 52_000),
    ("lsm successor_bulk", 108_000, 30_000),
    ("sorted array build_from, then get_bulk", 155_000, 95_000),
    ("sorted array insert_bulk", 220_000, 118_000),
    ("sorted array remove_bulk", 215_000, 118_000),
    ("sort u32", 88_000, 88_000),
];

/// PTX that a call may need without having named it: that of a small kernel, or two.
const UNNAMED: usize = 12_000;

#[test]
fn first_calls_are_within_budget() {
    let mut faults = String::new();
    for (name, prepare) in CALLS {
        let device = Device::emulator(Default::default());
        let call = prepare(Input::on(&device)).expect("prepared");
        assert_eq!(device.loaded_kernels(), [], "the preparation of {name}");
        call().expect(name);
        let kernels = device.loaded_kernels();
        let bytes = || kernels.iter().map(|kernel| kernel.ptx_bytes);
        let (all, largest) = (bytes().sum::<usize>(), bytes().max().unwrap_or(0));
        let Some((_, most, most_of_one)) = BUDGETS.iter().find(|(known, ..)| known == name) else {
            _ = writeln!(faults, "{name} has no budget; it asks for {all} bytes, {largest} in one kernel");
            continue;
        };
        if all > *most || largest > *most_of_one {
            _ = writeln!(faults, "{name} asks for {all} bytes ({most}), {largest} in one kernel ({most_of_one})");
        }
        if kernels.iter().all(|kernel| !kernel.launched) {
            _ = writeln!(faults, "{name} launches nothing");
        }
        for kernel in kernels.iter().filter(|kernel| !kernel.launched) {
            _ = writeln!(faults, "{name} names {} and does not launch it", kernel.name);
        }
        let unnamed = kernels.iter().filter(|kernel| !kernel.ahead).map(|kernel| kernel.ptx_bytes).sum::<usize>();
        if kernels.len() > 1 && unnamed > UNNAMED {
            _ = writeln!(faults, "{name} launches kernels of {unnamed} bytes that it has not named");
        }
    }
    assert!(faults.is_empty(), "of what first calls ask for (their budgets in brackets):\n{faults}");
}
