//! Scans by an operator that is not associative, but with a chain of dependencies that breaks.
//!
//! `y[i] = step(y[i - 1], x[i])`, and if a step [breaks](Recurrence::breaks) the chain, all items before are
//! irrelevant. Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS
//! 2018, section IV-C, whose operator is [`NextSlot`].

use super::Lift;

/// A recurrence `y[i] = step(y[i - 1], x[i])`, `y[0] = start(x[0])`.
///
/// The methods of this workspace rely on three laws:
/// - a larger `y[i - 1]` never makes a smaller `y[i]`, and `start(x)` is the least result of `step(_, x)`;
/// - `breaks(y, x)` implies `step(y, x) == start(x)`, and `breaks` for every smaller `y`;
/// - values are not negative.
pub trait Recurrence: 'static {
    /// Type of the input.
    type Item: Copy + Send + Sync + 'static;
    /// Type of the output.
    type Value: Copy + PartialEq + Send + Sync + 'static;
    /// Returns the value of an item with nothing before it.
    fn start(item: Self::Item) -> Self::Value;
    /// Returns the value of an item after the value `before`.
    fn step(before: Self::Value, item: Self::Item) -> Self::Value;
    /// Whether `item` is the same after `before` as with nothing before it.
    fn breaks(before: Self::Value, item: Self::Item) -> bool;

    /// Whether a segment begins at `item`: whether `item` breaks the chain after the least value of `previous`. If not,
    /// it never does.
    #[inline(always)]
    fn may_break(previous: Self::Item, item: Self::Item) -> bool {
        Self::breaks(Self::start(previous), item)
    }
}

/// A [`Recurrence`] with steps that add, an associative operation, unless they break the chain.
///
/// `step(before, item) == before + added(item)` unless `breaks(before, item)`. Distances are `i64`: every value, every
/// sum of additions over a part of the input, and their differences must stay within it.
pub trait Additive: Recurrence {
    /// Returns the addend of a step.
    fn added(item: Self::Item) -> i64;
    /// Converts a value to a number.
    fn number(value: Self::Value) -> i64;
    /// Converts a number to the value it denotes.
    fn value(number: i64) -> Self::Value;
}

/// A [`Recurrence`] whose steps are functions `y -> max(floor, y + add)` of a number that begins at 0. They compose
/// ([`MaxPlus`](super::MaxPlus)), so that an associative scan computes it, whether or not a chain ever breaks.
pub trait Lifted: Recurrence<Value = Self::Number> {
    /// Floors and additions; sums of additions over any part of the input must stay within it.
    type Number: super::Number + PartialEq;
    /// Returns the step of `item` as a function.
    fn lift(item: Self::Item) -> Lift<Self::Number>;
    /// Returns the last value, given the composition of all steps.
    fn finish(all: Lift<Self::Number>) -> Self::Number;
}

/// `y[i] = max(y[i - 1] + 1, x[i])`: the slots of a quotient filter's items, whose canonical slots are the sorted `x`.
/// Not only for sorted ones: a segment begins wherever an item is larger than the one before. All values stay below the
/// largest number of the type.
pub struct NextSlot<T>(core::marker::PhantomData<T>);

macro_rules! next_slot {
    ($($number:ty)*) => {$(
        impl Recurrence for NextSlot<$number> {
            type Item = $number;
            type Value = $number;
            #[inline(always)]
            fn start(item: $number) -> $number {
                item
            }
            #[inline(always)]
            fn step(before: $number, item: $number) -> $number {
                Ord::max(before.wrapping_add(1), item)
            }
            #[inline(always)]
            fn breaks(before: $number, item: $number) -> bool {
                before < item
            }
        }

        impl Additive for NextSlot<$number> {
            #[inline(always)]
            fn added(_: $number) -> i64 {
                1
            }
            #[inline(always)]
            fn number(value: $number) -> i64 {
                value as i64
            }
            #[inline(always)]
            fn value(number: i64) -> $number {
                number as $number
            }
        }

        impl Lifted for NextSlot<$number> {
            type Number = $number;
            /// Lifts to the number of slots up to the value: one more than the value, and 0 before the first item.
            #[inline(always)]
            fn lift(item: $number) -> Lift<$number> {
                Lift { floor: item.wrapping_add(1), add: 1 }
            }
            #[inline(always)]
            fn finish(all: Lift<$number>) -> $number {
                all.apply(0).wrapping_sub(1)
            }
        }
    )*};
}
next_slot! { u32 u64 }

