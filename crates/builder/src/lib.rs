//! Compiles a crate of GPU kernels, written in Rust with `warpset-simt`, to PTX: from a build script or a command.
//!
//! A build script of a crate with kernels of its own:
//!
//! ```no_run
//! fn main() -> Result<(), warpset_builder::Error> {
//!     warpset_builder::Builder::new(".").checked_in("ptx/own_kernel.ptx").build()?;
//!     Ok(())
//! }
//! ```
//!
//! The crate then includes `concat!(env!("OUT_DIR"), "/own_kernel.ptx")`. `docs/kernels.md` goes from there to a
//! launch, and `examples/own-kernel` is the whole program.
//!
//! Steps of a build:
//!
//! 1. [`DeviceToolchain`]: one exact release of Rust, [`RUST_RELEASE`], with the sources of its standard library. It is
//!    not needed to build a crate whose PTX is [checked in](Builder::checked_in) and matches its sources.
//! 2. The crate is compiled for [`TARGET`] with pinned flags. The assembly of that target is PTX, so nothing is linked.
//! 3. The text is made independent of the machine; launch bounds become directives ([`with_launch_bounds`]); a stamp at
//!    its head names its sources and one hash over them.
//! 4. [`lint`](lint()) refuses code that compiles and runs, but costs speed or correctness: local memory, accesses to
//!    generic addresses, system scope, calls.
//! 5. If there is a `ptxas` ([`Assembler`]), it has to accept the text, and no kernel may spill registers. Its code for
//!    each architecture can be bound into one file ([`Containers`]) that the driver loads without compiling.
//!
//! **Cost.** A build takes as long as a release build of the crate, and the standard library's `core` once; with PTX
//! that is checked in and fresh, a hash of the sources. **Files.** PTX text, containers of device code, and the stamp
//! in both. **Errors.** [`Error`], which names the step and the remedy.
//!
//! The steps can be taken one by one, for a command that does more than a build script:
//!
//! ```
//! use warpset_builder::{Builder, DeviceToolchain, lint};
//!
//! match DeviceToolchain::find() {
//!     Ok(toolchain) => println!("kernels are compiled by {toolchain}"),
//!     Err(missing) => println!("{missing}"), // the places searched, and the command that installs one
//! }
//!
//! let findings = lint(".visible .entry slow()\n{\n\tst.local.b32 [%rd1], %r1;\n\tret;\n}\n");
//! assert_eq!(findings[0].to_string(), "3: slow: local memory: an array is not in registers: st.local.b32 [%rd1], %r1;");
//!
//! let builder = Builder::new("kernels").module("scan").architecture("sm_90");
//! assert_eq!(builder.architectures(), ["sm_90", "sm_100"]);
//! let stale = builder.check_stamp(".version 8.0\n").unwrap_err();
//! println!("the text has to be compiled again: {stale}");
//! ```

#![warn(clippy::missing_errors_doc)]

mod assemble;
mod builder;
mod canonical;
mod compile;
mod container;
mod error;
mod flags;
mod launch_bounds;
mod lint;
mod manifest;
mod script;
mod stamp;
mod toolchain;
mod tools;

pub use assemble::{Assembled, Assembler, NoAssembler, Resources};
pub use builder::{Builder, PTX_VARIABLE, Ptx};
pub use container::{Containers, NoContainers};
pub use error::Error;
pub use flags::{DEFAULT_ARCHITECTURE, DEFAULT_PTX_VERSION, RUST_RELEASE, TARGET};
pub use launch_bounds::with_launch_bounds;
pub use lint::{Finding, Rule, lint, summary};
pub use stamp::Stale;
pub use toolchain::{DeviceToolchain, NoDeviceToolchain, Unfit};
