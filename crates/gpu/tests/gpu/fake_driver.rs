//! The CUDA executor on a driver that polices it (`fake_driver.c`): machines without a GPU run all of it but kernels.
//!
//! The driver is a `libcuda.so.1` that a C compiler makes here; a child process of this executable finds it before
//! any other. Each test is a scenario in such a child, which fails on its own assertions or on what the driver saw.
//!
//! The faults that other bindings of the driver have, and what would find them here:
//!
//! | fault | found by |
//! | --- | --- |
//! | a cast buffer is freed twice | `suite::parts` casts; the driver reports a second free |
//! | streams are not non-blocking | the driver checks the flag; `suite::kernels` sees two streams overlap on a device |
//! | copies and sets run on the legacy default stream | the driver reports work without a stream |
//! | waiting for an event destroys it | `suite::streams_and_events` waits three times; the driver checks handles |
//! | callbacks outlive what they borrow | there are none |
//! | use or drop without a current context fails in silence | `suite::many_threads`; the driver reports it |
//! | length zero is an error | `suite::zero_length`; the driver reports zero bytes |
//! | errors at drop are lost | `lost`: the broken context is reported by each later call |
//! | result codes newer than the binding are undefined behaviour | `codes_newer_than_this_crate` |
//! | the compiler's log is dropped | `ptx_that_is_rejected_comes_with_the_log` |

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use warpset_gpu::{AdoptedMemory, Backend, Device, Devices, DriverCode, GpuError, LaunchConfig, Result, Stream};

use crate::{runtime_kernels as kernels, suite};

const CHILD: &str = "WARPSET_GPU_SCENARIO";

type Scenario = fn() -> Result<()>;

/// Scenarios that the child processes run, by name.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("memory", || suite::memory(&device())),
    ("out_of_memory", || {
        suite::memory_limit(&device())?;
        suite::out_of_memory(&device(), 200_000)
    }),
    ("misconfigured_launches", || suite::misconfigured_launches(&device())),
    ("every_call", every_call),
    ("two_devices", two_devices),
    ("adoption", || suite::adoption(&device())),
    ("adoption_of_other_devices", adoption_of_other_devices),
    ("report", report),
    ("launch", launch),
    ("lost", lost),
    ("rejected", rejected),
    ("loading", || suite::loading(&device())),
];

fn device() -> Device {
    warpset_gpu::register_ptx("runtime_kernels", include_str!("runtime_kernels.ptx")).expect("one text");
    Device::cuda(0).expect("the fake driver has a device")
}

/// Prints what the backend is, for the parent to read.
fn report() -> Result<()> {
    println!("BACKEND: {:?}", Backend::auto());
    println!("ANSWER: {}", Backend::auto());
    Ok(())
}

