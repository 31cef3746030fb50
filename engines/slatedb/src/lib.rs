//! Range filters for [SlateDB](https://slatedb.io) 0.18: scans skip tables that have no key in their range.
//!
//! ```
//! use std::sync::Arc;
//!
//! use slatedb::{BloomFilterPolicy, Db, object_store::memory::InMemory};
//! use warpset_slatedb::RangeFilterPolicy;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = RangeFilterPolicy::new(16.0)?; // beside the filter for single keys
//! let db = Db::builder("/orders", Arc::new(InMemory::new()))
//!     .with_filter_policies(vec![Arc::new(BloomFilterPolicy::new(10)), Arc::new(policy)])
//!     .build()
//!     .await?;
//! db.put(7u64.to_be_bytes(), b"seven").await?;
//! assert!(db.scan(8u64.to_be_bytes()..20u64.to_be_bytes()).await?.next().await?.is_none());
//! # db.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A table's filter has the prefix that all of its keys share, and a [`RangeFilter`] of the next bytes of each key as
//! one big-endian integer. A range of `l` such integers without a key passes with probability at most `l / 2^(B-2)` at
//! `B` bits per key. So keys should end in an integer, as ids and times do, or the bounds of scans be close in the
//! bytes that count ([`key_bytes`](RangeFilterPolicy::key_bytes)); other scans are answered correctly and read more.
//!
//! Writer, readers and compactor get the same policies. Filters describe themselves: those of other settings are read
//! as they are, and a damaged one passes everything.

#![warn(clippy::missing_errors_doc)]

mod bounds;

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterBuilder, FilterPolicy, FilterQuery, RowEntry};
use warpset_range::{Error, RangeFilter};

use bounds::Keys;

/// Most bytes of a key that count.
pub const MOST_KEY_BYTES: usize = 16;

/// Policy that makes a range filter per table; asked for ranges, prefixes and single keys.
#[derive(Clone, Copy, Debug)]
pub struct RangeFilterPolicy {
    bits_per_key: f64,
    key_bytes: usize,
}

impl RangeFilterPolicy {
    /// Name that is stored with each filter.
    pub const NAME: &'static str = "warpset_range";

    /// Creates a policy with this many bits per key.
    ///
    /// # Errors
    /// [`Error::InvalidBitsPerKey`] unless the bits are from 3 to 60.
    pub fn new(bits_per_key: f64) -> Result<RangeFilterPolicy, Error> {
        // An empty filter checks the setting.
        builder(bits_per_key).build_from::<u128>(&[])?;
        Ok(RangeFilterPolicy { bits_per_key, key_bytes: 8 })
    }

    /// Sets the number of bytes after the common prefix that count, 1 to 16 (other numbers are taken for the nearest of
    /// these). The last of them should be the last byte of a key, or the last in which bounds of scans differ: a scan
    /// from `a` to `b` is as long as the difference of these bytes. Default: 8.
    #[must_use]
    pub fn key_bytes(mut self, bytes: usize) -> RangeFilterPolicy {
        self.key_bytes = bytes.clamp(1, MOST_KEY_BYTES);
        self
    }
}

fn builder(bits_per_key: f64) -> warpset_range::Builder<u128> {
    RangeFilter::builder().bits_per_key(bits_per_key)
}

impl FilterPolicy for RangeFilterPolicy {
    fn name(&self) -> &str {
        RangeFilterPolicy::NAME
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(Gathering { policy: *self, keys: Vec::new() })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(TableFilter(Sound::decode(data)))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        256 + (num_keys as f64 * (self.bits_per_key + 0.2) / 8.0) as usize
    }

    fn supports_range_queries(&self) -> bool {
        true
    }
}

/// Keys of a table that is being written.
struct Gathering {
    policy: RangeFilterPolicy,
    keys: Vec<Bytes>,
}

impl FilterBuilder for Gathering {
    fn add_entry(&mut self, entry: &RowEntry) {
        self.keys.push(entry.key.clone());
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let RangeFilterPolicy { bits_per_key, key_bytes } = self.policy;
        let keys = std::mem::take(&mut self.keys);
        let of = Keys::with_common_prefix(&keys, key_bytes);
        let numbers: Vec<u128> = keys.iter().map(|key| of.number(&key[of.prefix.len()..])).collect();
        // Without memory for it, the table has a filter that passes everything.
        let filter = builder(bits_per_key).build_from(&numbers).ok();
        Arc::new(TableFilter(filter.map(|filter| Arc::new(Sound { of, filter }))))
    }
}

