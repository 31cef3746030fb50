//! Reads of bits for a batch of keys, in vectors of eight: words, windows, and the ones of given ranks.

use super::u64_vector::{LANES, Lanes, Mask, VECTORS, Vector, Vectors};

/// The low half of a lane.
pub(crate) const LOW: u64 = 0xffff_ffff;

/// Keys of a batch, one bit per key.
pub(crate) type Keys = u32;

/// Returns the keys of the lanes `mask` of vector `v`.
#[inline(always)]
pub(crate) fn keys_of(mask: impl Mask, v: usize) -> Keys {
    Keys::from(mask.bits()) << (LANES * v)
}

/// Removes and returns the next key.
#[inline(always)]
pub(crate) fn next_key(keys: &mut Keys) -> Option<usize> {
    if *keys == 0 {
        return None;
    }
    let key = keys.trailing_zeros() as usize;
    *keys &= *keys - 1;
    Some(key)
}

/// Words, for loads by vectors.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a, T> {
    pub words: &'a [u64],
    pub vectors: T,
}

impl<T: Vectors> Reader<'_, T> {
    /// Returns the words at `index`, zero past the end.
    #[inline(always)]
    pub(crate) fn word(self, index: T::V) -> T::V {
        self.vectors.words(self.words, index)
    }

    /// Computes [`crate::windows::bits_from`] per lane.
    #[inline(always)]
    pub(crate) fn bits_from(self, at: T::V) -> T::V {
        self.vectors.bytes(self.words, at.shr::<3>()).shr_by(at & self.vectors.splat(7))
    }
}

/// The lowest two ones of words.
#[derive(Clone, Copy)]
pub(crate) struct Pair<V: Vector> {
    /// Position of the second one.
    pub second: V,
    /// Zeros between the two.
    pub zeros: V,
    /// Lanes without a second one.
    pub missing: V::Mask,
}

impl<V: Vector> Pair<V> {
    #[inline(always)]
    pub(crate) fn of<T: Vectors<V = V>>(vectors: T, ones: V) -> Self {
        let one = vectors.splat(1);
        let others = ones & (ones - one);
        let second = others.trailing_zeros(one);
        let missing = others.equals(vectors.splat(0));
        Self { second, zeros: second - ones.trailing_zeros(one) - one, missing }
    }
}

/// Words that contain the ones to find, and their ranks in them.
#[derive(Clone, Copy)]
pub(crate) struct Within {
    pub words: Lanes,
    pub ranks: Lanes,
    /// Positions of the words' first bits.
    pub starts: Lanes,
    /// Keys with ones outside of these words.
    pub missing: Keys,
}

impl Within {
    pub(crate) const NOTHING: Self = Self { words: Lanes::ZERO, ranks: Lanes::ZERO, starts: Lanes::ZERO, missing: 0 };

    /// Returns the positions of the ones and of the next ones.
    #[inline(always)]
    pub(crate) fn ones(&self, vectors: impl Vectors) -> Lanes {
        let mut ones = Lanes::ZERO;
        vectors.pairs(&self.words, &self.ranks, &mut ones);
        ones
    }
}

/// Loads the windows of at least 57 bits at positions `from`. `within` gets the ones with `ranks` ones between, if they
/// are in the window.
#[inline(always)]
pub(crate) fn windows_of<T: Vectors>(reader: Reader<T>, from: &Lanes, ranks: &Lanes, within: &mut Within) {
    let vectors = reader.vectors;
    for v in 0..VECTORS {
        let (from, rank) = (from.get(vectors, v), ranks.get(vectors, v));
        within.words.set(v, reader.bits_from(from));
        within.starts.set(v, from);
        // Ones of a higher rank are outside, whatever is selected then.
        let near = rank.below(vectors.splat(64));
        within.ranks.set(v, rank.only(near));
        within.missing |= keys_of(!near, v);
    }
}

/// First words to count, for [`words_of`]. They are stored some time before: a load of one number waits long for a
/// vector store just before it.
#[derive(Clone, Copy)]
pub(crate) struct Starts {
    /// First words.
    firsts: Lanes,
    /// Bits to count in the first words.
    masks: Lanes,
    ranks: Lanes,
    missing: Keys,
}

impl Starts {
    pub(crate) const NOWHERE: Self = Self { firsts: Lanes::ZERO, masks: Lanes::ZERO, ranks: Lanes::ZERO, missing: 0 };

    /// Sets the words to search for the ones with `ranks` ones between them and positions `from`: `8 * N` words each.
    #[inline(always)]
    pub(crate) fn set<const N: u64, T: Vectors>(&mut self, reader: Reader<T>, from: &Lanes, ranks: &Lanes) {
        const { assert!(N == 1 || N == 2) };
        let vectors = reader.vectors;
        // Starts where that many words follow.
        let end = vectors.splat((reader.words.len() as u64 + 1).saturating_sub(8 * N));
        for v in 0..VECTORS {
            let (from, rank) = (from.get(vectors, v), ranks.get(vectors, v));
            let first = from.shr::<6>();
            let fits = first.below(end) & rank.below(vectors.splat(0x7000));
            self.firsts.set(v, first.only(fits));
            self.masks.set(v, vectors.splat(u64::MAX).shl_by(from & vectors.splat(63)));
            self.ranks.set(v, rank.only(fits));
            self.missing |= keys_of(!fits, v);
        }
    }
}

