//! Parameters of a filter.

use warpset_base::file::{FIELDS, FileError, FileKind};
use warpset_core::hash::spread_seed;
use warpset_core::range::{MOST_CODES, MOST_KEYS, Shape};

use crate::key::sealed::{Ordered, Word};
use crate::{Error, RangeKey};

/// Parameters of a range filter, which determine the places of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(crate) shape: Shape,
    pub(crate) seed: u64,
    /// Numbers of the least and the largest key.
    pub(crate) ends: (u128, u128),
}

impl Layout {
    /// Returns the layout of a filter of no keys.
    pub(crate) fn empty(seed: u64) -> Layout {
        Layout { shape: Shape::new(0, 0, true, spread_seed(seed)), seed, ends: (0, 0) }
    }

    /// Returns the layout of `keys > 0` keys between these ends, with `codes_per_key` if the ends are so far apart.
    pub(crate) fn of(keys: u64, ends: (u128, u128), codes_per_key: f64, seed: u64) -> Result<Layout, Error> {
        if keys > MOST_KEYS {
            return Err(Error::TooManyKeys { keys });
        }
        let wanted = (keys as f64 * codes_per_key).ceil();
        let span = ends.1 - ends.0;
        if wanted > MOST_CODES as f64 && span >= MOST_CODES.into() {
            return Err(Error::TooManyCodes { keys, bits: codes_per_key.log2() + 2.0 });
        }
        let last_code = span.min((wanted as u64).max(keys) as u128 - 1) as u64;
        Ok(Layout { shape: shape(keys, last_code, span, seed), seed, ends })
    }

    /// Returns the number of different keys.
    pub fn keys(&self) -> u64 {
        self.shape.keys
    }

    /// Returns the number of possible codes: keys per key of a false positive rate of 1.
    pub fn codes(&self) -> u64 {
        self.shape.universe
    }

    /// Returns the seed of the hash of blocks.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether every key between the least and the largest one has a code of its own, so that no answer is wrong.
    pub fn is_exact(&self) -> bool {
        self.shape.starts == 0
    }

    /// Returns a bound of the probability that a range of `length` keys gets a wrong answer.
    pub(crate) fn fpr_of(&self, length: u64) -> f64 {
        if self.is_exact() {
            return 0.0;
        }
        (length as f64 * self.keys() as f64 / self.codes() as f64).min(1.0)
    }

    /// Returns the number of words.
    pub fn words(&self) -> u64 {
        self.shape.words
    }

    /// Returns the parameters for a header.
    pub(crate) fn to_fields<K: RangeKey + ?Sized>(self) -> [u64; FIELDS] {
        let (first, last) = self.ends;
        let halves = |word: u128| [word as u64, (word >> 64) as u64];
        let ([first_low, first_high], [last_low, last_high]) = (halves(first), halves(last));
        let Shape { keys, universe, .. } = self.shape;
        [K::TYPE, keys, universe, self.seed, first_low, first_high, last_low, last_high]
    }

    /// Checks the parameters of a header of a filter with keys of type `K`.
    pub(crate) fn from_fields<K: RangeKey + ?Sized>(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        let [kind, keys, universe, seed, first_low, first_high, last_low, last_high] = fields;
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        expect_type::<K>(FileKind::RANGE_FILTER, kind)?;
        let ends = [(first_low, first_high), (last_low, last_high)]
            .map(|(low, high)| u128::from(low) | u128::from(high) << 64);
        if keys > MOST_KEYS {
            return invalid("keys", keys);
        }
        let Some(span) = ends[1].checked_sub(ends[0]).filter(|_| ends[1] <= K::Word::MAX.wide()) else {
            return invalid("largest key", last_low);
        };
        if keys == 0 {
            return match universe == 0 && ends == [0, 0] {
                true => Ok(Layout::empty(seed)),
                false => invalid("codes", universe),
            };
        }
        if universe < keys || universe > MOST_CODES || u128::from(universe - 1) > span {
            return invalid("codes", universe);
        }
        Ok(Layout { shape: shape(keys, universe - 1, span, seed), seed, ends: (ends[0], ends[1]) })
    }
}

/// Returns the shape with codes up to `last_code`, for offsets up to `span`.
fn shape(keys: u64, last_code: u64, span: u128, seed: u64) -> Shape {
    Shape::new(keys, last_code + 1, span == last_code.into(), spread_seed(seed))
}

/// Refuses a type of keys in a header that is not that of `K`.
pub(crate) fn expect_type<K: RangeKey + ?Sized>(structure: FileKind, kind: u64) -> Result<(), Error> {
    match name_of(kind) {
        Some(_) if kind == K::TYPE => Ok(()),
        Some(found) => Err(Error::OtherKeys { structure: structure.name, expected: K::NAME, found }),
        None => Err(FileError::InvalidHeader { field: "type of keys", value: kind }.into()),
    }
}

/// Returns the name of a type of keys.
fn name_of(kind: u64) -> Option<&'static str> {
    fn pair<K: Ordered + ?Sized>() -> (u64, &'static str) {
        (K::TYPE, K::NAME)
    }
    let all = [
        pair::<u8>(),
        pair::<u16>(),
        pair::<u32>(),
        pair::<u64>(),
        pair::<u128>(),
        pair::<i8>(),
        pair::<i16>(),
        pair::<i32>(),
        pair::<i64>(),
        pair::<i128>(),
        pair::<f32>(),
        pair::<f64>(),
        pair::<[u8]>(),
    ];
    all.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}
