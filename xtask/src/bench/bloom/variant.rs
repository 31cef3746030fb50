//! Our filters as subjects.

use super::super::suite::Target;
use super::subject::Subject;

/// One of our filters with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {}

impl Variant {
    pub fn for_screens() -> Vec<Variant> {
        vec![]
    }
    pub fn for_generated() -> Vec<Variant> {
        vec![]
    }
    pub fn name(self) -> String {
        match self {}
    }
    pub fn for_capacity(self, _target: &Target, _n: usize, _fpr: f64) -> anyhow::Result<Box<dyn Subject>> {
        match self {}
    }
    pub fn of_size(self, _target: &Target, _bytes: usize, _n: usize) -> anyhow::Result<Box<dyn Subject>> {
        match self {}
    }
}
