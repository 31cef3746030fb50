//! Build time by key size, after Rao's Figure 7: integers and strings, on the CPU and on devices.

use bench_frame::input::keys::KeySpace;
use warpset::bloom::gpu::{Bloom, DeviceKeys, StringVec};
use warpset::bloom::{Hashed, Insert, Key, RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout};
use warpset::gpu::Device;
use warpset::prelude::DeviceFilter;
use warpset_core::hash::xxh64;

use super::device::Queued;
use super::variant::Variant;
use super::{INSERTED, SEED};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Bytes per string.
pub const LENGTHS: [usize; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];
/// The most bytes that the strings of one length take on a device.
const MOST_BYTES: usize = 1 << 29;

/// Makes one step for the CPU, one for each device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let title = "bloom: build time by key size (Rao's Figure 7)";
    let mut steps = Vec::new();
    if setup.cpu() {
        steps.push(Step::new(title, on_cpu).except_quick());
    }
    for device in setup.devices() {
        let device = device.clone();
        let step = Step::new(format!("{title}, on a device"), move |session| on_device(session, &device));
        steps.push(step.except_quick());
    }
    steps
}

/// A key's type and size.
#[derive(Clone, Copy)]
struct Kind {
    key: &'static str,
    bytes: usize,
    /// Measured part, for the legend.
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
    let row = Record::new("bloom", "build", n).time(seconds).by(variant.name(), false);
    let row = row.param("study", "key size").param("key", key).param("key_bytes", bytes).param("part", part);
    session.add(target, Threads::One, row, right);
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

/// Adds one row of the CPU.
fn build<F: Insert + Send, K: Key>(
    session: &mut Session,
    variant: Variant,
    filter: &mut F,
    kind: Kind,
    keys: &[K],
) -> anyhow::Result<()> {
    let clear = |filter: &mut F| Ok(filter.clear()?);
    let seconds =
        session.time_after(Threads::One, filter, clear, |filter| Ok(filter.insert_bulk(keys).map(|_| ())?))?;
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
    let mut filters = DeviceFilters {
        device,
        split_block: SplitBlockBloom::builder(most as u64).fpr(0.01).on(device).build()?,
        rao: RaoBloom::builder(most as u64).fpr(0.01).choices(1).on(device).build()?,
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

/// Filters on a device. (Rao's with two choices inserts its keys in 64 rounds, of whatever size.)
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

/// Adds one row of a device.
fn build_on<L: Queued, K: DeviceKeys + Copy>(
    session: &mut Session,
    device: &Device,
    variant: Variant,
    filter: &mut Bloom<L>,
    kind: Kind,
    keys: K,
) -> anyhow::Result<()> {
    let stream = device.new_stream()?;
    let cell = std::cell::RefCell::new(&mut *filter);
    let clear = || {
        // SAFETY: the filter stays alive, and only this stream uses it until it has been waited for.
        unsafe { cell.borrow_mut().clear_async(&stream)? };
        Ok(())
    };
    // SAFETY: as above; so do the keys.
    let work = || unsafe { L::insert(&mut cell.borrow_mut(), &stream, keys) };
    let seconds = gpu_limits::seconds(device, &stream, session.effort, clear, work)?;
    stream.synchronize()?;
    let right = filter.count_contained_device(keys)? == keys.count();
    push(session, &Target::Gpu(device.clone()), variant, kind, keys.count(), seconds, right);
    Ok(())
}

fn print(session: &Session, target: &Target, of: &str) {
    let title = format!("Build time in nanoseconds per key, by bytes per key, {of}");
    let length = |row: &Record| {
        format!("{:.0}, {}", row.number("key_bytes").unwrap_or_default(), row.text("part").unwrap_or_default())
    };
    let cell =
        |row: &Record| row.seconds.map_or_else(String::new, |seconds| format!("{:.3}", seconds / row.n as f64 * 1e9));
    session.show("key size", &title, |row| row.backend == target.name(), length, cell);
}
