//! Dictionaries in host memory: [`Lsm`], [`SortedArray`], [`Snapshot`] and [`View`](crate::View) are one type, [`Ordered`], in
//! several [forms](crate::form). They are asked in the same way, and differ in what an update does.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use crate::form::Frozen;
use crate::level::{Level, Sorted};
use crate::{OrderedKey, Value};

mod array;
mod tree;
mod update;

pub use array::SortedArray;
pub use tree::Lsm;

/// A dictionary in host memory, as one of its forms: a tree ([`Lsm`]), one array ([`SortedArray`]), or as one of these was at
/// some time ([`Snapshot`]). `L` says who owns the levels: the dictionary and its clones, or, in a [`View`](crate::View), the
/// bytes of a file.
#[derive(Clone)]
pub struct Ordered<K, V, F, L = Arc<Level<K, V>>> {
    pub(crate) form: F,
    /// The occupied ones, ascending by their index, which is from the newest elements to the oldest.
    pub(crate) levels: Vec<L>,
    /// The number of live elements, where it is known.
    pub(crate) live: OnceLock<u64>,
    elements: PhantomData<(K, V)>,
}

/// A dictionary as it was when [`Ordered::snapshot`] was called; answers every query, from any thread, while that one goes on
/// changing.
///
/// ```
/// use warpset_lsm::Lsm;
///
/// let mut lsm = Lsm::<u32, u32>::builder().build()?;
/// lsm.insert_bulk(&[1, 2], &[10, 20])?;
/// let snapshot = lsm.snapshot();
/// std::thread::scope(|scope| {
///     let reader = scope.spawn(|| snapshot.get_bulk(&[1, 2]));
///     lsm.clear();
///     assert_eq!(reader.join().unwrap(), [Some(10), Some(20)]);
/// });
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
pub type Snapshot<K, V> = Ordered<K, V, Frozen>;

impl<K: OrderedKey, V: Value, F, L: Sorted<K, V>> Ordered<K, V, F, L> {
    /// Levels that keep the invariants of this form.
    pub(crate) fn from_levels(form: F, levels: Vec<L>) -> Self {
        Ordered { form, levels, live: OnceLock::new(), elements: PhantomData }
    }
}

impl<K: OrderedKey, V: Value, F> Ordered<K, V, F> {
    /// The dictionary as it is now, to be asked while this one changes. Costs a few words; the levels are shared.
    pub fn snapshot(&self) -> Snapshot<K, V> {
        Ordered { form: Frozen, levels: self.levels.clone(), live: self.live.clone(), elements: PhantomData }
    }

    pub(crate) fn levels(&self) -> &[Arc<Level<K, V>>] {
        &self.levels
    }
}

/// Same form with the same settings, same levels, same elements in them.
impl<K: OrderedKey, V: Value, F: PartialEq> PartialEq for Ordered<K, V, F> {
    fn eq(&self, other: &Self) -> bool {
        let parts = |level: &Level<K, V>| (level.index, level.elements.len());
        self.form == other.form
            && self.levels.len() == other.levels.len()
            && self.levels.iter().zip(&other.levels).all(|(a, b)| {
                parts(a) == parts(b)
                    && a.elements.keys.as_slice() == b.elements.keys.as_slice()
                    && a.elements.values == b.elements.values
                    && a.elements.tombstones == b.elements.tombstones
            })
    }
}

impl<K: OrderedKey, V: Value, F: fmt::Debug, L: Sorted<K, V>> fmt::Debug for Ordered<K, V, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<usize> = self.levels.iter().map(|level| level.run().len()).collect();
        f.debug_struct("Ordered").field("form", &self.form).field("level_lens", &lengths).finish_non_exhaustive()
    }
}
