//! Keys of a table as integers, and ranges of keys as ranges of these.

use std::ops::Bound;

use bytes::Bytes;
use slatedb::FilterTarget;

/// Way from the keys of a table to integers: `bytes` bytes after a prefix that all keys have, the first one highest,
/// with zeros after shorter keys. Larger keys have integers that are larger or equal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) prefix: Vec<u8>,
    pub(crate) bytes: usize,
}

impl Keys {
    /// Takes the longest prefix that all keys have, and at most `bytes` bytes after it: not more than the longest key
    /// has, so that neighbouring keys have neighbouring integers.
    pub(crate) fn with_common_prefix(keys: &[Bytes], bytes: usize) -> Keys {
        let common =
            |prefix: &[u8], key: &Bytes| prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
        let mut prefix = keys.first().map_or(&[][..], |key| key);
        keys.iter().for_each(|key| prefix = &prefix[..common(prefix, key)]);
        let longest = keys.iter().map(Bytes::len).max().unwrap_or(0) - prefix.len();
        Keys { prefix: prefix.to_vec(), bytes: longest.clamp(1, bytes) }
    }

    /// Returns the integer of the bytes after the prefix.
    pub(crate) fn number(&self, rest: &[u8]) -> u128 {
        self.filled(rest, 0)
    }

    /// Returns the integer of bytes that are followed by bytes of one value.
    fn filled(&self, rest: &[u8], fill: u8) -> u128 {
        (0..self.bytes).fold(0, |number, i| number << 8 | u128::from(*rest.get(i).unwrap_or(&fill)))
    }

    fn largest(&self) -> u128 {
        self.filled(&[], u8::MAX)
    }

    /// Returns the least and the largest integer of keys of a table that a query asks for, or more than these; `None`
    /// if no key of the table can be among them.
    pub(crate) fn range(&self, target: &FilterTarget) -> Option<(u128, u128)> {
        let (first, last) = match target {
            FilterTarget::Point(key) => {
                let number = self.number(key.strip_prefix(&self.prefix[..])?);
                (number, number)
            }
            FilterTarget::Prefix(prefix) if self.prefix.starts_with(prefix) => (0, self.largest()),
            FilterTarget::Prefix(prefix) => {
                let rest = prefix.strip_prefix(&self.prefix[..])?;
                (self.number(rest), self.filled(rest, u8::MAX))
            }
            FilterTarget::Range { lower, upper } => (self.first(lower)?, self.last(upper)?),
        };
        (first <= last).then_some((first, last))
    }

    /// Returns the least integer of keys above a bound, or less; `None` if all keys of the table are below it.
    fn first(&self, bound: &Bound<Bytes>) -> Option<u128> {
        let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return Some(0) };
        match key.strip_prefix(&self.prefix[..]) {
            // A longer key that is above an excluded one may have the same integer.
            Some(rest) => Some(self.number(rest)),
            None => (key[..] < self.prefix[..]).then_some(0),
        }
    }

    /// Returns the largest integer of keys below a bound, or more; `None` if all keys of the table are above it.
    fn last(&self, bound: &Bound<Bytes>) -> Option<u128> {
        let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return Some(self.largest()) };
        let Some(rest) = key.strip_prefix(&self.prefix[..]) else {
            return (key[..] > self.prefix[..]).then(|| self.largest());
        };
        let number = self.number(rest);
        // Below the bound only keys without its last zeros have its integer, unless bytes that do not count follow.
        let is_alone = rest.len() <= self.bytes && rest.last() != Some(&0);
        match bound {
            Bound::Excluded(_) if is_alone => number.checked_sub(1),
            _ => Some(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates short keys of few different bytes, so that many are prefixes of others.
    fn key() -> impl Strategy<Value = Bytes> {
        let byte = prop_oneof![Just(0u8), Just(1), Just(7), Just(254), Just(255)];
        prop::collection::vec(byte, 0..6).prop_map(Bytes::from)
    }

    fn bound() -> impl Strategy<Value = Bound<Bytes>> {
        prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Checks that every key that a query asks for is in the range, and that keys in order have integers in order.
        #[test]
        fn no_key_is_outside(
            keys in prop::collection::vec(key(), 1..8),
            shared in key(),
            bytes in 1usize..5,
            (lower, upper) in (bound(), bound()),
            asked in key(),
            is_shared in any::<bool>(),
        ) {
            let with = |key: &Bytes| Bytes::from([&shared[..], key].concat());
            let keys: Vec<Bytes> = keys.iter().map(with).collect();
            // Bounds beside the prefix of the table, and below it.
            let placed = |key: Bytes| if is_shared { with(&key) } else { key };
            let of = Keys::with_common_prefix(&keys, bytes);
            prop_assert!(of.prefix.starts_with(&shared));
            let number = |key: &Bytes| of.number(&key[of.prefix.len()..]);
            for (one, other) in keys.iter().zip(keys.iter().skip(1)) {
                prop_assert!(number(one) == number(other) || (one < other) == (number(one) < number(other)));
            }
            let range = (lower.map(placed), upper.map(placed));
            let asked = placed(asked);
            let in_range = FilterTarget::Range { lower: range.0.clone(), upper: range.1.clone() };
            for key in &keys {
                let holds = |target: &FilterTarget| {
                    of.range(target).is_some_and(|(first, last)| (first..=last).contains(&number(key)))
                };
                prop_assert!(holds(&FilterTarget::Point(key.clone())));
                prop_assert!(!key.starts_with(&asked) || holds(&FilterTarget::Prefix(asked.clone())));
                let is_in = std::ops::RangeBounds::contains(&range, key);
                prop_assert!(!is_in || holds(&in_range), "{of:?} {key:?} {range:?}");
            }
        }
    }

    /// Checks that ranges of big-endian integers are as long as they seem.
    #[test]
    fn ranges_of_integers_are_tight() {
        let key = |id: u64| Bytes::from([&b"order/"[..], &id.to_be_bytes()].concat());
        let of = Keys::with_common_prefix(&[key(5), key(1 << 40)], 8);
        assert_eq!((&of.prefix[..], of.bytes), (&b"order/\0\0"[..], 6));
        let range = |lower, upper| of.range(&FilterTarget::Range { lower, upper });
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(range(Included(key(100)), Excluded(key(107))), Some((100, 106)));
        assert_eq!(range(Included(key(100)), Included(key(107))), Some((100, 107)));
        assert_eq!(range(Included(key(1 << 60)), Unbounded), None);
        assert_eq!(range(Unbounded, Excluded(Bytes::from("order/"))), None);
        assert_eq!(range(Unbounded, Excluded(key(1 << 60))), Some((0, (1 << 48) - 1)));
        assert_eq!(of.range(&FilterTarget::Prefix(Bytes::from("order"))), Some((0, (1 << 48) - 1)));
    }
}
