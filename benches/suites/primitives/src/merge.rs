//! Merging sorted runs of random keys: two of half the items each, and eight.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceSlice, DeviceVec, Stream};
use warpset::primitives::merge::{self, Pairs};
use warpset::primitives::sort::{self, By, Payload, SortKey};
use warpset::primitives::{self, KeyMask};

use super::case::{Case, blank};
use super::{MOST_WIDEST, narrow, steps_of, widest};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "merge", |session, device, n| {
        let keys = |stream| KeySpace::new(0x3e6).stream(stream).u64_keys(n / 2);
        let (mut a, mut b) = (keys(0), keys(1));
        rayon::join(|| a.sort_unstable(), || b.sort_unstable());
        let (narrow_a, narrow_b) = (narrow(&a), narrow(&b));
        of_keys(session, device, "u32", &narrow_a, &narrow_b)?;
        of_keys(session, device, "u64", &a, &b)?;
        of_many(session, device, "u32", &narrow_a, &narrow_b)?;
        of_many(session, device, "u64", &a, &b)?;
        of_pairs::<u32, u32>(session, device, "u32, u32", &narrow_a, &narrow_b)?;
        of_pairs::<u64, u32>(session, device, "u64, u32", &a, &b)?;
        of_pairs::<u64, u64>(session, device, "u64, u64", &a, &b)?;
        let most = a.len().min(MOST_WIDEST / 2);
        let (widest_a, widest_b) = (widest(&a[..most]), widest(&b[..most]));
        of_pairs::<u128, u64>(session, device, "u128, u64", &widest_a, &widest_b)?;
        if session.effort == Effort::Quick {
            return Ok(());
        }
        of_keys(session, device, "u128", &widest_a, &widest_b)?;
        of_many(session, device, "u128", &widest_a, &widest_b)
    })
}

fn of_keys<K: SortKey>(session: &mut Session, device: &Device, name: &str, a: &[K], b: &[K]) -> anyhow::Result<()> {
    let mut expected = [a, b].concat();
    expected.sort_unstable(); // equal keys are the same
    let n = expected.len();
    let mask = KeyMask::all();
    Case::new(session, device, "merge", name, n, 2 * n * size_of::<K>()).run(
        (a, b),
        blank::<K>(n),
        // SAFETY: `run` keeps all of them as the merge asks.
        |stream, (a, b), out| unsafe { merge::merge_keys_async(stream, a.as_slice(), b.as_slice(), mask, out) },
        |out| *out == expected,
    )
}

/// Measures eight runs: every fourth key of each of the two. Also measures the alternatives to the one pass: seven
/// merges of two, and a sort of everything.
fn of_many<K: SortKey>(session: &mut Session, device: &Device, name: &str, a: &[K], b: &[K]) -> anyhow::Result<()> {
    let fourth = |keys: &[K], first: usize| keys.iter().skip(first).step_by(4).copied().collect::<Vec<K>>();
    let runs: Vec<Vec<K>> = (0..8).map(|r| fourth(if r < 4 { a } else { b }, r % 4)).collect();
    let all = runs.concat();
    let mut expected = all.clone();
    expected.sort_unstable();
    let n = all.len();
    let ends = runs.iter().scan(0, |end, run| {
        *end += run.len();
        Some(*end)
    });
    let ends: Vec<usize> = [0].into_iter().chain(ends).collect();
    type Queue<K> =
        fn(&Stream, &DeviceVec<K>, &[usize], &mut DeviceVec<K>, &mut DeviceVec<K>) -> primitives::Result<()>;
    let methods: [(&str, Queue<K>); 3] = [
        ("one pass", |stream, all, ends, _, out| {
            let runs: Vec<_> = ends.windows(2).map(|ends| all.slice(ends[0]..ends[1])).collect();
            // SAFETY: `run` keeps all of them as the merge asks.
            unsafe { merge::merge_many_keys_async(stream, &runs, KeyMask::all(), out) }
        }),
        // SAFETY: as above.
        ("seven merges of two", |stream, all, ends, between, out| unsafe {
            merge_in_twos(stream, all.as_slice(), ends, 1, out)?;
            merge_in_twos(stream, out.as_slice(), ends, 2, between)?;
            merge_in_twos(stream, between.as_slice(), ends, 4, out)
        }),
        // SAFETY: as above.
        ("sort", |stream, all, _, _, out| unsafe {
            sort::sort_keys_async(stream, all.as_slice(), out, By::ascending())
        }),
    ];
    for (method, queue) in methods {
        let case = Case::new(session, device, "merge of eight runs", name, n, 2 * n * size_of::<K>());
        case.param("method", method).run(
            &all[..],
            (blank::<K>(n), blank::<K>(n)),
            |stream, all, (between, out)| queue(stream, all, &ends, between, out),
            |(_, out)| *out == expected,
        )?;
    }
    Ok(())
}

/// Merges neighbours among runs, each of which is `width` of the runs between `ends`.
///
/// # Safety
/// Until the stream has been waited for, both vectors stay alive, and no other work touches them.
unsafe fn merge_in_twos<K: SortKey>(
    stream: &Stream,
    from: DeviceSlice<'_, K>,
    ends: &[usize],
    width: usize,
    to: &mut DeviceVec<K>,
) -> primitives::Result<()> {
    for first in (0..ends.len() - 1).step_by(2 * width) {
        let [begin, middle, end] = [ends[first], ends[first + width], ends[first + 2 * width]];
        let (a, b) = (from.slice(begin..middle), from.slice(middle..end));
        // SAFETY: the caller's promise is the same.
        unsafe { merge::merge_keys_async(stream, a, b, KeyMask::all(), to.slice_mut(begin..end))? };
    }
    Ok(())
}

/// Measures pairs. The values count up, so that they show the origin of a pair.
fn of_pairs<K: SortKey, V: Payload + PartialEq + TryFrom<usize>>(
    session: &mut Session,
    device: &Device,
    name: &str,
    a: &[K],
    b: &[K],
) -> anyhow::Result<()> {
    let values: Vec<V> = super::sort::counting(a.len() + b.len());
    let (a_values, b_values) = values.split_at(a.len());
    let mut expected: Vec<(K, V)> = a.iter().chain(b).copied().zip(values.iter().copied()).collect();
    expected.sort_by_key(|(key, _)| *key);
    let expected: (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let n = values.len();
    let mask = KeyMask::all();
    Case::new(session, device, "merge", name, n, 2 * n * (size_of::<K>() + size_of::<V>())).run(
        ((a, a_values), (b, b_values)),
        (blank::<K>(n), blank::<V>(n)),
        |stream, (a, b), (keys, out)| {
            let (a, b) = (Pairs::new(&a.0, &a.1), Pairs::new(&b.0, &b.1));
            // SAFETY: `run` keeps all of them as the merge asks.
            unsafe { merge::merge_pairs_async(stream, a, b, mask, keys, out) }
        },
        |out| *out == expected,
    )
}
