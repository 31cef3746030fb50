//! Errors of the GPU backend, and the driver's result codes as plain numbers.

use std::fmt;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::count;

#[cfg(feature = "emulator")]
use warpset_simt::emulator::Fault;

/// Result of everything in this crate.
pub type Result<T, E = GpuError> = std::result::Result<T, E>;

/// Reason why an operation on a device failed, or why there is no device.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// This executable has no CUDA support.
    #[error("built without CUDA: enable the Cargo feature `cuda`")]
    NotBuiltIn,
    /// No CUDA driver on this machine.
    #[error("no CUDA driver on this machine ({reason}): install the NVIDIA driver, or use the CPU backend")]
    NoDriver {
        /// Message of the dynamic loader or of the driver's stub.
        reason: String,
    },
    /// The driver is loaded and sees no device.
    #[error("the CUDA driver sees no device: check `nvidia-smi`, CUDA_VISIBLE_DEVICES and the container's GPU access")]
    NoDevice,
    /// There are devices, but not this one.
    #[error("no CUDA device {ordinal}: this machine has {count}, numbered from 0; name one of these")]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: u32,
        /// Number of devices.
        count: u32,
    },
    /// The driver cannot load our kernels.
    #[error("the CUDA driver is too old: it supports CUDA {found}, and {needed} is needed; update the NVIDIA driver")]
    DriverTooOld {
        /// Version that the driver supports.
        found: CudaVersion,
        /// Version that the kernels need.
        needed: CudaVersion,
    },
    /// The device lacks instructions that our kernels use.
    #[error("{name} has compute capability {}.{}, and {}.{} is the least supported: use a newer GPU or the CPU backend", .found.0, .found.1, .needed.0, .needed.1)]
    DeviceTooOld {
        /// The device's name.
        name: String,
        /// Its compute capability.
        found: (u32, u32),
        /// The least that the kernels run on.
        needed: (u32, u32),
    },
    /// The user turned CUDA off.
    #[error("CUDA is turned off by {variable}={value}: unset the variable to use it")]
    Disabled {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// An environment variable has a meaningless value.
    #[error("{variable}={value} is not understood: {allowed}")]
    InvalidSetting {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// Values that the variable may have.
        allowed: &'static str,
    },
    /// The requested memory is not available.
    #[error(
        "out of memory on {place}: {asked} bytes asked for, {free} can be had; drop something first, or use smaller batches"
    )]
    OutOfMemory {
        /// Place of the memory: the device's name, or pinned host memory.
        place: String,
        /// Requested bytes.
        asked: usize,
        /// Bytes available at that moment, in one piece or in several. On a CUDA device: the unused bytes of the pool,
        /// and the free memory of the device, rounded down to the step by which the pool grows.
        free: usize,
    },
    /// No PTX is known under this name.
    #[error("no PTX module named `{module}`: register it with `register_ptx`")]
    UnknownModule {
        /// The module's name.
        module: String,
    },
    /// The name of a PTX module is taken.
    #[error("a PTX module named `{module}` is already known with another text: choose another name")]
    ModuleExists {
        /// The module's name.
        module: String,
    },
    /// The driver's compiler refused a module.
    #[error("the driver rejected the PTX of module `{module}` ({code}):\n{log}")]
    PtxRejected {
        /// The module's name.
        module: String,
        /// Answer of the driver.
        code: DriverCode,
        /// The compiler's log.
        log: String,
    },
    /// The module has no kernel of this name.
    #[error("PTX module `{module}` has no kernel `{kernel}`: the PTX is older than the program, rebuild it")]
    UnknownKernel {
        /// The module's name.
        module: String,
        /// The kernel's name.
        kernel: String,
    },
    /// The launch breaks a limit of the device or of the kernel; nothing ran.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    InvalidLaunch {
        /// The kernel's name.
        kernel: &'static str,
        /// The limit, with the numbers.
        reason: String,
    },
    /// The driver refused the launch; nothing ran.
    #[error("launch of kernel `{kernel}` failed: {code}; nothing ran, look up the code if a second call fails too")]
    LaunchFailed {
        /// The kernel's name.
        kernel: &'static str,
        /// Answer of the driver.
        code: DriverCode,
    },
    /// A kernel crashed or the device fell away. Nothing on this device works until every object of it is dropped.
    #[error(
        "the device is lost: {code}{}; drop everything on this device and open it again, or restart the program",
        last_kernel.map(|k| format!(" (last kernel queued on the stream: `{k}`)")).unwrap_or_default()
    )]
    DeviceLost {
        /// Answer of the driver.
        code: DriverCode,
        /// The last kernel queued on the stream that reported it, often the one that crashed.
        last_kernel: Option<&'static str>,
    },
    /// The two slices of a copy differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// An array of another library that cannot be adopted as it is.
    #[error("an array of another library has {field} {found}, where {expected} is needed: convert it first")]
    ForeignArray {
        /// The field of its description.
        field: &'static str,
        /// Value of the field.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// Bytes that cannot be seen as items of this type.
    #[error(
        "{} cannot be seen as items of {}: pass a multiple of that size, at an address that is a multiple of {alignment}",
        count(*bytes as u64, "byte"), count(*item_size as u64, "byte")
    )]
    InvalidCast {
        /// The bytes.
        bytes: usize,
        /// Bytes of an item.
        item_size: usize,
        /// Required alignment of an item's address.
        alignment: usize,
    },
    /// A size in bytes past the address space.
    #[error(
        "{items} items of {} are more than any memory holds: use smaller batches",
        count(*item_size as u64, "byte")
    )]
    TooLarge {
        /// Requested items.
        items: usize,
        /// Bytes of one.
        item_size: usize,
    },
    /// Memory, a stream or an event of another device than the operation runs on.
    #[error("{operation}: on {expected}, but something given is on {found}; copy it there, or use one device for all")]
    OtherDevice {
        /// The failed call.
        operation: &'static str,
        /// The device that the operation runs on.
        expected: String,
        /// The other one.
        found: String,
    },
    /// A list of devices without any.
    #[error("no devices in the list: name at least one")]
    EmptyDeviceList,
    /// A list of devices that has one of them more than once.
    #[error("{device} is in the list twice: name each device once")]
    SameDeviceTwice {
        /// The device.
        device: String,
    },
    /// `n` strings on a device have `n + 1` offsets, so there is at least one.
    #[error("strings without offsets: pass one offset more than there are strings")]
    MissingOffsets,
    /// The offsets of a string on a device go backwards, or beyond the bytes.
    #[error(
        "string {index} does not lie within the {bytes} bytes of all strings: pass ascending offsets that end there at most"
    )]
    InvalidOffsets {
        /// The first such string.
        index: u64,
        /// Bytes of all strings.
        bytes: usize,
    },
    /// An event that was never recorded has no time.
    #[error("the event was never recorded: record it on a stream first")]
    EventNotRecorded,
    /// A kernel committed a fault on the emulator.
    #[cfg(feature = "emulator")]
    #[error("{0}")]
    Emulator(Fault),
    /// Any other answer of the driver.
    #[error("{call} failed: {code}; look up the code, or go on with the CPU backend")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// Answer of the driver.
        code: DriverCode,
    },
}

