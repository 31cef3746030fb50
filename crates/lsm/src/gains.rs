//! Counts of ranges without a merge.
//!
//! The *gain* of an element is its effect on the number of keys with a value, beside all elements of older levels: 1 if
//! its key gets a value and had none, -1 if its key loses its value, otherwise 0. Of equal keys in a level only the
//! newest one counts. The number of keys of a range that have a value is therefore the sum of all gains there:
//!
//! ```text
//! newest level      20 removed   30 replaced         gains  -1  0
//! oldest level  10  20           30           40     gains   1  1  1  1      sum 3: keys 10, 30, 40
//! ```
//!
//! A gain depends on older levels only. An update merges the newest levels and a cleanup merges all, so the levels that
//! are older than a given one never change. Prefix sums of gains are hence as permanent as their level, and an update
//! requires those of the new level alone.

use warpset_base::parallel;

use crate::level::Sorted;
use crate::query::lookup::contains_words;
use crate::run::Run;
use crate::{OrderedKey, Value};

/// Words per task.
const PART: usize = 1 << 8;

/// Prefix sums of the gains of a sorted run.
pub(crate) enum Gains {
    /// Each element gains 1.
    Ones,
    /// One word per 64 elements, and one for the place after the last element.
    Words(Vec<Word>),
}

/// Gains of 64 elements.
#[derive(Clone, Copy, Default)]
pub(crate) struct Word {
    /// Sum of all gains before.
    before: i64,
    /// Bit `i`: element `i` gains 1.
    gained: u64,
    /// Bit `i`: element `i` gains -1.
    lost: u64,
}

impl Gains {
    /// Finds the gains of a run beside older levels.
    pub(crate) fn of<K: OrderedKey, V: Value, S: Sorted<K, V>>(run: Run<'_, K, V>, older: &[S]) -> Gains {
        let had_value = if older.is_empty() { Vec::new() } else { contains_words(older, run.keys) };
        let mut words = vec![Word::default(); run.len() / 64 + 1];
        parallel::for_each(words.chunks_mut(PART).enumerate(), |(part, words)| {
            for (at, word) in (part * PART..).zip(words) {
                let places = 64 * at..run.len().min(64 * at + 64);
                let mut newest = 0;
                let mut removed = 0;
                for (bit, place) in places.enumerate() {
                    newest |= u64::from(place == 0 || run.keys[place - 1] != run.keys[place]) << bit;
                    removed |= u64::from(run.is_tombstone(place)) << bit;
                }
                let had_value = had_value.get(at).copied().unwrap_or(0);
                word.gained = newest & !removed & !had_value;
                word.lost = newest & removed & had_value;
            }
        });
        let mut sum = 0;
        for word in &mut words {
            word.before = sum;
            sum = word.below(64);
        }
        if sum == run.len() as i64 { Gains::Ones } else { Gains::Words(words) }
    }

    /// Returns the sum of the gains of the first elements.
    #[inline]
    pub(crate) fn below(&self, place: usize) -> i64 {
        match self {
            Gains::Ones => place as i64,
            Gains::Words(words) => words[place / 64].below(place as u32 % 64),
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Gains::Ones => 0,
            Gains::Words(words) => size_of_val(&words[..]) as u64,
        }
    }
}

impl Word {
    /// Returns the sum of the gains before element `bit`.
    #[inline]
    fn below(self, bit: u32) -> i64 {
        let mask = 1u64.checked_shl(bit).map_or(u64::MAX, |end| end - 1);
        self.before + i64::from((self.gained & mask).count_ones()) - i64::from((self.lost & mask).count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Level, LevelIndex};
    use crate::run::Elements;

    #[test]
    fn gains_add_up_to_the_keys_with_a_value() {
        let level = |index, keys: &[u32], removed: fn(u32) -> bool| {
            let mut elements = Elements::<u32, ()>::zeroed(keys.len(), true).unwrap();
            elements.keys.as_mut_slice().copy_from_slice(keys);
            let bits = elements.tombstones.as_mut().unwrap();
            (0..keys.len()).for_each(|i| bits[i / 32] |= u32::from(removed(keys[i])) << (i % 32));
            Level::new(LevelIndex(index), elements)
        };
        let keys: Vec<u32> = (0..200).collect();
        let odd: Vec<u32> = keys.iter().flat_map(|&key| [2 * key + 1; 2]).collect();
        let levels = [level(0, &odd, |key| key % 3 == 0), level(1, &keys, |_| false), level(2, &[], |_| false)];
        let oldest = Gains::of(levels[1].elements.run(), &levels[2..]);
        assert!(matches!(oldest, Gains::Ones) && oldest.memory_bytes() == 0);
        assert_eq!((oldest.below(0), oldest.below(130), oldest.below(200)), (0, 130, 200));
        // Keys below 200 had a value: multiples of three lose it. Others get one, unless they are multiples of three.
        let newest = Gains::of(levels[0].elements.run(), &levels[1..]);
        let mut sum = 0;
        for (i, &key) in odd.iter().enumerate() {
            assert_eq!(newest.below(i), sum, "{i}");
            let is_newest = i % 2 == 0;
            sum += match (is_newest, key < 200, key % 3 == 0) {
                (true, true, true) => -1,
                (true, false, false) => 1,
                _ => 0,
            };
        }
        assert_eq!(newest.below(400), sum);
        let nothing = Gains::of(levels[2].elements.run(), &levels[..0]);
        assert_eq!(nothing.below(0), 0);
    }
}
