//! Time that the driver takes to load each module of kernels for the first time. With the driver's cache of compiled
//! kernels it is about a millisecond; `CUDA_CACHE_DISABLE=1` disables the cache.

use std::time::Instant;

use bench_frame::suite::{Setup, Step, Target, Threads};
use bench_record::Record;

pub fn steps(setup: &Setup) -> Vec<Step> {
    let devices = setup.devices().filter(|device| !device.is_emulator()).cloned();
    devices
        .map(|device| {
            Step::new("primitives: loading of kernels", move |session| {
                for module in warpset_kernels::MODULES {
                    let start = Instant::now();
                    device.load_module(module)?;
                    let mut row = Record::new("machine", "load of kernels", 1).time(start.elapsed().as_secs_f64());
                    row = row.param("module", module.name).param("ptx_bytes", module.ptx.map_or(0, |ptx| ptx.text().len()));
                    row.checked = true;
                    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
                }
                Ok(())
            })
            .except_quick()
        })
        .collect()
}
