//! Differences between the saved forms of dictionaries: numbers and parameters of their headers, and conditions on
//! their levels.

use warpset_base::file::{FIELDS, FileError, FileKind};

use super::LevelExtent;
use crate::invariants::check_places;
use crate::policy::{ArrayPolicy, History, MergePolicy, TreePolicy};
use crate::settings::Settings;
use crate::{CleanupPolicy, Error, OrderedKey};

/// Policy whose dictionaries can be saved: [`TreePolicy`] or [`ArrayPolicy`]. Sealed.
pub trait SavedPolicy: MergePolicy + header::Header {}
impl SavedPolicy for TreePolicy {}
impl SavedPolicy for ArrayPolicy {}

pub(crate) mod header {
    use super::*;

    /// Representation of a policy in a header, and its conditions on saved levels.
    pub trait Header: Sized {
        /// Number in headers, with the version of the format.
        const STRUCTURE: FileKind;
        /// Name for messages.
        const NAME: &'static str;
        /// Returns the parameters of the header, except the first two and the last.
        fn parameters(&self) -> [u64; FIELDS - 3];
        /// Returns the policy of a header with these parameters.
        fn of(fields: &[u64; FIELDS]) -> Result<Self, Error>;
        /// Checks the indices and lengths of levels, each of which has already been checked alone, and the keys of the
        /// first level.
        fn check<K: OrderedKey>(&self, places: &[LevelExtent], keys: &[K]) -> Result<(), Error>;
    }
}

impl header::Header for TreePolicy {
    const STRUCTURE: FileKind = FileKind::LSM;
    const NAME: &'static str = "log-structured merge tree";

    fn parameters(&self) -> [u64; FIELDS - 3] {
        let (policy, number) = match self.settings.cleanup {
            CleanupPolicy::Manual => (0, 0),
            CleanupPolicy::StaleShare(share) => (1, share.to_bits()),
            CleanupPolicy::EveryBatches(every) => (2, every),
        };
        let History { live_at_cleanup, updates } = self.history;
        [self.settings.batch_size, policy, number, live_at_cleanup, updates]
    }

    fn of(fields: &[u64; FIELDS]) -> Result<Self, Error> {
        let &[_, _, batch_size, policy, number, live_at_cleanup, updates, _] = fields;
        let cleanup = match policy {
            0 if number == 0 => CleanupPolicy::Manual,
            1 => CleanupPolicy::StaleShare(f64::from_bits(number)),
            2 => CleanupPolicy::EveryBatches(number),
            _ => return Err(FileError::InvalidHeader { field: "cleanup policy", value: policy }.into()),
        };
        if live_at_cleanup > isize::MAX as u64 {
            let (field, value) = ("elements at the last cleanup", live_at_cleanup);
            return Err(FileError::InvalidHeader { field, value }.into());
        }
        let settings = Settings { batch_size, cleanup }.check()?;
        Ok(TreePolicy { settings, history: History { live_at_cleanup, updates } })
    }

    fn check<K: OrderedKey>(&self, places: &[LevelExtent], _: &[K]) -> Result<(), Error> {
        check_places(self.settings.batch_size, places.iter().map(|place| (place.index, place.len)))
    }
}

impl header::Header for ArrayPolicy {
    const STRUCTURE: FileKind = FileKind::SORTED_ARRAY;
    const NAME: &'static str = "sorted array";

    fn parameters(&self) -> [u64; FIELDS - 3] {
        [0; FIELDS - 3]
    }

    fn of(fields: &[u64; FIELDS]) -> Result<Self, Error> {
        match fields[2..FIELDS - 1].iter().find(|&&field| field != 0) {
            Some(&value) => Err(FileError::InvalidHeader { field: "unused parameters", value }.into()),
            None => Ok(ArrayPolicy),
        }
    }

    fn check<K: OrderedKey>(&self, places: &[LevelExtent], keys: &[K]) -> Result<(), Error> {
        match places {
            [] => Ok(()),
            [place] if place.index.0 == 0 && place.len > 0 && !place.has_tombstones() => {
                match keys.windows(2).position(|two| two[0] == two[1]) {
                    Some(at) => Err(Error::Invalid { level: 0, what: "there is a copy of", place: at as u64 }),
                    None => Ok(()),
                }
            }
            _ => Err(FileError::InvalidHeader { field: "levels", value: places.len() as u64 }.into()),
        }
    }
}
