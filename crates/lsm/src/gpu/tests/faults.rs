//! Every allocation and every launch of every operation fails once: the result is an error, and the dictionary is
//! unchanged.

use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use crate::{CleanupPolicy, Error, Lsm, SortedArray, Sum};

fn keys(n: u64, seed: u64) -> Vec<u32> {
    (0..n).map(|i| (mix(i, seed) % 500) as u32).collect()
}

/// Returns a tree of three batches on two levels, and some removals.
fn tree() -> Lsm<u32, u32> {
    let mut tree = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
    for batch in 0..3 {
        tree.insert_bulk(&keys(64, batch), &keys(64, batch + 50)).unwrap();
    }
    tree.remove_bulk(&keys(20, 1)).unwrap();
    tree
}

/// Fails each allocation and launch of a change of the tree, which must then be unchanged. Returns their number.
fn each_change_fails(device: &Device, change: impl Fn(&mut crate::gpu::Lsm<u32, u32>) -> Result<(), Error>) -> usize {
    let before = tree();
    testing::fail_each(&mut before.to_device(device).unwrap(), change, |there, changed| match changed {
        Err(error) => {
            assert!(matches!(error, Error::Gpu(_)), "{error}");
            assert!(there.to_host().unwrap() == before, "{error}");
        }
        Ok(()) => {
            there.to_host().unwrap().check_invariants().unwrap();
            *there = before.to_device(device).unwrap();
        }
    })
}

/// Fails each allocation and launch of a query: the answer is an error or correct.
fn each_question_fails<T: PartialEq + std::fmt::Debug>(expected: T, question: impl Fn() -> Result<T, Error>) {
    let asked = testing::fail_each(
        &mut (),
        |()| question(),
        |(), answer| {
            if let Ok(answer) = answer {
                assert_eq!(answer, expected);
            }
        },
    );
    assert!(asked > 0);
}

#[test]
fn changes_leave_trees_as_they_were() {
    for device in testing::devices(41) {
        let (some, values) = (keys(64, 9), keys(64, 10));
        let removed: Vec<bool> = (0..64).map(|i| i % 3 == 0).collect();
        let operations = [
            each_change_fails(&device, |there| there.insert_bulk(&some, &values)),
            each_change_fails(&device, |there| there.remove_bulk(&some)),
            each_change_fails(&device, |there| there.update_bulk(&some, &values, &removed)),
            each_change_fails(&device, |there| there.upsert_bulk::<Sum<u32>>(&some, &values)),
            each_change_fails(&device, |there| there.insert_new_bulk(&some, &values)),
            each_change_fails(&device, |there| there.cleanup()),
        ];
        assert!(operations.iter().all(|&operations| operations > 2), "{operations:?}");
    }
}

#[test]
fn answers_are_errors_or_right() {
    for device in testing::devices(42) {
        let tree = tree();
        let there = tree.to_device(&device).unwrap();
        let asked = keys(70, 7);
        let ranges: Vec<_> = asked.chunks(2).map(|two| two[0]..=two[1]).collect();
        each_question_fails(tree.get_bulk(&asked), || there.get_bulk(&asked));
        each_question_fails(tree.contains_bulk(&asked), || there.contains_bulk(&asked));
        each_question_fails(tree.count_range_bulk(&ranges), || there.count_range_bulk(&ranges));
        each_question_fails(tree.range_bulk(&ranges).unwrap(), || there.range_bulk(&ranges));
        // Queries a copy, because the tree caches the number.
        each_question_fails(tree.len(), || tree.to_device(&device)?.len());
        let builder = Lsm::<u32, u32>::builder().batch_size(64);
        let built = builder.build_from(&asked, &asked).unwrap().to_bytes();
        each_question_fails(built, || Ok(builder.on(&device).build_from(&asked, &asked)?.to_host()?.to_bytes()));
    }
}

#[test]
fn sorted_arrays_are_as_they_were() {
    for device in testing::devices(43) {
        let before = SortedArray::<u32, u32>::builder().build_from(&keys(200, 1), &keys(200, 2)).unwrap();
        let (some, values) = (keys(50, 3), keys(50, 4));
        let insert = |there: &mut crate::gpu::SortedArray<u32, u32>| there.insert_bulk(&some, &values);
        testing::fail_each(&mut before.to_device(&device).unwrap(), insert, |there, changed| {
            if changed.is_err() {
                assert!(there.to_host().unwrap() == before);
            } else {
                *there = before.to_device(&device).unwrap();
            }
        });
    }
}
