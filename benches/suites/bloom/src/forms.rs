//! Forms of answers on a device, and when grouping the keys first pays for an insertion.

use warpset::bloom::gpu::{Bloom, Grouping};
use warpset::gpu::{Device, Stream};
use warpset::prelude::DeviceFilter;

use super::device::{OnDevice, Queued};
use super::variant::{self, Variant};
use super::{ABSENT, INSERTED, plausible};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step};

/// Makes the steps of one device.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match (device.is_emulator(), effort) {
        (true, _) => &[1 << 12],
        (_, Effort::Quick) => &[1 << 25],
        _ => &[1 << 25, 1 << 30],
    };
    let mut steps = Vec::new();
    let (here, there) = (device.clone(), device.clone());
    steps.push(Step::new("bloom: forms of answers on a device", move |session| {
        sizes.iter().try_for_each(|&bytes| answers(session, &here, bytes))
    }));
    if !device.is_emulator() {
        let step = Step::new("bloom: grouped insertion", move |session| groupings(session, &there));
        steps.push(step.except_quick());
    }
    steps
}

/// Measures lookups of keys, half of them in the filter: answers as a bitmap, a count, and the keys themselves.
fn answers(session: &mut Session, device: &Device, bytes: usize) -> anyhow::Result<()> {
    let mut subject = OnDevice::new(device, Variant::SplitBlock, variant::split_block(bytes)?, None)?;
    let n = subject.n.min(1 << 25);
    let (keys, absent) = (subject.keys(INSERTED, n)?, subject.keys(ABSENT, n / 2)?);
    let mut mixed = device.alloc_uninit::<u64>(n)?;
    subject.stream.copy(mixed.slice_mut(..n - n / 2), keys.slice(..n - n / 2))?;
    subject.stream.copy(mixed.slice_mut(n - n / 2..), absent.as_slice())?;
    subject.stream.synchronize()?;
    subject.filter.insert_device(keys.as_slice())?;
    let wanted = n - n / 2;
    let expected = subject.filter.expected_fpr(n as u64) * (n / 2) as f64;
    let right = |found: usize| found >= wanted && plausible(found - wanted, expected);
    let effort = session.effort;

    let mut bits = device.alloc_uninit::<u64>(n.div_ceil(64))?;
    let seconds = subject.seconds(effort, false, |filter, stream| {
        // SAFETY: keys and answers live to the end, and nothing else touches them; `seconds` says the rest.
        unsafe { filter.contains_bitmap_async(stream, mixed.as_slice(), bits.as_mut_slice())? };
        Ok(())
    })?;
    let found = bits.to_vec()?.iter().map(|word| word.count_ones() as usize).sum();
    subject.push(session, subject.row("contains bitmap", n, seconds), None, right(found));

    let mut count = device.alloc_zeroed::<u64>(1)?;
    let seconds = subject.seconds(effort, false, |filter, stream| {
        // SAFETY: as above.
        unsafe { filter.count_contained_async(stream, mixed.as_slice(), count.as_mut_slice())? };
        Ok(())
    })?;
    // Each repeat adds to the count.
    let (counted, once) = (count.to_vec()?[0] as usize, subject.count(&mixed)?);
    let same = counted > 0 && counted.is_multiple_of(once);
    subject.push(session, subject.row("contains count", n, seconds), None, same && right(once));

    let mut kept = device.alloc_uninit::<u64>(n)?;
    let seconds = subject.seconds(effort, false, |filter, stream| {
        let (kept, count) = (kept.as_mut_slice(), count.as_mut_slice());
        // SAFETY: as above.
        unsafe { filter.retain_contained_async(stream, mixed.as_slice(), kept, count)? };
        Ok(())
    })?;
    let found = count.to_vec()?[0] as usize;
    let in_order = kept.slice(..wanted).to_vec()? == keys.slice(..wanted).to_vec()?;
    subject.push(session, subject.row("retain contained", n, seconds), None, in_order && right(found));
    Ok(())
}

/// Measures insertions into 1 GiB, directly, grouped into several numbers of parts, and by batch size. All must give
/// the same bits.
fn groupings(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    const BYTES: usize = 1 << 30;
    let batches: &[u32] = if session.effort == Effort::Full { &[20, 22, 23, 24, 26, 29] } else { &[22, 26] };
    for &log in batches {
        let layout = variant::split_block(BYTES)?;
        insert_by(session, device, Variant::SplitBlock, layout, 1 << log, &[Grouping::Never, Grouping::Bits(6)])?;
    }
    let all = [Grouping::Never, Grouping::Auto].into_iter().chain((4..=8).map(Grouping::Bits)).collect::<Vec<_>>();
    for (block, word, hashes) in [(512, 64, 8), (64, 64, 4)] {
        let layout = variant::blocked(BYTES, block, word, hashes)?;
        insert_by(session, device, Variant::Blocked(block, word, hashes), layout, 1 << 29, &all)?;
    }
    Ok(())
}

fn insert_by<L: Queued>(
    session: &mut Session,
    device: &Device,
    variant: Variant,
    layout: L,
    n: usize,
    groupings: &[Grouping],
) -> anyhow::Result<()> {
    let mut subject = OnDevice::new(device, variant, layout, Some("grouping"))?;
    let keys = subject.keys(INSERTED, n)?;
    let mut ones = None;
    for &grouping in groupings {
        subject.filter.set_grouping(grouping);
        let name = match grouping {
            Grouping::Never => "direct".into(),
            Grouping::Auto => "automatic".into(),
            Grouping::Bits(bits) => format!("2^{bits} groups"),
        };
        // SAFETY: the keys live to the end, and nothing else touches them; `seconds` says the rest.
        let work = |filter: &mut Bloom<L>, stream: &Stream| unsafe { L::insert(filter, stream, keys.as_slice()) };
        let seconds = subject.seconds(session.effort, true, work)?;
        let mine = subject.filter.count_ones()?;
        let right = *ones.get_or_insert(mine) == mine && subject.count(&keys)? == n;
        subject.push(session, subject.row("insert", n, seconds).param("grouping", name), None, right);
    }
    Ok(())
}
