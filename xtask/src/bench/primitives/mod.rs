//! Device-wide primitives, a file a family: on the CPU and on GPUs, verified against a plain computation, held against
//! the speed at which the same machine copies as many bytes.

mod merge;
mod scan;
mod search;
mod select;
mod sort;

use warpset::gpu::{Device, Stream};

use super::clock::Effort;
use super::gpu_limits::{self, GpuAccess};
use super::record::Record;
use super::suite::{Session, Setup, Step, Suite, Target, Threads};

/// The steps of each family.
const FAMILIES: &[fn(&Setup) -> Vec<Step>] = &[scan::steps, sort::steps, merge::steps, search::steps, select::steps];

/// The primitives' benches.
pub struct Primitives;

impl Suite for Primitives {
    fn name(&self) -> &'static str {
        "primitives"
    }

    fn real(&self, _setup: &Setup) -> Vec<Step> {
        Vec::new()
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        FAMILIES.iter().flat_map(|steps| steps(setup)).collect()
    }
}

/// Numbers of items: for a GPU from what is mostly latency to what fills its memory system, for the CPU in and beyond
/// its caches, for the emulator a few tiles.
fn sizes(target: &Target, effort: Effort) -> &'static [usize] {
    match (target, effort) {
        (Target::Gpu(device), _) if device.is_emulator() => &[20_001],
        (Target::Gpu(_), Effort::Quick) => &[1 << 20, 1 << 24],
        (Target::Gpu(_), Effort::Standard) => &[1 << 16, 1 << 18, 1 << 20, 1 << 24, 1 << 28],
        (Target::Gpu(_), Effort::Full) => &[1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 29],
        (Target::Cpu, Effort::Quick) => &[1 << 20],
        (Target::Cpu, Effort::Standard) => &[1 << 16, 1 << 20, 1 << 24],
        (Target::Cpu, Effort::Full) => &[1 << 16, 1 << 20, 1 << 24, 1 << 27],
    }
}

/// A step for each target and size: `measure` adds the rows.
fn steps_of(
    setup: &Setup,
    family: &'static str,
    measure: fn(&mut Session, &Target, usize) -> anyhow::Result<()>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for target in &setup.targets {
        for &n in sizes(target, setup.effort) {
            let (target, title) = (target.clone(), format!("primitives: {family} on {}, {n} items", target.name()));
            steps.push(Step::new(title, move |session| measure(session, &target, n)));
        }
    }
    steps
}

/// A row to be measured: `n` items, of which type, in which case.
fn row(operation: &str, item: &str, n: usize) -> Record {
    Record::new("primitives", operation, n).param("key", item)
}

/// Measures `work` on host memory with all threads and adds the row; it moves `bytes`. `right` looks at the result of
/// the last repeat.
fn on_cpu<S: Send>(
    session: &mut Session,
    row: Record,
    bytes: usize,
    state: &mut S,
    work: impl FnMut(&mut S) -> anyhow::Result<()> + Send,
    right: impl FnOnce(&S) -> bool,
) -> anyhow::Result<()> {
    let seconds = session.time(Threads::All, state, |_| Ok(()), work)?;
    let copied = session.copy_limit(Threads::All, (bytes / 2).next_power_of_two());
    let mut row = row.time(seconds).bytes(bytes, Some(copied));
    row.checked = session.verify(right(state), || wrong(&row));
    session.push_on(&Target::Cpu, row, Threads::All);
    Ok(())
}

/// Measures what `work` queues on `stream`, by events on the device's clock, and adds the row; it moves `bytes`.
/// `right` looks at the result of the last repeat.
fn on_device<S>(
    session: &mut Session,
    stream: &Stream,
    row: Record,
    bytes: usize,
    state: &mut S,
    mut work: impl FnMut(&mut S) -> anyhow::Result<()>,
    right: impl FnOnce(&S) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let device = stream.device();
    let seconds = gpu_limits::seconds(device, stream, session.effort, || Ok(()), || work(state))?;
    stream.synchronize()?;
    let copied = copied_per_second(session, device, bytes)?;
    let mut row = row.time(seconds).bytes(bytes, copied);
    row.checked = session.verify(right(state)?, || wrong(&row));
    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
    Ok(())
}

fn wrong(row: &Record) -> String {
    format!("{} of {} items, {}", row.operation, row.n, super::table::parameters(row))
}

/// Bytes a second that copying moves where it moves about as many as the operation; none for the emulator, which is
/// not about speed.
fn copied_per_second(session: &mut Session, device: &Device, bytes: usize) -> anyhow::Result<Option<f64>> {
    if device.is_emulator() {
        return Ok(None);
    }
    let footprint = (bytes / 2).next_power_of_two().clamp(1 << 16, 1 << 32);
    Ok(Some(32.0 * session.gpu_limit(device, GpuAccess::Copy, footprint)?))
}

#[cfg(test)]
mod tests {
    use super::super::progress::Progress;
    use super::super::suite::Input;
    use super::*;

    #[test]
    fn every_operation_is_right_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let setup =
            Setup { effort: Effort::Quick, targets: vec![Target::Gpu(device)], own_keys: false, log2_slots: None };
        let mut session = Session::new(Effort::Quick, String::new(), Progress::new(0), Input::default()).unwrap();
        for step in Primitives.generated(&setup) {
            session.run(step).unwrap();
        }
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        assert!(rows.iter().all(|row| row.checked && row.backend == "emulator" && row.limit_fraction.is_none()));
        assert!(rows.iter().any(|row| row.operation == "select by bitmap"));
    }
}
