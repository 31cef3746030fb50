//! Finds the extremes of readings on the GPU, or on the emulator where there is none, and checks them.

use own_kernel::extremes;
use warpset_gpu::{Backend, Device};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (device, n) = match Backend::auto() {
        Backend::Cuda(device) => (device, 100_000_000),
        Backend::Cpu(why) => {
            println!("no GPU ({why}): running on the emulator");
            (Device::emulator(Default::default()), 100_000)
        }
    };
    let readings: Vec<u32> =
        (1..=n).map(|i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64) >> 32) as u32 / 2 + 1000).collect();
    let found = extremes(&device, &readings)?;
    let expected = readings.iter().min().copied().zip(readings.iter().max().copied());
    if found != expected {
        return Err(format!("the device found {found:?}, and it is {expected:?}").into());
    }
    println!("{n} readings on {device}: {found:?}, as on the host");
    Ok(())
}
