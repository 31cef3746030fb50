//! Builder of PTX: the crate, the GPU architecture, and the place of the output.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    assemble::{ARCHITECTURES, Assembler},
    canonical::canonical,
    compile::{Compilation, within},
    flags::{self, DEFAULT_ARCHITECTURE, DEFAULT_PTX_VERSION, TARGET},
    launch_bounds::with_launch_bounds,
    lint,
    manifest::Manifest,
    script,
    stamp::{Stale, Stamp},
    toolchain::{DeviceToolchain, NoDeviceToolchain},
};

/// Environment variable that requests a new build: `compile`. Unset or `auto`: PTX that is checked in and matches its
/// sources is used unchanged.
pub const PTX_VARIABLE: &str = "WARPSET_PTX";

/// Compiles a crate of kernels to PTX. See the [crate's documentation](crate) for a build script.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` or `compile`"]
pub struct Builder {
    folder: PathBuf,
    root: Option<PathBuf>,
    module: Option<String>,
    cfgs: Vec<String>,
    features: Vec<String>,
    not_stamped: Vec<String>,
    architecture: String,
    ptx_version: u32,
    target: Option<PathBuf>,
    checked_in: Option<PathBuf>,
}

/// The PTX of a crate of kernels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ptx {
    /// The file that holds it.
    pub path: PathBuf,
    /// Text of the file.
    pub text: String,
}