warpset_base::debug_as_display!(GpuError);

impl GpuError {
    /// Whether memory was short, which smaller batches cure. True also if the driver itself lacked memory for a stream,
    /// a launch or a kernel's code.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Driver { code: DriverCode::OUT_OF_MEMORY, .. })
    }

    /// Whether the reason is that there is no usable device at all, so that the CPU backend is the answer.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::NotBuiltIn
                | Self::NoDriver { .. }
                | Self::NoDevice
                | Self::NoSuchDevice { .. }
                | Self::DriverTooOld { .. }
                | Self::DeviceTooOld { .. }
                | Self::Disabled { .. }
                | Self::InvalidSetting { .. }
        )
    }
}

/// A version of CUDA, as the driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl CudaVersion {
    /// Converts the driver's form, `1000 * major + 10 * minor`.
    pub const fn from_raw(raw: u32) -> Self {
        Self { major: raw / 1000, minor: raw % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A result code of the CUDA driver. Any number is valid here: new drivers bring new ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverCode(pub u32);

#[cfg(feature = "cuda")]
impl DriverCode {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const INVALID_IMAGE: Self = Self(200);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const STUB_LIBRARY: Self = Self(34);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
}

impl DriverCode {
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);

    /// Whether this code is sticky: the context is broken, and every later call in it fails with this code.
    pub const fn is_sticky(self) -> bool {
        // ECC, NVLink, contained errors, illegal address, timeout, destroyed context, assertion, stack, instruction,
        // alignment, address space, program counter, launch failure, tensor memory leak.
        matches!(self.0, 214 | 220 | 226 | 227 | 700 | 702 | 709 | 710 | 714..=719 | 721)
    }

    /// Returns the driver's name of the code, for codes up to CUDA 13.0.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "SUCCESS",
            1 => "INVALID_VALUE",
            2 => "OUT_OF_MEMORY",
            3 => "NOT_INITIALIZED",
            4 => "DEINITIALIZED",
            34 => "STUB_LIBRARY",
            35 => "INSUFFICIENT_DRIVER",
            36 => "CALL_REQUIRES_NEWER_DRIVER",
            46 => "DEVICE_UNAVAILABLE",
            100 => "NO_DEVICE",
            101 => "INVALID_DEVICE",
            102 => "DEVICE_NOT_LICENSED",
            200 => "INVALID_IMAGE",
            201 => "INVALID_CONTEXT",
            209 => "NO_BINARY_FOR_GPU",
            214 => "ECC_UNCORRECTABLE",
            215 => "UNSUPPORTED_LIMIT",
            217 => "PEER_ACCESS_UNSUPPORTED",
            218 => "INVALID_PTX",
            220 => "NVLINK_UNCORRECTABLE",
            221 => "JIT_COMPILER_NOT_FOUND",
            222 => "UNSUPPORTED_PTX_VERSION",
            223 => "JIT_COMPILATION_DISABLED",
            224 => "UNSUPPORTED_EXEC_AFFINITY",
            225 => "UNSUPPORTED_DEVSIDE_SYNC",
            226 => "CONTAINED",
            300 => "INVALID_SOURCE",
            301 => "FILE_NOT_FOUND",
            302 => "SHARED_OBJECT_SYMBOL_NOT_FOUND",
            303 => "SHARED_OBJECT_INIT_FAILED",
            304 => "OPERATING_SYSTEM",
            400 => "INVALID_HANDLE",
            401 => "ILLEGAL_STATE",
            500 => "NOT_FOUND",
            600 => "NOT_READY",
            700 => "ILLEGAL_ADDRESS",
            701 => "LAUNCH_OUT_OF_RESOURCES",
            702 => "LAUNCH_TIMEOUT",
            709 => "CONTEXT_IS_DESTROYED",
            710 => "ASSERT",
            714 => "HARDWARE_STACK_ERROR",
            715 => "ILLEGAL_INSTRUCTION",
            716 => "MISALIGNED_ADDRESS",
            717 => "INVALID_ADDRESS_SPACE",
            718 => "INVALID_PC",
            719 => "LAUNCH_FAILED",
            720 => "COOPERATIVE_LAUNCH_TOO_LARGE",
            721 => "TENSOR_MEMORY_LEAK",
            800 => "NOT_PERMITTED",
            801 => "NOT_SUPPORTED",
            802 => "SYSTEM_NOT_READY",
            803 => "SYSTEM_DRIVER_MISMATCH",
            804 => "COMPAT_NOT_SUPPORTED_ON_DEVICE",
            900 => "STREAM_CAPTURE_UNSUPPORTED",
            901 => "STREAM_CAPTURE_INVALIDATED",
            906 => "STREAM_CAPTURE_IMPLICIT",
            909 => "TIMEOUT",
            999 => "UNKNOWN",
            _ => return None,
        })
    }
}