/// Finds the words of the ones, among `8 * N` words; `N` is 1 or 2.
///
/// Ones are counted in all words. The sums of pairs of words take 16 bits each, and one subtraction compares all of
/// them with the rank.
#[inline(always)]
pub(crate) fn words_of<const N: u64, T: Vectors>(reader: Reader<T>, starts: &Starts, within: &mut Within) {
    let vectors = reader.vectors;
    let (one, zero) = (vectors.splat(1), vectors.splat(0));
    let high = vectors.splat(0x8000_8000_8000_8000);
    let [mut counts, mut more]: [Lanes; 2] = [Lanes::ZERO; 2];
    vectors.counts(reader.words, &starts.firsts, &starts.masks, &mut counts);
    if N == 2 {
        let [mut seconds, mut masks]: [Lanes; 2] = [Lanes::ZERO; 2];
        for v in 0..VECTORS {
            seconds.set(v, starts.firsts.get(vectors, v) + vectors.splat(8));
            masks.set(v, vectors.splat(u64::MAX));
        }
        vectors.counts(reader.words, &seconds, &masks, &mut more);
    }
    for v in 0..VECTORS {
        let (first, mut rank) = (starts.firsts.get(vectors, v), starts.ranks.get(vectors, v));
        let mut counts = counts.get(vectors, v);
        let mut sums = sums(counts);
        let mut at = first;
        if N == 2 {
            let total = sums.shr::<48>();
            let near = rank.below(total);
            rank = rank - zero.or_else(near, total);
            at = at + zero.or_else(near, vectors.splat(8));
            counts = counts.or_else(near, more.get(vectors, v));
            sums = self::sums(counts);
        }
        // The high bit of each pair of words before the one is set.
        let pair = (((rank.low_16_times_4() | high) - sums) & high).count_ones();
        let bits = pair.shl::<4>();
        let before = sums.shl::<16>().shr_by(bits) & vectors.splat(0xffff);
        let rest = rank - before;
        let low = counts.shr_by(bits) & vectors.splat(0xff);
        let here = rest.below(low);
        let at = at + pair.shl::<1>() + zero.or_else(here, one);
        let word = reader.word(at);
        let masked = word & starts.masks.get(vectors, v);
        within.words.set(v, masked.or_else(at.equals(first), word));
        within.ranks.set(v, rest - zero.or_else(here, low));
        within.starts.set(v, at.shl::<6>());
        within.missing |= keys_of(!rank.below(sums.shr::<48>()), v);
    }
    within.missing |= starts.missing;
}

/// Returns the sums of the first two bytes, of four, of six and of eight, in 16 bits each.
#[inline(always)]
fn sums<V: Vector>(counts: V) -> V {
    let pairs = counts.byte_pairs();
    let fours = pairs.add_16(pairs.shl::<16>());
    fours.add_16(fours.shl::<32>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::u64_vector::portable::Plain;
    use crate::windows::{bits_from, scan};
    use warpset_core::bits::Portable;

    #[test]
    fn pairs_come_apart() {
        let vectors = Plain(Portable);
        for (first, second) in [(0, 1), (0, 63), (5, 9), (62, 63), (17, 40)] {
            let others = 0xffff_ffff_ffff_fffe << second;
            let pair = Pair::of(vectors, vectors.splat(1_u64 << first | 1 << second | others));
            assert_eq!((pair.second.0, pair.zeros.0), ([second; LANES], [second - first - 1; LANES]));
            assert_eq!(pair.missing, 0);
        }
        assert_eq!(Pair::of(vectors, vectors.splat(0)).missing, 0xff);
        assert_eq!(Pair::of(vectors, vectors.splat(1 << 20)).missing, 0xff);
    }

    #[test]
    fn reads_as_one_by_one() {
        let words: Vec<u64> = (0..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i << 60 | 0xff0f)).collect();
        let reader = Reader { words: &words, vectors: Plain(Portable) };
        for from in (0..41 * 64).step_by(7).chain([1 << 40]) {
            let bits = reader.bits_from(reader.vectors.splat(from));
            assert_eq!(bits.0, [bits_from(&words, from); LANES]);
            for rank in (0..300).step_by(LANES * VECTORS).chain([1 << 14, 1 << 32]) {
                finds_within::<1>(reader, from, rank);
                finds_within::<2>(reader, from, rank);
            }
        }
    }

    fn finds_within<const N: u64>(reader: Reader<Plain<Portable>>, from: u64, rank: u64) {
        let (mut places, mut ranks) = (Lanes::ZERO, Lanes::ZERO);
        places.fill(from);
        ranks.iter_mut().zip(rank..).for_each(|(of, rank)| *of = rank);
        let mut within = Within::NOTHING;
        let mut starts = Starts::NOWHERE;
        starts.set::<N, _>(reader, &places, &ranks);
        words_of::<N, _>(reader, &starts, &mut within);
        let ones = within.ones(reader.vectors);
        let (first, len) = (from / 64, reader.words.len() as u64);
        for i in 0..LANES * VECTORS {
            let one_by_one = scan::<1>(reader.words, from, ranks[i].min(1 << 20) as u32, Portable);
            if within.missing >> i & 1 == 0 {
                let position = within.starts[i] + u64::from(ones[i].trailing_zeros());
                assert_eq!(position, one_by_one, "{from} {}", ranks[i]);
            } else {
                let end = first + 8 * N;
                assert!(one_by_one >= end * 64 || end > len);
            }
        }
    }
}
