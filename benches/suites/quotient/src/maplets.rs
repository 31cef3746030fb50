//! Maplets on a device: builds, lookups and upserts of values of eight bits.

use bench_frame::gpu_limits;
use bench_frame::suite::Session;
use warpset::gpu::Device;
use warpset::quotient::{Builder, RankSelect, Sum};

use super::device::{making, push, upload};
use super::{INSERTED, MAX_LOAD, Point, Size};

/// Bits of a value.
const VALUE_BITS: u32 = 8;

/// Measures builds, lookups, and upserts of all keys into an empty and into a filled maplet.
pub fn all(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    let Size { quotient_bits, remainder_bits } = size;
    let builder = Builder::<RankSelect>::with_bits(quotient_bits, remainder_bits).max_load(MAX_LOAD).values(VALUE_BITS);
    for &load in loads {
        let n = size.keys(load);
        let keys = upload(device, INSERTED, n)?;
        let values: Vec<u64> = (0..n as u64).map(|i| i % (1 << VALUE_BITS)).collect();
        let values = device.from_slice(&values)?;
        let (keys, values) = (keys.as_slice(), values.as_slice());
        let (build, maplet) = making(session, device, || Ok(builder.on(device).build_from_device(keys, values)?))?;

        let stream = device.new_stream()?;
        let mut found = device.alloc_uninit::<u64>(n)?;
        let get = gpu_limits::repeated(device, &stream, session.effort, || {
            // SAFETY: maplet, keys and values stay alive, and no other work touches them, until the stream has been
            // waited for.
            unsafe { maplet.get_async(&stream, keys, found.as_mut_slice())? };
            Ok(())
        })?;
        stream.synchronize()?;
        let all_found = found.to_vec()?.iter().all(|&value| value < 1 << VALUE_BITS);

        let (into_empty, mut summed) = making(session, device, || {
            let mut empty = builder.on(device).build()?;
            empty.upsert_device::<Sum<u64>, _>(keys, values)?;
            Ok(empty)
        })?;
        let (upsert, new) = making(session, device, || Ok(summed.upsert_device::<Sum<u64>, _>(keys, values)?))?;
        let point = Point { study: "maplets", size, load };
        for (operation, seconds, right) in [
            ("build", build, all_found),
            ("get", get, all_found),
            ("upsert into an empty maplet", into_empty, summed.len() <= maplet.len()),
            ("upsert of stored keys", upsert, new == 0),
        ] {
            let mut row = point.row(operation, n, seconds).by("maplet, 8 bits", false);
            row.bits_per_item = Some(8.0 * maplet.memory_bytes() as f64 / n as f64);
            push(session, device, row, right);
        }
    }
    Ok(())
}
