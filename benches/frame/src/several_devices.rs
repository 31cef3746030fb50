//! Study "several devices": operations on one, two, four and so on up to all GPUs. The clock is the host's, over the
//! whole call. A row's `of_linear` is its rate over that of one GPU times their number.

use std::time::Instant;

use bench_record::Record;
use warpset::gpu::{Device, DeviceVec, Devices};

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
/// Those of the call.
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
