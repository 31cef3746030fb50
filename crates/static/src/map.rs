//! Sets and maps in host memory.

use std::fmt;

use warpset_base::words::AlignedWords;

use crate::{Layout, StaticKey, StaticMapView, Value};

/// A map of integers to integers that never changes: exact, in one byte and one cache line per lookup, and the value's.
///
/// Built by [`StaticMap::builder`], from keys in any order; of equal keys the last one counts. A map of 10^8 keys of 64
/// bits takes 72.4 bits per key, and 8.9 bytes per value of 8 bytes, as one slot of ten is free.
///
/// ```
/// use warpset_static::StaticMap;
///
/// let map = StaticMap::<u64, u32>::builder().build_from(&[30, 10, 30], &[1, 2, 3])?;
/// assert_eq!(map.get_bulk(&[10, 20, 30]), [Some(2), None, Some(3)]);
/// assert_eq!(map.len(), 2);
/// # Ok::<(), warpset_static::Error>(())
/// ```
///
/// A table of one's own is another way to have values, of any type: at the [`number`](StaticMap::number) of each key.
///
/// ```
/// use warpset_static::StaticSet;
///
/// let names = [(7u64, "seven"), (11, "eleven")];
/// let set = StaticSet::<u64>::builder().build_from(&names.map(|(key, _)| key))?;
/// let mut table = vec![""; set.slots() as usize];
/// for (key, name) in names {
///     table[set.number(key).unwrap() as usize] = name;
/// }
/// assert_eq!(set.number(11).map(|number| table[number as usize]), Some("eleven"));
/// assert_eq!(set.number(12), None);
/// # Ok::<(), warpset_static::Error>(())
/// ```
pub struct StaticMap<K: StaticKey, V: Value> {
    layout: Layout<K, V>,
    words: AlignedWords<u64>,
}

/// A set of integers that never changes: exact, in one byte and one cache line per lookup. A [`StaticMap`] without
/// values.
///
/// ```
/// use warpset_static::StaticSet;
///
/// let set = StaticSet::<u32>::builder().build_from(&[1, 2, 3, 2])?;
/// assert!(set.contains(3) && !set.contains(4));
/// let mut keys: Vec<u32> = set.keys().collect();
/// keys.sort_unstable();
/// assert_eq!(keys, [1, 2, 3]);
/// # Ok::<(), warpset_static::Error>(())
/// ```
pub type StaticSet<K> = StaticMap<K, ()>;

impl<K: StaticKey, V: Value> StaticMap<K, V> {
    /// `words` are those of `layout`.
    pub(crate) fn from_parts(layout: Layout<K, V>, words: AlignedWords<u64>) -> StaticMap<K, V> {
        StaticMap { layout, words }
    }

    /// The words: pilots, keys, values.
    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> StaticMapView<'_, K, V> {
        StaticMapView::new(self.layout, self.words.as_slice())
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }
}

impl<K: StaticKey, V: Value> Clone for StaticMap<K, V> {
    /// Like `Vec::clone`, ends the process when there is no memory.
    fn clone(&self) -> StaticMap<K, V> {
        StaticMap { layout: self.layout, words: self.words.clone() }
    }
}

/// Equal if they were built of the same keys and values with the same seed.
impl<K: StaticKey, V: Value> PartialEq for StaticMap<K, V> {
    fn eq(&self, other: &StaticMap<K, V>) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}

impl<K: StaticKey, V: Value> Eq for StaticMap<K, V> {}

impl<K: StaticKey, V: Value> fmt::Debug for StaticMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticMap").field("layout", &self.layout).finish_non_exhaustive()
    }
}