fn every_call() -> Result<()> {
    let device = device();
    assert_eq!(device, Device::cuda(0)?);
    let properties = device.properties();
    assert_eq!((properties.name.as_str(), properties.compute_capability), ("Fake GPU 0", (9, 0)));
    assert_eq!(properties.max_shared_bytes_per_block, 227 << 10);
    let stream = device.new_stream()?;
    assert!(stream.as_raw().is_some_and(|raw| !raw.is_null()));
    device.load_module(kernels::add::INFO.module)?;
    assert!(matches!(
        device.load_module(&warpset_simt::Module { name: "nowhere", ptx: None, code: None }),
        Err(GpuError::UnknownModule { .. })
    ));
    let attributes = device.kernel_attributes(kernels::add::INFO)?.expect("CUDA has them");
    assert_eq!((attributes.registers, attributes.max_threads_per_block), (40, 512));
    // SAFETY: refused, for there is no such kernel.
    let absent = unsafe { kernels::absent {}.launch(&stream, LaunchConfig::new(1, 1)) };
    assert!(matches!(&absent, Err(GpuError::UnknownKernel { kernel, .. }) if kernel == "absent"), "{absent:?}");

    let mut words = device.alloc_zeroed::<u32>(50_000)?;
    for bytes in [0, 40 << 10, 100 << 10, 50 << 10, 200 << 10, 226 << 10] {
        let config = LaunchConfig::new(1, 256).shared(bytes);
        assert!(device.resident_blocks(kernels::reverse::INFO, config)? >= 8);
        // SAFETY: the fake driver runs nothing.
        unsafe { kernels::reverse { words: words.global_mut(), n: 0 }.launch(&stream, config)? };
    }
    // Its registers allow 512 threads, and its static shared memory takes 1 KiB from the 227.
    for config in [LaunchConfig::new(1, 513), LaunchConfig::new(1, 32).shared((226 << 10) + 1)] {
        // SAFETY: as above.
        let refused = unsafe { kernels::reverse { words: words.global_mut(), n: 0 }.launch(&stream, config) };
        assert!(matches!(refused, Err(GpuError::InvalidLaunch { kernel: "reverse", .. })), "{refused:?}");
    }
    // Threads that have never seen this device load and launch at the same time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = device.new_stream().expect("a stream");
                let mut words = stream.alloc_zeroed::<u32>(64).expect("memory");
                // SAFETY: as above.
                unsafe { kernels::bounded { words: words.global_mut() }.launch(&stream, LaunchConfig::new(1, 64)) }
                    .expect("a launch");
                stream.close().expect("no error");
            });
        }
    });
    stream.close()?;
    device.trim()?;
    device.synchronize()
}

fn two_devices() -> Result<()> {
    let devices = Devices::cuda_all()?;
    let [first, second] = devices.all() else { panic!("{devices:?}") };
    assert_ne!(first, second);
    suite::peers(first, second)?;
    // Once more on the second device, with the first one's context left current on this thread.
    first.synchronize()?;
    suite::memory(second)
}

/// Handles and addresses of one device are refused by another.
fn adoption_of_other_devices() -> Result<()> {
    let devices = Device::cuda_all()?;
    let (first, second) = (&devices[0], &devices[1]);
    let words = first.from_slice(&[1u32, 2, 3])?;
    let stream = first.new_stream()?;
    // SAFETY: words and stream live to the end of this function; the second device refuses them.
    let (memory, adopted) = unsafe {
        let memory = AdoptedMemory::<u32>::new(second, words.as_slice().as_raw(), 3);
        (memory, Stream::adopt(second, stream.as_raw().expect("a stream of CUDA")))
    };
    assert!(matches!(memory.err(), Some(GpuError::OtherDevice { .. })));
    assert!(matches!(adopted.err(), Some(GpuError::OtherDevice { .. })));
    // SAFETY: an address that the driver does not know is refused.
    let unknown = unsafe { AdoptedMemory::<u32>::new(first, 64, 1) };
    assert!(matches!(unknown.err(), Some(GpuError::Driver { call: "cuPointerGetAttribute", .. })));
    Ok(())
}

fn launch() -> Result<()> {
    let device = device();
    let stream = device.new_stream()?;
    let mut words = device.alloc_zeroed::<u32>(64)?;
    // SAFETY: the fake driver runs nothing.
    let refused = unsafe { kernels::bounded { words: words.global_mut() }.launch(&stream, LaunchConfig::new(1, 64)) };
    println!("LAUNCH: {refused:?}");
    println!("THEN: {:?}", stream.synchronize());
    Ok(())
}

