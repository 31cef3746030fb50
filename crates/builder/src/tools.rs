//! NVIDIA's tools: where they are, and files for them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::Error;

/// Finds the program that the environment names, else the first one in PATH, in CUDA's usual folder, or among Python's
/// packages.
pub(crate) fn find(variable: &str, program: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let in_path = env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let candidates = named
        .into_iter()
        .chain(in_path.chain([PathBuf::from("/usr/local/cuda/bin")]).map(|folder| folder.join(program)));
    candidates
        .chain(python_packages().iter().flat_map(|packages| in_packages(packages, program)))
        .find(|program| program.is_file())
}

/// Lists the folders of Python's packages, if there is a Python.
fn python_packages() -> Vec<PathBuf> {
    let script = "import site, sysconfig\n\
                  print(sysconfig.get_paths()['purelib'])\n\
                  print('\\n'.join(getattr(site, 'getsitepackages', list)()))\n\
                  print(site.getusersitepackages())";
    let Ok(output) = Command::new("python3").args(["-c", script]).output() else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

/// Lists the folders of the package `nvidia-cuda-nvcc` with its programs: `nvidia/cu13/bin`, in older releases
/// `nvidia/cuda_nvcc/bin`.
fn in_packages(packages: &Path, program: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(packages.join("nvidia")) else { return Vec::new() };
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path().join("bin").join(program)).collect();
    found.sort();
    found
}

/// Runs `work` with a folder of its own, which is gone after it.
pub(crate) fn in_scratch<T>(work: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("warpset-builder-{}-{call}", std::process::id()));
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let result = work(&folder);
    // A file left in the system's temporary folder does no harm.
    let _ = fs::remove_dir_all(&folder);
    result
}

pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(file, bytes).map_err(Error::io("write", file))
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(Error::io("read", file))
}
