//! Rows of nodes for lookups in vectors, and stored numbers taken apart as floats.

use crate::batch::reads::{LOW, Reader};
use crate::batch::u64_vector::{Vector, Vectors};
use warpset_core::recsplit::lookup::row::{Row, reciprocal};

/// Rows and words of a function.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a, T> {
    /// Four words per row.
    rows: &'a [u64],
    pub words: Reader<'a, T>,
    pub vectors: T,
}

impl<'a, T: Vectors> Memory<'a, T> {
    #[inline(always)]
    pub(super) fn new(rows: &'a [Row], words: &'a [u64], vectors: T) -> Self {
        const { assert!(size_of::<Row>() == 32 && align_of::<Row>() >= align_of::<u64>()) };
        // SAFETY: a row is 32 bytes of integers without padding, aligned for words.
        let rows = unsafe { std::slice::from_raw_parts(rows.as_ptr().cast(), rows.len() * 4) };
        Self { rows, words: Reader { words, vectors }, vectors }
    }

    /// Returns one of the four words of the rows of nodes with `keys` keys.
    #[inline(always)]
    pub(super) fn row<const WORD: u64>(self, keys: T::V) -> T::V {
        const { assert!(WORD < 4) };
        self.vectors.words(self.rows, keys.shl::<2>() + self.vectors.splat(WORD))
    }
}

/// Fields of a row's word 1, except the bits of the fixed part.
#[derive(Clone, Copy)]
pub(super) struct Fields<V> {
    pub scale: V,
    pub last: V,
    pub groups: V,
    pub radix: V,
}

impl<V: Vector> Fields<V> {
    #[inline(always)]
    pub(super) fn of<T: Vectors<V = V>>(vectors: T, word: V) -> Self {
        // In the order of `Row`, little-endian.
        let byte = vectors.splat(0xff);
        Self {
            scale: word & vectors.splat(LOW),
            last: word.shr::<40>() & byte,
            groups: word.shr::<48>() & byte,
            radix: word.shr::<56>(),
        }
    }
}

/// The most that a code can encode; only damaged words give more.
pub(super) const MOST_STORED: u64 = (1 << 39) - 1;

/// Bits of the float `1 / radix^group` by `radix * 8 + group`, slightly rounded up except for group 0, which has no
/// rotation.
static FRACTIONS: [u64; 256] = {
    let mut table = [0; 256];
    let mut radix = 1;
    while radix < 25 {
        table[radix * 8] = 1_f64.to_bits();
        let mut power = 1;
        let mut group = 1;
        while group < 6 {
            power *= radix as u64;
            table[radix * 8 + group] = (reciprocal(power) as f64 * UNIT).to_bits();
            group += 1;
        }
        radix += 1;
    }
    table
};

/// Unit of a [`reciprocal`].
const UNIT: f64 = 1.0 / (1_u64 << 63) as f64;

/// Parameters for taking stored numbers of a node apart.
pub(super) struct Numbers<T: Vectors> {
    vectors: T,
    /// Start of the radix's fractions.
    fractions: T::V,
    groups: T::V,
    radix: T::V,
}

impl<T: Vectors> Numbers<T> {
    #[inline(always)]
    pub(super) fn of(vectors: T, radix: T::V, groups: T::V) -> Self {
        Self { vectors, fractions: radix.shl::<3>(), groups, radix }
    }

    /// Computes [`Row::trial`].
    #[inline(always)]
    pub(super) fn trial(&self, stored: T::V) -> T::V {
        let index = self.fractions + self.groups - self.vectors.splat(1);
        stored.quotient(self.vectors.words(&FRACTIONS, index))
    }

    /// Computes [`Row::rotation`].
    #[inline(always)]
    pub(super) fn rotation(&self, stored: T::V, group: T::V) -> T::V {
        stored.digit(self.vectors.words(&FRACTIONS, self.fractions + group), self.radix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::u64_vector::LANES;
    use crate::batch::u64_vector::portable::{Array, Plain};
    use warpset_core::bits::Portable;

    #[test]
    fn floats_take_numbers_apart() {
        for radix in 2..=24_u64 {
            for groups in 1..=6_u32 {
                let candidates = radix.pow(groups - 1);
                let of = |x| Array([x; LANES]);
                let numbers = Numbers::of(Plain(Portable), of(radix), of(groups.into()));
                let largest = MOST_STORED / candidates;
                for trial in [0, 1, 2, 77, 12_345, largest / 3, largest - 1] {
                    for index in
                        [0, 1, candidates / 2, candidates / radix, candidates.saturating_sub(2), candidates - 1]
                    {
                        let stored = trial * candidates + index % candidates;
                        assert_eq!(numbers.trial(of(stored)), of(trial), "{stored} / {candidates}");
                        for group in 0..groups {
                            let digit = if group == 0 { 0 } else { index % candidates / radix.pow(group - 1) % radix };
                            assert_eq!(
                                numbers.rotation(of(stored), of(group.into())),
                                of(digit),
                                "{stored} {radix} {group}"
                            );
                        }
                    }
                }
            }
        }
    }
}
