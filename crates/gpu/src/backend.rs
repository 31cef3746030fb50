//! Choice of the backend for this machine, with the reason.

use std::fmt;

use crate::device::Device;
use crate::error::{GpuError, Result};

/// The environment variable that chooses the backend: `auto` (as if unset), `cuda`, `cuda:N` (device number N), or
/// `cpu`, which turns CUDA off.
pub const BACKEND_VARIABLE: &str = "WARPSET_BACKEND";

/// Result of [`Backend::auto`].
#[derive(Clone, Debug)]
pub enum Backend {
    /// A CUDA device that runs our kernels.
    Cuda(Device),
    /// No such device, and why.
    Cpu(GpuError),
}

impl Backend {
    /// Finds the first CUDA device that can run our kernels, or the reason why there is none. Never panics.
    ///
    /// ```
    /// match warpset_gpu::Backend::auto() {
    ///     warpset_gpu::Backend::Cuda(device) => println!("using {}", device.properties().name),
    ///     warpset_gpu::Backend::Cpu(why) => println!("using the CPU: {why}"),
    /// }
    /// ```
    pub fn auto() -> Self {
        match find() {
            Ok(device) => Self::Cuda(device),
            Err(why) => Self::Cpu(why),
        }
    }

    /// Returns the device, unless the backend is the CPU.
    pub fn device(&self) -> Option<&Device> {
        match self {
            Self::Cuda(device) => Some(device),
            Self::Cpu(_) => None,
        }
    }

    /// Returns the reason why there is no CUDA device; `None` if there is one.
    pub fn reason(&self) -> Option<&GpuError> {
        match self {
            Self::Cuda(_) => None,
            Self::Cpu(why) => Some(why),
        }
    }

    /// Whether there is a CUDA device.
    pub fn is_cuda(&self) -> bool {
        self.device().is_some()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(device) => write!(f, "CUDA on {}", device.properties().name),
            Self::Cpu(why) => write!(f, "CPU ({why})"),
        }
    }
}

fn find() -> Result<Device> {
    match setting()? {
        Setting::Off(value) => Err(GpuError::Disabled { variable: BACKEND_VARIABLE, value }),
        Setting::Device(ordinal) => Device::cuda(ordinal),
        Setting::Any => {
            let mut first_error = None;
            for ordinal in 0..Device::cuda_count()? {
                match Device::cuda(ordinal) {
                    Ok(device) => return Ok(device),
                    Err(error) => _ = first_error.get_or_insert(error),
                }
            }
            Err(first_error.unwrap_or(GpuError::NoDevice))
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Setting {
    Any,
    Device(u32),
    Off(String),
}

/// Parses the environment variable.
pub(crate) fn setting() -> Result<Setting> {
    match std::env::var_os(BACKEND_VARIABLE) {
        None => Ok(Setting::Any),
        Some(value) => parse(&value.to_string_lossy()),
    }
}

/// Reports an error if the environment turns CUDA off.
pub(crate) fn check_enabled() -> Result<()> {
    match setting()? {
        Setting::Off(value) => Err(GpuError::Disabled { variable: BACKEND_VARIABLE, value }),
        _ => Ok(()),
    }
}

fn parse(value: &str) -> Result<Setting> {
    let lower = value.trim().to_ascii_lowercase();
    match lower.as_str() {
        "" | "auto" | "cuda" => return Ok(Setting::Any),
        "cpu" => return Ok(Setting::Off(value.into())),
        _ => {}
    }
    lower.strip_prefix("cuda:").and_then(|n| n.parse().ok()).map(Setting::Device).ok_or_else(|| {
        GpuError::InvalidSetting {
            variable: BACKEND_VARIABLE,
            value: value.into(),
            allowed: "use auto, cuda, cuda:N (a device number) or cpu",
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_chooses_or_turns_off() {
        assert_eq!(parse("").unwrap(), Setting::Any);
        assert_eq!(parse("Auto").unwrap(), Setting::Any);
        assert_eq!(parse("cuda").unwrap(), Setting::Any);
        assert_eq!(parse("cuda:3").unwrap(), Setting::Device(3));
        assert_eq!(parse("CPU").unwrap(), Setting::Off("CPU".into()));
        for wrong in ["gpu", "cuda:", "cuda:-1", "cuda:99999999999", "opencl"] {
            let error = parse(wrong).unwrap_err();
            assert!(matches!(&error, GpuError::InvalidSetting { value, .. } if value == wrong), "{error}");
            assert!(error.is_unavailable());
        }
    }

    #[test]
    fn auto_answers_on_every_machine() {
        let backend = Backend::auto();
        assert_eq!(backend.is_cuda(), backend.reason().is_none());
        assert!(!backend.to_string().is_empty());
        if let Some(why) = backend.reason() {
            assert!(why.is_unavailable(), "{why}");
        }
    }
}
