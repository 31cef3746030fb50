//! Radix sort of random keys and pairs, sorting segments of several lengths, and grouping by hash.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::Device;
use warpset::primitives::sort::{self, By, Payload, SortKey};
use warpset::primitives::{radix, segmented_sort};
use warpset_core::hash::xxh64_u64;
use warpset_kernels::batch::keys::{HashFunction, KeyClass, KeyKind, KeySlice};

use super::case::{Case, blank};
use super::{MOST_WIDEST, narrow, steps_of, widest};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};

pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = steps_of(setup, "sort", |session, device, n| {
        let wide = KeySpace::new(0x507).stream(0).u64_keys(n);
        let keys = narrow(&wide);
        of_keys(session, device, "u32", &keys, By::ascending(), |key| key)?;
        of_keys(session, device, "u64", &wide, By::ascending(), |key| key)?;
        of_pairs::<u32, u32>(session, device, "u32, u32", &keys)?;
        of_pairs::<u64, u32>(session, device, "u64, u32", &wide)?;
        let widest = widest(&wide[..n.min(MOST_WIDEST)]);
        of_pairs::<u128, u64>(session, device, "u128, u64", &widest)?;
        if session.effort == Effort::Quick {
            return Ok(());
        }
        of_pairs::<u32, u64>(session, device, "u32, u64", &keys)?;
        of_pairs::<u64, u64>(session, device, "u64, u64", &wide)?;
        of_keys(session, device, "u128", &widest, By::ascending(), |key| key)?;
        of_pairs::<u128, u32>(session, device, "u128, u32", &widest)?;
        let low: Vec<u128> = wide.iter().take(MOST_WIDEST).map(|&key| key.into()).collect();
        of_keys(session, device, "u128, high half zero", &low, By::ascending(), |key| key)?;
        of_keys(session, device, "u32, 28 bits", &keys, By::ascending().bits(4..32), |key| key >> 4)?;
        let low: Vec<u32> = keys.iter().map(|key| key & 0xffff).collect();
        of_keys(session, device, "u32, high half zero", &low, By::ascending(), |key| key)?;
        let biased: Vec<u32> = keys.iter().map(|key| key & key.rotate_left(20)).collect();
        of_keys(session, device, "u32, biased bits", &biased, By::ascending(), |key| key)
    });
    let full = setup.effort == Effort::Full;
    for device in setup.devices().filter(|device| full && !device.is_emulator()) {
        let device = device.clone();
        steps.push(Step::new("primitives: sort in two launches per pass", move |session| {
            let keys = narrow(&KeySpace::new(0x507).stream(0).u64_keys((1 << 30) + 12_345));
            of_keys(session, &device, "u32", &keys, By::ascending(), |key| key)
        }));
    }
    steps.extend(steps_of(setup, "segmented sort", |session, device, n| {
        let keys = narrow(&KeySpace::new(0x507).stream(0).u64_keys(n));
        let lengths: &[usize] = match session.effort {
            Effort::Quick => &[16, 128, 1024, 4097],
            Effort::Standard => &[1, 16, 64, 128, 1024, 4096, 4097, 1 << 16],
            Effort::Full => {
                &[1, 4, 16, 32, 50, 64, 128, 256, 512, 1024, 2048, 4096, 4097, 5000, 8192, 1 << 14, 1 << 16, 1 << 20]
            }
        };
        for length in lengths.iter().copied().chain([n]).filter(|&length| length <= n) {
            let offsets: Vec<u64> = (0..n as u64).step_by(length).chain([n as u64]).collect();
            of_segments(session, device, &length.to_string(), &offsets, &keys)?;
        }
        let means: &[usize] =
            if session.effort == Effort::Quick { &[64] } else { &[4, 16, 64, 256, 1024, 4096, 20_000] };
        for &mean in means {
            let random = KeySpace::new(0x5e7).stream(0);
            let mut offsets = vec![0];
            for i in 0.. {
                let end = offsets[i as usize] + random.key(i) % (2 * mean as u64 + 1);
                offsets.push(end.min(n as u64));
                if end >= n as u64 {
                    break;
                }
            }
            of_segments(session, device, &format!("0 to {}", 2 * mean), &offsets, &keys)?;
        }
        Ok(())
    }));
    let by_hash = steps_of(setup, "grouping by hash", |session, device, n| {
        [1, 3, 5, 6, 7, 8].into_iter().try_for_each(|bits| grouping(session, device, n, bits))
    });
    steps.extend(by_hash.into_iter().map(Step::except_quick));
    steps
}

/// Returns 0, 1, 2 and so on.
pub fn counting<V: TryFrom<usize>>(n: usize) -> Vec<V> {
    (0..n).map(|i| V::try_from(i).unwrap_or_else(|_| unreachable!("fewer than 2^32 pairs"))).collect()
}

/// Returns the bytes that sorting `n` items must move: all keys once for counting, and all items twice per byte of a
/// key.
fn bytes(n: usize, key: usize, value: usize) -> usize {
    n * (key + 2 * key * (key + value))
}

