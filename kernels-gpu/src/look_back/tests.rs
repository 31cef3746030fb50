//! Chains of all kinds of values, under schedules that hold tiles back and let stores arrive late.

use warpset_core::hash::mix;
use warpset_core::scan::{ByRun, MaxPlus, Segmented, Sum};
use warpset_simt::emulator::{Config, Emulator};
use warpset_simt::{Global, LaunchConfig, shared};

use super::*;

#[test]
fn values_survive_packing() {
    fn check<V: Published + PartialEq + std::fmt::Debug>(value: V) {
        let words = value.pack();
        assert!(words.as_ref().iter().all(|word| word & !PAYLOAD == 0), "{value:?}");
        assert_eq!(V::unpack(words), value);
    }
    check(Count(0));
    check(Count(PAYLOAD));
    for number in [0u64, 1, 0xffff_ffff, 1 << 62, 3 << 62, 0x8000_0000_0000_0001, !0] {
        check(number);
        check(number as i64);
        check(number as u32);
        check(number as i32);
        for head in [false, true] {
            check(Flagged { head, value: number });
            check(Flagged { head, value: number as i32 });
        }
        for heads in [0, 1, (1 << 60) - 1] {
            check(Runs { heads, value: number as i64 });
            check(Runs { heads, value: number as u32 });
        }
        check(Lift { floor: number as i64, add: -1 });
        check(Lift { floor: 7, add: number as u32 });
    }
}

#[test]
fn words_of_different_states_do_not_count() {
    assert_eq!(state([AGGREGATE | 5]), AGGREGATE);
    assert_eq!(state([INCLUSIVE, INCLUSIVE | 1]), INCLUSIVE);
    for words in [[0, AGGREGATE], [AGGREGATE, INCLUSIVE], [INCLUSIVE | 7, AGGREGATE | 7], [0, 0]] {
        assert_eq!(state(words), 0);
    }
}

/// Reads value `i` of an array of packed values.
///
/// # Safety
/// `x` has it.
#[inline(always)]
pub unsafe fn read<V: Published>(x: Global<u64>, i: usize) -> V {
    let mut words = V::Words::ZERO;
    for (k, word) in words.as_mut().iter_mut().enumerate() {
        // SAFETY: the array has value `i`, by this function's contract.
        *word = unsafe { x.read(i * V::Words::COUNT + k) };
    }
    V::unpack(words)
}

/// Writes value `i` of an array of packed values.
///
/// # Safety
/// `y` has a place for it, and nothing else accesses that.
#[inline(always)]
pub unsafe fn write<V: Published>(y: GlobalMut<u64>, i: usize, value: V) {
    for (k, &word) in value.pack().as_ref().iter().enumerate() {
        // SAFETY: the array has value `i`, by this function's contract.
        unsafe { y.write(i * V::Words::COUNT + k, word) };
    }
}

/// Packs values into an array.
pub fn packed<V: Published>(values: &[V]) -> Vec<u64> {
    values.iter().flat_map(|value| value.pack().as_ref().to_vec()).collect()
}

/// Unpacks the array of [`packed`].
pub fn unpacked<V: Published>(words: &[u64]) -> Vec<V> {
    let value = |words: &[u64]| {
        let mut own = V::Words::ZERO;
        own.as_mut().copy_from_slice(words);
        V::unpack(own)
    };
    words.chunks(V::Words::COUNT).map(value).collect()
}

/// Writes the combination of the tiles before, with one tile per block.
///
/// # Safety
/// `x` has one value per block, `y` one place.
#[inline(always)]
unsafe fn chain<O: Operator<Value: Published>>(
    x: Global<u64>,
    y: GlobalMut<u64>,
    look_back: GlobalMut<u64>,
    counter: GlobalMut<u32>,
) {
    // SAFETY: the arrays are valid, by the kernel's contract, and so are 32 bytes of shared memory in two places.
    unsafe {
        let tile = ticket(counter, shared::dynamic(0));
        let prefix = tile_prefix::<O>(look_back, tile, read(x, tile), shared::dynamic(16));
        if thread::thread_idx_x() == thread::block_dim_x() - 1 {
            write(y, tile, prefix);
        }
    }
}

macro_rules! chains {
    ($($name:ident: $operator:ty, |$random:ident| $sample:expr;)*) => {
        kernel! {
            $(
                /// Runs [`chain`].
                ///
                /// # Safety
                /// The contract of [`chain`].
                pub unsafe fn $name(
                    x: Global<u64>, y: GlobalMut<u64>,
                    look_back: GlobalMut<u64>, counter: GlobalMut<u32>,
                ) {
                    // SAFETY: the callee has this function's contract.
                    unsafe { chain::<$operator>(x, y, look_back, counter) }
                }
            )*
        }

        $(
            #[test]
            fn $name() {
                type Value = <$operator as Operator>::Value;
                for (seed, tiles) in [1usize, 2, 31, 32, 33, 34, 65, 100].into_iter().enumerate() {
                    for seed in [seed as u64, seed as u64 + 100] {
                        let values: Vec<Value> = (0..tiles as u64)
                            .map(|i| {
                                let $random = mix(i, seed);
                                $sample
                            })
                            .collect();
                        let resident_blocks = [2, 5, 40][(seed % 3) as usize];
                        let emulator = Emulator::new(Config { resident_blocks, ..Config::seeded(seed) });
                        let (x, y) = (emulator.buffer_from(&packed(&values)), emulator.buffer_from(&packed(&values)));
                        let look_back = emulator.buffer_from(&vec![0u64; words::<Value>(tiles)]);
                        let counter = emulator.buffer_from(&[0u32]);
                        let config = LaunchConfig::new(tiles as u32, 64).shared(48);
                        // SAFETY: sizes as the kernel asks.
                        let done = unsafe {
                            let (look_back, counter) = (look_back.global_mut(), counter.global_mut());
                            self::$name { x: x.global(), y: y.global_mut(), look_back, counter }.launch(&emulator, config)
                        };
                        done.unwrap();
                        let mut before = <$operator>::IDENTITY;
                        for (tile, (&value, found)) in values.iter().zip(unpacked::<Value>(&y.to_vec())).enumerate() {
                            assert_eq!(found, before, "tile {tile} of {tiles}");
                            before = <$operator>::combine(before, value);
                        }
                    }
                }
            }
        )*
    };
}

chains! {
    counts: Sum<Count>, |random| Count(random >> 10);
    narrow: Sum<u32>, |random| random as u32;
    wide: Sum<u64>, |random| random;
    flagged: Segmented<Sum<u64>>, |random| Flagged { head: random % 10 == 0, value: random };
    runs: ByRun<Sum<u32>>, |random| Runs { heads: random % 4 / 3, value: random as u32 };
    lifts: MaxPlus<i64>, |random| {
        let add = (random % 100) as i64 - 50;
        Lift { floor: (random % 7) as i64 + add.max(0), add }
    };
}
