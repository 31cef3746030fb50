//! The suite on the emulator, and on a CUDA device where one answers.
//!
//! Without a device the CUDA half is skipped, and says so; `WARPSET_REQUIRE_CUDA=1` makes that a failure.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use warpset_gpu::emulator::{Config, FaultKind};
use warpset_gpu::{Device, EmulatorOptions, GpuError, LaunchConfig, Result, testing};

use crate::{runtime_kernels as kernels, suite};

const MEMORY: usize = 8 << 20;

fn emulator() -> Device {
    Device::emulator_with(EmulatorOptions::default().config(Config::seeded(1)).memory_bytes(MEMORY))
}

/// Held for writing by the test that takes all memory of the CUDA device, for reading by the others.
static MEMORY_GATE: RwLock<()> = RwLock::new(());

/// Returns the CUDA device, after registering our PTX with it; `None` after printing why there is none.
fn cuda() -> Option<Device> {
    let device = testing::cuda()?;
    warpset_gpu::register_ptx("runtime_kernels", include_str!("runtime_kernels.ptx")).expect("one text");
    Some(device)
}

/// Returns the CUDA device, to be used until the guard is dropped.
fn cuda_beside_others() -> Option<(Device, RwLockReadGuard<'static, ()>)> {
    let guard = MEMORY_GATE.read().unwrap_or_else(PoisonError::into_inner);
    Some((cuda()?, guard))
}

fn on_both(body: fn(&Device) -> Result<()>) -> Result<()> {
    body(&emulator())?;
    cuda_beside_others().map_or(Ok(()), |(device, _guard)| body(&device))
}

#[test]
fn memory() -> Result<()> {
    on_both(suite::memory)
}

#[test]
fn handles_of_others_are_adopted() -> Result<()> {
    on_both(suite::adoption)
}

#[test]
fn kernels_run() -> Result<()> {
    on_both(suite::kernels)
}

#[test]
fn kernels_are_loaded_before_they_are_launched() -> Result<()> {
    suite::loading(&emulator())
}

#[test]
fn misconfigured_launches_are_refused() -> Result<()> {
    on_both(suite::misconfigured_launches)
}

#[test]
fn out_of_memory_is_survived() -> Result<()> {
    suite::out_of_memory(&emulator(), MEMORY / 5)?;
    let _guard = MEMORY_GATE.write().unwrap_or_else(PoisonError::into_inner);
    suite::memory_limit(&emulator())?;
    cuda().map_or(Ok(()), |device| {
        suite::memory_limit(&device)?;
        let piece = device.memory_info()?.free / 5;
        suite::out_of_memory(&device, piece)
    })
}

#[test]
fn a_device_says_what_it_is() -> Result<()> {
    on_both(|device| {
        let properties = device.properties();
        assert!(properties.compute_capability >= (8, 0));
        assert!(properties.multiprocessors > 0 && properties.l2_bytes > 0 && properties.warp_size == 32);
        assert!(properties.max_shared_bytes_per_block >= 48 << 10);
        assert_eq!(properties.is_emulator, properties.driver_version.is_none());
        let memory = device.memory_info()?;
        assert!(memory.free <= memory.total && memory.total > 0);
        assert!(device.to_string().contains(&properties.name));
        Ok(())
    })
}

#[test]
fn one_device_is_opened_once() -> Result<()> {
    if let Some((device, _guard)) = cuda_beside_others() {
        assert_eq!(device, Device::cuda(0)?);
        assert!(matches!(Device::cuda(99), Err(GpuError::NoSuchDevice { ordinal: 99, .. })));
        assert_eq!(Device::cuda_all()?.len(), Device::cuda_count()? as usize);
    }
    assert_ne!(emulator(), emulator());
    Ok(())
}

#[test]
fn two_devices_work_together() -> Result<()> {
    suite::peers(&emulator(), &emulator())?;
    let _guard = MEMORY_GATE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(devices) = testing::several_cuda() else { return Ok(()) };
    let [first, second, ..] = devices.all() else { unreachable!("at least two") };
    suite::peers(first, second)?;
    suite::memory(second)?;
    suite::kernels(second)
}

