//! Operators of scans and reductions, one copy for every backend.
//!
//! An [`Operator`] is associative and has an identity: a scan in tiles needs no more. Recurrences with an operator that
//! is not associative are in [`non_associative`].

pub mod non_associative;

use core::marker::PhantomData;

/// An associative operator with an identity, for scans and reductions.
///
/// `combine(combine(a, b), c) == combine(a, combine(b, c))`, and combining with [`IDENTITY`](Self::IDENTITY), on either
/// side, changes nothing. It need not be commutative: `before` always precedes `after` in the input.
///
/// ```
/// use warpset_core::scan::Operator;
/// /// The last item that is not zero.
/// struct LastSet;
/// impl Operator for LastSet {
///     type Value = u32;
///     const IDENTITY: u32 = 0;
///     fn combine(before: u32, after: u32) -> u32 {
///         if after == 0 { before } else { after }
///     }
/// }
/// assert_eq!([3, 0, 5, 0].into_iter().fold(LastSet::IDENTITY, LastSet::combine), 5);
/// ```
pub trait Operator: 'static {
    /// Type of the combined values.
    type Value: Copy + Send + Sync + 'static;
    /// The value that changes nothing when combined.
    const IDENTITY: Self::Value;
    /// Combines two values, in order.
    fn combine(before: Self::Value, after: Self::Value) -> Self::Value;
}

/// A number that can be added, wrapping, and compared.
pub trait Number: Copy + Send + Sync + 'static {
    /// Nothing added.
    const ZERO: Self;
    /// The smallest.
    const MIN: Self;
    /// The largest.
    const MAX: Self;
    /// Adds, wrapping.
    fn plus(self, other: Self) -> Self;
    /// Returns the smaller.
    fn smaller(self, other: Self) -> Self;
    /// Returns the larger.
    fn larger(self, other: Self) -> Self;
    /// Unites the bits of both.
    fn union(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            const ZERO: Self = 0;
            const MIN: Self = <$number>::MIN;
            const MAX: Self = <$number>::MAX;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                Ord::max(self, other)
            }
            #[inline(always)]
            fn union(self, other: Self) -> Self {
                self | other
            }
        }
    )*};
}
numbers! { u32 i32 u64 i64 }

/// A number below 2^62: the value that a tile of a scan publishes in one word, beside two bits of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl Count {
    /// The largest that there is.
    pub const LARGEST: u64 = (1 << 62) - 1;
}

impl Number for Count {
    const ZERO: Self = Count(0);
    const MIN: Self = Count(0);
    const MAX: Self = Count(Count::LARGEST);
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Count(self.0.wrapping_add(other.0))
    }
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        Ord::min(self, other)
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        Ord::max(self, other)
    }
    #[inline(always)]
    fn union(self, other: Self) -> Self {
        Count(self.0 | other.0)
    }
}

macro_rules! operators {
    ($($doc:literal $name:ident: $identity:ident, $method:ident;)*) => {$(
        #[doc = $doc]
        pub struct $name<T>(PhantomData<T>);

        impl<T: Number> Operator for $name<T> {
            type Value = T;
            const IDENTITY: T = T::$identity;
            #[inline(always)]
            fn combine(before: T, after: T) -> T {
                before.$method(after)
            }
        }
    )*};
}
operators! {
    "The wrapping sum." Sum: ZERO, plus;
    "The largest." Max: MIN, larger;
    "The smallest." Min: MAX, smaller;
    "The bits of all." BitOr: ZERO, union;
}

/// Value of a stretch of the input, and whether a segment begins in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flagged<V> {
    /// Whether a segment begins here.
    pub head: bool,
    /// The value since the last beginning.
    pub value: V,
}

/// `O`, restarted at every head (Blelloch, "Prefix sums and their applications", 1990, section 1.5).
pub struct Segmented<O>(PhantomData<O>);

