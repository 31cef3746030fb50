//! Static functions, built and asked for keys that they have: on the host beside `sux` VFunc (feature `peers`), whose
//! batches are its loop, and on devices.

use std::time::Instant;

use bench_frame::clock::Effort;
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Step, Target, Threads, sizes_on};
use warpset::fuse::gpu::DeviceFunctionValue;
use warpset::fuse::{Arity, Form, FunctionBuilder, StaticFunction};
use warpset::gpu::Device;

use super::{SEED, row};

/// Number of lookups, on the host and on devices.
const ASKED: usize = 1 << 21;
const ASKED_ON_DEVICE: usize = 1 << 26;

/// Returns keys, and their values by the low bits of other keys.
fn pairs<V>(n: usize, value: impl Fn(u64) -> V) -> (Vec<u64>, Vec<V>) {
    let stream = |i| KeySpace::new(SEED).stream(i).u64_keys(n);
    (stream(0), stream(2).into_iter().map(value).collect())
}

/// Returns `asked` of these, in an order far from that of the build.
fn drawn<T: Copy>(from: &[T], asked: usize) -> Vec<T> {
    (0..asked).map(|i| from[i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % from.len()]).collect()
}

/// Makes one step per size.
pub fn steps(effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        Effort::Quick => &[1_000_000],
        Effort::Standard => &[1_000_000, 10_000_000],
        Effort::Full => &[1_000_000, 10_000_000, 100_000_000],
    };
    let step = |n| {
        Step::new(format!("functions: {n} keys"), move |session| {
            measure_width(session, &pairs(n, |bits| bits as u8), 8)?;
            measure_width(session, &pairs(n, |bits| bits as u16), 16)
        })
    };
    sizes.iter().map(|&n| step(n)).collect()
}

/// Makes one step per size on a device: functions within the L2 cache, and larger ones.
pub fn device_steps(device: &Device, effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        _ if device.is_emulator() => &[1_000],
        Effort::Quick => &[10_000_000],
        _ => &[10_000_000, 100_000_000],
    };
    sizes_on(
        device,
        sizes,
        |n| format!("functions: {n} keys"),
        |session, device, n| {
            measure_on(session, device, &pairs(n, |bits| bits as u8), 8)?;
            measure_on(session, device, &pairs(n, |bits| bits as u16), 16)
        },
    )
}

/// Returns each form with its name.
fn forms<V: DeviceFunctionValue>() -> [(String, FunctionBuilder<V>); 4] {
    let of = |form, arity| {
        let words = if arity == Arity::Three { "three" } else { "four" };
        let kind = if form == Form::OneGraph { "one graph" } else { "sharded" };
        let name = format!("function, {kind}, {words}-wise, {} bits", V::BITS);
        (name, StaticFunction::builder().form(form).arity(arity))
    };
    use Arity::{Four, Three};
    use Form::{OneGraph, Sharded};
    [of(OneGraph, Three), of(OneGraph, Four), of(Sharded, Three), of(Sharded, Four)]
}

/// A function to measure: made of pairs, asked one by one and together.
trait Subject<V>: Sync {
    type Function: Send + Sync;
    fn name(&self) -> (String, bool);
    fn build(&self, keys: &[u64], values: &[V]) -> anyhow::Result<Self::Function>;
    fn bytes(function: &Self::Function) -> Option<usize>;
    fn one_by_one(function: &Self::Function, keys: &[u64], values: &mut [V]);
    fn together(function: &Self::Function, keys: &[u64], values: &mut [V]) -> anyhow::Result<()>;
}

impl<V: DeviceFunctionValue> Subject<V> for (String, FunctionBuilder<V>) {
    type Function = StaticFunction<V>;

    fn name(&self) -> (String, bool) {
        (self.0.clone(), false)
    }
    fn build(&self, keys: &[u64], values: &[V]) -> anyhow::Result<StaticFunction<V>> {
        Ok(self.1.build_from(keys, values)?)
    }
    fn bytes(function: &StaticFunction<V>) -> Option<usize> {
        Some(function.memory_bytes() as usize)
    }
    fn one_by_one(function: &StaticFunction<V>, keys: &[u64], values: &mut [V]) {
        keys.iter().zip(values).for_each(|(key, value)| *value = function.get(key).unwrap_or_default());
    }
    fn together(function: &StaticFunction<V>, keys: &[u64], values: &mut [V]) -> anyhow::Result<()> {
        function.get_bulk_into(keys, values)?;
        Ok(())
    }
}

/// `sux` VFunc over a boxed slice of values.
#[cfg(feature = "peers")]
struct VFunc;

#[cfg(feature = "peers")]
macro_rules! vfunc {
    ($($value:ty)*) => {$(
        impl Subject<$value> for VFunc {
            type Function = sux::func::VFunc<u64, Box<[$value]>>;

            fn name(&self) -> (String, bool) {
                (format!("sux {} VFunc, {} bits", bench_frame::machine::version("sux"), <$value>::BITS), true)
            }
            fn build(&self, keys: &[u64], values: &[$value]) -> anyhow::Result<Self::Function> {
                Self::Function::try_par_new(keys, values, dsi_progress_logger::no_logging![])
            }
            fn bytes(function: &Self::Function) -> Option<usize> {
                Some(mem_dbg::MemSize::mem_size(function, mem_dbg::SizeFlags::default()))
            }
            fn one_by_one(function: &Self::Function, keys: &[u64], values: &mut [$value]) {
                keys.iter().zip(values).for_each(|(&key, value)| *value = function.get(key));
            }
            fn together(function: &Self::Function, keys: &[u64], values: &mut [$value]) -> anyhow::Result<()> {
                Self::one_by_one(function, keys, values);
                Ok(())
            }
        }
    )*};
}
#[cfg(feature = "peers")]
vfunc! { u8 u16 }

