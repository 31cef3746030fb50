//! The filters on a GPU (or, for small sizes, on the emulator): keys and answers stay in device memory, times are the
//! device's own; then host slices, with the copies.

use warpset::bloom::gpu::{Bloom, DeviceKeys, DeviceLayout};
use warpset::bloom::{BlockedLayout, BloomFilter, Builder, RaoLayout, SplitBlockLayout, cpu};
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_benches::keys::KeySpace;
use warpset_kernels::limits;
use warpset_simt::LaunchConfig;

use super::super::clock::Effort;
use super::super::gpu_limits::{self, GpuAccess};
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::super::table;
use super::generated::{ABSENT, BITS_PER_KEY, INSERTED, SEED};
use super::screen::plausible;
use super::variant::{self, Variant};

/// The largest filter whose bytes are compared with those of the CPU.
const COMPARED: usize = 1 << 26;

/// Filter sizes: in the L2 cache, beyond it; the emulator gets sizes for a test.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match (device.is_emulator(), effort) {
        (true, _) => &[1 << 12],
        (_, Effort::Quick) => &[1 << 23, 1 << 25, 1 << 28],
        (_, Effort::Standard) => &[1 << 20, 1 << 23, 1 << 25, 1 << 27, 1 << 28, 1 << 30],
        (_, Effort::Full) => &[1 << 20, 1 << 23, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 30, 1 << 32],
    }
}

/// One step a filter size and variant for each device, and one for host slices.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let name = if device.is_emulator() { "emulator" } else { "GPU" };
        for &bytes in sizes(device, setup.effort) {
            for variant in Variant::for_devices(setup.effort) {
                let title = format!("bloom: {} on the {name}, {}", variant.name(), table::bytes(bytes as f64));
                let device = device.clone();
                steps.push(Step::new(title, move |session| match variant {
                    Variant::SplitBlock => measure(session, &device, variant, variant::split_block(bytes)?),
                    Variant::Blocked(block, word, hashes) => {
                        measure(session, &device, variant, variant::blocked(bytes, block, word, hashes)?)
                    }
                    Variant::Rao(choices) => measure(session, &device, variant, variant::rao_of_size(bytes, choices)?),
                }));
            }
        }
        if !device.is_emulator() {
            let device = device.clone();
            steps.push(Step::new("bloom: host slices, CPU and GPU", move |session| break_even(session, &device)));
        }
    }
    steps
}

/// Insertions of keys in device memory, queued. (That Rao's filter did not overflow shows in the keys that it holds.)
pub trait Insert: DeviceLayout + Copy + PartialEq {
    /// Inserts `keys`; the stream is waited for before anybody else touches the filter or the keys.
    fn insert<K: DeviceKeys>(filter: &mut Bloom<Self>, stream: &Stream, keys: K) -> anyhow::Result<()>;

    /// Inserts `keys` and says which were new; likewise for the answers.
    fn test_and_insert(
        filter: &mut Bloom<Self>,
        stream: &Stream,
        keys: DeviceSlice<'_, u64>,
        new: DeviceSliceMut<'_, u8>,
    ) -> anyhow::Result<()>;
}

macro_rules! insert_by_queueing {
    ($($layout:ty),*) => {$(
        impl Insert for $layout {
            fn insert<K: DeviceKeys>(filter: &mut Bloom<Self>, stream: &Stream, keys: K) -> anyhow::Result<()> {
                // SAFETY: as the trait says, the stream is waited for before anybody else touches either.
                let _ = unsafe { filter.insert_async(stream, keys)? };
                Ok(())
            }

            fn test_and_insert(
                filter: &mut Bloom<Self>,
                stream: &Stream,
                keys: DeviceSlice<'_, u64>,
                new: DeviceSliceMut<'_, u8>,
            ) -> anyhow::Result<()> {
                // SAFETY: as above; the answers are lent to this call alone and read after waiting.
                let _ = unsafe { filter.test_and_insert_async(stream, keys, new)? };
                Ok(())
            }
        }
    )*};
}
insert_by_queueing!(SplitBlockLayout, BlockedLayout, RaoLayout);

struct Subject<'a, L> {
    device: &'a Device,
    target: Target,
    stream: Stream,
    variant: Variant,
    bytes: usize,
    filter: Bloom<L>,
}