/// Measures sorts of keys; `rank` is the part of a key that `by` compares.
fn of_keys<K: SortKey>(
    session: &mut Session,
    device: &Device,
    name: &str,
    keys: &[K],
    by: By,
    rank: fn(K) -> K,
) -> anyhow::Result<()> {
    let mut expected = keys.to_vec();
    expected.sort_by_key(|&key| rank(key));
    let n = keys.len();
    let case = Case::new(session, device, "sort", name, n, bytes(n, size_of::<K>(), 0));
    case.in_passes_over(2 * n * size_of::<K>()).run(
        keys,
        blank::<K>(n),
        // SAFETY: `run` keeps both as the sort asks.
        |stream, keys, out| unsafe { sort::sort_keys_async(stream, keys.as_slice(), out, by.clone()) },
        |out| *out == expected,
    )
}

/// Measures sorts of pairs. The values count up, so that they show whether equal keys kept their order.
fn of_pairs<K: SortKey, V: Payload + PartialEq + TryFrom<usize>>(
    session: &mut Session,
    device: &Device,
    name: &str,
    keys: &[K],
) -> anyhow::Result<()> {
    let n = keys.len();
    let values: Vec<V> = counting(n);
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    expected.sort_by_key(|(key, _)| *key);
    let expected: (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let case = Case::new(session, device, "sort", name, n, bytes(n, size_of::<K>(), size_of::<V>()));
    case.in_passes_over(2 * n * (size_of::<K>() + size_of::<V>())).run(
        (keys, &values[..]),
        (blank::<K>(n), blank::<V>(n)),
        |stream, (keys, values), (out, out_values)| {
            let (keys, values) = (keys.as_slice(), values.as_slice());
            // SAFETY: `run` keeps all of them as the sort asks.
            unsafe { sort::sort_pairs_async(stream, keys, values, out, out_values, By::ascending()) }
        },
        |out| *out == expected,
    )
}

/// Measures keys alone, and with payloads that count up. A segment is read and written at least once.
fn of_segments(
    session: &mut Session,
    device: &Device,
    lengths: &str,
    offsets: &[u64],
    keys: &[u32],
) -> anyhow::Result<()> {
    let n = keys.len();
    let values: Vec<u32> = counting(n);
    let mut expected: Vec<(u32, u32)> = keys.iter().copied().zip(values.iter().copied()).collect();
    // The payloads of equal keys ascend, so this is the stable order.
    offsets.windows(2).for_each(|ends| expected[ends[0] as usize..ends[1] as usize].sort_unstable());
    let expected: (Vec<u32>, Vec<u32>) = expected.into_iter().unzip();
    Case::new(session, device, "segmented sort", "u32", n, 8 * n).param("segment", lengths).run(
        (keys, offsets),
        blank::<u32>(n),
        |stream, (keys, offsets), out| {
            let (keys, offsets) = (keys.as_slice(), offsets.as_slice());
            // SAFETY: `run` keeps all of them as the sort asks; offsets ascend to `n`.
            unsafe { segmented_sort::sort_keys_async(stream, keys, offsets, out, By::ascending()) }
        },
        |out| *out == expected.0,
    )?;
    Case::new(session, device, "segmented sort", "u32, u32", n, 16 * n).param("segment", lengths).run(
        ((keys, &values[..]), offsets),
        (blank::<u32>(n), blank::<u32>(n)),
        |stream, ((keys, values), offsets), (out, out_values)| {
            let (keys, values, offsets) = (keys.as_slice(), values.as_slice(), offsets.as_slice());
            // SAFETY: as above.
            unsafe { segmented_sort::sort_pairs_async(stream, keys, values, offsets, out, out_values, By::ascending()) }
        },
        |out| *out == expected,
    )
}

/// Measures `u64` keys hashed and grouped by the top bits of their hashes: each is read twice and written once.
fn grouping(session: &mut Session, device: &Device, n: usize, bits: u32) -> anyhow::Result<()> {
    let keys = KeySpace::new(0x62).stream(0).u64_keys(n);
    let mut expected: Vec<u64> = keys.iter().map(|&key| xxh64_u64(key, 0)).collect();
    expected.sort_unstable();
    Case::new(session, device, "group by hash", "u64", n, 24 * n).param("groups", 1 << bits).run(
        &keys[..],
        blank::<u64>(n),
        // SAFETY: `run` keeps both as the grouping asks.
        |stream, items, out| unsafe {
            radix::group_by_top_bits_async(
                stream,
                KeySlice::new(items.global(), KeyKind::new(KeyClass::U64, HashFunction::Xxh64)),
                n,
                bits,
                out,
            )
        },
        |out| {
            let mut sorted = out.clone();
            sorted.sort_unstable();
            out.is_sorted_by_key(|hash| hash >> (64 - bits)) && sorted == expected
        },
    )
}
