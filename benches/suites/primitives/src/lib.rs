//! Device-wide primitives, one file per family: on GPUs, verified against a plain computation, held
//! against the speed at which the same machine copies as many bytes.

mod case;
#[cfg(feature = "emulator")]
mod emulator;
mod levels;
mod loading;
mod merge;
mod scan;
mod search;
mod select;
mod sort;

use warpset_core::hash::xxh64_u64;

use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step, Suite, Target};
use warpset::gpu::Device;

/// The steps of each family.
const FAMILIES: &[fn(&Setup) -> Vec<Step>] = &[
    scan::steps,
    sort::steps,
    merge::steps,
    levels::steps,
    search::steps,
    select::steps,
    loading::steps,
    #[cfg(feature = "emulator")]
    emulator::steps,
];

/// The primitives' benches.
pub struct Primitives;

impl Suite for Primitives {
    fn name(&self) -> &'static str {
        "primitives"
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        FAMILIES.iter().flat_map(|steps| steps(setup)).collect()
    }
}

/// Returns numbers of items: on a GPU from inputs dominated by latency to inputs that fill its memory system, on the
/// emulator a few tiles.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match effort {
        _ if device.is_emulator() => &[20_001],
        Effort::Quick => &[1 << 20, 1 << 24],
        Effort::Standard => &[1 << 16, 1 << 18, 1 << 20, 1 << 24, 1 << 28],
        Effort::Full => &[1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 29],
    }
}

/// Makes one step per device and size: `measure` adds the rows.
fn steps_of(
    setup: &Setup,
    family: &'static str,
    measure: fn(&mut Session, &Device, usize) -> anyhow::Result<()>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        for &n in sizes(device, setup.effort) {
            let name = Target::Gpu(device.clone()).name();
            let (device, title) = (device.clone(), format!("primitives: {family} on {name}, {n} items"));
            steps.push(Step::new(title, move |session| measure(session, &device, n)));
        }
    }
    steps
}

/// Returns the high halves of keys, in the same order.
fn narrow(keys: &[u64]) -> Vec<u32> {
    keys.iter().map(|key| (key >> 32) as u32).collect()
}

/// The most keys of 16 bytes: the host checks results too, and more of them take it minutes.
const MOST_WIDEST: usize = 1 << 26;

/// Widens keys to 16 bytes in the same order, with random lower halves.
fn widest(keys: &[u64]) -> Vec<u128> {
    keys.iter().map(|&key| u128::from(key) << 64 | u128::from(xxh64_u64(key, 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_right_on_the_emulator() {
        let setup = Setup::emulator();
        let rows = Session::rows_of(Primitives.generated(&setup));
        assert!(rows.iter().all(|row| row.checked && row.backend == "emulator" && row.limit_fraction.is_none()));
        assert!(rows.iter().any(|row| row.operation == "select by bitmap"));
    }
}