impl<O: Operator> Operator for Segmented<O> {
    type Value = Flagged<O::Value>;
    const IDENTITY: Self::Value = Flagged { head: false, value: O::IDENTITY };
    #[inline(always)]
    fn combine(before: Self::Value, after: Self::Value) -> Self::Value {
        let joined = O::combine(before.value, after.value);
        Flagged { head: before.head | after.head, value: if after.head { after.value } else { joined } }
    }
}

/// Number of runs that begin in a stretch of the input, and the value of its last, unfinished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs<V> {
    /// Runs that begin here; below 2^60.
    pub heads: u64,
    /// The value since the last beginning.
    pub value: V,
}

/// [`Segmented`], counting the segments: the operator of a reduction by key.
pub struct ByRun<O>(PhantomData<O>);

impl<O: Operator> Operator for ByRun<O> {
    type Value = Runs<O::Value>;
    const IDENTITY: Self::Value = Runs { heads: 0, value: O::IDENTITY };
    #[inline(always)]
    fn combine(before: Self::Value, after: Self::Value) -> Self::Value {
        let joined = O::combine(before.value, after.value);
        Runs { heads: before.heads + after.heads, value: if after.heads != 0 { after.value } else { joined } }
    }
}

/// The function `y -> max(floor, y + add)` of a number `y` that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lift<T> {
    /// Lower bound of the result.
    pub floor: T,
    /// Amount that is added.
    pub add: T,
}

impl<T: Number> Lift<T> {
    /// Evaluates the function at `y`.
    #[inline(always)]
    pub fn apply(self, y: T) -> T {
        self.floor.larger(y.plus(self.add))
    }
}

/// Composition of such functions: `(a2, b2)` after `(a1, b1)` is `(max(a2, a1 + b2), b1 + b2)`.
///
/// Floors are not negative. The identity's floor is 0, which changes no `y` that is not negative: as functions of such
/// numbers, not as pairs, `combine(IDENTITY, f)` and `f` are the same.
pub struct MaxPlus<T>(PhantomData<T>);

impl<T: Number> Operator for MaxPlus<T> {
    type Value = Lift<T>;
    const IDENTITY: Lift<T> = Lift { floor: T::ZERO, add: T::ZERO };
    #[inline(always)]
    fn combine(before: Lift<T>, after: Lift<T>) -> Lift<T> {
        Lift { floor: after.apply(before.floor), add: before.add.plus(after.add) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn associative<O: Operator>(values: &[O::Value])
    where
        O::Value: PartialEq + core::fmt::Debug,
    {
        for &a in values {
            assert_eq!(O::combine(O::IDENTITY, a), a);
            assert_eq!(O::combine(a, O::IDENTITY), a);
            for &b in values {
                for &c in values {
                    assert_eq!(O::combine(O::combine(a, b), c), O::combine(a, O::combine(b, c)));
                }
            }
        }
    }

    #[test]
    fn operators_are_associative() {
        associative::<Sum<u32>>(&[0, 1, 7, u32::MAX]);
        associative::<Max<i64>>(&[i64::MIN, -1, 0, 5, i64::MAX]);
        associative::<Min<u64>>(&[0, 5, u64::MAX]);
        let flagged = [(false, 0), (false, 3), (true, 0), (true, 4), (true, u32::MAX)];
        associative::<Segmented<Sum<u32>>>(&flagged.map(|(head, value)| Flagged { head, value }));
        let runs = [(0, -3), (0, 9), (1, 4), (2, i64::MIN), (5, 1)];
        associative::<ByRun<Max<i64>>>(&runs.map(|(heads, value)| Runs { heads, value }));
        let lifts = [(0, 0), (5, 5), (7, 1), (9, 2), (100, 3)];
        associative::<MaxPlus<u64>>(&lifts.map(|(floor, add)| Lift { floor, add }));
    }

    #[test]
    fn lifted_functions_compose() {
        let functions = [(0, 0), (0, -5), (7, 1), (2, -9), (0, 4), (3, -1)].map(|(floor, add)| Lift { floor, add });
        for f in functions {
            for g in functions {
                for y in [0i64, 1, 6, 20] {
                    assert_eq!(MaxPlus::combine(f, g).apply(y), g.apply(f.apply(y)));
                }
            }
        }
    }
}