impl Builder {
    /// Makes a builder of the crate in `folder`, which contains its `Cargo.toml`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            root: None,
            module: None,
            cfgs: Vec::new(),
            features: Vec::new(),
            not_stamped: Vec::new(),
            architecture: DEFAULT_ARCHITECTURE.to_owned(),
            ptx_version: DEFAULT_PTX_VERSION,
            target: None,
            checked_in: None,
        }
    }

    /// Compiles one module of the crate, under `--cfg warpset_module="name"`, and calls the PTX by its name. Default:
    /// the whole crate, and the PTX has the library's name.
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// Sets a condition (`--cfg`) for the crate, not for those it depends on. Default: none.
    pub fn cfg(mut self, condition: impl Into<String>) -> Self {
        self.cfgs.push(condition.into());
        self
    }

    /// Turns a Cargo feature of the crate on. Default: the default features.
    pub fn feature(mut self, name: impl Into<String>) -> Self {
        self.features.push(name.into());
        self
    }

    /// Sets the GPU architecture of the PTX, which runs there and on later ones. Default: `sm_80`.
    pub fn architecture(mut self, name: impl Into<String>) -> Self {
        self.architecture = name.into();
        self
    }

    /// Sets the version of PTX, times ten. Newer instructions need a newer version, and a newer driver. Default: 80,
    /// which drivers for CUDA 12.0 read.
    pub fn ptx_version(mut self, version: u32) -> Self {
        self.ptx_version = version;
        self
    }

    /// Sets the folder whose files the stamp covers, and that their names are relative to. Sources outside of it, such
    /// as dependencies from a registry, do not count. Default: the crate's folder.
    pub fn root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.root = Some(folder.into());
        self
    }

    /// Leaves a source file, named relative to the root, out of the stamp: for one that declares modules and holds no
    /// code, so that a new module leaves the PTX of the others valid. Default: none.
    pub fn not_stamped(mut self, file: impl Into<String>) -> Self {
        self.not_stamped.push(file.into());
        self
    }

    /// Sets the folder of the device build. Default: in a build script `OUT_DIR/device`; else `target/device` in the
    /// root, or `device` in the folder that `CARGO_TARGET_DIR` names.
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.target = Some(folder.into());
        self
    }

    /// Keeps the PTX in this file, relative to the crate's folder, to be checked in. While the file matches its sources
    /// it is used unchanged, and no device compiler is needed; after a change it is compiled and written again.
    /// Default: none.
    pub fn checked_in(mut self, file: impl Into<PathBuf>) -> Self {
        self.checked_in = Some(file.into());
        self
    }

    /// Returns the PTX: from the file that is checked in, if it matches its sources, else compiled, linted, and
    /// assembled if there is a `ptxas`. The file is `<name>.ptx` in `OUT_DIR` or, outside of a build script, in the
    /// folder of the device build.
    ///
    /// In a build script it also tells Cargo which files it depends on. There the crate may be the script's own: the
    /// device build runs the script again, and this call then returns an empty text at once.
    ///
    /// # Errors
    /// [`Error`] names the cause and, where there is one, the remedy.
    pub fn build(&self) -> Result<Ptx, Error> {
        let out = script::out_dir();
        if out.is_some() && env::var("TARGET").is_ok_and(|target| target == TARGET) {
            println!("cargo:rerun-if-changed=build.rs");
            return Ok(Ptx { path: PathBuf::new(), text: String::new() });
        }
        let manifest = Manifest::read(&self.folder)?;
        let (text, sources) = match self.kept()? {
            Kept::Current(text, sources) => (text, sources),
            Kept::Stale(file, why) => match DeviceToolchain::find() {
                Ok(toolchain) => {
                    let made = self.checked(&toolchain, &manifest)?;
                    write_if_changed(&file, &made.0)?;
                    made
                }
                Err(missing) => return Err(stale(file, why, missing)),
            },
            Kept::Nowhere => self.checked(&DeviceToolchain::find()?, &manifest)?,
        };
        if out.is_some() {
            let kept = self.checked_in.iter().map(|file| self.folder.join(file));
            script::depends_on(kept.chain(sources));
        }
        let folder = out.map_or_else(|| self.target_folder(), Ok)?;
        let path = folder.join(format!("{}.ptx", self.name(&manifest)));
        write_if_changed(&path, &text)?;
        Ok(Ptx { path, text })
    }

    /// Compiles from the sources, without lint and assembler, and writes no PTX file. Returns the text with launch
    /// bounds and stamp, which is the same on every machine.
    ///
    /// # Errors
    /// [`Error::DoesNotCompile`] and the errors of the file system.
    pub fn compile(&self, toolchain: &DeviceToolchain) -> Result<String, Error> {
        Ok(self.compiled(toolchain, &Manifest::read(&self.folder)?)?.0)
    }

    /// Whether `ptx` was made from its sources as they are now, with this builder's flags. Takes no compiler.
    ///
    /// # Errors
    /// The difference from the sources.
    pub fn check_stamp(&self, ptx: &str) -> Result<(), Stale> {
        let root = self.root_folder().map_err(|error| Stale::Unreadable(std::io::Error::other(error)))?;
        Stamp::check(ptx, &root, &self.flags()).map(drop)
    }

    /// Lists the architectures that the PTX has to assemble for: those it promises to run on.
    pub fn architectures(&self) -> Vec<String> {
        let number = |name: &str| name.strip_prefix("sm_").and_then(|digits| digits.parse::<u32>().ok());
        // PTX for `sm_90a` runs on that architecture alone.
        let Some(own) = number(&self.architecture) else { return vec![self.architecture.clone()] };
        let later = ARCHITECTURES.into_iter().filter(|name| number(name).is_some_and(|other| other > own));
        std::iter::once(self.architecture.clone()).chain(later.map(str::to_owned)).collect()
    }

    fn name<'a>(&'a self, manifest: &'a Manifest) -> &'a str {
        self.module.as_deref().unwrap_or(&manifest.library)
    }

    fn flags(&self) -> Vec<String> {
        flags::rust_flags(&self.architecture, self.ptx_version)
    }

    fn root_folder(&self) -> Result<PathBuf, Error> {
        let root = self.root.as_ref().unwrap_or(&self.folder);
        root.canonicalize().map_err(Error::io("open", root))
    }

    fn target_folder(&self) -> Result<PathBuf, Error> {
        if let Some(target) = &self.target {
            return Ok(target.clone());
        }
        if let Some(out) = script::out_dir() {
            return Ok(out.join("device"));
        }
        let shared = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        Ok(shared.map_or_else(|| self.root_folder().map(|root| root.join("target")), Ok)?.join("device"))
    }

    /// Reads the file that is checked in.
    fn kept(&self) -> Result<Kept, Error> {
        let Some(file) = self.checked_in.as_ref().map(|file| self.folder.join(file)) else { return Ok(Kept::Nowhere) };
        if script::asked_to_compile()? {
            return Ok(Kept::Stale(file, Stale::Asked));
        }
        let root = self.root_folder()?;
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => return Ok(Kept::Stale(file, Stale::Unreadable(error))),
        };
        Ok(match Stamp::check(&text, &root, &self.flags()) {
            Ok(stamp) => Kept::Current(text, stamp.sources.iter().map(|source| root.join(source)).collect()),
            Err(why) => Kept::Stale(file, why),
        })
    }

    /// Compiles; returns the text and its source files.
    fn compiled(&self, toolchain: &DeviceToolchain, manifest: &Manifest) -> Result<(String, Vec<PathBuf>), Error> {
        let folder = self.folder.canonicalize().map_err(Error::io("open", &self.folder))?;
        let (root, flags) = (self.root_folder()?, self.flags());
        let module = self.module.iter().map(|name| format!("warpset_module=\"{name}\""));
        let compiled = Compilation {
            toolchain,
            folder: &folder,
            manifest,
            name: self.name(manifest),
            flags: &flags,
            cfgs: &module.chain(self.cfgs.iter().cloned()).collect::<Vec<_>>(),
            features: &self.features,
            target: &self.target_folder()?,
        }
        .run()?;
        let mut stamped = within(&root, &compiled.sources);
        stamped.retain(|file| !self.not_stamped.contains(file));
        let stamp = Stamp::of_sources(&root, &stamped, &flags).map_err(Error::io("read sources in", &root))?;
        let text = stamp.to_comment() + &with_launch_bounds(&canonical(&compiled.ptx));
        Ok((text, compiled.sources))
    }

    /// Compiles, lints and assembles; returns the text and its source files.
    fn checked(&self, toolchain: &DeviceToolchain, manifest: &Manifest) -> Result<(String, Vec<PathBuf>), Error> {
        let made = self.compiled(toolchain, manifest)?;
        let name = self.name(manifest);
        let findings = lint::lint(&made.0);
        if !findings.is_empty() {
            return Err(Error::Refused { name: name.to_owned(), findings });
        }
        if let Ok(assembler) = Assembler::find() {
            for architecture in self.architectures() {
                let kernels = assembler.assemble(name, &made.0, &architecture)?.kernels;
                let spilling = kernels.into_iter().filter(|kernel| kernel.spills() && !kernel.may_spill(&made.0));
                let kernels: Vec<_> = spilling.map(|kernel| kernel.name).collect();
                if !kernels.is_empty() {
                    return Err(Error::Spills { name: name.to_owned(), architecture, kernels });
                }
            }
        }
        Ok(made)
    }
}

enum Kept {
    /// Nothing is to be checked in.
    Nowhere,
    /// The text, and the files that it was made from.
    Current(String, Vec<PathBuf>),
    Stale(PathBuf, Stale),
}

fn stale(path: PathBuf, why: Stale, missing: NoDeviceToolchain) -> Error {
    Error::StaleWithoutToolchain { path, why, missing }
}

/// Leaves a file alone that holds the text already: its time is what Cargo looks at.
fn write_if_changed(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    fs::write(path, text).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_assembled_for_what_it_promises_to_run_on() {
        let architectures = |name: &str| Builder::new(".").architecture(name).architectures();
        assert_eq!(Builder::new(".").architectures(), ARCHITECTURES);
        assert_eq!(architectures("sm_90"), ["sm_90", "sm_100"]);
        assert_eq!(architectures("sm_86"), ["sm_86", "sm_90", "sm_100"]);
        assert_eq!(architectures("sm_90a"), ["sm_90a"]);
    }

    #[test]
    fn a_folder_without_a_crate_is_an_error() {
        let error = Builder::new("/no/such/folder").build().expect_err("nothing there").to_string();
        assert!(error.contains("/no/such/folder is no crate of kernels"), "{error}");
    }
}