impl<L: Insert> Subject<'_, L> {
    fn row(&self, operation: &str, n: usize, inserted: usize, seconds: f64) -> Record {
        let row = Record::new("bloom", operation, n).time(seconds).param("variant", self.variant.name());
        let row = row.param("input", "generated").param("key", "u64").param("filter_bytes", self.bytes);
        let mut row = row.param("hashes", self.filter.layout().hashes());
        row.bits_per_item = Some(self.bytes as f64 * 8.0 / inserted as f64);
        row
    }

    /// How many of `keys` the filter claims to contain.
    fn count(&self, keys: &DeviceVec<u64>) -> anyhow::Result<usize> {
        let mut count = self.device.alloc_zeroed::<u64>(1)?;
        // SAFETY: the filter, the keys and the count live, and nobody else uses them, until the stream has been waited
        // for two lines below.
        unsafe { self.filter.count_contained_async(&self.stream, keys.as_slice(), count.as_mut_slice())? };
        self.stream.synchronize()?;
        Ok(count.to_vec()?[0] as usize)
    }
}

fn measure<L: Insert>(session: &mut Session, device: &Device, variant: Variant, layout: L) -> anyhow::Result<()>
where
    cpu::Bloom<L>: BloomFilter<Layout = L>,
{
    let bytes = 4 * layout.words() as usize;
    let n = bytes * 8 / BITS_PER_KEY;
    let asked = n.clamp(1 << 10, 1 << 27);
    let stream = device.new_stream()?;
    let keys = generate(&stream, INSERTED, n)?;
    let absent = generate(&stream, ABSENT, asked)?;
    let mut subject = Subject {
        device,
        target: Target::Gpu(device.clone()),
        stream,
        variant,
        bytes,
        filter: Builder::with_layout(layout).on(device).build()?,
    };
    let limits = Limits::of(session, device, bytes)?;
    let effort = session.effort;

    let Subject { filter, stream, .. } = &mut subject;
    let filter_cell = std::cell::RefCell::new(filter);
    let insert = gpu_limits::seconds(
        device,
        stream,
        effort,
        || {
            // SAFETY: the filter lives and is used by this stream alone until it has been waited for.
            unsafe { filter_cell.borrow_mut().clear_async(stream)? };
            Ok(())
        },
        || L::insert(&mut filter_cell.borrow_mut(), stream, keys.as_slice()),
    )?;
    stream.synchronize()?;
    let mut row = subject.row("insert", n, n, insert);
    let found = subject.count(&keys)?;
    let mut right = found == n;
    if bytes <= COMPARED {
        let mut host = Builder::with_layout(layout).build()?;
        warpset::bloom::Insert::insert_bulk(&mut host, &keys.to_vec()?)?;
        right &= subject.filter.to_host()?.words() == host.words();
    }
    row.checked = session.verify(right, || format!("{}, {bytes} bytes: insert differs from the CPU's", variant.name()));
    row.limit_fraction = part(row.items_per_second, limits.atomics);
    session.push_on(&subject.target, row, Threads::All);

    let mut answers = device.alloc_uninit::<u8>(n.max(asked))?;
    for (operation, keys) in [("contains hit", &keys), ("contains miss", &absent)] {
        let asked = keys.len();
        let seconds = gpu_limits::seconds(
            device,
            &subject.stream,
            effort,
            || Ok(()),
            || {
                let answers = answers.slice_mut(..asked);
                // SAFETY: the filter, the keys and the answers live, and nobody else uses them, until the stream has been
                // waited for.
                unsafe { subject.filter.contains_async(&subject.stream, keys.as_slice(), answers)? };
                Ok(())
            },
        )?;
        subject.stream.synchronize()?;
        let yes = subject.count(keys)?;
        let sample = answers.slice(..asked.min(1 << 24)).to_vec()?;
        let in_sample = sample.iter().filter(|answer| **answer == 1).count();
        let mut row = subject.row(operation, asked, n, seconds);
        let right = if operation == "contains hit" {
            yes == asked && in_sample == sample.len()
        } else {
            row.fpr = Some(yes as f64 / asked as f64);
            let theory = subject.filter.expected_fpr(n as u64);
            plausible(yes, theory * asked as f64) && plausible(in_sample, theory * sample.len() as f64)
        };
        row.checked =
            session.verify(right, || format!("{}, {bytes} bytes: {yes} of {asked} {operation}", variant.name()));
        row.limit_fraction = part(row.items_per_second, limits.lookups);
        session.push_on(&subject.target, row, Threads::All);
    }

    test_and_insert(session, &mut subject, &keys, &mut answers, limits.atomics)?;
    union(session, &mut subject, &keys, limits.copies)
}

/// The first `n` keys of a stream, made on the device.
fn generate(stream: &Stream, number: u64, n: usize) -> anyhow::Result<DeviceVec<u64>> {
    let mut keys = stream.alloc_uninit::<u64>(n)?;
    let config = LaunchConfig::new(stream.device().properties().multiprocessors * 16, limits::BLOCK);
    // SAFETY: there is room for `n` keys, and the stream is waited for before anybody else looks at them.
    unsafe { limits::limits_generate_keys { keys: keys.global_mut(), n, first: number << 40 }.launch(stream, config)? };
    stream.synchronize()?;
    Ok(keys)
}

