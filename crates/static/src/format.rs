//! Saved sets and maps: the header of [`warpset_base::file`], then the words as they are in memory. `docs/formats.md`
//! lists every byte.
//!
//! A loader checks the place of every key too, not only the checksum, so no bytes make a set that answers wrongly.

use warpset_base::file::{FIELDS, FileKind, Payload, Saved};
use warpset_base::parallel;
use warpset_base::words::AlignedWords;

use crate::{Error, Layout, StaticKey, StaticMap, StaticMapView, Value};

/// Buckets per task that checks.
const TASK: usize = 1 << 12;

impl<K: StaticKey, V: Value> Saved for StaticMap<K, V> {
    const STRUCTURE: FileKind = FileKind::STATIC_MAP;
    const NAME: &'static str = "static map";
    type Word = u64;
    type Layout = Layout<K, V>;
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<Layout<K, V>, Error> {
        Layout::from_fields(fields)
    }

    fn words_of(layout: &Layout<K, V>) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        self.layout().to_fields()
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u64, u8>(self.words())
    }

    fn check(layout: &Layout<K, V>, words: &[u64]) -> Result<(), Error> {
        StaticMapView::new(*layout, words, &[]).check()
    }

    fn from_saved(layout: Layout<K, V>, words: AlignedWords<u64>) -> Result<Self, Error> {
        StaticMap::from_parts(layout, words)
    }
}

warpset_base::saved_methods! {
    [K: StaticKey, V: Value] StaticMap<K, V>, Error;
}

warpset_base::viewed! {
    ['a, K: StaticKey, V: Value] StaticMapView<'a, K, V>, StaticMap<K, V>, Error;
    |layout, words| StaticMapView::new(layout, words, &[]);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    fn from_bytes;
}

impl<K: StaticKey, V: Value> StaticMapView<'_, K, V> {
    /// Checks that each key is where a lookup finds it, once, and that their number is that of the header.
    fn check(&self) -> Result<(), Error> {
        let buckets = (self.slots() / K::SLOTS as u64) as usize;
        let counts = parallel::map((0..buckets).step_by(TASK), |first| {
            (first..buckets.min(first + TASK))
                .try_fold(0, |sum, bucket| Ok::<_, Error>(sum + self.check_bucket(bucket)?))
        });
        let counted = counts.into_iter().sum::<Result<u64, Error>>()?;
        if counted != self.len() {
            return Err(Error::Invalid {
                what: "another number of keys than the header has, up to",
                bucket: buckets as u64,
            });
        }
        Ok(())
    }

    /// Counts the keys of a bucket.
    fn check_bucket(&self, bucket: usize) -> Result<u64, Error> {
        let held: &[K] = bytemuck::cast_slice(self.line(bucket));
        let invalid = |what| Err(Error::Invalid { what, bucket: bucket as u64 });
        let used = held.iter().rposition(|&key| key != held[0]).map_or(1, |last| last + 1);
        let is_empty = self.bucket_of(held[0]) != bucket;
        if is_empty && used > 1 {
            return invalid("a key of another bucket");
        }
        for (i, &key) in held[..used].iter().enumerate().skip(1) {
            if self.bucket_of(key) != bucket {
                return invalid("a key of another bucket");
            }
            if held[..i].contains(&key) {
                return invalid("a key twice");
            }
        }
        Ok(if is_empty { 0 } else { used as u64 })
    }
}