/// Covers a kernel that crashes: the error names it, later calls fail at once, and everything can be dropped.
fn lost() -> Result<()> {
    warpset_gpu::register_ptx("runtime_kernels", include_str!("runtime_kernels.ptx"))?;
    // SAFETY: no other thread of this child reads the environment now.
    unsafe { std::env::remove_var("FAKE_SYNC") };
    let device = device();
    let stream = device.new_stream()?;
    let mut words = device.alloc_zeroed::<u32>(64)?;
    let temporary = stream.alloc_zeroed::<u32>(64)?;
    let pending = stream.upload_pinned(&mut words, device.pinned(64)?)?;
    // SAFETY: the fake driver runs nothing.
    unsafe { kernels::bounded { words: words.global_mut() }.launch(&stream, LaunchConfig::new(1, 64))? };
    // SAFETY: as above.
    unsafe { std::env::set_var("FAKE_SYNC", "719") };
    match stream.synchronize() {
        Err(GpuError::DeviceLost { code: DriverCode(719), last_kernel: Some("bounded") }) => {}
        other => panic!("{other:?}"),
    }
    // SAFETY: as above.
    unsafe { std::env::remove_var("FAKE_SYNC") };
    for error in [
        words.to_vec().err(),
        stream.is_idle().err(),
        device.new_stream().err(),
        device.alloc_uninit::<u8>(1).err(),
        pending.wait().err(),
        Device::cuda(0).err(),
        stream.close().err(),
    ] {
        assert!(matches!(error, Some(GpuError::DeviceLost { code: DriverCode(719), .. })), "{error:?}");
    }
    drop((words, temporary, device));
    // Everything of the broken context is gone: a fresh one works.
    let device = Device::cuda(0)?;
    assert_eq!(device.from_slice(&[5u8])?.to_vec()?, [5]);
    Ok(())
}

fn rejected() -> Result<()> {
    let device = device();
    assert!(matches!(device.load_module(kernels::add::INFO.module), Err(GpuError::PtxRejected { .. })));
    let error = device.kernel_attributes(kernels::bounded::INFO).unwrap_err();
    println!("REJECTED: {error}");
    Ok(())
}

/// Runs the child's scenario; does nothing in the parent.
#[test]
fn scenario() {
    let Ok(name) = std::env::var(CHILD) else { return };
    let (_, body) = SCENARIOS.iter().find(|(known, _)| *known == name).expect("a known scenario");
    body().unwrap_or_else(|error| panic!("{name}: {error}"));
    println!("SCENARIO ENDED");
}

/// Returns the directory with the fake `libcuda.so.1`; `None` after printing that no C compiler is here.
fn library() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        // The source is in this executable, which may run on another machine than the one that built it.
        let mut directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        if !directory.is_dir() {
            directory = std::env::temp_dir();
        }
        directory.push(format!("warpset-fake-driver-{}", std::process::id()));
        let source = directory.join("fake_driver.c");
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        std::fs::write(&source, include_str!("fake_driver.c")).expect("written");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
        match command.arg(directory.join("libcuda.so.1")).arg(&source).output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(directory)
            }
            Err(error) => {
                warpset_gpu::testing::skipped(&format!("the fake driver: no C compiler ({error})"));
                None
            }
        }
    });
    built.as_ref()
}