/// The limits of one filter size; none for the emulator, which is not about speed.
struct Limits {
    lookups: Option<f64>,
    atomics: Option<f64>,
    copies: Option<f64>,
}

impl Limits {
    fn of(session: &mut Session, device: &Device, bytes: usize) -> anyhow::Result<Self> {
        if device.is_emulator() {
            return Ok(Self { lookups: None, atomics: None, copies: None });
        }
        session.gpu_limit(device, GpuAccess::Integer, 0)?;
        Ok(Self {
            lookups: Some(session.gpu_limit(device, GpuAccess::Lookup, bytes)?),
            atomics: Some(session.gpu_limit(device, GpuAccess::AtomicOr, bytes)?),
            copies: Some(session.gpu_limit(device, GpuAccess::Copy, bytes)?),
        })
    }
}

fn part(rate: Option<f64>, limit: Option<f64>) -> Option<f64> {
    Some(rate? / limit?)
}

fn test_and_insert<L: Insert>(
    session: &mut Session,
    subject: &mut Subject<'_, L>,
    keys: &DeviceVec<u64>,
    answers: &mut DeviceVec<u8>,
    atomics: Option<f64>,
) -> anyhow::Result<()> {
    // One batch: then each distinct key is new, none hidden by a false positive.
    let n = keys.len().min(warpset::bloom::TEST_AND_INSERT_BATCH);
    let filter = std::cell::RefCell::new(&mut subject.filter);
    let stream = &subject.stream;
    let seconds = gpu_limits::seconds(
        subject.device,
        stream,
        session.effort,
        || {
            // SAFETY: the filter lives and is used by this stream alone until it has been waited for.
            unsafe { filter.borrow_mut().clear_async(stream)? };
            Ok(())
        },
        || {
            let new = answers.slice_mut(..n);
            L::test_and_insert(&mut filter.borrow_mut(), stream, keys.slice(..n), new)
        },
    )?;
    stream.synchronize()?;
    let new = answers.slice(..n).to_vec()?.iter().filter(|new| **new == 1).count();
    let mut row = subject.row("test_and_insert", n, keys.len(), seconds);
    row.checked =
        session.verify(new == n, || format!("{}: {new} of {n} distinct keys were new", subject.variant.name()));
    row.limit_fraction = part(row.items_per_second, atomics);
    session.push_on(&subject.target, row, Threads::All);
    Ok(())
}

/// The union of two halves is the whole.
fn union<L: Insert>(
    session: &mut Session,
    subject: &mut Subject<'_, L>,
    keys: &DeviceVec<u64>,
    copies: Option<f64>,
) -> anyhow::Result<()> {
    let middle = keys.len() / 2;
    let layout = *subject.filter.layout();
    let (mut low, mut high) = (
        Builder::with_layout(layout).on(subject.device).build()?,
        Builder::with_layout(layout).on(subject.device).build()?,
    );
    L::insert(&mut low, &subject.stream, keys.slice(..middle))?;
    L::insert(&mut high, &subject.stream, keys.slice(middle..))?;
    subject.stream.synchronize()?;
    // The method waits, so the host's clock includes one launch and one wait.
    let seconds =
        super::super::clock::median_seconds(session.effort, &mut low, |_| Ok(()), |low| Ok(low.merge(&high)?))?;
    subject.filter.clear()?;
    L::insert(&mut subject.filter, &subject.stream, keys.as_slice())?;
    subject.stream.synchronize()?;
    let mut right = low.to_host()?.words() == subject.filter.to_host()?.words();
    if subject.variant == Variant::Rao(2) {
        // Of two choices a key may take one in a half and the other in the whole: only the answers must be right.
        subject.filter = low;
        right = subject.count(keys)? == keys.len();
    }
    let mut row = subject.row("union", keys.len(), keys.len(), seconds);
    row.checked =
        session.verify(right, || format!("{}: the union of two halves is not the whole", subject.variant.name()));
    // Two reads and a write for each byte, where a copy is a read and a write.
    row.limit_fraction = part(Some(1.5 * subject.bytes as f64 / seconds), copies.map(|copies| 16.0 * copies));
    session.push_on(&subject.target, row, Threads::All);
    Ok(())
}

