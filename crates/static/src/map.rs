//! Sets and maps in host memory.

use std::fmt;

use warpset_base::words::AlignedWords;

use crate::{Error, Layout, StaticKey, StaticMapView, Value, tags};

/// Immutable, exact map of integers to integers: a lookup reads one byte, one cache line, and the value's line.
///
/// Built by [`StaticMap::builder`], from keys in any order; of equal keys the last one counts. A map of 10^8 keys of 64
/// bits takes 72.4 bits per key, and 8.9 bytes per value of 8 bytes, since one slot of ten is free. Up to 15 million
/// keys, memory (not files) also has a tag of one byte per slot: most lookups of absent keys end there.
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
/// Values of any type can be kept in a separate table, at the [`number`](StaticMap::number) of each key.
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
    tags: Vec<u64>,
}

/// Immutable, exact set of integers: a lookup reads one byte and one cache line. A [`StaticMap`] without values.
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
    /// Joins `words` and the layout that they were made for.
    pub(crate) fn from_parts(layout: Layout<K, V>, words: AlignedWords<u64>) -> Result<StaticMap<K, V>, Error> {
        let tags = tags::of(&layout, words.as_slice())?;
        Ok(StaticMap { layout, words, tags })
    }

    /// Returns the words: pilots, keys, values.
    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Borrows the words, for lookups.
    #[inline]
    pub fn view(&self) -> StaticMapView<'_, K, V> {
        StaticMapView::new(self.layout, self.words.as_slice(), &self.tags)
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }
}

impl<K: StaticKey, V: Value> Clone for StaticMap<K, V> {
    /// Clones like `Vec::clone`: ends the process if memory runs out.
    fn clone(&self) -> StaticMap<K, V> {
        StaticMap { layout: self.layout, words: self.words.clone(), tags: self.tags.clone() }
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