/// Runs a scenario on the fake driver, and answers what it printed. `None` where it cannot be run.
fn run(scenario: &str, settings: &[(&str, &str)]) -> Option<String> {
    let library = library()?;
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "fake_driver::scenario", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    command.env(CHILD, scenario).env("LD_LIBRARY_PATH", library).env_remove("WARPSET_BACKEND");
    let output = command.envs(settings.iter().copied()).output().expect("this executable starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let told = format!("{scenario} {settings:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
    assert!(output.status.success() && stdout.contains("SCENARIO ENDED"), "{told}");
    assert!(!stderr.contains("VIOLATION"), "{told}");
    let loaded = stderr.contains("FAKE DRIVER: end");
    assert!(loaded || settings.iter().any(|(name, _)| *name == "WARPSET_BACKEND"), "{told}");
    Some(stdout.into_owned())
}

#[track_caller]
fn expect(scenario: &str, settings: &[(&str, &str)], parts: &[&str]) {
    let Some(said) = run(scenario, settings) else { return };
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in what {scenario} {settings:?} said:\n{said}");
    }
}

#[test]
fn memory_streams_and_events() {
    expect("memory", &[], &[]);
    expect("memory", &[("FAKE_POOLS", "0")], &[]);
}

#[test]
fn all_other_calls() {
    expect("every_call", &[], &[]);
    expect("misconfigured_launches", &[], &[]);
}

#[test]
fn kernels_are_loaded_side_by_side() {
    expect("loading", &[("FAKE_COMPILE", "2")], &[]);
}

#[test]
fn memory_that_runs_out() {
    expect("out_of_memory", &[], &[]);
    expect("out_of_memory", &[("FAKE_POOLS", "0")], &[]);
}

#[test]
fn several_devices() {
    expect("two_devices", &[("FAKE_DEVICES", "2")], &[]);
}

#[test]
fn what_others_own() {
    expect("adoption", &[], &[]);
    expect("adoption", &[("FAKE_POOLS", "0")], &[]);
    expect("adoption_of_other_devices", &[("FAKE_DEVICES", "2")], &[]);
}

#[test]
fn what_the_machine_answers() {
    expect("report", &[], &["ANSWER: CUDA on Fake GPU 0"]);
    expect("report", &[("FAKE_INIT", "100")], &["BACKEND: Cpu(the CUDA driver sees no device"]);
    expect("report", &[("FAKE_DEVICES", "0")], &["BACKEND: Cpu(the CUDA driver sees no device"]);
    expect("report", &[("FAKE_INIT", "34")], &["Cpu(no CUDA driver on this machine", "stub"]);
    expect("report", &[("FAKE_VERSION", "11080")], &["supports CUDA 11.8, and 12.0 is needed"]);
    expect("report", &[("FAKE_CAPABILITY", "75")], &["Fake GPU 0 has compute capability 7.5, and 8.0 is the least"]);
    expect("report", &[("WARPSET_BACKEND", "cpu")], &["CUDA is turned off by WARPSET_BACKEND=cpu"]);
    expect("report", &[("WARPSET_BACKEND", "cuda:1")], &["no CUDA device 1: this machine has 1"]);
    expect("report", &[("WARPSET_BACKEND", "cuda:1"), ("FAKE_DEVICES", "2")], &["ANSWER: CUDA on Fake GPU 1"]);
    expect("report", &[("WARPSET_BACKEND", "metal")], &["WARPSET_BACKEND=metal is not understood"]);
}

#[test]
fn codes_newer_than_this_crate() {
    expect("report", &[("FAKE_INIT", "12345")], &["cuInit failed: CUDA driver code 12345"]);
    expect(
        "report",
        &[("FAKE_RETAIN", "46")],
        &["cuDevicePrimaryCtxRetain failed: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"],
    );
    expect(
        "launch",
        &[("FAKE_LAUNCH", "4294967295")],
        &["launch of kernel `bounded` failed: CUDA driver code 4294967295"],
    );
    expect("rejected", &[("FAKE_LOAD", "777")], &["driver code 777"]);
}

#[test]
fn failures_of_kernels() {
    let refused = "launch of kernel `bounded` failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)";
    expect("launch", &[("FAKE_LAUNCH", "701")], &[refused, "THEN: Ok(())"]);
    expect("launch", &[("FAKE_LAUNCH", "700")], &["LAUNCH: Err(the device is lost", "THEN: Err(the device is lost"]);
    expect("lost", &[("FAKE_BROKEN", "1")], &[]);
    expect("lost", &[("FAKE_BROKEN", "1"), ("FAKE_POOLS", "0")], &[]);
}

#[test]
fn ptx_that_is_rejected_comes_with_the_log() {
    let expected =
        ["rejected the PTX of module `runtime_kernels`", "INVALID_PTX (218)", "ptxas fake, line 1; error: with bounds"];
    expect("rejected", &[("FAKE_LOAD", "218")], &expected);
    expect("rejected", &[("FAKE_LOAD", "222")], &["UNSUPPORTED_PTX_VERSION (222)"]);
}
