//! From a builder to a filter in host memory.

use warpset_core::bloom::blocked;

use super::{BlockedBloom, Bloom, RaoBloom, SplitBlockBloom, insert};
use crate::layout::engine::OneBlock;
use crate::{
    AlignedWords, BlockedBuilder, BlockedLayout, Builder, Error, Hashed, Insert, Key, Layout, RaoBuilder,
    SplitBlockBuilder, SplitBlockLayout,
};

impl<L: Layout> Builder<L> {
    /// Returns an empty filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn build(&self) -> Result<Bloom<L>, Error> {
        Bloom::with_layout(*self.layout())
    }

    /// Returns a filter of these words, such as another backend gave.
    ///
    /// # Errors
    /// The number of words differs from the parameters', or memory runs out.
    pub fn build_from_words(&self, words: &[u32]) -> Result<Bloom<L>, Error> {
        let layout = *self.layout();
        if layout.words() != words.len() as u64 {
            return Err(Error::WordCount { needed: layout.words(), found: words.len() as u64 });
        }
        let mut memory = AlignedWords::zeroed(layout.words())?.in_huge_pages();
        memory.as_mut_slice().copy_from_slice(words);
        Ok(Bloom::from_parts(layout, memory))
    }

    /// Returns a filter of these keys.
    ///
    /// # Errors
    /// The errors of [`Builder::build`]; and Rao's filter can overflow.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<Bloom<L>, Error>
    where
        Bloom<L>: Insert<Error = Error>,
    {
        let mut filter = self.build()?;
        Insert::insert_bulk(&mut filter, keys)?;
        Ok(filter)
    }
}

macro_rules! builds {
    ($($builder:ty => $filter:ty;)*) => {$(
        impl $builder {
            /// Checks every setting, then allocates: an empty filter.
            ///
            /// # Errors
            /// The first setting that no filter has; [`Error::OutOfMemory`].
            pub fn build(&self) -> Result<$filter, Error> {
                Builder::with_layout(self.layout()?).build()
            }

            /// Checks every setting, then makes a filter of these keys. Their number is not compared with the
            /// builder's: more keys give a higher rate of false positives.
            ///
            /// # Errors
            /// The first setting that no filter has; [`Error::OutOfMemory`]; for Rao's filter
            /// [`Error::BucketOverflow`].
            pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<$filter, Error> {
                Builder::with_layout(self.layout()?).build_from(keys)
            }
        }

        impl $filter {
            /// Returns a filter for `keys` different keys, by default with 1% false positives.
            pub fn builder(keys: u64) -> $builder {
                <$builder>::new(keys)
            }
        }
    )*};
}
builds! {
    SplitBlockBuilder => SplitBlockBloom;
    BlockedBuilder => BlockedBloom;
    RaoBuilder => RaoBloom;
}

/// Unwraps a filter of an iterator's keys from a default builder. It can fail only if memory runs out.
fn for_iterator<L: Layout>(built: Result<Bloom<L>, Error>) -> Bloom<L> {
    match built {
        Ok(filter) => filter,
        // `FromIterator` cannot fail; the standard collections end the process here too.
        Err(error) => panic!("{error}"),
    }
}

/// Makes a filter from keys of unknown number: hashes them first, under a layout of one block.
fn collect<L: OneBlock, K: Key>(
    one_block: Result<L, Error>,
    keys: impl IntoIterator<Item = K>,
    build: impl FnOnce(u64) -> Result<Bloom<L>, Error>,
) -> Bloom<L> {
    let hashes: Vec<Hashed> = match one_block {
        Ok(layout) => keys.into_iter().map(|key| Hashed(L::hash_of(&layout.probe(&key)))).collect(),
        Err(_) => Vec::new(),
    };
    let mut filter = for_iterator(build(hashes.len().max(1) as u64));
    insert::insert_bulk(&filter.layout, filter.words.as_mut_slice(), &hashes);
    filter
}

/// A filter for 1% false positives of the size that the keys need.
///
/// # Panics
/// As `Vec` does when there is no memory; `build_from` of a builder returns an error instead.
impl<K: Key> FromIterator<K> for SplitBlockBloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> SplitBlockBloom {
        collect(SplitBlockLayout::new(1), keys, |n| SplitBlockBuilder::new(n).build())
    }
}

/// A filter for 1% false positives, with defaults, of the size that the keys need.
///
/// # Panics
/// As `Vec` does when there is no memory; `build_from` of a builder returns an error instead.
impl<K: Key> FromIterator<K> for BlockedBloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> BlockedBloom {
        let one_block = BlockedLayout::new(1, blocked::BlockShape::of::<256, 32, 8>(), 0);
        collect(one_block, keys, |n| BlockedBuilder::new(n).build())
    }
}

/// A filter for 1% false positives, with defaults, of the size that the keys need.
///
/// # Panics
/// As `Vec` does when there is no memory; `build_from` of a builder returns an error instead.
impl<K: Key> FromIterator<K> for RaoBloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> RaoBloom {
        let seed = crate::key::Seed::new(0);
        let hashes: Vec<Hashed> = keys.into_iter().map(|key| Hashed(seed.hash(&key))).collect();
        let mut filter = for_iterator(RaoBuilder::new(hashes.len().max(1) as u64).build());
        filter.extend(hashes);
        filter
    }
}
