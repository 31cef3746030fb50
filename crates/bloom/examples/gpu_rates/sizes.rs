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
    raos_filters(bench)
}

/// Rao's filter in the L2 cache and beyond, with one choice and with two.
pub fn raos_filters(bench: &Bench) -> Outcome<()> {
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

/// Rao's filter: builds that wait (their time is the host's) and that do not, test-and-insert, and lookups.
fn rao(bench: &Bench, bytes: u64, choices: u32) -> Outcome<()> {
    let n = bytes as usize / 2;
    let layout = RaoBloom::builder(n as u64).bits_per_key(16.0).choices(choices).layout()?;
    let size = format!("Rao, {choices} of {} MiB", layout.words() >> 18);
    let keys = bench.keys(n, 1)?;
    let filter = RefCell::new(gpu::Bloom::with_layout(&bench.device, layout)?);
    let clear = || Ok(filter.borrow_mut().clear()?);
    let ms = bench.wall(clear, || Ok(filter.borrow_mut().insert_device_slice(keys.as_slice())?))?;
    let shape = layout.shape();
    let note = format!("{} buckets of {} words, k {}", layout.blocks(), shape.bucket_words, shape.hashes);
    row("build, waiting", &size, n, ms, None, &note);
    let ones = filter.borrow().count_ones()?;
    let queued = RefCell::new(Vec::new());
    let ms = bench.time(
        |_| clear(),
        |stream| {
            // SAFETY: filter and keys live until the stream has been waited for, and nobody else uses them.
            queued.borrow_mut().push(unsafe { filter.borrow_mut().insert_bulk_async(stream, keys.as_slice())? });
            Ok(())
        },
    )?;
    let fits = queued.take().into_iter().all(|insertion| insertion.finish().is_ok());
    let same = filter.borrow().count_ones()? == ones;
    row("build, on a stream", &size, n, ms, None, &bench.check(fits && same, "same bits"));

    let asked = n.min(1 << 25);
    let mut bits = bench.device.alloc_uninit::<u64>(asked.div_ceil(64))?;
    let mut new = |what: &str, empty: bool| -> Outcome<()> {
        let ms = bench.time(
            |_| if empty { clear() } else { Ok(()) },
            |stream| {
                let (keys, bits) = (keys.slice(..asked), bits.as_mut_slice());
                // SAFETY: as above; the answers too.
                let insertion = unsafe { filter.borrow_mut().test_and_insert_bitmap_async(stream, keys, bits)? };
                queued.borrow_mut().push(insertion);
                Ok(())
            },
        )?;
        let fits = queued.take().into_iter().all(|insertion| insertion.finish().is_ok());
        let new = bits.to_vec()?.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        // Where half of the keys are in, one in 2^k of the others seems to be.
        let ok = if empty { new <= asked && new as f64 > 0.999 * asked as f64 } else { new == 0 };
        row(what, &size, asked, ms, None, &bench.check(fits && ok, format!("{new} new")));
        Ok(())
    };
    new("test and insert, none new", false)?;
    new("test and insert, all new", true)?;
    clear()?;
    filter.borrow_mut().insert_device_slice(keys.as_slice())?;
    lookups(bench, &size, &filter.into_inner(), &keys, None)
}
