//! Study "several devices": operations on one, two, four and so on up to all GPUs. The clock is the host's, over the
//! whole call. A row's `of_linear` is its rate over that of one GPU times their number.

use std::collections::HashMap;
use std::time::Instant;

use bench_record::Record;
use bytemuck::Pod;
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Devices};

use crate::clock::Effort;
use crate::input::keys::Stream;
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

/// Sizes of a structure: on an emulator, and on GPUs by effort.
pub struct Sizes<T: 'static> {
    /// On an emulator.
    pub emulator: &'static [T],
    /// In quick runs.
    pub quick: &'static [T],
    /// In standard runs.
    pub standard: &'static [T],
    /// In full runs.
    pub full: &'static [T],
}

impl<T: Copy> Sizes<T> {
    /// Makes a step per size, with its title, that gets the numbers of devices; none where there is one GPU.
    pub fn steps(
        &self,
        first: Option<&Device>,
        effort: Effort,
        title: impl Fn(&T) -> String,
        run: impl Fn(&mut Session, &[Devices], &T) -> anyhow::Result<()> + Copy + 'static,
    ) -> Vec<Step> {
        let sizes = match effort {
            _ if first.is_some_and(Device::is_emulator) => self.emulator,
            Effort::Quick => self.quick,
            Effort::Standard => self.standard,
            Effort::Full => self.full,
        };
        steps(first, sizes.to_vec(), title, run)
    }
}

/// Returns the least seconds of a call, each after a `prepare` of the same state, and the result of the last; the first
/// one loads kernels.
fn time_prepared<S, T>(
    device: &Device,
    state: &mut S,
    prepare: impl Fn(&mut S) -> anyhow::Result<()>,
    mut call: impl FnMut(&mut S) -> anyhow::Result<T>,
) -> anyhow::Result<(f64, T)> {
    let repeats = if device.is_emulator() { 0 } else { REPEATS };
    let mut least = f64::INFINITY;
    for repeat in 0.. {
        prepare(state)?;
        let start = Instant::now();
        let result = call(state)?;
        if repeat > 0 || repeats == 0 {
            least = least.min(start.elapsed().as_secs_f64());
        }
        if repeat == repeats {
            return Ok((least, result));
        }
    }
    unreachable!("repeats end")
}

/// Returns the least seconds of a call, and the result of the last; the first one loads kernels.
///
/// # Errors
/// Errors of the call.
pub fn time<T>(device: &Device, mut call: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    time_prepared(device, &mut (), |()| Ok(()), |()| call())
}

/// Distribution of a batch's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// All different.
    Uniform,
    /// Drawn with repetitions, the i-th most frequent `1 / i` as often as the first (Zipf, exponent 1).
    Zipf,
}

impl Skew {
    /// Both distributions.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipf];

    /// Returns `n` keys out of the first `n` of a stream.
    pub fn keys(self, stream: Stream, n: usize) -> Vec<u64> {
        match self {
            Skew::Uniform => stream.u64_keys(n),
            Skew::Zipf => stream.zipf_keys(n),
        }
    }

    /// Returns the name of the parameter `skew`; rows of different keys have no such parameter.
    fn name(self) -> Option<&'static str> {
        (self == Skew::Zipf).then_some("Zipf 1.0")
    }
}

/// Keys of a study, with a value per key or none, on all sources of batches.
pub struct Batches<'k> {
    skew: Skew,
    /// Keys and values of the host.
    host: [&'k [u64]; 2],
    /// Keys and values on the first device alone, then in equal shares on all devices.
    devices: [[Vec<DeviceVec<u64>>; 2]; 2],
}

/// Names of the sources of batches, in the order of [`Batches`].
const SOURCES: [&str; 3] = ["one device", "all devices", "the host"];

impl<'k> Batches<'k> {
    /// Copies keys and values to the devices.
    ///
    /// # Errors
    /// A device without memory for them.
    pub fn new(devices: &Devices, skew: Skew, keys: &'k [u64], values: &'k [u64]) -> anyhow::Result<Self> {
        let divided = |items: &[u64], parts: usize| -> anyhow::Result<Vec<_>> {
            let at = |place: usize| items.len() * place.min(parts) / parts;
            let all = devices.all().iter().enumerate();
            all.map(|(place, device)| Ok(device.from_slice(&items[at(place)..at(place + 1)])?)).collect()
        };
        let both = |parts| anyhow::Ok([divided(keys, parts)?, divided(values, parts)?]);
        Ok(Self { skew, host: [keys, values], devices: [both(1)?, both(devices.all().len())?] })
    }
}

/// Batch of a change, with a value per key or none.
#[derive(Clone, Copy)]
pub enum Batch<'a> {
    /// A batch per device: keys and values.
    Devices(&'a [DeviceSlice<'a, u64>], &'a [DeviceSlice<'a, u64>]),
    /// Keys and values of the host.
    Host(&'a [u64], &'a [u64]),
}

/// Places for values, and for a bit per key.
pub type Answers<'a, V> = (DeviceSliceMut<'a, V>, DeviceSliceMut<'a, u64>);

/// Returns the places for values alone, for lookups that write no bits.
pub fn values_of<'a, V: Pod>(answers: Vec<Answers<'a, V>>) -> Vec<DeviceSliceMut<'a, V>> {
    answers.into_iter().map(|(values, _)| values).collect()
}

/// Returns the memory of each vector.
fn slices(vectors: &[DeviceVec<u64>]) -> Vec<DeviceSlice<'_, u64>> {
    vectors.iter().map(|vector| vector.as_slice()).collect()
}

