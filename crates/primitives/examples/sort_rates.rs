//! Rates of the sorts on a CUDA device, each result checked: `cargo run --release -p warpset-primitives --features cuda
//! --example sort_rates`. An argument restricts it to `sort` or `segmented`.

use warpset_core::hash::mix;
use warpset_gpu::{Device, DeviceVec, Event, Stream};
use warpset_primitives::sort::{self, By, Key, Payload};
use warpset_primitives::{cpu, segmented_sort};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Bench {
    device: Device,
    stream: Stream,
    start: Event,
    end: Event,
}

impl Bench {
    /// Median milliseconds on the device, of 9 runs after 3.
    fn time(&self, mut run: impl FnMut(&Stream) -> Outcome<()>) -> Outcome<f64> {
        let mut times = Vec::new();
        for repeat in 0..12 {
            self.stream.synchronize()?;
            self.stream.record(&self.start)?;
            run(&self.stream)?;
            self.stream.record(&self.end)?;
            self.stream.synchronize()?;
            if repeat >= 3 {
                times.push(f64::from(self.end.elapsed_ms(&self.start)?));
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

fn row(what: &str, n: usize, ms: f64, bytes: usize, ok: bool) {
    let (rate, bandwidth) = (n as f64 / ms / 1e6, bytes as f64 * n as f64 / ms / 1e6);
    println!(
        "{what:<44} {n:>11} {ms:>9.4} ms {rate:>8.2} G/s {bandwidth:>6.0} GB/s {}",
        if ok { "ok" } else { "WRONG" }
    );
    assert!(ok, "{what}");
}

/// Checks order, stability, and that each payload, a place in the input, still has its key.
fn in_order<K: Key, V: Payload>(input: &[K], keys: &[K], places: &[V], place: impl Fn(V) -> usize) -> bool {
    let moved = keys.iter().zip(places).all(|(&key, &at)| input[place(at)] == key);
    let stable =
        |i: usize| keys[i] < keys[i + 1] || (keys[i] == keys[i + 1] && place(places[i]) < place(places[i + 1]));
    moved && (0..keys.len().saturating_sub(1)).all(stable)
}

fn keys<K: Key>(bench: &Bench, n: usize, key: impl Fn(u64) -> K, by: &By, what: &str) -> Outcome<()> {
    let input: Vec<K> = (0..n as u64).map(|i| key(mix(i, 1))).collect();
    let on_device = bench.device.from_slice(&input)?;
    let mut out: DeviceVec<K> = bench.device.alloc_uninit(n)?;
    // SAFETY: both live until the stream has been waited for.
    let ms = bench.time(|s| unsafe { Ok(sort::sort_keys(s, on_device.as_slice(), &mut out, by.clone())?) })?;
    let ok = n > 1 << 25 || {
        let mut expected = input;
        cpu::sort::sort_keys_in_place(&mut expected, by.clone())?;
        out.to_vec()? == expected
    };
    row(what, n, ms, 0, ok);
    Ok(())
}

fn pairs<K: Key, V: Payload>(
    bench: &Bench,
    n: usize,
    key: impl Fn(u64) -> K,
    value: impl Fn(usize) -> V,
    place: impl Fn(V) -> usize,
    what: &str,
) -> Outcome<()> {
    let input: Vec<K> = (0..n as u64).map(|i| key(mix(i, 1))).collect();
    let places: Vec<V> = (0..n).map(value).collect();
    let (dk, dv) = (bench.device.from_slice(&input)?, bench.device.from_slice(&places)?);
    let (mut ok, mut ov) = (bench.device.alloc_uninit::<K>(n)?, bench.device.alloc_uninit::<V>(n)?);
    let (k, v) = (dk.as_slice(), dv.as_slice());
    // SAFETY: all live until the stream has been waited for.
    let ms = bench.time(|s| unsafe { Ok(sort::sort_pairs(s, k, v, &mut ok, &mut ov, By::ascending())?) })?;
    let good = n > 1 << 25 || in_order(&input, &ok.to_vec()?, &ov.to_vec()?, place);
    row(what, n, ms, 0, good);
    Ok(())
}

fn segments(bench: &Bench, n: usize, mean: usize, fixed: bool) -> Outcome<()> {
    let mut offsets = vec![0u64];
    let mut i = 0;
    while *offsets.last().unwrap() < n as u64 {
        let len = if fixed { mean as u64 } else { mix(i, 5) % (2 * mean as u64 + 1) };
        offsets.push((offsets.last().unwrap() + len).min(n as u64));
        i += 1;
    }
    let input: Vec<u32> = (0..n as u64).map(|i| mix(i, 1) as u32).collect();
    let places: Vec<u32> = (0..n as u32).collect();
    let (dk, dv) = (bench.device.from_slice(&input)?, bench.device.from_slice(&places)?);
    let bounds = bench.device.from_slice(&offsets)?;
    let (mut ok, mut ov) = (bench.device.alloc_uninit(n)?, bench.device.alloc_uninit(n)?);
    let (k, v, o) = (dk.as_slice(), dv.as_slice(), bounds.as_slice());
    let by = By::ascending();
    // SAFETY: all live until the stream has been waited for; offsets ascend to `n`.
    let pairs = |s: &Stream| unsafe { Ok(segmented_sort::sort_pairs(s, k, v, o, &mut ok, &mut ov, by.clone())?) };
    let ms = bench.time(pairs)?;
    let (found, found_places) = (ok.to_vec()?, ov.to_vec()?);
    let good = offsets.windows(2).step_by(offsets.len() / 5000 + 1).all(|w| {
        let (from, to) = (w[0] as usize, w[1] as usize);
        in_order(&input, &found[from..to], &found_places[from..to], |at| at as usize)
            && found_places[from..to].iter().all(|&at| (from..to).contains(&(at as usize)))
    });
    let lengths = if fixed { format!("all {mean}") } else { format!("0..={}", 2 * mean) };
    row(&format!("segments, u32 + u32, lengths {lengths}"), n, ms, 16, good);
    // SAFETY: as above.
    let ms = bench.time(|s| unsafe { Ok(segmented_sort::sort_keys(s, k, o, &mut ok, by.clone())?) })?;
    row(&format!("segments, u32, lengths {lengths}"), n, ms, 8, ok.to_vec()? == found);
    Ok(())
}

fn main() -> Outcome<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let (start, end) = (device.new_event()?, device.new_event()?);
    let bench = &Bench { device, stream, start, end };
    let only = std::env::args().nth(1).unwrap_or_default();
    if only != "segmented" {
        let all = By::ascending();
        for n in [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 27] {
            keys(bench, n, |x| x as u32, &all, "u32")?;
            keys(bench, n, |x| x, &all, "u64")?;
            pairs(bench, n, |x| x as u32, |i| i as u32, |at| at as usize, "u32 + u32")?;
            pairs(bench, n, |x| x as u32, |i| i as u64, |at| at as usize, "u32 + u64")?;
            pairs(bench, n, |x| x, |i| i as u32, |at| at as usize, "u64 + u32")?;
            pairs(bench, n, |x| x, |i| i as u64, |at| at as usize, "u64 + u64")?;
        }
        keys(bench, 1 << 27, |x| x as u32, &By::ascending().bits(4..32), "u32, 28 bits")?;
        keys(bench, 1 << 27, |x| x as u32 & 0xffff, &all, "u32, the high half zero")?;
        keys(bench, 1 << 27, |x| x as u32 & x.rotate_left(20) as u32, &all, "u32, biased bits")?;
        keys(bench, (1 << 30) + 12345, |x| x as u32, &all, "u32, two launches a pass")?;
    }
    if only != "sort" {
        for mean in [1, 4, 16, 32, 50, 64, 128, 256, 512, 1024, 2048, 4096, 4097, 5000, 8192, 16384, 65536, 1 << 20] {
            segments(bench, 1 << 24, mean, true)?;
        }
        for mean in [4, 16, 64, 256, 1024, 4096, 20_000] {
            segments(bench, 1 << 24, mean, false)?;
        }
        segments(bench, 1 << 24, 1 << 24, true)?;
    }
    Ok(())
}
