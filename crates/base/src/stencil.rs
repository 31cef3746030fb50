//! Stencils: selections of a batch's keys for an operation.
//!
//! What filters answer is a stencil for the next filter: `&[bool]`, bytes that are not 0, or a [`Bitmap`].

use std::ops::Range;

use crate::bitmap::Bitmap;
use crate::length::{LengthMismatch, same_length};
use crate::parallel;

/// One yes or no per key: slices and vectors of `bool` or `u8` (where everything but 0 is a yes), and [`Bitmap`].
/// Sealed.
///
/// ```
/// use warpset_base::bitmap::Bitmap;
/// use warpset_base::stencil::Stencil;
///
/// fn meant_for(stencil: &(impl Stencil + ?Sized)) -> Vec<bool> {
///     (0..stencil.len()).map(|i| stencil.is_set(i)).collect()
/// }
/// let expected = [true, false, true];
/// assert_eq!(meant_for(&expected), expected);
/// assert_eq!(meant_for(&[7u8, 0, 1][..]), expected);
/// assert_eq!(meant_for(&Bitmap::from_words(vec![0b101], 3)), expected);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no stencil of keys",
    note = "pass a slice of `bool` or `u8` with one item per key, or a `Bitmap`"
)]
pub trait Stencil: sealed::Sealed + Sync {
    /// Returns the number of keys that the stencil covers.
    fn len(&self) -> usize;

    /// Whether it is for no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether key `i` is meant.
    ///
    /// # Panics
    /// If there is no key `i`.
    fn is_set(&self, i: usize) -> bool;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! stencils {
    ($([$($generics:tt)*] $stencil:ty, |$this:ident, $i:ident| $is_set:expr;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $stencil {}
        impl<$($generics)*> Stencil for $stencil {
            fn len(&self) -> usize {
                <$stencil>::len(self)
            }
            #[inline]
            fn is_set(&self, $i: usize) -> bool {
                let $this = self;
                $is_set
            }
        }
    )*};
}
stencils! {
    [] [bool], |this, i| this[i];
    [] Vec<bool>, |this, i| this[i];
    [] [u8], |this, i| this[i] != 0;
    [] Vec<u8>, |this, i| this[i] != 0;
    [] Bitmap, |this, i| this.get(i);
}
impl<const N: usize> sealed::Sealed for [bool; N] {}
impl<const N: usize> Stencil for [bool; N] {
    fn len(&self) -> usize {
        N
    }
    fn is_set(&self, i: usize) -> bool {
        self[i]
    }
}

/// Nanoseconds to look at a key.
const KEY_NS: f64 = 1.0;

/// Keys of a batch that a stencil selects.
pub(crate) struct Selected<'k, K> {
    /// The keys, in their order.
    pub keys: Vec<&'k K>,
    /// Keys per task, selected or not, a multiple of 64 or all.
    task: usize,
    /// Per task, the number of selected keys before its own.
    starts: Vec<usize>,
}

fn tasks(len: usize, task: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(task).map(move |first| first..len.min(first + task))
}

/// Gathers the keys that `stencil` selects, at 8 bytes of memory each.
///
/// # Errors
/// If the stencil covers another number of keys.
pub(crate) fn select<'k, K: Sync>(
    keys: &'k [K],
    stencil: &(impl Stencil + ?Sized),
) -> Result<Selected<'k, K>, LengthMismatch> {
    same_length(keys.len(), stencil.len())?;
    let task = parallel::task_len(keys.len(), KEY_NS);
    let select = |range: Range<usize>| range.filter(|&i| stencil.is_set(i)).map(|i| &keys[i]).collect();
    let parts: Vec<Vec<&K>> = parallel::map(tasks(keys.len(), task), select);
    let starts = parts.iter().scan(0, |next, part| Some(std::mem::replace(next, *next + part.len()))).collect();
    Ok(Selected { keys: parts.concat(), task, starts })
}

impl<K> Selected<'_, K> {
    /// Spreads the answers of the selected keys, in their order, over all keys; the others get no.
    pub fn spread(&self, stencil: &(impl Stencil + ?Sized), answers: &Bitmap) -> Bitmap {
        let parts = parallel::map(tasks(stencil.len(), self.task).zip(&self.starts), |(range, &start)| {
            let (first, mut next) = (range.start, start);
            let mut words = vec![0u64; range.len().div_ceil(64)];
            for i in range.filter(|&i| stencil.is_set(i)) {
                words[(i - first) / 64] |= u64::from(answers.get(next)) << (i % 64);
                next += 1;
            }
            words
        });
        Bitmap::from_words(parts.concat(), stencil.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_keys_get_their_answers_back() {
        let many = if cfg!(miri) { 200 } else { 100_000 };
        for len in [0, 1, 63, 64, 65, 129, many] {
            let keys: Vec<usize> = (0..len).collect();
            for every in [1, 2, 7, 100, usize::MAX] {
                let stencil: Vec<bool> = keys.iter().map(|&i| i % every == every - 1).collect();
                let bytes: Vec<u8> = stencil.iter().map(|&set| u8::from(set) * 3).collect();
                let bitmap = Bitmap::from_bools(&stencil);
                let expected: Vec<&usize> = keys.iter().filter(|&&i| stencil[i]).collect();
                let selected = select(&keys, &stencil).unwrap();
                assert_eq!(selected.keys, expected);
                assert_eq!(select(&keys, &bytes[..]).unwrap().keys, expected);
                assert_eq!(select(&keys, &bitmap).unwrap().keys, expected);

                let answers: Vec<bool> = expected.iter().map(|key| key.count_ones() % 2 == 1).collect();
                let answers = Bitmap::from_bools(&answers);
                let all = selected.spread(&bitmap, &answers);
                assert!(all.iter().enumerate().all(|(i, yes)| yes == (stencil[i] && i.count_ones() % 2 == 1)));
                assert_eq!(all.len(), len);
            }
        }
        let refused = select(&[1, 2], &[true]).err().unwrap();
        assert!(matches!(refused, LengthMismatch { needed: 2, found: 1, .. }));
    }
}
