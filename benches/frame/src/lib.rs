//! Shared parts of the laboratory's suites: steps of a run, clocks, limits of the machine, tables, input.

pub mod clock;
pub mod gpu_limits;
pub mod input;
pub mod limits;
pub mod machine;
pub mod progress;
pub mod screen;
pub mod several_devices;
pub mod suite;
pub mod table;
