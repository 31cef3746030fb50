//! Settings of placement beyond those of all kinds.

use super::cost;
use super::{BUCKETS_PER_KEY, CodeParameters, KindOptions, Placement, PlacementKind};
use crate::kind::sealed::HashKind;
use crate::{Builder, Error};
use warpset_core::placement::POINT;

impl Placement {
    /// Returns the default settings for building a function; [`build_from`](crate::Builder::build_from) takes the keys.
    pub fn builder() -> Builder<PlacementKind> {
        Builder::new()
    }
}

impl<S> Builder<PlacementKind, S> {
    /// Sets the expected number of keys that share a seed of one byte, 1 to 6. Functions are smallest from 4.5 to 4.75;
    /// with more keys, the table of those without a place outweighs the gain. Fewer make lookups faster. Default: 4.5.
    pub fn keys_per_seed(mut self, keys: f64) -> Self {
        self.options.keys_per_seed = keys;
        self
    }
}

impl Default for KindOptions {
    fn default() -> Self {
        Self { keys_per_seed: 4.5 }
    }
}

impl KindOptions {
    /// Returns the code for these options.
    pub(super) fn code(&self) -> Result<CodeParameters, Error> {
        if !(1.0..=6.0).contains(&self.keys_per_seed) {
            let (what, value, allowed) = ("keys per seed", self.keys_per_seed, "1 to 6");
            return Err(Error::InvalidParameter { what, value, allowed });
        }
        let buckets_per_key = (f64::from(1 << POINT) / self.keys_per_seed).round() as u32;
        Ok(CodeParameters { buckets_per_key: buckets_per_key.clamp(*BUCKETS_PER_KEY.start(), *BUCKETS_PER_KEY.end()) })
    }

    /// Sets the fewest keys per seed within this space, and returns the bucket size; or the fewest bits per key.
    pub(super) fn choose_for_space(&mut self, bits_per_key: f64) -> Result<u32, f64> {
        self.keys_per_seed = cost::keys_per_seed(bits_per_key)?;
        Ok(PlacementKind::BUCKET_SIZE)
    }
}
