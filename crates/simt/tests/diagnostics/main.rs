//! Each diagnostic of the emulator: a kernel that commits the fault, and a twin that does not.
#![allow(clippy::missing_safety_doc)]

use warpset_simt::emulator::{Config, Emulator, Fault, FaultKind};

mod ends;
mod memory;
mod races;
mod synchronisation;

fn always(launch: impl Fn(&Emulator) -> Result<(), Fault>, expected: impl Fn(&FaultKind) -> bool) -> Fault {
    let mut last = None;
    for seed in 0..8 {
        let fault = launch(&Emulator::new(Config::seeded(seed))).expect_err("the kernel is at fault");
        assert!(expected(&fault.kind), "seed {seed}: {fault}");
        last = Some(fault);
    }
    last.unwrap()
}

fn never(launch: impl Fn(&Emulator) -> Result<(), Fault>) {
    for seed in 0..8 {
        if let Err(fault) = launch(&Emulator::new(Config::seeded(seed))) {
            panic!("seed {seed}: {fault}");
        }
    }
}
