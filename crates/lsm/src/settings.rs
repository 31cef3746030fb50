//! Settings of dictionaries, and the rule of automatic cleanups.

use crate::Error;

/// Default of [`Builder::batch_size`](crate::Builder::batch_size).
pub const DEFAULT_BATCH_SIZE: u64 = 1 << 16;
const BATCH_SIZES: std::ops::RangeInclusive<u64> = 64..=1 << 40;

/// Time at which a dictionary drops tombstones and stale elements by itself, at the end of an update.
///
/// Which elements are stale is not known until they are dropped, so the automatic policies count what came since the
/// last cleanup: every such element may have made an older one stale, or be stale.
///
/// A cleanup that is due and finds no memory is put off: the update has been done, and the next one tries again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CleanupPolicy {
    /// Never; call `cleanup`.
    Manual,
    /// When the elements that came since the last cleanup are more than this share of all, and there are at least four
    /// batches. With 0.5, memory is at most about twice what the live elements take, and a stream of insertions is
    /// cleaned up whenever it has doubled, which costs about two merges per element in all.
    StaleShare(f64),
    /// After this number of updates, of any size.
    EveryBatches(u64),
}

impl Default for CleanupPolicy {
    fn default() -> Self {
        CleanupPolicy::StaleShare(0.5)
    }
}

/// Settings of a log-structured merge tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub batch_size: u64,
    pub cleanup: CleanupPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { batch_size: DEFAULT_BATCH_SIZE, cleanup: CleanupPolicy::default() }
    }
}

impl Settings {
    pub fn check(self) -> Result<Settings, Error> {
        let Settings { batch_size, cleanup } = self;
        if !batch_size.is_power_of_two() || !BATCH_SIZES.contains(&batch_size) {
            return Err(Error::InvalidBatchSize { batch_size });
        }
        match cleanup {
            CleanupPolicy::StaleShare(share) if !(share > 0.0 && share < 1.0) => {
                Err(Error::InvalidStaleShare { share })
            }
            CleanupPolicy::EveryBatches(0) => Err(Error::NoBatches),
            _ => Ok(self),
        }
    }

    /// Whether a cleanup is due with `resident` elements, given the live elements at the last cleanup and the updates
    /// since.
    pub fn is_due(&self, resident: u64, live_at_cleanup: u64, updates: u64) -> bool {
        match self.cleanup {
            CleanupPolicy::Manual => false,
            CleanupPolicy::StaleShare(share) => {
                let new = resident.saturating_sub(live_at_cleanup);
                resident >= self.batch_size.saturating_mul(4) && new as f64 > share * resident as f64
            }
            CleanupPolicy::EveryBatches(every) => updates >= every,
        }
    }
}