impl fmt::Display for DriverCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "CUDA_ERROR_{name} ({})", self.0)?,
            None => write!(f, "CUDA driver code {}", self.0)?,
        }
        #[cfg(feature = "cuda")]
        if let Some(sentence) = crate::cuda::describe(*self) {
            write!(f, ", {sentence}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DriverCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_driver_code_has_a_text() {
        assert!(DriverCode(700).to_string().starts_with("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
        assert!(DriverCode(4_000_000_000).to_string().starts_with("CUDA driver code 4000000000"));
        for code in 0..2000 {
            assert!(!DriverCode(code).to_string().is_empty());
        }
    }

    #[test]
    fn crashes_are_sticky_and_refusals_are_not() {
        assert!([700, 715, 716, 719].into_iter().all(|c| DriverCode(c).is_sticky()));
        assert!([1, 2, 100, 200, 218, 222, 600, 701, 801].into_iter().all(|c| !DriverCode(c).is_sticky()));
    }

    #[test]
    fn the_driver_may_lack_memory_too() {
        let error = |code| GpuError::Driver { call: "cuStreamCreate", code: DriverCode(code) };
        assert!(error(2).is_out_of_memory() && !error(700).is_out_of_memory());
    }

    #[test]
    fn versions_read_as_the_driver_packs_them() {
        assert_eq!(CudaVersion::from_raw(12040).to_string(), "12.4");
        assert!(CudaVersion::from_raw(11080) < CudaVersion::from_raw(12000));
    }
}
