//! Study "several devices": operations on one, two, four and so on up to all GPUs. The clock is the host's, over the
//! whole call. A row's `of_linear` is its rate over that of one GPU times their number.

use std::time::Instant;

use bench_record::Record;
use bytemuck::Pod;
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Devices};

use crate::suite::{Session, Step, Target, Threads, emulator};

/// Name of the study.
const STUDY: &str = "several devices";
/// Repeats after the first, of which the fastest counts.
const REPEATS: usize = 2;

/// Returns one, two, four and so on up to all GPUs of the machine, or one and two emulators for an emulator; none if
/// there is one GPU.
fn numbers_of_devices(device: &Device) -> anyhow::Result<Vec<Devices>> {
    let devices = match device.is_emulator() {
        true => Devices::new([device.clone(), emulator()?])?,
        false => Devices::cuda_all()?,
    };
    let all = devices.all().len();
    let counts = (0..).map(|log| 1 << log).take_while(|&count| count < all).chain((all > 1).then_some(all));
    Ok(counts.map(|count| devices.at_most(count)).collect())
}

/// Makes a step per setting, with its title, that gets the numbers of devices; none where there is one GPU.
pub fn steps<T: 'static>(
    first: Option<&Device>,
    settings: Vec<T>,
    title: impl Fn(&T) -> String,
    run: impl Fn(&mut Session, &[Devices], &T) -> anyhow::Result<()> + Copy + 'static,
) -> Vec<Step> {
    let numbers = first.map_or_else(Vec::new, |first| numbers_of_devices(first).unwrap_or_default());
    if numbers.is_empty() {
        return Vec::new();
    }
    let step = |setting: T| {
        let numbers = numbers.clone();
        Step::new(title(&setting), move |session| run(session, &numbers, &setting))
    };
    settings.into_iter().map(step).collect()
}

/// Returns the least seconds of a call, and the result of the last; the first one loads kernels.
///
/// # Errors
/// Errors of the call.
pub fn time<T>(device: &Device, mut call: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let repeats = if device.is_emulator() { 0 } else { REPEATS };
    let mut least = f64::INFINITY;
    for repeat in 0.. {
        let start = Instant::now();
        let result = call()?;
        if repeat > 0 || repeats == 0 {
            least = least.min(start.elapsed().as_secs_f64());
        }
        if repeat == repeats {
            return Ok((least, result));
        }
    }
    unreachable!("repeats end")
}

/// Copies an equal share of the items to each device.
///
/// # Errors
/// A device without memory for its share.
pub fn shares(devices: &Devices, items: &[u64]) -> anyhow::Result<Vec<DeviceVec<u64>>> {
    let (n, count) = (items.len(), devices.all().len());
    let share = |place: usize| &items[n * place / count..n * (place + 1) / count];
    devices.all().iter().enumerate().map(|(place, device)| Ok(device.from_slice(share(place))?)).collect()
}

/// Measures lookups that write a value and a bit per key, of `keys` that have `values`: from the first device, from
/// all, and from the host, which counts the keys found. Returns operations with their seconds, and whether the
/// answers were right.
///
/// # Errors
/// Errors of the lookups, and devices without memory for keys and answers.
pub fn lookups<V: Pod + PartialEq>(
    devices: &Devices,
    keys: &[u64],
    values: &[V],
    mut from_one: impl FnMut(DeviceSlice<'_, u64>, Answers<'_, V>) -> anyhow::Result<()>,
    mut from_all: impl FnMut(&[DeviceSlice<'_, u64>], Vec<Answers<'_, V>>) -> anyhow::Result<()>,
    mut from_host: impl FnMut(&[u64], &mut [V]) -> anyhow::Result<usize>,
) -> anyhow::Result<Vec<(&'static str, f64, bool)>> {
    let (first, n) = (devices.first(), keys.len());
    let room = |device: &Device, n: usize| -> anyhow::Result<_> {
        Ok((device.alloc_zeroed::<V>(n)?, device.alloc_zeroed::<u64>(n.div_ceil(64))?))
    };
    let (here, mut answers) = (first.from_slice(keys)?, room(first, n)?);
    let (seconds, ()) =
        time(first, || from_one(here.as_slice(), (answers.0.as_mut_slice(), answers.1.as_mut_slice())))?;
    let mut times = vec![("get from one device", seconds, answers.0.to_vec()? == values)];
    drop((here, answers));
    let there = shares(devices, keys)?;
    let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
    let mut answers = there.iter().map(|keys| room(keys.device(), keys.len())).collect::<anyhow::Result<Vec<_>>>()?;
    let (seconds, ()) = time(first, || {
        let to = answers.iter_mut().map(|(values, found)| (values.as_mut_slice(), found.as_mut_slice()));
        from_all(&slices, to.collect())
    })?;
    let mut gathered = Vec::new();
    for (values, _) in &answers {
        gathered.extend(values.to_vec()?);
    }
    times.push(("get from all devices", seconds, gathered == values));
    let (seconds, found) = time(first, || from_host(keys, &mut gathered))?;
    times.push(("get from the host", seconds, found == n && gathered == values));
    Ok(times)
}

/// Places for values, and for a bit per key.
pub type Answers<'a, V> = (DeviceSliceMut<'a, V>, DeviceSliceMut<'a, u64>);

/// Times of one GPU, by operation.
#[derive(Default)]
pub struct OfOne(Vec<f64>);

impl OfOne {
    /// Adds rows of operations on these devices: each with its seconds, and whether its answers were right. Calls have
    /// the same operations in the same order, the first one with a single device.
    pub fn add(
        &mut self,
        session: &mut Session,
        devices: &Devices,
        times: Vec<(&str, f64, bool)>,
        row: impl Fn(&str) -> Record,
    ) {
        let (count, target) = (devices.all().len(), Target::Gpu(devices.first().clone()));
        for (i, (operation, seconds, right)) in times.into_iter().enumerate() {
            if count == 1 {
                self.0.push(seconds);
            }
            let row = row(operation).param("study", STUDY).param("devices", count).time(seconds);
            let row = row.param("of_linear", self.0[i] / count as f64 / seconds);
            session.add(&target, Threads::All, row, right);
        }
    }
}

/// Prints the rows that `wanted` takes: nanoseconds per key.
pub fn show(session: &Session, title: &str, wanted: impl Fn(&Record) -> bool) {
    session.show(
        STUDY,
        &format!("ns per key, {title}"),
        wanted,
        |row| row.number("devices").map_or(String::new(), |count| format!("{count} devices")),
        |row| row.seconds.map_or(String::new(), |seconds| format!("{:.4}", seconds * 1e9 / row.n as f64)),
    );
}
