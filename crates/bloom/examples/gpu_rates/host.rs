//! Keys in ordinary memory of the host.

use std::cell::RefCell;

use warpset_bloom::gpu;

use crate::bench::{Bench, Bound, head, row};
use crate::{Outcome, split_block};

/// Keys in ordinary memory: insertion and lookup end to end, beside bare copies of the same bytes.
pub fn host(bench: &Bench, n: usize) -> Outcome<()> {
    let on_device = bench.keys(n, 1)?;
    let (keys, absent) = (on_device.to_vec()?, bench.keys(n, 2)?.to_vec()?);
    let mut target = on_device;
    let mut pinned = bench.device.pinned::<u64>(n)?;
    pinned.copy_from_slice(&keys);
    println!("{} threads on the host", std::thread::available_parallelism()?);
    head();
    let gigabytes = |ms: f64| format!("{:.1} GB/s of keys", 8.0 * n as f64 / ms / 1e6);
    let bare = bench.time(
        |_| Ok(()),
        |s| {
            // SAFETY: the stream is waited for before either buffer is touched again.
            unsafe { s.upload_async(target.as_mut_slice(), &pinned)? };
            Ok(())
        },
    )?;
    row("upload, pinned", "bare", n, bare, None, &gigabytes(bare));
    let bound = Some(Bound { name: "pinned upload", rate: n as f64 / bare / 1e6 });
    let stream = &bench.stream;
    let ms = bench.wall(|| Ok(()), || Ok(stream.upload(target.as_mut_slice(), &keys)?))?;
    row("upload, ordinary memory", "bare", n, ms, bound, &gigabytes(ms));
    let ms = bench.wall(
        || Ok(()),
        || {
            pinned.copy_from_slice(&keys);
            Ok(())
        },
    )?;
    row("copy to pinned memory, 1 thread", "bare", n, ms, bound, &gigabytes(ms));
    for bytes in [32 << 20, 1 << 30] {
        let layout = split_block(bytes)?;
        let size = format!("split-block {} MiB", bytes >> 20);
        let filter = RefCell::new(gpu::Bloom::with_layout(&bench.device, layout)?);
        // A part of the keys, so that the small filter is not overfull.
        let part = (bytes / 2).min(n);
        let mut reference = gpu::Bloom::with_layout(&bench.device, layout)?;
        bench.stream.upload(target.as_mut_slice(), &keys)?;
        // SAFETY: filter and keys live until the stream has been waited for, and nobody else uses them.
        unsafe { reference.insert_bulk_async(&bench.stream, target.slice(..part))? };
        bench.stream.synchronize()?;
        let ms =
            bench.wall(|| Ok(filter.borrow_mut().clear()?), || Ok(filter.borrow_mut().insert_bulk(&keys[..part])?))?;
        let filter = filter.into_inner();
        let same = filter.words().to_vec()? == reference.words().to_vec()?;
        let rate = format!("{:.1} GB/s of keys", 8.0 * part as f64 / ms / 1e6);
        let note = bench.check(same, if same { "bits of a device slice" } else { "other bits" });
        row("insert, host slice", &size, part, ms, bound, &format!("{rate}; {note}"));
        let mut bits = None;
        let ms = bench.wall(
            || Ok(()),
            || {
                bits = Some(filter.contains_bitmap(&keys)?);
                Ok(())
            },
        )?;
        let found = bits.iter().flat_map(|bits| bits.iter().take(part)).filter(|&yes| yes).count();
        let note = bench.check(found == part, format!("{found} of {part} found"));
        row("contains, host slice, bits", &size, n, ms, bound, &format!("{}; {note}", gigabytes(ms)));
        let mut answers = vec![0u8; n];
        let ms = bench.wall(|| Ok(()), || Ok(filter.contains_bytes_into(&absent, &mut answers)?))?;
        let yes = answers.iter().map(|&yes| u64::from(yes)).sum();
        let note = bench.check_rate(yes, n, filter.expected_fpr(part as u64));
        row("contains, host slice, bytes", &size, n, ms, bound, &format!("{}; {note}", gigabytes(ms)));
    }
    Ok(())
}
