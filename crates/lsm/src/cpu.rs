//! Dictionaries in host memory: [`Lsm`], [`SortedArray`], [`Snapshot`] and [`View`](crate::View) are one type,
//! [`Dictionary`], with several [policies](crate::MergePolicy). All have the same queries; the policy determines what
//! an update does.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::element::are_same;
use crate::level::{Level, Sorted};
use crate::policy::{MergePolicy, ReadOnlyPolicy, TreePolicy};
use crate::{OrderedKey, Value};

mod array;
mod tree;
mod update;

pub use array::SortedArray;
pub use tree::Lsm;

/// Dictionary in host memory, by its merge policy `P`: a tree ([`Lsm`]), one array ([`SortedArray`]), or an earlier
/// state of one of these ([`Snapshot`]). `L` is the storage of a level: shared by a dictionary and its clones, or, in a
/// [`View`](crate::View), the bytes of a file.
#[derive(Clone)]
pub struct Dictionary<K, V, P, L = Arc<Level<K, V>>> {
    pub(crate) policy: P,
    /// Occupied levels by ascending index: from the newest elements to the oldest.
    pub(crate) levels: Vec<L>,
    elements: PhantomData<(K, V)>,
}

/// State of a dictionary when [`Dictionary::snapshot`] was called; answers every query, from any thread, while the
/// dictionary changes.
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
///
/// `save`, `write_to` and `to_bytes` write the file that the dictionary itself would have written then: a backup while
/// updates go on.
pub type Snapshot<K, V, P = TreePolicy> = Dictionary<K, V, ReadOnlyPolicy<P>>;

impl<K: OrderedKey, V: Value, P, L: Sorted<K, V>> Dictionary<K, V, P, L> {
    /// Returns a dictionary of levels that keep the invariants of this policy.
    pub(crate) fn from_levels(policy: P, levels: Vec<L>) -> Self {
        // Values that are too large do not compile.
        let _ = V::NONE;
        Dictionary { policy, levels, elements: PhantomData }
    }
}

impl<K: OrderedKey, V: Value, P: MergePolicy> Dictionary<K, V, P> {
    /// Returns the current state, which can be queried and saved while this dictionary changes. Costs a few words; the
    /// levels are shared.
    pub fn snapshot(&self) -> Snapshot<K, V, P> {
        self.with_policy(ReadOnlyPolicy(self.policy))
    }
}

impl<K: OrderedKey, V: Value, P> Dictionary<K, V, P> {
    /// Returns a dictionary that shares the levels.
    pub(crate) fn with_policy<Q>(&self, policy: Q) -> Dictionary<K, V, Q> {
        Dictionary { policy, levels: self.levels.clone(), elements: PhantomData }
    }

    pub(crate) fn levels(&self) -> &[Arc<Level<K, V>>] {
        &self.levels
    }
}

/// Two dictionaries are equal if their policies, levels and elements are; values are compared byte for byte.
impl<K: OrderedKey, V: Value, P: PartialEq> PartialEq for Dictionary<K, V, P> {
    fn eq(&self, other: &Self) -> bool {
        let parts = |level: &Level<K, V>| (level.index, level.elements.len());
        self.policy == other.policy
            && self.levels.len() == other.levels.len()
            && self.levels.iter().zip(&other.levels).all(|(a, b)| {
                parts(a) == parts(b)
                    && a.elements.keys.as_slice() == b.elements.keys.as_slice()
                    && are_same(&a.elements.values, &b.elements.values)
                    && a.elements.tombstones == b.elements.tombstones
            })
    }
}

impl<K: OrderedKey, V: Value, P: fmt::Debug, L: Sorted<K, V>> fmt::Debug for Dictionary<K, V, P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<usize> = self.levels.iter().map(|level| level.run().len()).collect();
        f.debug_struct("Dictionary").field("policy", &self.policy).field("level_lens", &lengths).finish_non_exhaustive()
    }
}
