//! Threads per second that the emulator runs on one core, with detection of races and without: a study of its own, as
//! no structure's rate depends on it. The kernels suspend never, six times, and nine times and more per thread.

use warpset_kernels::selftest::{TILE, block_scan, look_back_scan, saxpy};
use warpset_simt::LaunchConfig;
use warpset_simt::emulator::{Buffer, Config, Emulator};

use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Returns the settings to compare, by name.
fn settings() -> [(&'static str, Config); 3] {
    [
        ("no detection", Config::fast()),
        ("races", Config { reorder_relaxed: false, ..Config::default() }),
        ("races and reordering", Config::default()),
    ]
}

pub fn steps(setup: &Setup) -> Vec<Step> {
    let step = || Step::new("primitives: threads of the emulator", measure).except_quick();
    setup.cpu().then(step).into_iter().collect()
}

fn measure(session: &mut Session) -> anyhow::Result<()> {
    for (detection, config) in settings() {
        let emulator = Emulator::new(config);
        let (few, many) = (1 << 16, 1 << 18);
        let shape = |threads: u32, block| LaunchConfig::new(threads / block, block);
        let (x, y) = (emulator.buffer_from(&vec![3u32; many]), emulator.buffer_from(&vec![1u32; many]));
        let (ones, zeros) = (emulator.buffer_from(&vec![1u32; few]), emulator.buffer::<u32>(few));
        let tiles = few / TILE as usize;
        let (sums, prefixes) = (emulator.buffer(tiles), emulator.buffer(tiles));
        let scans_right = |prefixes: &Buffer<u32>, length: usize| {
            prefixes.to_vec().iter().enumerate().all(|(i, &prefix)| prefix as usize == i % length + 1)
        };
        let mut add = |kernel: &str,
                       threads: usize,
                       work: &mut (dyn FnMut() -> anyhow::Result<()> + Send),
                       right: &dyn Fn() -> bool| {
            let seconds = session.time(Threads::One, &mut (), |()| work())?;
            let row = Record::new("machine", "threads of the emulator", threads).time(seconds);
            let row = row.param("kernel", kernel).param("detection", detection);
            session.add(&Target::Cpu, Threads::One, row, right());
            anyhow::Ok(())
        };
        // SAFETY: both have one word per thread.
        let mut run = || unsafe {
            saxpy { a: 0, x: x.global(), y: y.global_mut(), n: many }.launch(&emulator, shape(many as u32, 256))?;
            Ok(())
        };
        add("saxpy", many, &mut run, &|| y.to_vec().iter().all(|&y| y == 1))?;
        // SAFETY: both have one word per thread.
        let mut run = || unsafe {
            let shape = shape(few as u32, 256).shared(128);
            block_scan { x: ones.global(), y: zeros.global_mut() }.launch(&emulator, shape)?;
            Ok(())
        };
        add("block_scan", few, &mut run, &|| scans_right(&zeros, 256))?;
        let mut run = || {
            let flags = emulator.buffer_from(&vec![0u32; tiles]);
            let ticket = emulator.buffer_from(&[0u32]);
            // SAFETY: the sizes are those that the kernel asks for; flags and ticket are zero.
            unsafe {
                look_back_scan {
                    x: ones.global(),
                    y: zeros.global_mut(),
                    n: few,
                    sums: sums.global_mut(),
                    prefixes: prefixes.global_mut(),
                    flags: flags.global_mut(),
                    ticket: ticket.global_mut(),
                }
                .launch(&emulator, shape(few as u32, TILE).shared(32))?;
            }
            Ok(())
        };
        add("look_back_scan", few, &mut run, &|| scans_right(&zeros, few))?;
    }
    Ok(())
}