#[test]
fn the_emulator_poisons_memory_and_reports_faults() -> Result<()> {
    let device = emulator();
    let stream = device.new_stream()?;
    let fresh = device.alloc_uninit::<u8>(100)?;
    assert!(fresh.to_vec()?.iter().all(|&byte| byte == warpset_gpu::emulator::POISON));

    let mut words = device.alloc_zeroed::<u32>(4)?;
    // SAFETY: the emulator stops the access.
    match unsafe { kernels::crash { words: words.global_mut() }.launch(&stream, LaunchConfig::new(1, 1)) } {
        Err(GpuError::Emulator(fault)) => {
            assert_eq!(fault.kernel, "crash");
            assert!(matches!(fault.kind, FaultKind::GlobalOutOfBounds { .. }), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    // A handle to more than the vector holds does not help.
    let reach = warpset_simt::GlobalMut::from_raw_parts(words.global_mut().as_ptr(), 1 << 20);
    // SAFETY: as above.
    let fault = unsafe {
        kernels::add { from: reach.into(), to: reach, n: 1 << 20, amount: 1 }.launch(&stream, LaunchConfig::new(1, 32))
    };
    assert!(matches!(fault, Err(GpuError::Emulator(_))), "{fault:?}");
    // The device still works.
    words.fill_bytes(0)?;
    assert_eq!(words.to_vec()?, [0; 4]);
    Ok(())
}

#[test]
fn handles_go_where_users_take_them() {
    fn shared_between_threads<T: Send + Sync + 'static>() {}
    shared_between_threads::<Device>();
    shared_between_threads::<warpset_gpu::Stream>();
    shared_between_threads::<warpset_gpu::Event>();
    shared_between_threads::<warpset_gpu::DeviceVec<u64>>();
    shared_between_threads::<warpset_gpu::DeviceSlice<'static, u64>>();
    shared_between_threads::<warpset_gpu::DeviceSliceMut<'static, u64>>();
    shared_between_threads::<warpset_gpu::PinnedVec<u64>>();
    shared_between_threads::<warpset_gpu::Pending<u64>>();
    shared_between_threads::<warpset_gpu::Backend>();
    shared_between_threads::<GpuError>();
}

/// Runs in the child of the next test: launches a kernel that traps.
#[test]
fn crash_in_child() {
    if std::env::var_os("WARPSET_GPU_CRASH").is_none() {
        return;
    }
    let device = cuda().expect("the parent has it");
    let stream = device.new_stream().expect("a stream");
    let mut words = device.alloc_zeroed::<u32>(4).expect("memory");
    // SAFETY: the device stops it.
    unsafe { kernels::crash { words: words.global_mut() }.launch(&stream, LaunchConfig::new(1, 1)) }.expect("queued");
    match stream.synchronize() {
        Err(GpuError::DeviceLost { code, last_kernel: Some("crash") }) => println!("LOST: {code}"),
        other => panic!("{other:?}"),
    }
    for error in [words.to_vec().err(), stream.clone().close().err(), device.alloc_uninit::<u8>(1).err()] {
        assert!(matches!(error, Some(GpuError::DeviceLost { .. })), "{error:?}");
    }
    drop((words, stream, device));
    println!("OPENED AGAIN: {:?}", Device::cuda(0).and_then(|device| device.from_slice(&[7u8])?.to_vec()));
}

#[test]
fn a_kernel_that_crashes_loses_the_device_and_not_the_program() {
    let Some(_device) = cuda_beside_others() else { return };
    let mut child = std::process::Command::new(std::env::current_exe().expect("a path"));
    child.args(["--exact", "executors::crash_in_child", "--nocapture"]).env("WARPSET_GPU_CRASH", "1");
    let output = child.output().expect("this executable starts");
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("LOST: "), "{said}");
}

#[test]
fn ptx_that_is_wrong_is_rejected_with_the_compilers_words() -> Result<()> {
    let Some((device, _guard)) = cuda_beside_others() else { return Ok(()) };
    let texts = [
        (
            "wrong_ptx_word",
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tfly.away;\n\tret;\n}\n",
        ),
        ("wrong_ptx_version", ".version 99.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"),
        ("wrong_ptx_zero", ".version 8.0\0"),
    ];
    for (name, text) in texts {
        match device.load_module(&warpset_simt::Module { name, ptx: Some(warpset_simt::Ptx::Text(text)), code: None }) {
            Err(GpuError::PtxRejected { module, code, log }) => {
                assert!(module == name && !log.is_empty());
                eprintln!("{name}: {code}: {log}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(matches!(
        device.load_module(&warpset_simt::Module { name: "nowhere", ptx: None, code: None }),
        Err(GpuError::UnknownModule { .. })
    ));
    // The device is as good as before.
    suite::kernels(&device)
}

/// Says which modules' kernels the driver compiled. A process of its own, for its environment.
#[test]
fn modules_in_child() {
    let Some(names) = std::env::var_os("WARPSET_GPU_MODULES") else { return };
    let names = names.into_string().expect("names");
    let device = cuda().expect("the parent has it");
    // Device code that is older than its PTX waits for the next release: those modules say nothing here.
    let is_meant =
        |module: &warpset_simt::Module| names == module.name || names == "all" && module.device_code().is_some();
    let modules = warpset_kernels::MODULES.iter().filter(|module| is_meant(module));
    for module in modules {
        device.load_module(module).unwrap_or_else(|error| panic!("{}: {error}", module.name));
    }
    let loaded = device.loaded_kernels();
    let compiled = loaded.iter().filter(|kernel| kernel.ptx_bytes > 0).count();
    println!("COMPILED {compiled} OF {}", loaded.len());
}

#[test]
fn kernels_come_as_device_code_and_else_as_ptx() {
    let Some((device, _guard)) = cuda_beside_others() else { return };
    let said = |names: &str, force: bool| {
        let mut child = std::process::Command::new(std::env::current_exe().expect("a path"));
        child.args(["--exact", "executors::modules_in_child", "--nocapture"]).env("WARPSET_GPU_MODULES", names);
        // The driver's own switch: it then refuses device code.
        child.env("CUDA_FORCE_PTX_JIT", if force { "1" } else { "0" });
        let output = child.output().expect("this executable starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        let line = said.lines().find_map(|line| line.split_once("COMPILED ")).expect("it says so").1;
        let (compiled, all) = line.split_once(" OF ").expect("two numbers");
        [compiled, all].map(|number| number.parse::<usize>().expect("a number"))
    };
    let [compiled, all] = said("batch_stencil", true);
    assert!(all > 0 && compiled == all, "{compiled} of {all}");
    // Older drivers do not know the compression, and compile.
    let [compiled, all] = said("all", false);
    let major = device.properties().compute_capability.0;
    eprintln!("{compiled} of {all} kernels compiled");
    assert!(compiled == 0 || !matches!(major, 8 | 9 | 10 | 12) || compiled == all, "{compiled} of {all}");
}

#[test]
fn device_code_that_is_refused_gives_way_to_ptx() -> Result<()> {
    let Some((device, _guard)) = cuda_beside_others() else { return Ok(()) };
    const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
    // A container of nothing.
    const HOLLOW: &[u8] = &[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (name, code) in
        [("no_code", &[] as &[u8]), ("short_code", &HOLLOW[..9]), ("zeros", &[0; 64]), ("hollow", HOLLOW)]
    {
        device.load_module(&warpset_simt::Module {
            name,
            ptx: Some(warpset_simt::Ptx::Text(TEXT)),
            code: Some(code),
        })?;
        let loaded = device.loaded_kernels();
        let kernel = loaded.iter().find(|kernel| kernel.module == name).expect("loaded");
        assert_eq!((kernel.name.as_str(), kernel.ptx_bytes), ("k", TEXT.len()));
    }
    Ok(())
}

#[test]
#[cfg(not(feature = "cuda"))]
fn without_the_feature_the_reason_says_so() {
    let backend = warpset_gpu::Backend::auto();
    let count = Device::cuda_count();
    let (device, reason) = (Device::cuda(0), backend.reason());
    if std::env::var_os(warpset_gpu::BACKEND_VARIABLE).is_some() {
        // The environment takes precedence.
        assert!(!backend.is_cuda() && count.is_err() && device.is_err(), "{backend}");
        return;
    }
    assert!(matches!(reason, Some(GpuError::NotBuiltIn)), "{backend}");
    assert!(matches!(count, Err(GpuError::NotBuiltIn)), "{count:?}");
    assert!(matches!(device, Err(GpuError::NotBuiltIn)), "{device:?}");
    let why = reason.expect("no device").to_string();
    assert!(why.contains("cuda"), "names the feature: {why}");
}
