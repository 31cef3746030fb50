//! Build time by key size, after Rao's Figure 7: integers and strings, on the CPU and on devices.

use warpset::bloom::gpu::{Bloom, DeviceKeys, StringVec};
use warpset::bloom::{BloomFilter, Builder, Hashed, Key, RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout};
use warpset::gpu::Device;
use warpset_benches::keys::KeySpace;
use warpset_core::hash::xxh64;

use super::super::clock::Effort;
use super::super::gpu_limits;
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::super::table::pivot;
use super::device::Insert;
use super::generated::{INSERTED, SEED};
use super::variant::Variant;

/// Bytes a string.
const LENGTHS: [usize; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];
/// The most bytes that the strings of one length take on a device.
const MOST_BYTES: usize = 1 << 29;

/// One step for the CPU, one for each device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let title = "bloom: build time by key size (Rao's Figure 7)";
    let mut steps = Vec::new();
    if setup.cpu() {
        steps.push(Step::new(title, on_cpu));
    }
    for device in setup.devices() {
        let device = device.clone();
        steps.push(Step::new(format!("{title}, on a device"), move |session| on_device(session, &device)));
    }
    steps
}

/// A key's type and size.
#[derive(Clone, Copy)]
struct Kind {
    key: &'static str,
    bytes: usize,
    /// What is measured, for the legend.
    part: &'static str,
}

const U32: Kind = Kind { key: "u32", bytes: 4, part: "integers" };
const U64: Kind = Kind { key: "u64", bytes: 8, part: "integers" };

impl Kind {
    fn strings(bytes: usize) -> Kind {
        Kind { key: "string", bytes, part: "whole build" }
    }

    fn hashes(bytes: usize) -> Kind {
        Kind { part: "from hashes", ..Kind::strings(bytes) }
    }
}

fn push(session: &mut Session, target: &Target, variant: Variant, kind: Kind, n: usize, seconds: f64, right: bool) {
    let Kind { key, bytes, part } = kind;
    let mut row = Record::new("bloom", "build", n).time(seconds).param("variant", variant.name());
    row = row.param("study", "key size").param("key", key).param("key_bytes", bytes).param("part", part);
    row.checked = session.verify(right, || format!("{} lost keys: {key} of {bytes} bytes", variant.name()));
    session.push_on(target, row, Threads::One);
}

fn on_cpu(session: &mut Session) -> anyhow::Result<()> {
    let n = 1 << 16;
    let mut filters = Filters {
        split_block: SplitBlockBloom::builder(n as u64).fpr(0.01).build()?,
        rao: RaoBloom::builder(n as u64).fpr(0.01).choices(1).build()?,
        rao_of_two: RaoBloom::builder(n as u64).fpr(0.01).choices(2).build()?,
    };
    let stream = KeySpace::new(SEED).stream(INSERTED);
    filters.build(session, U32, &stream.u32_keys(n))?;
    filters.build(session, U64, &stream.u64_keys(n))?;
    for length in LENGTHS {
        let strings = stream.strings(n, length);
        let strings = strings.slices();
        let hashes: Vec<Hashed> = strings.iter().map(|string| Hashed(xxh64(*string, 0))).collect();
        filters.build(session, Kind::hashes(length), &hashes)?;
        filters.build(session, Kind::strings(length), &strings)?;
    }
    print(session, &Target::Cpu, "one CPU thread");
    Ok(())
}

/// The filters on the CPU.
struct Filters {
    split_block: SplitBlockBloom,
    rao: RaoBloom,
    rao_of_two: RaoBloom,
}

impl Filters {
    fn build<K: Key>(&mut self, session: &mut Session, kind: Kind, keys: &[K]) -> anyhow::Result<()> {
        build(session, Variant::SplitBlock, &mut self.split_block, kind, keys)?;
        build(session, Variant::Rao(1), &mut self.rao, kind, keys)?;
        build(session, Variant::Rao(2), &mut self.rao_of_two, kind, keys)
    }
}

/// One row of the CPU.
fn build<F: BloomFilter + Send, K: Key>(
    session: &mut Session,
    variant: Variant,
    filter: &mut F,
    kind: Kind,
    keys: &[K],
) -> anyhow::Result<()> {
    let clear = |filter: &mut F| Ok(filter.clear()?);
    let seconds = session.time_after(Threads::One, filter, clear, |filter| Ok(filter.insert_bulk(keys)?))?;
    let right = filter.count_contained_bulk(keys)? == keys.len();
    push(session, &Target::Cpu, variant, kind, keys.len(), seconds, right);
    Ok(())
}

