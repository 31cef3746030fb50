//! Device code of several architectures in one container, which the driver loads without compiling anything.
//!
//! A tool for developers: its output is stored beside the PTX. The driver takes the code for its device's architecture
//! from the container, or refuses it and compiles the PTX.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Assembled, Error, stamp::Stamp, tools};

/// The environment variable that names `fatbinary`.
pub(crate) const VARIABLE: &str = "WARPSET_FATBINARY";

/// Mark before the stamp in a container; `warpset_simt::Module` searches for it.
const MARK: &str = "warpset:";

/// NVIDIA's `fatbinary` is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no `fatbinary` in {VARIABLE}, PATH, /usr/local/cuda or Python's packages.\n\
     Install it with `pip install nvidia-cuda-nvcc` (a virtual environment will do: put its `python3` first in PATH)."
)]
pub struct NoContainers;

/// NVIDIA's `fatbinary`, which puts device code into containers.
#[derive(Debug)]
pub struct Containers {
    program: PathBuf,
}

impl Containers {
    /// Finds the program that the environment names, or else the first one in the usual places.
    ///
    /// # Errors
    /// None was found; the message names the way to install it.
    pub fn find() -> Result<Self, NoContainers> {
        tools::find(VARIABLE, "fatbinary").map(|program| Self { program }).ok_or(NoContainers)
    }

    /// Returns the executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Packs the code that `ptx` was assembled to into a compressed container with the stamp of the text. A program
    /// that holds both compares the stamps; without a stamp no program uses the container. Equal input gives equal
    /// bytes.
    ///
    /// # Errors
    /// [`Error::NoContainer`] with the program's message; [`Error::Io`] if it does not run.
    pub fn bind(&self, name: &str, ptx: &str, on_each: &[Assembled]) -> Result<Vec<u8>, Error> {
        tools::in_scratch(|folder| {
            let output = folder.join("out.fatbin");
            let mut command = Command::new(&self.program);
            command.args(["-64", "--compress-all", "--compress-mode=size"]);
            let stamp = Stamp::of_ptx(ptx).map_or_else(String::new, |stamp| stamp.hash);
            command.arg(format!("--ident={MARK}{stamp}")).arg(format!("--create={}", output.display()));
            for Assembled { architecture, code, .. } in on_each {
                let file = folder.join(format!("{architecture}.cubin"));
                tools::write(&file, code)?;
                let number = architecture.trim_start_matches("sm_");
                command.arg(format!("--image3=kind=elf,sm={number},file={}", file.display()));
            }
            let result = command.output().map_err(Error::io("start", &self.program))?;
            if !result.status.success() {
                let log = String::from_utf8_lossy(&result.stderr).into_owned();
                return Err(Error::NoContainer { name: name.to_owned(), log });
            }
            tools::read(&output)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Assembler;

    const PTX: &str = "// Sources: 0123456789abcdef0123456789abcdef\n.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

    #[test]
    fn a_container_is_made_where_the_tools_are() {
        assert!(NoContainers.to_string().contains("pip install nvidia-cuda-nvcc"));
        let (Ok(assembler), Ok(containers)) = (Assembler::find(), Containers::find()) else { return };
        let on_each = ["sm_80", "sm_90"].map(|architecture| assembler.assemble("nothing", PTX, architecture).unwrap());
        assert!(on_each.iter().all(|one| one.kernels[0].name == "nothing" && one.code.starts_with(b"\x7fELF")));
        let container = containers.bind("nothing", PTX, &on_each).expect("made");
        let mark = b"warpset:0123456789abcdef0123456789abcdef";
        assert!(container.windows(mark.len()).any(|bytes| bytes == mark));
        assert_eq!(container, containers.bind("nothing", PTX, &on_each).expect("made again"));
        let broken = Assembled { code: b"no code".to_vec(), ..on_each[0].clone() };
        let error = containers.bind("nothing", PTX, &[broken]);
        assert!(matches!(&error, Err(Error::NoContainer { .. })), "{error:?}");
    }
}
