//! More than 2^31 keys, more than 2^32 blocks, and Rao's filter.

use std::cell::RefCell;

use warpset_bloom::gpu::{self, Grouping};
use warpset_bloom::{Layout, RaoBloom};

use crate::bench::{Bench, head, row};
use crate::{Outcome, blocked, lookups, rates, split_block};

/// Counts over more than 2^31 keys, and a filter of more than 2^32 blocks.
pub fn sizes(bench: &Bench) -> Outcome<()> {
    head();
    more_keys(bench, (1 << 31) + 4097)?;
    let layout = blocked(40 << 30, 64, 64, 4)?;
    rates(bench, "64x64x4", layout, 1 << 28, None, &[Grouping::Never, Grouping::Bits(11)])?;
    for bytes in [8 << 20, 1 << 30] {
        for choices in [1, 2] {
            rao(bench, bytes, choices)?;
        }
    }
    Ok(())
}

/// Counts which of the `u32` keys below `n` are in a filter of the first and of the last ones.
fn more_keys(bench: &Bench, n: usize) -> Outcome<()> {
    const PIECE: usize = 1 << 26;
    let (first, last) = (1 << 24, 4097);
    let mut keys = bench.device.alloc_uninit::<u32>(n)?;
    let mut piece = Vec::new();
    for start in (0..n).step_by(PIECE) {
        piece.clear();
        piece.extend(start as u32..n.min(start + PIECE) as u32);
        bench.stream.upload(keys.slice_mut(start..start + piece.len()), &piece)?;
    }
    let mut filter = gpu::Bloom::with_layout(&bench.device, split_block(32 << 20)?)?;
    for range in [0..first, n - last..n] {
        // SAFETY: filter and keys live until the stream has been waited for, and nobody else uses them.
        unsafe { filter.insert_bulk_async(&bench.stream, keys.slice(range))? };
    }
    let mut count = bench.device.alloc_zeroed::<u64>(1)?;
    let ms = bench.time(
        |_| Ok(()),
        |s| {
            // SAFETY: as above.
            unsafe { filter.count_contained_async(s, keys.as_slice(), count.as_mut_slice())? };
            Ok(())
        },
    )?;
    let yes = bench.count(&filter, keys.as_slice())?;
    let mut parts = 0;
    for start in (0..n).step_by(1 << 30) {
        parts += bench.count(&filter, keys.slice(start..n.min(start + (1 << 30))))?;
    }
    let tail = bench.count(&filter, keys.slice(n - last..))?;
    let inserted = first + last;
    let exact =
        bench.check(yes == parts && tail == last as u64, format!("{yes} in all, {parts} in parts, last {tail}"));
    let rate =
        bench.check_rate(yes.saturating_sub(inserted as u64), n - inserted, filter.expected_fpr(inserted as u64));
    row("contains, count of u32 keys", "split-block 32 MiB", n, ms, None, &format!("{exact}; {rate}"));
    Ok(())
}

/// Rao's filter: the whole build (it waits, so that its time is the host's), and lookups.
fn rao(bench: &Bench, bytes: u64, choices: u32) -> Outcome<()> {
    let n = bytes / 2;
    let layout = RaoBloom::builder(n).bits_per_key(16.0).choices(choices).layout()?;
    let size = format!("Rao, {choices} of {} MiB", layout.words() >> 18);
    let keys = bench.keys(n as usize, 1)?;
    let filter = RefCell::new(gpu::Bloom::with_layout(&bench.device, layout)?);
    let ms = bench
        .wall(|| Ok(filter.borrow_mut().clear()?), || Ok(filter.borrow_mut().insert_device_slice(keys.as_slice())?))?;
    let filter = filter.into_inner();
    let shape = layout.shape();
    let note = format!("{} buckets of {} words, k {}", layout.blocks(), shape.bucket_words, shape.hashes);
    row("build", &size, n as usize, ms, None, &note);
    lookups(bench, &size, &filter, &keys, None)
}
