//! Traits of filters, on every backend: their operations on many keys, and code that works with any filter.
//!
//! Operations on host slices (`_bulk` in their names) are methods of these traits alone, on the host and on devices,
//! and return `Result` on both: a program that moves a filter to a device changes its type and nothing else. In host
//! memory only operations that can run out of space fail (insertions into Rao's Bloom filter and into quotient
//! filters), and slices of different lengths.
//!
//! Operations on single keys exist twice. Types in host memory have inherent methods with exact results
//! (`contains(&key) -> bool`), which a program calls there; the traits have them as `Result` for generic code.
//!
//! Methods with `_if` in their names take a [`Stencil`], which selects keys of the batch. They gather the selected keys
//! first, by reference (8 bytes of memory per key); the others cost no lookup and do not travel to a device.
//!
//! | trait | operation | implemented by |
//! | --- | --- | --- |
//! | [`Filter`] | look up | all |
//! | [`Insert`] | insert, clear, merge | all that can change |
//! | [`TestAndInsert`] | insert and report which keys were new | Bloom filters, quotient filters |
//! | [`Remove`] | take out one copy of each key | quotient filters |
//! | [`Count`] | count the copies of each key | quotient filters |

use std::convert::Infallible;

use warpset_core::hash;

use crate::bitmap::{Bitmap, bits_to};
use crate::key::{Hashed, Key};
pub use crate::length::{LengthMismatch, same_length};
use crate::stencil::{Stencil, select};
use crate::words::in_huge_pages;

/// Callback that receives answers as words, one bit per key. The number is that of the first key, a multiple of 64;
/// calls come in any order.
pub type Take<'a> = dyn FnMut(usize, &[u64]) + 'a;

/// Keys that [`Filter::any_contained_bulk`] looks up at a time.
const ANY_BATCH: usize = 1 << 20;

/// A set that answers "no" only for keys that it does not hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no filter of Warpset",
    note = "Bloom filters, quotient filters, binary fuse filters, static filters, static sets and maps, and \
            their views are, on the host and on devices"
)]
pub trait Filter {
    /// Error of an operation.
    type Error: std::error::Error + From<LengthMismatch> + Send + Sync + 'static;

    /// Looks up all keys and gives the answers to `take`. All other lookups are built on this one.
    ///
    /// # Errors
    /// The errors of the backend.
    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Self::Error>;

    /// Returns the bytes of memory that the filter's words take.
    fn memory_bytes(&self) -> u64;

    /// Whether one key may be in the filter. On a device that is a batch of one key.
    ///
    /// # Errors
    /// The errors of the backend.
    fn contains(&self, key: impl Key) -> Result<bool, Self::Error> {
        Ok(self.contains_bulk(&[key])? == [true])
    }

    /// Whether each key may be in the filter, in the order of the keys.
    ///
    /// # Errors
    /// The errors of the backend.
    fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Self::Error> {
        let mut answers = vec![false; keys.len()];
        self.contains_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// Writes the answers of [`Filter::contains_bulk`] to a slice of the same length.
    ///
    /// # Errors
    /// [`LengthMismatch`], and the errors of the backend.
    fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Self::Error> {
        answers_into(self, keys, answers)
    }

    /// Does the work of [`Filter::contains_bulk`] into a slice of the same length, as bytes 0 and 1.
    ///
    /// # Errors
    /// If the lengths differ, and the errors of the backend.
    fn contains_bytes_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [u8]) -> Result<(), Self::Error> {
        answers_into(self, keys, answers)
    }

    /// Does the work of [`Filter::contains_bulk`] and returns one bit per key.
    ///
    /// # Errors
    /// The errors of the backend.
    fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Self::Error> {
        let mut bitmap = vec![0; keys.len().div_ceil(64)];
        self.answer_bulk(keys, &mut |first, words| bitmap[first / 64..][..words.len()].copy_from_slice(words))?;
        Ok(Bitmap::from_words(bitmap, keys.len()))
    }

