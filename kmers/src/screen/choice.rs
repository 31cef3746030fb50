//! Choice of a decider: by a table or an index, on the CPU or on a GPU.

use std::path::PathBuf;

use warpset_gpu::{Backend as Found, Device};

use super::decide::Decider;
use super::device::OnDevice;
use super::minimizers::ByMinimizers;
use super::sequences::{BySequences, BySequencesOnDevice};
use super::split::COUNTS;
use super::windows::ByWindows;
use super::{By, Screening};
use crate::count::bytes_of;
use crate::pieces::Text;
use crate::settings::Executor;
use crate::{BackendChoice, Error, Index};

/// Bytes of input that make opening a GPU pay, if the index to be copied to it is not larger.
const LEAST_FOR_DEVICE: u64 = 3 << 30;

impl<'a> Screening<'a> {
    /// Whether [`BackendChoice::Auto`] looks for a GPU for an index of `index_bytes` bytes. A caller that opens a
    /// device while the index is still being read saves the time of opening it later.
    pub fn pays_on_device(index_bytes: u64, files: &[PathBuf]) -> bool {
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        bytes_of(&texts).is_some_and(|bytes| bytes >= LEAST_FOR_DEVICE.max(index_bytes))
    }

    /// Returns the decider of these settings for `files`.
    pub(super) fn decider(&self, files: &[PathBuf]) -> Result<Box<dyn Decider + 'a>, Error> {
        match self.by {
            By::Table(table) if table.k().is_long() => {
                self.on_host(ByWindows::<u128>::of_table(table, self.rule, self.prefix))
            }
            By::Table(table) => self.on_host(ByWindows::<u64>::of_table(table, self.rule, self.prefix)),
            By::Labels(labels) => {
                let counts = self.outputs[COUNTS].is_some();
                match labels.k().is_long() {
                    true => self.on_host(ByWindows::<u128>::of_labels(labels, self.rule, self.prefix, counts)),
                    false => self.on_host(ByWindows::<u64>::of_labels(labels, self.rule, self.prefix, counts)),
                }
            }
            By::Index(index) => self.by_index_of(index, files),
        }
    }

    /// Returns a decider that no device has.
    fn on_host(&self, decider: impl Decider + 'a) -> Result<Box<dyn Decider + 'a>, Error> {
        match self.place {
            Executor::Device(_) | Executor::Backend(BackendChoice::Cuda) => Err(Error::TableOnDevice),
            Executor::Backend(BackendChoice::Cpu | BackendChoice::Auto) => Ok(Box::new(decider)),
        }
    }

    fn by_index_of(&self, index: &'a Index, files: &[PathBuf]) -> Result<Box<dyn Decider + 'a>, Error> {
        let (rule, prefix, counts) = (self.rule, self.prefix, self.outputs[COUNTS].is_some());
        let on_host = || -> Box<dyn Decider + 'a> {
            match index.sequences() {
                Some(filter) => Box::new(BySequences { filter, rule, prefix }),
                None => Box::new(ByMinimizers { index, rule, prefix, counts }),
            }
        };
        let on_device = |device: &Device| -> Result<Box<dyn Decider + 'a>, Error> {
            Ok(match index.sequences() {
                Some(filter) => Box::new(BySequencesOnDevice::new(index, filter, device, (rule, prefix))?),
                None if index.k().is_long() => Box::new(OnDevice::<u128>::new(index, device, (rule, prefix, counts))?),
                None => Box::new(OnDevice::<u64>::new(index, device, (rule, prefix, counts))?),
            })
        };
        let on_found = || match Found::auto() {
            Found::Cuda(device) => on_device(&device),
            Found::Cpu(why) => Err(why.into()),
        };
        match &self.place {
            Executor::Backend(BackendChoice::Cpu) => Ok(on_host()),
            Executor::Device(device) => on_device(device),
            Executor::Backend(BackendChoice::Cuda) => on_found(),
            Executor::Backend(BackendChoice::Auto) if Screening::pays_on_device(index.memory_bytes(), files) => {
                match on_found() {
                    Err(error) if error.asks_for_cpu() => Ok(on_host()),
                    decider => decider,
                }
            }
            Executor::Backend(BackendChoice::Auto) => Ok(on_host()),
        }
    }
}
