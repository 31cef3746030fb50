//! The split-block filter of the crate `parquet`: feature `peers`.

use anyhow::{bail, ensure};
use parquet::bloom_filter::Sbbf;
use rayon::prelude::*;

use super::super::subject::{Keys, Subject};
use super::{answer, answer_in_order, each};

/// The filter.
pub struct Parquet(Sbbf);

impl Parquet {
    /// Makes an empty filter for `n` keys and a false-positive rate.
    pub fn for_capacity(n: usize, fpr: f64) -> anyhow::Result<Self> {
        Ok(Self(Sbbf::new_with_ndv_fpp(n as u64, fpr)?))
    }

    /// Makes an empty filter of `bytes`, a multiple of 32.
    pub fn of_size(bytes: usize) -> Self {
        Self(Sbbf::new(&vec![0; bytes]))
    }
}

/// Fails on several threads.
fn alone() -> anyhow::Result<()> {
    ensure!(rayon::current_num_threads() == 1, "parquet's filter takes inserts from one thread only");
    Ok(())
}

impl Subject for Parquet {
    fn clear(&mut self) -> anyhow::Result<()> {
        self.0 = Sbbf::new(&vec![0; self.bytes()]);
        Ok(())
    }

    fn insert(&mut self, keys: Keys<'_>) -> anyhow::Result<()> {
        alone()?;
        each!(keys, |key| self.0.insert(key));
        Ok(())
    }

    fn contains(&self, keys: Keys<'_>, answers: &mut [bool]) -> anyhow::Result<()> {
        answer!(keys, answers, |key| self.0.check(key))
    }

    fn test_and_insert(&mut self, keys: Keys<'_>, new: &mut [bool]) -> anyhow::Result<()> {
        alone()?;
        answer_in_order!(keys, new, |key| {
            let new = !self.0.check(key);
            self.0.insert(key);
            new
        });
        Ok(())
    }

    fn merge(&mut self, _other: &dyn Subject) -> anyhow::Result<()> {
        bail!("parquet's filter has no union")
    }

    fn theory(&self, _n: usize) -> Option<f64> {
        None // its estimate looks at the bits that are set, not at a number of keys
    }

    fn bytes(&self) -> usize {
        self.0.num_blocks() * 32
    }
}
