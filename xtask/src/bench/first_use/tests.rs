//! First calls on the emulator: which kernels they ask for, and how much PTX that is.

use warpset::gpu::LoadedKernel;

use super::*;

#[test]
fn print() {
    for (name, prepare) in CALLS {
        let device = Device::emulator(Default::default());
        let call = prepare(Input::on(&device)).expect("prepared");
        let start = Instant::now();
        call().expect("done");
        println!("{name}: {:?}", start.elapsed());
        for LoadedKernel { name, ptx_bytes, ahead, launched, .. } in device.loaded_kernels() {
            println!("    {name} {ptx_bytes} ahead {ahead} launched {launched}");
        }
    }
}
