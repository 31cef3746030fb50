//! Search of one needle per key, in random order and sorted.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::Device;
use warpset::primitives::sort::SortKey;
use warpset::primitives::{KeyMask, search};

use super::case::{Case, blank};
use super::{MOST_WIDEST, narrow, steps_of, widest};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "search", |session, device, n| {
        // Half of the items are keys, half are needles.
        let keys = |stream| KeySpace::new(0x5ea).stream(stream).u64_keys(n / 2);
        let (mut haystack, needles) = (keys(0), keys(1));
        haystack.sort_unstable();
        of_keys(session, device, "u32", &narrow(&haystack), &narrow(&needles))?;
        of_keys(session, device, "u64", &haystack, &needles)?;
        if session.effort == Effort::Quick {
            return Ok(());
        }
        let most = haystack.len().min(MOST_WIDEST / 2);
        of_keys(session, device, "u128", &widest(&haystack[..most]), &widest(&needles[..most]))
    })
}

fn of_keys<K: SortKey>(
    session: &mut Session,
    device: &Device,
    name: &str,
    keys: &[K],
    needles: &[K],
) -> anyhow::Result<()> {
    let mask = KeyMask::all();
    let mut ordered = needles.to_vec();
    ordered.sort_unstable();
    for (operation, needles, sorted) in
        [("lower bound", needles, false), ("lower bound, sorted needles", &ordered[..], true)]
    {
        let expected: Vec<u64> = needles.iter().map(|needle| keys.partition_point(|key| key < needle) as u64).collect();
        let bytes = size_of_val(keys) + size_of_val(needles) + 8 * needles.len();
        Case::new(session, device, operation, name, needles.len(), bytes).param("keys", keys.len()).run(
            (keys, needles),
            blank::<u64>(needles.len()),
            |stream, (keys, needles), out| {
                let (keys, needles) = (keys.as_slice(), needles.as_slice());
                // SAFETY: `run` keeps all of them as the search asks.
                unsafe {
                    match sorted {
                        false => search::lower_bound_async(stream, keys, needles, mask, out),
                        true => search::lower_bound_sorted_async(stream, keys, needles, mask, out),
                    }
                }
            },
            |out| *out == expected,
        )?;
    }
    Ok(())
}