    /// Whether at least one of the keys may be in the filter. Stops after the batch with the first one.
    ///
    /// # Errors
    /// The errors of the backend.
    fn any_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<bool, Self::Error> {
        for batch in keys.chunks(ANY_BATCH) {
            if self.count_contained_bulk(batch)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts the keys that may be in the filter.
    ///
    /// # Errors
    /// The errors of the backend.
    fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Self::Error> {
        let mut count = 0;
        let ones = |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        self.answer_bulk(keys, &mut |_, words| count += ones(words))?;
        Ok(count)
    }

    /// Drops the keys that are surely not in the filter; the others keep their order.
    ///
    /// # Errors
    /// The errors of the backend.
    fn retain_contained_bulk<K: Key>(&self, keys: &mut Vec<K>) -> Result<(), Self::Error> {
        let answers = self.contains_bitmap_bulk(keys)?;
        let mut answers = answers.iter();
        keys.retain(|_| answers.next() == Some(true));
        Ok(())
    }

    /// Looks up the keys that the stencil selects; the answer for the others is `false`.
    ///
    /// # Errors
    /// If the stencil covers another number of keys, and the errors of the backend.
    fn contains_if_bulk<K: Key>(
        &self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Vec<bool>, Self::Error> {
        Ok(self.contains_if_bitmap_bulk(keys, stencil)?.iter().collect())
    }

    /// Does the work of [`Filter::contains_if_bulk`] and returns one bit per key, which can serve as another stencil.
    ///
    /// # Errors
    /// The errors of [`Filter::contains_if_bulk`].
    fn contains_if_bitmap_bulk<K: Key>(
        &self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Bitmap, Self::Error> {
        let selected = select(keys, stencil)?;
        Ok(selected.spread(stencil, &self.contains_bitmap_bulk(&selected.keys)?))
    }
}

/// Looks up keys, and writes booleans or bytes 0 and 1.
fn answers_into<F: Filter + ?Sized, K: Key, T: Send + From<bool>>(
    filter: &F,
    keys: &[K],
    answers: &mut [T],
) -> Result<(), F::Error> {
    same_length(keys.len(), answers.len())?;
    filter.answer_bulk(keys, &mut |first, words| {
        let end = answers.len().min(first + words.len() * 64);
        bits_to(&mut answers[first..end], words);
    })
}

/// A filter that keys can be added to.
///
/// ```
/// use warpset_base::filter::Insert;
///
/// fn refill<F: Insert>(filter: &mut F, keys: &[u64]) -> Result<usize, F::Error> {
///     filter.clear()?;
///     filter.insert_bulk(keys)?;
///     filter.count_contained_bulk(keys)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "keys cannot be inserted into `{Self}`",
    note = "Bloom filters and quotient filters take keys; binary fuse filters, static filters, static sets and views never \
            change"
)]
pub trait Insert: Filter {
    /// Result of an insertion: `()`, or for filters that count the number of fingerprints added (`u64`).
    type Inserted: Copy + std::fmt::Debug;

    /// Inserts all keys, on all threads of the current rayon pool or on the device.
    ///
    /// # Errors
    /// The errors of the backend; a filter that is full.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Self::Inserted, Self::Error>;

    /// Inserts one key. On a device this is a batch of one key.
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`].
    fn insert(&mut self, key: impl Key) -> Result<(), Self::Error> {
        self.insert_bulk(&[key]).map(|_| ())
    }

    /// Inserts the keys that a stencil selects.
    ///
    /// ```
    /// use warpset_base::filter::Insert;
    ///
    /// /// Moves to `second` what `first` has seen already, and to `first` all.
    /// fn seen_twice<F: Insert>(first: &mut F, second: &mut F, keys: &[u64]) -> Result<(), F::Error> {
    ///     let seen = first.contains_bitmap_bulk(keys)?;
    ///     second.insert_if_bulk(keys, &seen)?;
    ///     first.insert_bulk(keys)?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// If the stencil covers another number of keys, and the errors of [`Insert::insert_bulk`].
    fn insert_if_bulk<K: Key>(
        &mut self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Self::Inserted, Self::Error> {
        let selected = select(keys, stencil)?;
        self.insert_bulk(&selected.keys)
    }

    /// Removes all keys and keeps the memory.
    ///
    /// # Errors
    /// The errors of the backend.
    fn clear(&mut self) -> Result<(), Self::Error>;

    /// Adds the contents of another filter with equal parameters.
    ///
    /// # Errors
    /// Filters that differ in a parameter, and the errors of the backend.
    fn merge(&mut self, other: &Self) -> Result<(), Self::Error>;
}

/// A filter that reports, during an insertion, which keys it did not contain.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say, while it inserts, which keys are new",
    note = "use `SplitBlockBloom`, `BlockedBloom`, `RaoBloom`, `StandardQuotientFilter` or `RankSelectQuotientFilter`"
)]
pub trait TestAndInsert: Insert {
    /// Inserts all keys and reports which were new: of equal keys in a batch at most the first is.
    ///
    /// Bloom filters take the keys in steps of a fixed number: a key is new if the filter before its step did not
    /// contain it and no key with the same hash precedes it in the step. So the answers are the same on every backend.
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`].
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Self::Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// Writes the answers of [`TestAndInsert::test_and_insert_bulk`] to a slice of the same length.
    ///
    /// # Errors
    /// [`LengthMismatch`], and the errors of [`Insert::insert_bulk`].
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Self::Error>;

    /// Inserts the keys that the stencil selects and reports which of them were new; the others count as not new.
    ///
    /// # Errors
    /// If the stencil covers another number of keys, and the errors of the backend.
    fn test_and_insert_if_bulk<K: Key>(
        &mut self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Vec<bool>, Self::Error> {
        let selected = select(keys, stencil)?;
        let new = Bitmap::from_bools(&self.test_and_insert_bulk(&selected.keys)?);
        Ok(selected.spread(stencil, &new).iter().collect())
    }
}

/// A filter that keys can be removed from.
#[diagnostic::on_unimplemented(
    message = "keys cannot be removed from `{Self}`",
    note = "use `StandardQuotientFilter` or `RankSelectQuotientFilter`"
)]
pub trait Remove: Insert {
    /// Removes one copy of each key, and returns the number of copies removed. Removing a key that was never inserted
    /// can remove another key with the same fingerprint.
    ///
    /// # Errors
    /// The errors of the backend.
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Self::Error>;

    /// Removes one copy of each key that the stencil selects.
    ///
    /// # Errors
    /// If the stencil covers another number of keys, and the errors of [`Remove::remove_bulk`].
    fn remove_if_bulk<K: Key>(&mut self, keys: &[K], stencil: &(impl Stencil + ?Sized)) -> Result<u64, Self::Error> {
        let selected = select(keys, stencil)?;
        self.remove_bulk(&selected.keys)
    }
}

/// A filter that counts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not count keys",
    note = "use `StandardQuotientFilter` or `RankSelectQuotientFilter`"
)]
pub trait Count: Filter {
    /// Counts the copies of each key that the filter holds, in the order of the keys: never fewer than were inserted.
    ///
    /// # Errors
    /// The errors of the backend.
    fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Self::Error> {
        let mut counts = in_huge_pages(vec![0; keys.len()]);
        self.count_bulk_into(keys, &mut counts)?;
        Ok(counts)
    }

    /// Writes the counts of [`Count::count_bulk`] to a slice of the same length.
    ///
    /// # Errors
    /// [`LengthMismatch`], and the errors of the backend.
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Self::Error>;
}

/// Returns the share of `samples` random hashes, drawn with `seed`, that are in a set; `count` counts those of a batch
/// of at most `most`. The hashes are the same for every `most`.
#[doc(hidden)]
pub fn share_of_hashes<E>(
    (samples, seed): (u64, u64),
    most: u64,
    mut count: impl FnMut(&[Hashed]) -> Result<usize, E>,
) -> Result<f64, E> {
    let (spread, mut hits, mut done) = (hash::spread_seed(seed), 0, 0);
    let mut hashes = Vec::with_capacity(most.min(samples) as usize);
    while done < samples {
        let end = samples.min(done + most);
        hashes.clear();
        hashes.extend((done..end).map(|i| Hashed(hash::mix_spread(i, spread))));
        hits += count(&hashes)? as u64;
        done = end;
    }
    Ok(hits as f64 / samples.max(1) as f64)
}

/// Performs the work of [`share_of_hashes`] for a set in host memory; `bits` answers with one bit per hash.
#[doc(hidden)]
pub fn share_of_hashes_on_host(samples: u64, seed: u64, bits: impl Fn(&[Hashed]) -> Vec<u64>) -> f64 {
    let ones = |words: Vec<u64>| words.iter().map(|word| word.count_ones() as usize).sum();
    let Ok(share) = share_of_hashes((samples, seed), 1 << 16, |hashes| Ok::<_, Infallible>(ones(bits(hashes))));
    share
}

/// Writes methods of a trait that call the inherent methods of the same names. `as Ok` marks an inherent method that
/// returns no `Result`. Generic parameters are in brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! by_inherent {
    ($(fn $name:ident $([$($generic:tt)*])? (&$($this:ident)+ $(, $arg:ident: $ty:ty)* $(,)?) -> $ret:ty $(as $ok:ident)?;)*) => {
        $($crate::by_inherent! { @($($this)+) fn $name [$($($generic)*)?] ($($arg: $ty),*) -> $ret; $($ok)? })*
    };
    (@(mut $self:ident) fn $name:ident [$($g:tt)*] ($($arg:ident: $ty:ty),*) -> $ret:ty; $($ok:ident)?) => {
        fn $name<$($g)*>(&mut $self, $($arg: $ty),*) -> $ret {
            $($ok)? ($self.$name($($arg),*))
        }
    };
    (@($self:ident) fn $name:ident [$($g:tt)*] ($($arg:ident: $ty:ty),*) -> $ret:ty; $($ok:ident)?) => {
        fn $name<$($g)*>(&$self, $($arg: $ty),*) -> $ret {
            $($ok)? ($self.$name($($arg),*))
        }
    };
}

/// Implements [`Filter`], with errors of the first type, for types that have a method `view`, by the implementation of
/// that view.
#[doc(hidden)]
#[macro_export]
macro_rules! filters_by_view {
    ($error:ty; $($(#[$attribute:meta])* [$($generics:tt)*] $filter:ty;)*) => {$(
        $(#[$attribute])*
        impl<$($generics)*> $crate::filter::Filter for $filter {
            type Error = $error;

            $crate::filters_by_view! { @
                fn answer_bulk[Q: $crate::key::Key](keys: &[Q], take: &mut $crate::filter::Take<'_>) -> ();
                fn any_contained_bulk[Q: $crate::key::Key](keys: &[Q]) -> bool;
                fn contains[](key: impl $crate::key::Key) -> bool;
            }
            fn memory_bytes(&self) -> u64 {
                $crate::filter::Filter::memory_bytes(&self.view())
            }
        }
    )*};
    (@ $(fn $name:ident[$($generic:tt)*]($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        fn $name<$($generic)*>(&self, $($arg: $ty),*) -> Result<$ret, Self::Error> {
            $crate::filter::Filter::$name(&self.view(), $($arg),*)
        }
    )*};
}

/// Gives types that have a method `view` the queries of that view, with their documentation.
///
/// Each type is given with its generic parameters, and with the attributes under which it exists. Generic parameters of
/// a method are in brackets if they are not one type of keys.
#[doc(hidden)]
#[macro_export]
macro_rules! queries_of_view {
    ($($(#[$attribute:meta])* [$($generics:tt)*] $of:ty;)* => $methods:tt) => {$(
        $crate::queries_of_view! { @of [$(#[$attribute])*] [$($generics)*] $of => $methods }
    )*};
    (@of [$($attributes:tt)*] [$($generics:tt)*] $of:ty => {$(
        $(#[$doc:meta])*
        fn $name:ident $(<$k:ident>)? $([$($generic:tt)*])? (&self $(, $arg:ident: $ty:ty)*) $(-> $ret:ty)?;
    )*}) => {
        /// Queries, those of the view.
        $($attributes)*
        impl<$($generics)*> $of {$(
            $(#[$doc])*
            #[inline]
            pub fn $name $(<$k: $crate::key::Key>)? $(<$($generic)*>)? (&self $(, $arg: $ty)*) $(-> $ret)? {
                self.view().$name($($arg),*)
            }
        )*}
    };
}
