//! Kernels that query filters give the answers of the filters themselves, on the emulator, and on CUDA if there is a
//! device.

use own_kernel::{calibrated, sums_of_known, weighed};
use warpset_bloom::{BlockedBloom, Filter, SplitBlockBloom};
use warpset_fuse::{Arity, Form, StaticFunction};
use warpset_gpu::testing::devices;
use warpset_quotient::{Count, Duplicates, RankSelectQuotientFilter};

const N: usize = 3000;

/// Returns sensors, some of them twice, and their readings.
fn sensors() -> (Vec<u64>, Vec<u32>) {
    let sensors = (0..N as u64).map(|i| (i % 2500).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).collect();
    (sensors, (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 16).collect())
}

fn sum(readings: &[u32], found: &[bool]) -> u64 {
    readings.iter().zip(found).filter(|(_, found)| **found).map(|(&reading, _)| u64::from(reading)).sum()
}

#[test]
fn sums_are_those_of_the_filters_answers() {
    let (sensors, readings) = sensors();
    for device in &devices(3) {
        let split = SplitBlockBloom::builder(1000).fpr(0.05).on(device).build_from(&sensors[..1000]).unwrap();
        for (block, word, hashes) in [(64, 64, 3), (256, 32, 8), (512, 64, 11), (1024, 32, 5)] {
            let blocked = BlockedBloom::builder(1000).block_bits(block).word_bits(word).hashes(hashes).seed(9);
            let blocked = blocked.on(device).build_from(&sensors[500..1500]).unwrap();
            let found = (split.contains_bulk(&sensors).unwrap(), blocked.contains_bulk(&sensors).unwrap());
            let expected = (sum(&readings, &found.0), sum(&readings, &found.1));
            assert_eq!(sums_of_known(&split, &blocked, &sensors, &readings).unwrap(), expected);
        }
    }
}

#[test]
fn weights_are_the_filters_counts() {
    let (sensors, readings) = sensors();
    for device in &devices(4) {
        for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
            for fpr in [0.03, 0.001] {
                let filter = RankSelectQuotientFilter::builder(N as u64).fpr(fpr).duplicates(duplicates);
                for filter in [filter, filter.exact(44), filter.exact(45)] {
                    let filter = filter.on(device).build_from(&sensors[..N / 2]).unwrap();
                    let mut asked = sensors.clone();
                    asked[0] = u64::MAX; // not a key of an exact filter
                    let counts = filter.count_bulk(&asked).unwrap();
                    let expected: Vec<u64> = counts.iter().zip(&readings).map(|(c, &r)| c * u64::from(r)).collect();
                    assert_eq!(weighed(&filter, &asked, &readings).unwrap(), expected);
                }
            }
        }
    }
}

#[test]
fn calibrations_are_the_answers_of_functions_and_maplets() {
    let (mut sensors, readings) = sensors();
    sensors.truncate(2500); // all different
    let readings = &readings[..sensors.len()];
    let values: Vec<u8> = sensors.iter().map(|sensor| (sensor % 31) as u8).collect();
    for device in &devices(5) {
        for (form, arity) in [(Form::OneGraph, Arity::Three), (Form::Sharded, Arity::Four)] {
            // Slots of whole bytes and others, with bits that notice other keys.
            for filtered in [3, 11] {
                let gains = StaticFunction::<u8>::builder().value_bits(5).filtered(filtered).form(form).arity(arity);
                let gains = gains.on(device).build_from(&sensors[..1500], &values[..1500]).unwrap();
                for duplicates in [Duplicates::Dropped, Duplicates::Counted] {
                    let offsets = RankSelectQuotientFilter::builder(N as u64).duplicates(duplicates).values(5);
                    let offsets = offsets.on(device).build_from(&sensors[1000..], &values[1000..]).unwrap();
                    let (gain, offset) = (gains.get_bulk(&sensors).unwrap(), offsets.get_bulk(&sensors).unwrap());
                    let of = |i: usize| u64::from(readings[i]) * gain[i].map_or(1, u64::from) + offset[i].unwrap_or(0);
                    let expected: Vec<u64> = (0..sensors.len()).map(of).collect();
                    assert_eq!(calibrated(&gains, &offsets, &sensors, readings).unwrap(), expected);
                }
            }
        }
    }
}