/// Rows of one structure: by operation, skew and number of devices. A single device comes first.
pub struct Rows<'s, R> {
    session: &'s mut Session,
    row: R,
    devices: Devices,
    /// Seconds on one device.
    of_one: HashMap<(String, Option<&'static str>), f64>,
}

impl<'s, R: Fn(&str) -> Record> Rows<'s, R> {
    /// Makes no rows yet; `row` makes one for an operation, with the parameters of the structure.
    pub fn new(session: &'s mut Session, devices: &Devices, row: R) -> Self {
        Self { session, row, devices: devices.clone(), of_one: HashMap::new() }
    }

    /// Sets the devices of the rows that follow.
    pub fn on(&mut self, devices: &Devices) {
        self.devices = devices.clone();
    }

    /// Adds a row: whether its answers were right.
    pub fn add(&mut self, operation: &str, skew: Skew, seconds: f64, right: bool) {
        let (count, target) = (self.devices.all().len(), Target::Gpu(self.devices.first().clone()));
        let key = (operation.to_owned(), skew.name());
        let of_one = *self.of_one.entry(key).or_insert(seconds);
        let mut row = (self.row)(operation).param("study", STUDY).param("devices", count).time(seconds);
        if let Some(name) = skew.name() {
            row = row.param("skew", name);
        }
        let row = row.param("of_linear", of_one / count as f64 / seconds);
        self.session.add(&target, Threads::All, row, right);
    }

    /// Measures a call whose result is right if `right` says so, and returns the result.
    ///
    /// # Errors
    /// Errors of both.
    pub fn call<T>(
        &mut self,
        operation: &str,
        call: impl FnMut() -> anyhow::Result<T>,
        right: impl Fn(&T) -> anyhow::Result<bool>,
    ) -> anyhow::Result<T> {
        let (seconds, result) = time(self.devices.first(), call)?;
        self.add(operation, Skew::Uniform, seconds, right(&result)?);
        Ok(result)
    }

    /// Measures changes of a structure that is cleared before each: by a batch on the first device, by a share on each,
    /// and from the host.
    ///
    /// # Errors
    /// Errors of the closures.
    pub fn changes<F>(
        &mut self,
        operation: &str,
        batches: &Batches<'_>,
        structure: &mut F,
        clear: impl Fn(&mut F) -> anyhow::Result<()>,
        change: impl Fn(&mut F, Batch<'_>) -> anyhow::Result<()>,
        right: impl Fn(&F) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let on_devices = batches.devices.each_ref().map(|[keys, values]| (slices(keys), slices(values)));
        let [one, all] = on_devices.each_ref().map(|(keys, values)| Batch::Devices(keys, values));
        let [keys, values] = batches.host;
        for (batch, source) in [one, all, Batch::Host(keys, values)].into_iter().zip(SOURCES) {
            let (seconds, ()) = time_prepared(self.devices.first(), structure, &clear, |it| change(it, batch))?;
            self.add(&format!("{operation} from {source}"), batches.skew, seconds, right(structure)?);
        }
        Ok(())
    }

    /// Measures lookups of a batch on the first device, of a share on each, and from the host. `right` checks the
    /// values of all keys in their order; `right_on_host` gets what `from_host` returned and wrote, if it wrote
    /// anything.
    ///
    /// # Errors
    /// Errors of the lookups, and devices without memory for answers.
    pub fn lookups<V: Pod, H>(
        &mut self,
        operation: &str,
        batches: &Batches<'_>,
        from_devices: impl Fn(&[DeviceSlice<'_, u64>], Vec<Answers<'_, V>>) -> anyhow::Result<()>,
        right: impl Fn(&[V]) -> bool,
        from_host: impl Fn(&[u64], &mut [V]) -> anyhow::Result<H>,
        right_on_host: impl Fn(H, &[V]) -> bool,
    ) -> anyhow::Result<()> {
        for ([keys, _], source) in batches.devices.iter().zip(SOURCES) {
            let room = |keys: &DeviceVec<u64>| -> anyhow::Result<_> {
                let (device, n) = (keys.device(), keys.len());
                Ok((device.alloc_zeroed::<V>(n)?, device.alloc_zeroed::<u64>(n.div_ceil(64))?))
            };
            let mut answers = keys.iter().map(room).collect::<anyhow::Result<Vec<_>>>()?;
            let keys = slices(keys);
            let (seconds, ()) = time(self.devices.first(), || {
                let to = answers.iter_mut().map(|(values, found)| (values.as_mut_slice(), found.as_mut_slice()));
                from_devices(&keys, to.collect())
            })?;
            let mut values = Vec::new();
            for (some, _) in &answers {
                values.extend(some.to_vec()?);
            }
            self.add(&format!("{operation} from {source}"), batches.skew, seconds, right(&values));
        }
        let [keys, _] = batches.host;
        let mut out = vec![V::zeroed(); keys.len()];
        let (seconds, found) = time(self.devices.first(), || from_host(keys, &mut out))?;
        self.add(&format!("{operation} from {}", SOURCES[2]), batches.skew, seconds, right_on_host(found, &out));
        Ok(())
    }

    /// Prints the rows that `wanted` takes: nanoseconds per key, by skew.
    pub fn show(self, title: &str, wanted: impl Fn(&Record) -> bool) {
        for skew in Skew::ALL {
            let title = [Some(title), skew.name()].into_iter().flatten().collect::<Vec<_>>().join(", ");
            self.session.show(
                STUDY,
                &format!("ns per key, {title}"),
                |row| wanted(row) && row.text("skew") == skew.name(),
                |row| row.number("devices").map_or(String::new(), |count| format!("{count} devices")),
                |row| row.seconds.map_or(String::new(), |seconds| format!("{:.4}", seconds * 1e9 / row.n as f64)),
            );
        }
    }
}