/// Keys in host memory, answers in host memory: from which number of keys on is the GPU worth the way to it?
fn break_even(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    let most = if session.effort == Effort::Quick { 22 } else { 26 };
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(1 << most);
    // A filter beyond the processor's caches.
    let layout = variant::split_block(1 << 27)?;
    let mut on_host = Builder::with_layout(layout).build()?;
    session.pool(Threads::All).install(|| on_host.insert_bulk(&keys));
    let on_device = Bloom::from_host(device, &on_host)?;
    let mut answers = vec![false; keys.len()];
    let mut ratios = Vec::new();
    for log_n in (8..=most).step_by(2) {
        let n = 1 << log_n;
        let (keys, answers) = (&keys[..n], &mut answers[..n]);
        let mut rates = [0.0; 2];
        for (rate, target) in rates.iter_mut().zip([Target::Cpu, Target::Gpu(device.clone())]) {
            answers.fill(false);
            let seconds = session.time_after(
                Threads::All,
                &mut &mut *answers,
                |_| Ok(()),
                |answers| {
                    match target {
                        Target::Cpu => on_host.contains_bulk_into(keys, answers)?,
                        Target::Gpu(_) => on_device.contains_bulk_into(keys, answers)?,
                    }
                    Ok(())
                },
            )?;
            let mut row = Record::new("bloom", "contains hit", n).time(seconds).param("study", "break-even");
            row = row.param("variant", Variant::SplitBlock.name()).param("filter_bytes", 1 << 27);
            row = row.param("key", "u64").param("keys_in", "host memory");
            row.checked = session.verify(answers.iter().all(|answer| *answer), || "host slices lost keys".into());
            *rate = row.items_per_second.unwrap_or_default();
            session.push_on(&target, row, Threads::All);
        }
        ratios.push((n, rates[1] / rates[0]));
    }
    let rows = session.study("break-even");
    let title = "contains, keys and answers in host memory, 128 MiB filter: keys a second by keys a call";
    let call = |row: &Record| indicatif::HumanCount(row.n).to_string();
    let rate = |row: &Record| row.items_per_second.map_or_else(String::new, table::rate);
    let text = table::pivot(title, &rows, |row| row.backend.clone(), call, rate);
    session.print(&text);
    session.print(&pays_from(&ratios));
    Ok(())
}

/// From which number of keys a call on the device is ahead, given how many times faster it is, by number of keys; and
/// where, beyond that, it falls behind again.
fn pays_from(ratios: &[(usize, f64)]) -> String {
    let count = |n: usize| indicatif::HumanCount(n as u64);
    let Some(first) = ratios.iter().position(|(_, ratio)| *ratio > 1.0) else {
        return "At none of these sizes the GPU answers sooner than all threads of the CPU: the way to it costs more."
            .into();
    };
    let mut text =
        format!("From {} keys a call on, the GPU answers sooner than all threads of the CPU", count(ratios[first].0));
    let behind: Vec<String> = ratios[first..]
        .iter()
        .filter(|(_, ratio)| *ratio <= 1.0)
        .map(|(n, ratio)| format!("{} ({ratio:.2} times the CPU's rate)", count(*n)))
        .collect();
    if !behind.is_empty() {
        text += &format!(", but not at {}", behind.join(", "));
        let last = ratios.iter().rposition(|(_, ratio)| *ratio <= 1.0).unwrap_or_default();
        match ratios.get(last + 1) {
            Some((n, _)) => text += &format!("; from {} on it stays ahead", count(*n)),
            None => text += ", the most that was measured",
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::super::super::progress::Progress;
    use super::super::super::suite::Input;
    use super::*;

    #[test]
    fn break_even_names_where_the_device_falls_behind_again() {
        let ratios = |ratios: &[f64]| {
            let rows: Vec<(usize, f64)> =
                ratios.iter().enumerate().map(|(i, ratio)| (256 << (2 * i), *ratio)).collect();
            pays_from(&rows)
        };
        assert!(ratios(&[0.1, 0.5, 0.9]).starts_with("At none"));
        assert!(
            ratios(&[0.1, 1.5, 1.9])
                .ends_with("From 1,024 keys a call on, the GPU answers sooner than all threads of the CPU.")
        );
        let text = ratios(&[0.5, 1.5, 0.87, 1.5, 2.0]);
        assert!(text.contains("From 1,024 keys") && text.contains("not at 4,096 (0.87 times"), "{text}");
        assert!(text.ends_with("from 16,384 on it stays ahead."), "{text}");
        assert!(ratios(&[0.5, 1.5, 0.8]).ends_with("the most that was measured."));
    }

    #[test]
    fn every_operation_is_right_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let setup = Setup {
            effort: Effort::Quick,
            targets: vec![Target::Gpu(device)],
            own_keys: false,
            log2_slots: None,
            shapes: Vec::new(),
        };
        let progress = Progress::new(0);
        let mut session = Session::new(Effort::Quick, "a processor".into(), progress, Input::default()).unwrap();
        for step in steps(&setup) {
            session.run(step).unwrap();
        }
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        let operations = ["insert", "contains hit", "contains miss", "test_and_insert", "union"];
        for operation in operations {
            let rows: Vec<&Record> = rows.iter().filter(|row| row.operation == operation).collect();
            assert!(rows.len() >= 3, "{operation}");
            assert!(rows.iter().all(|row| row.checked && row.backend == "emulator" && row.limit_fraction.is_none()));
        }
    }
}
