//! How far a build is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a build does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Reads the keys of an [external](crate::Builder::external) build, and hashes them.
    Hashing,
    /// Builds trees.
    Building,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Keys for which it is done.
    pub keys_done: u64,
    /// All keys; 0 while their number is unknown, as an external build reads them.
    pub keys: u64,
    /// Which seed is being tried: 0 unless hash values collided.
    pub attempt: u32,
}

pub(crate) type Callback = Arc<dyn Fn(Progress) + Send + Sync>;

/// Counts finished keys and reports them.
pub(crate) struct Meter<'a> {
    callback: Option<&'a (dyn Fn(Progress) + Send + Sync)>,
    done: AtomicU64,
    stage: Stage,
    keys: u64,
    attempt: u32,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        callback: Option<&'a (dyn Fn(Progress) + Send + Sync)>,
        stage: Stage,
        keys: u64,
        attempt: u32,
    ) -> Self {
        Self { callback, done: AtomicU64::new(0), stage, keys, attempt }
    }

    pub(crate) fn add(&self, keys: u64) {
        if let Some(callback) = self.callback {
            let done = self.done.fetch_add(keys, Ordering::Relaxed) + keys;
            callback(Progress { stage: self.stage, keys_done: done, keys: self.keys, attempt: self.attempt });
        }
    }
}