/// `y[i] = max(0, y[i - 1] + x[i])`: a sum that saturates at zero, the paper's other way to see a quotient filter's
/// shifts.
pub struct SaturatingSum;

/// `w[i] = max(0, w[i - 1] + service[i] - gap[i])`: waiting times of customers in a queue with one server (Lindley,
/// "The theory of queues with a single server", 1952). An item is `[service, gap]`: the service time of the customer
/// before, and the time between the arrivals of both.
pub struct Lindley;

macro_rules! sums {
    ($($name:ident: $item:ty, $added:expr;)*) => {$(
        impl Recurrence for $name {
            type Item = $item;
            type Value = i64;
            #[inline(always)]
            fn start(item: $item) -> i64 {
                Ord::max(0, $added(item))
            }
            #[inline(always)]
            fn step(before: i64, item: $item) -> i64 {
                Ord::max(0, before.wrapping_add($added(item)))
            }
            #[inline(always)]
            fn breaks(before: i64, item: $item) -> bool {
                before.wrapping_add($added(item)) <= 0
            }
        }

        impl Additive for $name {
            #[inline(always)]
            fn added(item: $item) -> i64 {
                $added(item)
            }
            #[inline(always)]
            fn number(value: i64) -> i64 {
                value
            }
            #[inline(always)]
            fn value(number: i64) -> i64 {
                number
            }
        }

        impl Lifted for $name {
            type Number = i64;
            #[inline(always)]
            fn lift(item: $item) -> Lift<i64> {
                Lift { floor: 0, add: $added(item) }
            }
            #[inline(always)]
            fn finish(all: Lift<i64>) -> i64 {
                all.apply(0)
            }
        }
    )*};
}
sums! {
    SaturatingSum: i64, |item: i64| item;
    Lindley: [u32; 2], |[service, gap]: [u32; 2]| i64::from(service).wrapping_sub(i64::from(gap));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{MaxPlus, Operator};

    fn keeps_the_laws<R: Additive + Lifted>(values: &[R::Value], items: &[R::Item])
    where
        R::Value: PartialOrd + core::fmt::Debug,
    {
        for &item in items {
            assert_eq!(R::finish(R::lift(item)), R::start(item));
            for &before in values {
                let value = R::step(before, item);
                assert!(value >= R::start(item));
                if R::breaks(before, item) {
                    assert_eq!(value, R::start(item));
                } else {
                    assert_eq!(R::number(value), R::number(before) + R::added(item));
                }
                for &larger in values.iter().filter(|&&v| v >= before) {
                    assert!(R::step(larger, item) >= value);
                    assert!(R::breaks(before, item) || !R::breaks(larger, item));
                }
            }
            for &second in items {
                let mut all = MaxPlus::combine(MaxPlus::IDENTITY, R::lift(item));
                let mut value = R::start(item);
                for next in [second, item, second] {
                    all = MaxPlus::combine(all, R::lift(next));
                    value = R::step(value, next);
                    assert_eq!(R::finish(all), value);
                }
            }
        }
    }

    #[test]
    fn instances_keep_the_laws() {
        keeps_the_laws::<NextSlot<u32>>(&[0, 1, 5, 6, 100], &[0, 1, 2, 6, 7, 99, 101]);
        keeps_the_laws::<NextSlot<u64>>(&[0, 1, 5, 1 << 40], &[0, 1, 2, 6, (1 << 40) - 1, 1 << 40, 1 << 41]);
        keeps_the_laws::<SaturatingSum>(&[0, 1, 5, 100, 1 << 50], &[0, 1, -1, -5, -6, 7, -(1 << 50)]);
        let arrivals = [[0, 0], [3, 5], [5, 3], [u32::MAX, 0], [0, u32::MAX], [4, 4]];
        keeps_the_laws::<Lindley>(&[0, 1, 2, 5, 100, 1 << 33], &arrivals);
    }
}
