//! Queries over saved bytes, such as a memory-mapped file.

use crate::cpu::Ordered;
use crate::derived::Derived;
use crate::form::Frozen;
use crate::format::{directory, view};
use crate::level::Sorted;
use crate::run::Run;
use crate::{Error, OrderedKey, Value};

/// A saved [`Lsm`](crate::Lsm) or [`SortedArray`](crate::SortedArray) in borrowed bytes: answers every query without a copy of
/// the elements.
///
/// ```
/// use warpset_lsm::{SortedArray, View};
///
/// let array = SortedArray::<u32, u64>::builder().build_from(&[1, 2], &[10, 20])?;
/// let path = std::env::temp_dir().join("warpset-lsm-view.array");
/// array.save(&path)?;
///
/// let file: Vec<u64> = words_of(&std::fs::read(&path)?); // or memmap2::Mmap
/// let view = View::<u32, u64>::from_bytes(bytemuck::cast_slice(&file))?;
/// assert_eq!(view.get(2), Some(20));
/// # std::fs::remove_file(&path)?;
/// # fn words_of(bytes: &[u8]) -> Vec<u64> { bytemuck::pod_collect_to_vec(bytes) }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type View<'a, K, V> = Ordered<K, V, Frozen, Borrowed<'a, K, V>>;

/// A level in somebody else's memory.
pub struct Borrowed<'a, K, V> {
    run: Run<'a, K, V>,
    derived: Derived<K>,
}

impl<K: OrderedKey, V: Value> Sorted<K, V> for Borrowed<'_, K, V> {
    fn run(&self) -> Run<'_, K, V> {
        self.run
    }

    fn derived(&self) -> &Derived<K> {
        &self.derived
    }
}

impl<'a, K: OrderedKey, V: Value> View<'a, K, V> {
    /// A dictionary in saved bytes, such as a memory-mapped file: checks everything, checksum and order of the keys
    /// included, for which it reads the bytes twice.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::OtherElements`], [`Error::Invalid`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::open(view::<K, V>(bytes, true)?)
    }

    /// [`View::from_bytes`] without checksum and order: opens in constant time and touches the directory of the levels only.
    /// Damaged elements make wrong answers, nothing worse.
    ///
    /// # Errors
    /// As for [`View::from_bytes`].
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::open(view::<K, V>(bytes, false)?)
    }

    fn open(words: &'a [u64]) -> Result<Self, Error> {
        let places = directory::<K, V>(words)?;
        let level = |run| Borrowed { run, derived: Derived::default() };
        Ok(Ordered::from_levels(Frozen, places.iter().map(|place| level(place.run(words))).collect()))
    }
}
