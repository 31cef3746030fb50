//! One executable for machines with and without a driver: what the linker made of it, and what it says.

use object::{Object, ObjectSymbol};
use warpset_gpu::{Device, GpuError};

/// Lists the libraries that the loader opens when this executable starts.
fn dynamic_dependencies(elf: &[u8]) -> Vec<String> {
    use object::read::elf::{Dyn, ElfFile64, FileHeader};
    let file = ElfFile64::<object::Endianness>::parse(elf).expect("an ELF executable");
    let (endian, header) = (file.endian(), file.elf_header());
    let sections = header.sections(endian, elf).expect("sections");
    let (dynamic, strings) = sections.dynamic(endian, elf).expect("readable").expect("a dynamic section");
    let strings = sections.strings(endian, elf, strings).expect("its strings");
    let needed = dynamic.iter().filter(|entry| entry.d_tag(endian) == u64::from(object::elf::DT_NEEDED));
    needed.map(|entry| String::from_utf8_lossy(entry.string(endian, strings).expect("a name")).into_owned()).collect()
}

#[test]
fn the_executable_depends_on_no_driver() {
    let elf = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
    let needed = dynamic_dependencies(&elf);
    assert!(needed.iter().any(|name| name.starts_with("libc.so")), "{needed:?}");
    assert!(!needed.iter().any(|name| name.contains("cuda")), "{needed:?}");

    // Nor does it offer driver functions to libraries that it opens, the true driver among them.
    let file = object::File::parse(&*elf).expect("an ELF executable");
    let offered: Vec<_> =
        file.dynamic_symbols().filter_map(|s| s.name().ok()).filter(|n| n.starts_with("cu")).collect();
    assert!(offered.is_empty(), "{offered:?}");
}

#[test]
fn this_machine_gets_a_device_or_a_reason() {
    match Device::cuda(0) {
        Ok(device) => assert!(!device.is_emulator()),
        Err(why) => {
            let expected = matches!(
                why,
                GpuError::NoDriver { .. }
                    | GpuError::NoDevice
                    | GpuError::DriverTooOld { .. }
                    | GpuError::DeviceTooOld { .. }
                    | GpuError::Disabled { .. }
                    | GpuError::InvalidSetting { .. }
            );
            assert!(expected && why.is_unavailable(), "{why:?}");
        }
    }
    let found = |path: &str| std::path::Path::new(path).exists();
    if !found("/proc/driver/nvidia/version") && !found("/dev/nvidiactl") && !found("/dev/dxg") {
        let answer = Device::cuda_count();
        assert!(matches!(answer, Err(GpuError::NoDriver { .. } | GpuError::NoDevice | GpuError::Disabled { .. })));
    }
}
