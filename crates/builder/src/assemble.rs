//! NVIDIA's assembler `ptxas`: checks the PTX, and reports the resources of the kernels.
//!
//! A tool for developers and CI. Programs need none: they contain its output, and the driver can compile the PTX.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, lint, tools};

/// The architectures that every kernel has to assemble for: A100, H100 and H200, B200.
pub const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

/// The environment variable that names the assembler.
pub(crate) const VARIABLE: &str = "WARPSET_PTXAS";

/// The assembler is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no `ptxas` in {VARIABLE}, PATH, /usr/local/cuda or Python's packages.\n\
     Install it with `pip install nvidia-cuda-nvcc` (a virtual environment will do: put its `python3` first in PATH)."
)]
pub struct NoAssembler;

/// The assembler.
#[derive(Debug)]
pub struct Assembler {
    program: PathBuf,
}

/// Resources of one kernel on one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel's name.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block.
    pub shared_bytes: u32,
    /// Bytes stored to and loaded from local memory because registers ran out.
    pub spilled_bytes: u32,
}

/// Result of assembling a PTX file for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The architecture, as `sm_90`.
    pub architecture: String,
    /// Resources of each kernel, by name.
    pub kernels: Vec<Resources>,
    /// The machine code: a `cubin`.
    pub code: Vec<u8>,
}

impl Resources {
    /// Whether registers ran out.
    pub fn spills(&self) -> bool {
        self.spilled_bytes > 0
    }

    /// Whether the kernel's text in `ptx` permits spills.
    pub fn may_spill(&self, ptx: &str) -> bool {
        lint::allows(ptx, &self.name, "spill")
    }
}

impl Assembler {
    /// Finds the assembler that the environment names, or else the first one in the usual places.
    ///
    /// # Errors
    /// No assembler was found; the message names the way to install it.
    pub fn find() -> Result<Self, NoAssembler> {
        tools::find(VARIABLE, "ptxas").map(|program| Self { program }).ok_or(NoAssembler)
    }

    /// Returns the executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Assembles `ptx` for `architecture` (`sm_90`). `name` is for messages.
    ///
    /// # Errors
    /// [`Error::DoesNotAssemble`] with the message of `ptxas`; [`Error::Io`] if it does not run.
    pub fn assemble(&self, name: &str, ptx: &str, architecture: &str) -> Result<Assembled, Error> {
        tools::in_scratch(|folder| {
            let (input, output) = (folder.join(format!("{name}.ptx")), folder.join("out.cubin"));
            tools::write(&input, ptx.as_bytes())?;
            let result = Command::new(&self.program)
                .args(["-v", "--warn-on-spills", "-arch", architecture, "-o"])
                .arg(&output)
                .arg(&input)
                .output()
                .map_err(Error::io("start", &self.program))?;
            let log = String::from_utf8_lossy(&result.stderr).into_owned() + &String::from_utf8_lossy(&result.stdout);
            let architecture = architecture.to_owned();
            if !result.status.success() {
                return Err(Error::DoesNotAssemble { name: name.to_owned(), architecture, log });
            }
            Ok(Assembled { architecture, kernels: parse(&log), code: tools::read(&output)? })
        })
    }
}

/// Parses the output of `ptxas -v` for each kernel, by name.
fn parse(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, name)) = line.split_once("Compiling entry function '") {
            let name = name.split('\'').next().unwrap_or(name).to_owned();
            kernels.push(Resources { name, ..Resources::default() });
        } else if let Some(kernel) = kernels.last_mut() {
            let number_before =
                |words: &str| -> Option<u32> { line[..line.find(words)?].split_whitespace().next_back()?.parse().ok() };
            if let Some(stores) = number_before(" bytes spill stores") {
                kernel.spilled_bytes = stores + number_before(" bytes spill loads").unwrap_or(0);
            }
            if let Some(registers) = number_before(" registers") {
                kernel.registers = registers;
                kernel.shared_bytes = number_before(" bytes smem").unwrap_or(0);
            }
        }
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
ptxas info    : 256 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
    64 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 4096 bytes smem, 364 bytes cmem[0]
ptxas info    : Compile time = 1.872 ms
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
";

    #[test]
    fn the_log_is_read() {
        let kernels = parse(LOG);
        let first = Resources { name: "first".to_owned(), registers: 8, ..Resources::default() };
        let second = Resources { name: "second".to_owned(), registers: 48, shared_bytes: 4096, spilled_bytes: 44 };
        assert_eq!(kernels, [first, second]);
        assert!(kernels[1].spills() && !kernels[0].spills());
        assert_eq!(parse(""), []);
    }

    #[test]
    fn a_spill_may_be_asked_for() {
        let kernel = &parse(LOG)[1];
        let body = |comment: &str| format!(".visible .entry second()\n{{\n\t{comment}\n\tret;\n}}\n");
        assert!(kernel.may_spill(&body("// @allow_spill")));
        assert!(!kernel.may_spill(&body("")));
    }

    #[test]
    fn the_error_says_how_to_install() {
        assert!(NoAssembler.to_string().contains("pip install nvidia-cuda-nvcc"));
    }
}