fn on_device(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    let most = match (device.is_emulator(), session.effort) {
        (true, _) => 1 << 8,
        (_, Effort::Quick) => 1 << 18,
        _ => 1 << 20,
    };
    let split_block = *SplitBlockBloom::builder(most as u64).fpr(0.01).build()?.layout();
    let rao = *RaoBloom::builder(most as u64).fpr(0.01).choices(1).build()?.layout();
    let mut filters = DeviceFilters {
        device,
        split_block: Builder::with_layout(split_block).on(device).build()?,
        rao: Builder::with_layout(rao).on(device).build()?,
    };
    let stream = KeySpace::new(SEED).stream(INSERTED);
    filters.build(session, U32, device.from_slice(&stream.u32_keys(most))?.as_slice())?;
    filters.build(session, U64, device.from_slice(&stream.u64_keys(most))?.as_slice())?;
    for length in LENGTHS {
        let strings = stream.strings(most.min(MOST_BYTES / length), length);
        let strings = StringVec::from_slice(device, &strings.slices())?;
        filters.build(session, Kind::strings(length), strings.as_strings())?;
    }
    print(session, &Target::Gpu(device.clone()), "keys in device memory");
    Ok(())
}

/// The filters on a device. (Rao's with two choices takes its keys in 64 rounds, whatever they are.)
struct DeviceFilters<'a> {
    device: &'a Device,
    split_block: Bloom<SplitBlockLayout>,
    rao: Bloom<RaoLayout>,
}

impl DeviceFilters<'_> {
    fn build<K: DeviceKeys + Copy>(&mut self, session: &mut Session, kind: Kind, keys: K) -> anyhow::Result<()> {
        build_on(session, self.device, Variant::SplitBlock, &mut self.split_block, kind, keys)?;
        build_on(session, self.device, Variant::Rao(1), &mut self.rao, kind, keys)
    }
}

/// One row of a device.
fn build_on<L: Insert, K: DeviceKeys + Copy>(
    session: &mut Session,
    device: &Device,
    variant: Variant,
    filter: &mut Bloom<L>,
    kind: Kind,
    keys: K,
) -> anyhow::Result<()> {
    let stream = device.new_stream()?;
    let cell = std::cell::RefCell::new(filter);
    let clear = || {
        // SAFETY: the filter lives and is used by this stream alone until it has been waited for.
        unsafe { cell.borrow_mut().clear_async(&stream)? };
        Ok(())
    };
    let work = || L::insert(&mut cell.borrow_mut(), &stream, keys);
    let seconds = gpu_limits::seconds(device, &stream, session.effort, clear, work)?;
    let mut count = device.alloc_zeroed::<u64>(1)?;
    // SAFETY: the filter, the keys and the count live, and nobody else uses them, until the stream has been waited for in
    // the next line.
    unsafe { cell.borrow().count_contained_async(&stream, keys, count.as_mut_slice())? };
    stream.synchronize()?;
    let right = count.to_vec()?[0] == keys.count() as u64;
    push(session, &Target::Gpu(device.clone()), variant, kind, keys.count(), seconds, right);
    Ok(())
}

fn print(session: &mut Session, target: &Target, of: &str) {
    let rows: Vec<&Record> = session.study("key size").into_iter().filter(|row| row.backend == target.name()).collect();
    let title = format!("Build time in nanoseconds a key, by bytes a key, {of}");
    let line =
        |row: &Record| format!("{}, {}", row.text("variant").unwrap_or_default(), row.text("part").unwrap_or_default());
    let length = |row: &Record| format!("{:.0}", row.number("key_bytes").unwrap_or_default());
    let nanoseconds =
        |row: &Record| row.seconds.map_or_else(String::new, |seconds| format!("{:.3}", seconds / row.n as f64 * 1e9));
    let text = pivot(&title, &rows, line, length, nanoseconds);
    session.print(&text);
}

#[cfg(test)]
mod tests {
    use super::super::super::progress::Progress;
    use super::super::super::suite::Input;
    use super::*;

    #[test]
    fn every_key_size_is_built_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let setup = Setup {
            effort: Effort::Quick,
            targets: vec![Target::Gpu(device)],
            own_keys: false,
            log2_slots: None,
            shapes: Vec::new(),
        };
        let input = Input::default();
        let mut session = Session::new(Effort::Quick, "a processor".into(), Progress::new(0), input).unwrap();
        for step in steps(&setup) {
            session.run(step).unwrap();
        }
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(rows.len(), 2 * (2 + LENGTHS.len()));
        assert!(rows.iter().all(|row| row.checked && row.backend == "emulator"));
    }
}
