//! The import library: it has what `cust_raw` declares, and keeps unknown result codes from it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use warpset_cust::Error;
use warpset_gpu::{Device, GpuError};

/// Returns the folder of the source of `cust_raw`; `None` where tests run without Cargo.
fn cust_raw() -> Option<String> {
    let output = Command::new(std::env::var_os("CARGO")?)
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|package| package["name"] == "cust_raw")?;
    let manifest = PathBuf::from(package["manifest_path"].as_str()?);
    std::fs::read_to_string(manifest.with_file_name("src").join("cuda.rs")).ok()
}

#[test]
fn the_import_library_has_every_function_that_cust_declares() {
    let Some(source) = cust_raw() else {
        warpset_gpu::testing::skipped("the list of driver functions: the source of cust_raw is not here");
        return;
    };
    let names = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let declared: BTreeSet<String> = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("pub fn "))
        .filter_map(|rest| rest.split('(').next())
        .filter(|name| name.starts_with("cu"))
        .map(String::from)
        .collect();
    assert!(declared.len() > 300);
    assert_eq!(names(include_str!("../import/cust_raw.txt")), declared);

    // And the result codes that may pass through are exactly those of `cust`'s enumeration.
    let (_, rest) = source.split_once("pub enum cudaError_enum {").expect("the enumeration");
    let (body, _) = rest.split_once('}').expect("its end");
    let codes = body.lines().filter_map(|line| line.split_once("= ")).map(|(_, n)| n.trim_end_matches(',').to_owned());
    assert_eq!(names(include_str!("../import/known_codes.txt")), codes.collect());
}

#[test]
fn the_emulator_has_nothing_for_cust() {
    let device = Device::emulator(Default::default());
    assert!(matches!(warpset_cust::lend_context(&device), Err(Error::Emulator)));
    let stream = device.new_stream().expect("a stream");
    assert!(matches!(warpset_cust::lend_stream(&stream).err(), Some(Error::Emulator)));
}

/// Exchanges contexts, streams and memory in both directions, where there is a device.
#[test]
fn on_a_device() -> Result<(), Box<dyn std::error::Error>> {
    use warpset_cust::cust::memory::{CopyDestination, DeviceBuffer};
    let Some(device) = warpset_gpu::testing::cuda() else { return Ok(()) };
    let context = warpset_cust::lend_context(&device)?;
    assert_eq!(warpset_cust::adopt_context(&context)?, device);

    let stream = device.new_stream()?;
    let lent = warpset_cust::lend_stream(&stream)?;
    assert_eq!(lent.as_inner().cast(), stream.as_raw().expect("a stream of CUDA"));
    lent.synchronize()?;

    let mut theirs = DeviceBuffer::from_slice(&[1u32, 2, 3])?;
    // SAFETY: everything waits.
    unsafe {
        let mut adopted = warpset_cust::adopt_memory(&device, &mut theirs)?;
        assert_eq!(adopted.as_slice().to_vec()?, [1, 2, 3]);
        adopted.as_mut_slice().copy_from_slice(&[4, 5, 6])?;
    }
    let mut words = [0u32; 3];
    theirs.copy_to(&mut words)?;
    assert_eq!(words, [4, 5, 6]);

    let ours = device.from_slice(&[7u32, 8])?;
    let mut words = [0u32; 2];
    // SAFETY: as above.
    unsafe { warpset_cust::lend_slice(ours.as_slice()) }.copy_to(&mut words)?;
    assert_eq!(words, [7, 8]);
    Ok(())
}

#[test]
fn a_missing_driver_is_a_reason() {
    if let Err(why) = Device::cuda(0) {
        assert!(matches!(why, GpuError::NoDriver { .. } | GpuError::NoDevice | GpuError::Disabled { .. }), "{why}");
        assert!(warpset_cust::cust::quick_init().is_err());
    }
}