/// Filter of one table; `None` passes everything.
struct TableFilter(Option<Arc<Sound>>);

struct Sound {
    of: Keys,
    filter: RangeFilter<u128>,
}

impl Sound {
    /// Reads what [`TableFilter::encode`] wrote: one byte for the bytes that count, the length of the prefix in four
    /// bytes, the prefix, the filter. `None` for anything else.
    fn decode(data: &[u8]) -> Option<Arc<Sound>> {
        let (&bytes, rest) = data.split_first()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (prefix, filter) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        if !(1..=MOST_KEY_BYTES).contains(&usize::from(bytes)) {
            return None;
        }
        let of = Keys { prefix: prefix.to_vec(), bytes: bytes.into() };
        Some(Arc::new(Sound { of, filter: RangeFilter::from_bytes(filter).ok()? }))
    }
}

impl Filter for TableFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Some(Sound { of, filter }) = self.0.as_deref() else { return true };
        of.range(&query.target).is_some_and(|(first, last)| filter.may_contain(first..=last))
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        if let Some(Sound { of, filter }) = self.0.as_deref() {
            writer.put_u8(of.bytes as u8);
            writer.put_u32_le(of.prefix.len() as u32);
            writer.put_slice(&of.prefix);
            writer.put_slice(&filter.to_bytes());
        }
    }

    fn size(&self) -> usize {
        self.0.as_ref().map_or(0, |sound| sound.of.prefix.len() + sound.filter.memory_bytes() as usize)
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        // Nothing is borrowed from a larger buffer.
        Arc::new(TableFilter(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use slatedb::ValueDeletable;

    use super::*;

    fn table(policy: RangeFilterPolicy, keys: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut builder = policy.builder();
        for key in keys {
            let (key, value) = (key.to_be_bytes().to_vec().into(), ValueDeletable::Tombstone);
            builder.add_entry(&RowEntry { key, value, seq: 1, create_ts: None, expire_ts: None });
        }
        let mut saved = Vec::new();
        builder.build().encode(&mut saved);
        saved
    }

    fn range(from: u64, to: u64) -> FilterQuery {
        let bytes = |number: u64| Bytes::from(number.to_be_bytes().to_vec());
        FilterQuery::range(std::ops::Bound::Included(bytes(from)), std::ops::Bound::Excluded(bytes(to)))
    }

    /// Checks that ranges without keys are rejected at the stated rate, also by a policy with other settings, and that
    /// the size is the estimated one.
    #[test]
    fn empty_ranges_are_rejected() {
        let policy = RangeFilterPolicy::new(14.0).unwrap();
        let key = |i: u64| (i * 1_000_003) << 20;
        let saved = table(policy, (0..10_000).map(key));
        assert!(saved.len() < policy.estimate_size(10_000) && saved.len() > policy.estimate_size(9_000));
        let filter = RangeFilterPolicy::new(20.0).unwrap().key_bytes(3).decode(&saved);
        assert!((0..10_000).all(|i| filter.might_match(&range(key(i), key(i) + 1))));
        let passed = (0..10_000).filter(|&i| filter.might_match(&range(key(i) + 1, key(i) + 101))).count();
        // 100 / 2^12 of them, at most.
        assert!((20..300).contains(&passed), "{passed}");
        assert!(!filter.might_match(&range(key(10_000), u64::MAX)));
    }

    #[test]
    fn damaged_filters_pass_everything() {
        let policy = RangeFilterPolicy::new(14.0).unwrap();
        let saved = table(policy, [1, 1 << 40]);
        assert!(!policy.decode(&saved).might_match(&range(5, 9)));
        for len in 0..saved.len() {
            assert!(policy.decode(&saved[..len]).might_match(&range(5, 9)), "{len}");
        }
        let none = table(policy, []);
        assert!(!policy.decode(&none).might_match(&range(0, u64::MAX)));
        assert!(RangeFilterPolicy::new(2.0).is_err() && RangeFilterPolicy::new(f64::NAN).is_err());
    }
}