#[cfg(feature = "peers")]
fn measure_width<V: DeviceFunctionValue>(
    session: &mut Session,
    pairs: &(Vec<u64>, Vec<V>),
    w: u32,
) -> anyhow::Result<()>
where
    VFunc: Subject<V>,
{
    forms().iter().try_for_each(|form| measure(session, form, pairs, w))?;
    measure(session, &VFunc, pairs, w)
}

#[cfg(not(feature = "peers"))]
fn measure_width<V: DeviceFunctionValue>(
    session: &mut Session,
    pairs: &(Vec<u64>, Vec<V>),
    w: u32,
) -> anyhow::Result<()> {
    forms().iter().try_for_each(|form| measure(session, form, pairs, w))
}

fn measure<V: DeviceFunctionValue, S: Subject<V>>(
    session: &mut Session,
    subject: &S,
    (keys, values): &(Vec<u64>, Vec<V>),
    width: u32,
) -> anyhow::Result<()> {
    let (name, is_peer) = subject.name();
    let asked = if session.effort == Effort::Quick { ASKED / 4 } else { ASKED };
    let (asked, expected) = (drawn(keys, asked), drawn(values, asked));
    for &threads in session.threads(true) {
        let (build, function) = session.made(threads, || subject.build(keys, values))?;
        let mut times = vec![("function: build", keys.len(), build)];
        let (mut one, mut many) = (vec![V::default(); asked.len()], vec![V::default(); asked.len()]);
        if threads == Threads::One {
            let seconds = session.time(threads, &mut one, |one| {
                S::one_by_one(&function, &asked, one);
                Ok(())
            })?;
            times.push(("function: get, one by one", asked.len(), seconds));
        } else {
            S::one_by_one(&function, &asked, &mut one);
        }
        if !is_peer || threads == Threads::One {
            let seconds = session.time(threads, &mut many, |many| S::together(&function, &asked, many))?;
            times.push(("function: get, batch", asked.len(), seconds));
        } else {
            many.clone_from(&one);
        }
        let right = one == expected && many == expected;
        for (operation, n, seconds) in times {
            let mut row = row(operation, n, seconds, width, keys.len()).by(name.clone(), is_peer);
            row.bits_per_item = S::bytes(&function).map(|bytes| 8.0 * bytes as f64 / keys.len() as f64);
            session.add(&Target::Cpu, threads, row, right);
        }
    }
    Ok(())
}

fn measure_on<V: DeviceFunctionValue>(
    session: &mut Session,
    device: &Device,
    (keys, values): &(Vec<u64>, Vec<V>),
    width: u32,
) -> anyhow::Result<()> {
    let (there, given) = (device.from_slice(keys)?, device.from_slice(values)?);
    let asked = if device.is_emulator() { 1_000 } else { ASKED_ON_DEVICE };
    let (asked, expected) = (drawn(keys, asked), drawn(values, asked));
    let (asked, stream) = (device.from_slice(&asked)?, device.new_stream()?);
    for (name, builder) in forms::<V>() {
        let builder = builder.on(device);
        // The first call loads the kernels.
        let function = builder.build_from_device(there.as_slice(), given.as_slice())?;
        let mut times = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            builder.build_from_device(there.as_slice(), given.as_slice())?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let mut out = device.alloc_zeroed::<V>(asked.len())?;
        let mut found = device.alloc_zeroed::<u64>(asked.len().div_ceil(64))?;
        let queue = || {
            // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
            unsafe { Ok(function.get_async(&stream, asked.as_slice(), out.as_mut_slice(), found.as_mut_slice())?) }
        };
        let seconds = gpu_limits::repeated(device, &stream, session.effort, queue)?;
        let right = out.to_vec()? == expected;
        let bytes = (function.memory_bytes() as usize).next_power_of_two().max(1 << 12);
        let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes)?;
        let target = Target::Gpu(device.clone());
        for (operation, n, seconds) in
            [("function: build", keys.len(), times[1]), ("function: get, batch", asked.len(), seconds)]
        {
            let mut row = row(operation, n, seconds, width, keys.len()).by(name.clone(), false);
            row.bits_per_item = Some(function.bits_per_key());
            if operation != "function: build" {
                row.limit_fraction = row.items_per_second.map(|rate| rate / limit);
            }
            session.add(&target, Threads::All, row, right);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_on_the_host() {
        let step = Step::new("functions", |session| measure_width(session, &pairs(20_000, |bits| bits as u8), 8));
        let rows = Session::rows_of(vec![step]);
        assert!(rows.iter().all(|row| row.checked) && rows.len() >= 12, "{}", rows.len());
    }
}
