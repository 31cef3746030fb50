//! Names of files, and the structures in files.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyString};

use crate::bloom::{SplitBlock, SplitBlockBloom};
use crate::device::Location;
use crate::error::class_of;
use crate::structure::{ALL_OF_IT, Forms, Where};
use crate::threads::{Shared, run};

/// Name of a file: `str`, `bytes` or an object with `__fspath__`.
pub struct FilePath(pub PathBuf);

impl FromPyObject<'_, '_> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<FilePath> {
        let py = object.py();
        let name = py.import(intern!(py, "os"))?.call_method1(intern!(py, "fsdecode"), (object,))?;
        Ok(FilePath(name.extract()?))
    }
}

impl FilePath {
    /// Returns one name, or the names of a list.
    pub fn several(object: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
        let wrong = |_| PyTypeError::new_err("files: pass a path, or a list of paths, of FASTA or FASTQ files");
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Ok(vec![object.extract::<FilePath>()?.0]);
        }
        if object.hasattr(intern!(object.py(), "__fspath__"))? {
            return Ok(vec![object.extract::<FilePath>()?.0]);
        }
        let items = object.try_iter().map_err(wrong)?;
        items.map(|item| item?.extract::<FilePath>().map(|path| path.0).map_err(wrong)).collect()
    }
}

/// Reads a file that any structure's `save` wrote, as an object of its class. The file of a `KmerCounter` contains a
/// quotient filter and is read as one.
///
/// >>> import os, tempfile, warpset
/// >>> path = os.path.join(tempfile.mkdtemp(), "trees")
/// >>> warpset.BinaryFuse(["ash", "birch"]).save(path)
/// >>> "ash" in warpset.load(path)
/// True
#[pyfunction]
#[pyo3(signature = (path, /, *, device=None))]
pub fn load<'py>(py: Python<'py>, path: FilePath, device: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let place = Location::of(device)?;
    let first = run(py, None, ALL_OF_IT, || match SplitBlock::load(&path.0) {
        Ok(filter) => Ok(Ok(Where::at(filter, &place)?)),
        Err(failure) => match failure.other_structure() {
            Some(found) => class_of(found).map(Err).ok_or(failure),
            None => Err(failure),
        },
    });
    match first.map_err(PyErr::from)? {
        Ok(filter) => Ok(Bound::new(py, SplitBlockBloom(Shared::new(filter)))?.into_any()),
        Err(class) => {
            let class = py.import(intern!(py, "warpset"))?.getattr(class)?;
            let device = [("device", device)].into_py_dict(py)?;
            class.call_method(intern!(py, "load"), (path.0,), Some(&device))
        }
    }
}
