//! The splitting tree of a bucket: a function of the number of its keys alone.
//!
//! Source: sections 4.3 (shape), 4.4.1 and 4.4.3 (Golomb-Rice parameters and the table by number of keys), 5.5
//! (rotation), 5.7.2 (balanced splittings). Departures:
//! - *Grouped rotation* ([`Method::Grouped`], the default). The thesis rotates one half of a full leaf's positions
//!   against the other and so gets `m` candidates from one evaluation of the hash function (theorem 5.1). Here the keys
//!   of a node are divided into `g` groups by bits of the key, and each group except the first has a rotation of its
//!   own: one evaluation gives `m^(g-1)` candidates. Splittings do likewise: groups rotate over the equal children, or,
//!   in a splitting in two, a group may be mirrored (its hash values complemented). The stored number is `trial *
//!   candidates + index`, as in section 5.5. The space stays that of brute force as long as many trials are expected;
//!   [`TreeShape::node`] picks the number of groups accordingly.
//! - Nodes of one key store nothing: the only answer is position 0.
//! - Fanouts are free (2 to 9 each; the second may be 1, which leaves the level out); [`TreeShape::thesis`] returns
//!   those of section 4.3.
//! - A bucket may have up to 65535 keys, not 3000.

use super::hash;

/// The largest leaf (section 4.3).
pub const MAX_LEAF: u32 = 24;
/// The largest number of keys in one bucket.
pub const MAX_BUCKET: usize = u16::MAX as usize;
/// The largest number of rotation groups.
pub const MAX_GROUPS: u32 = 6;

/// Search method for the numbers of trials; part of the stored function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Method {
    /// One trial hash per candidate (chapter 4).
    BruteForce = 0,
    /// Brute force, but full leaves rotate one of two groups (section 5.5).
    Rotation = 1,
    /// Every node with more than a few candidates rotates its groups.
    #[default]
    Grouped = 2,
}

/// The level of a node (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// At most `leaf` keys: a bijection.
    Leaf,
    /// A splitting into leaves.
    First,
    /// A splitting into nodes of the first aggregation level.
    Second,
    /// A splitting in two.
    Higher,
}

/// Properties of a node that follow from its number of keys: one row of the table of section 4.4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Node {
    /// Bits of the fixed part of the node's whole subtree.
    pub fixed_bits: u32,
    /// A splitting in two: [`hash::threshold`]. In more parts: [`hash::child_scale`]. A leaf: 0.
    pub scale: u32,
    /// Candidates per trial: `radix^(groups - 1)`.
    pub candidates: u32,
    /// Keys in each child but the last. A leaf: 0.
    pub unit: u16,
    /// Numbers stored in the node's whole subtree.
    pub nodes: u16,
    /// Golomb-Rice parameter of the node's own number.
    pub golomb: u8,
    /// Children. A leaf: 0.
    pub fanout: u8,
    /// Rotation groups; 1 for brute force.
    pub groups: u8,
    /// Rotations of one group: positions of a leaf, equal children of a splitting, 2 for a splitting in two.
    pub radix: u8,
}

const _: () = assert!(size_of::<Node>() == 20);

impl Node {
    /// Words of 32 bits of a row.
    pub const WORDS: usize = 5;

    /// Returns the row as words, for devices.
    pub const fn to_words(self) -> [u32; Self::WORDS] {
        [
            self.fixed_bits,
            self.scale,
            self.candidates,
            self.unit as u32 | (self.nodes as u32) << 16,
            u32::from_le_bytes([self.golomb, self.fanout, self.groups, self.radix]),
        ]
    }

    /// Makes the row of the words that `to_words` returned.
    #[inline(always)]
    pub const fn from_words([fixed_bits, scale, candidates, units, bytes]: [u32; Self::WORDS]) -> Self {
        let [golomb, fanout, groups, radix] = bytes.to_le_bytes();
        let (unit, nodes) = (units as u16, (units >> 16) as u16);
        Self { fixed_bits, scale, candidates, unit, nodes, golomb, fanout, groups, radix }
    }
}

/// Leaf size, fanouts and search method; with a number of keys they determine a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeShape {
    leaf: u8,
    first_fanout: u8,
    second_fanout: u8,
    method: Method,
    positions: u8,
}

/// The most positions of a leaf: each is a bit of a word.
pub const MAX_POSITIONS: u32 = 32;

impl TreeShape {
    /// Makes a shape with free fanouts: `leaf` 2 to 24, `first_fanout` 2 to 9, `second_fanout` 1 to 9, and a node of
    /// the first aggregation level below 255 keys (theorem 5.2). `None` outside.
    pub const fn new(leaf: u32, first_fanout: u32, second_fanout: u32, method: Method) -> Option<Self> {
        if leaf < 2
            || leaf > MAX_LEAF
            || first_fanout < 2
            || first_fanout > 9
            || second_fanout < 1
            || second_fanout > 9
            || leaf * first_fanout >= 255
        {
            return None;
        }
        Some(Self {
            leaf: leaf as u8,
            first_fanout: first_fanout as u8,
            second_fanout: second_fanout as u8,
            method,
            positions: leaf as u8,
        })
    }

    /// Returns this tree with leaves of `positions` positions instead of one per key (section 7.1.4). With more than
    /// `leaf` and at most 32 the perfect hash function is not minimal. With 1, leaves store nothing and all keys of a
    /// leaf have one value: a `leaf`-perfect function. `None` for other numbers.
    pub const fn with_positions(self, positions: u32) -> Option<Self> {
        if positions != 1 && (positions < self.leaf() || positions > MAX_POSITIONS) {
            return None;
        }
        Some(Self { positions: positions as u8, ..self })
    }

    /// Returns the positions of a full leaf; a minimal function has one per key.
    #[inline]
    pub const fn positions(&self) -> u32 {
        self.positions as u32
    }

    /// Whether every position has a key.
    #[inline]
    pub const fn is_minimal(&self) -> bool {
        self.positions == self.leaf
    }

    /// Returns the positions of a leaf of `keys` keys.
    #[inline]
    pub const fn leaf_positions(&self, keys: u32) -> u32 {
        if self.positions == self.leaf { keys } else { (keys * self.positions as u32).div_ceil(self.leaf as u32) }
    }

    /// Returns the least value of a bucket, after `keys` keys in the `bucket` buckets before it. Each bucket has the
    /// positions of all its leaves, the last one rounded up.
    #[inline]
    pub const fn base(&self, keys: u64, bucket: u64) -> u64 {
        value_base(self.leaf(), self.positions(), keys, bucket)
    }

    /// Makes the shape with the fanouts of section 4.3: `max(2, ceil(0.35 leaf + 0.5))` and `ceil(0.21 leaf + 0.9)`, 2
    /// below leaf size 7.
    pub const fn thesis(leaf: u32, method: Method) -> Option<Self> {
        let first = (35 * leaf + 50).div_ceil(100);
        let first = if first < 2 { 2 } else { first };
        let second = if leaf < 7 { 2 } else { (21 * leaf + 90).div_ceil(100) };
        Self::new(leaf, first, second, method)
    }

    /// Returns the number of keys in a full leaf.
    #[inline]
    pub const fn leaf(&self) -> u32 {
        self.leaf as u32
    }

    /// Returns the number of children of a full node of the first aggregation level.
    #[inline]
    pub const fn first_fanout(&self) -> u32 {
        self.first_fanout as u32
    }

    /// Returns the number of children of a full node of the second aggregation level.
    #[inline]
    pub const fn second_fanout(&self) -> u32 {
        self.second_fanout as u32
    }

    /// Returns the search method.
    #[inline]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Returns the number of keys in a full node of the first aggregation level.
    #[inline]
    pub const fn first_unit(&self) -> u32 {
        self.leaf() * self.first_fanout()
    }

    /// Returns the number of keys in a full node of the second aggregation level.
    #[inline]
    pub const fn second_unit(&self) -> u32 {
        self.first_unit() * self.second_fanout()
    }

    /// Returns the level of a node of `keys` keys.
    #[inline]
    pub const fn level(&self, keys: u32) -> Level {
        if keys <= self.leaf() {
            Level::Leaf
        } else if keys <= self.first_unit() {
            Level::First
        } else if keys <= self.second_unit() {
            Level::Second
        } else {
            Level::Higher
        }
    }

    /// Returns the number of keys in each child except the last, in a splitting of `keys` keys, more than a leaf. In
    /// the higher levels the left child gets the multiple of a second-level node nearest to half (section 5.7.2).
    #[inline]
    pub const fn unit(&self, keys: u32) -> u32 {
        match self.level(keys) {
            Level::Leaf => 0,
            Level::First => self.leaf(),
            Level::Second => self.first_unit(),
            Level::Higher => {
                let eta = self.second_unit();
                eta * ((keys / 2 + eta / 2) / eta)
            }
        }
    }

    /// Returns the number of children of a node of `keys` keys; 0 for a leaf.
    #[inline]
    pub const fn fanout(&self, keys: u32) -> u32 {
        match self.level(keys) {
            Level::Leaf => 0,
            Level::First => keys.div_ceil(self.leaf()),
            Level::Second => keys.div_ceil(self.first_unit()),
            Level::Higher => 2,
        }
    }

    /// Computes the row of a node with `keys` keys from the rows of all smaller nodes.
    pub fn node(&self, keys: u32, smaller: &[Node]) -> Node {
        if keys <= 1 || (self.positions == 1 && keys <= self.leaf()) {
            return Node { groups: 1, radix: 1, candidates: 1, ..Node::default() };
        }
        let unit = self.unit(keys);
        let fanout = self.fanout(keys);
        let expected = self.expected_candidates(keys);
        let golomb = golomb_parameter(expected);
        let (groups, radix) = self.rotation(keys, unit, fanout, expected);
        let mut node = Node {
            fixed_bits: golomb,
            scale: 0,
            candidates: radix.pow(groups - 1),
            unit: unit as u16,
            nodes: 1,
            golomb: golomb as u8,
            fanout: 0,
            groups: groups as u8,
            radix: radix as u8,
        };
        if unit > 0 {
            let last = &smaller[(keys - (fanout - 1) * unit) as usize];
            let child = &smaller[unit as usize];
            node.fanout = fanout as u8;
            node.scale = if fanout == 2 { hash::threshold(unit, keys) } else { hash::child_scale(unit, keys) };
            node.fixed_bits += (fanout - 1) * child.fixed_bits + last.fixed_bits;
            node.nodes += (fanout as u16 - 1) * child.nodes + last.nodes;
        }
        node
    }

    /// Returns the groups and rotations of a node.
    fn rotation(&self, keys: u32, unit: u32, fanout: u32, expected: f64) -> (u32, u32) {
        match self.method {
            _ if fanout == 0 && !self.is_minimal() => (1, 1),
            Method::BruteForce => (1, 1),
            Method::Rotation if keys == self.leaf() => (2, keys),
            Method::Rotation => (1, 1),
            Method::Grouped if unit == 0 => (LEAF_GROUPS[keys as usize] as u32, keys),
            Method::Grouped => {
                let radix = match fanout {
                    2 => 2,
                    fanout if keys == fanout * unit => fanout,
                    fanout => fanout - 1,
                };
                // A rotation works on packed counts of one word; if they do not fit, the node is searched by brute
                // force.
                if radix > 2 && radix * field_bits(unit) > 32 {
                    return (1, radix);
                }
                let mut groups = 1;
                let mut trials = expected / radix as f64;
                while groups < MAX_GROUPS && trials >= SPLITTING_TRIALS {
                    groups += 1;
                    trials /= radix as f64;
                }
                (groups, radix)
            }
        }
    }

    /// Returns the expected number of candidates until a node of `keys` keys is solved.
    pub fn expected_candidates(&self, keys: u32) -> f64 {
        let fanout = self.fanout(keys);
        if fanout == 0 && !self.is_minimal() {
            // Injective, not bijective: the factors of m^keys * (m - keys)! / m!, for m positions.
            let positions = self.leaf_positions(keys);
            return if positions < keys {
                1.0
            } else {
                (0..keys).fold(1.0, |e, i| e * (positions as f64 / (positions - i) as f64))
            };
        }
        expected_candidates(keys, self.unit(keys), fanout)
    }
}

/// Computes [`TreeShape::base`] for leaves of `leaf` keys and `positions` positions.
#[inline]
pub const fn value_base(leaf: u32, positions: u32, keys: u64, bucket: u64) -> u64 {
    if positions == leaf {
        return keys;
    }
    // Equals `keys * positions / leaf` without the product, which may overflow a word. The sum overflows only if a
    // damaged header claims more keys than a function can have; it wraps then.
    let (leaf, positions) = (leaf as u64, positions as u64);
    let whole = (keys / leaf).wrapping_mul(positions);
    whole.wrapping_add(keys % leaf * positions / leaf).wrapping_add(bucket)
}

/// A splitting takes one more group as long as at least this many trials are expected. One vector has 16 trials; with
/// fewer expected trials several trials of one vector would succeed, which costs space.
const SPLITTING_TRIALS: f64 = 8.0;

/// Rotation groups of a leaf by its number of keys. Most leaves keep some 50 or more expected trials (fewer would cost
/// space). Leaves that expect only a vector or two of trials have one group.
const LEAF_GROUPS: [u8; MAX_LEAF as usize + 1] =
    [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6];

/// Returns the bits of a packed count that can hold `unit`.
#[inline]
pub const fn field_bits(unit: u32) -> u32 {
    u32::BITS - unit.leading_zeros()
}

/// Returns the expected candidates of a bijection (`fanout == 0`), or of a splitting in `fanout` children of `unit`
/// keys, the last one with the rest (section 4.3.1).
fn expected_candidates(keys: u32, unit: u32, fanout: u32) -> f64 {
    let m = keys as f64;
    if fanout == 0 {
        return (1..=keys).fold(1.0, |e, i| e * (m / i as f64));
    }
    let full = fanout - 1;
    let last = keys - full * unit;
    if keys <= 64 {
        // Exact: the inverse of the multinomial probability. All factors together stay far inside the range of f64.
        let mut e = (1..=keys).fold(1.0, |e, i| e * (m / i as f64));
        for child in (0..full).map(|_| unit).chain([last]) {
            e = (1..=child).fold(e, |e, i| e * (i as f64 / child as f64));
        }
        return e;
    }
    // Stirling's formula, as in the thesis.
    let mut square = last as f64 / m;
    for _ in 0..full {
        square *= 2.0 * core::f64::consts::PI * unit as f64;
    }
    sqrt(square)
}

/// Computes a square root by Newton's method: `core` has none, and every backend must get the same bits.
fn sqrt(x: f64) -> f64 {
    // Halving the exponent gives a start within a factor of two.
    let mut root = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
    let mut step = 0;
    while step < 6 {
        root = 0.5 * (root + x / root);
        step += 1;
    }
    root
}

/// Returns the Golomb-Rice parameter for numbers with the expected value `expected - 1` (formula 4.1, with `-1 / ln(1 -
/// p)` as `1 / p - 1 / 2`).
fn golomb_parameter(expected: f64) -> u32 {
    const LN_GOLDEN_RATIO: f64 = 0.481_211_825_059_603_4;
    let bound = LN_GOLDEN_RATIO * (expected - 0.5);
    let mut parameter = 0;
    while parameter < 60 && ((1_u64 << parameter) as f64) < bound {
        parameter += 1;
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thesis_fanouts() {
        // Section 4.3, figure 4.1: leaf size 8 has fanouts 4 and 3.
        let shape = TreeShape::thesis(8, Method::BruteForce).unwrap();
        assert_eq!((shape.first_fanout(), shape.second_fanout()), (4, 3));
        let shape = TreeShape::thesis(16, Method::BruteForce).unwrap();
        assert_eq!((shape.first_fanout(), shape.second_fanout()), (7, 5));
        let shape = TreeShape::thesis(24, Method::BruteForce).unwrap();
        assert_eq!((shape.first_fanout(), shape.second_fanout()), (9, 6));
        let shape = TreeShape::thesis(2, Method::BruteForce).unwrap();
        assert_eq!((shape.first_fanout(), shape.second_fanout()), (2, 2));
    }

    #[test]
    fn figure_5_2() {
        // The balanced tree with 202 keys at leaf size 8: 96 + 106, then 96 + 10.
        let shape = TreeShape::thesis(8, Method::BruteForce).unwrap();
        assert_eq!(shape.unit(202), 96);
        assert_eq!(shape.unit(106), 96);
        assert!((shape.expected_candidates(202) - 17.791).abs() < 0.05);
        assert!((shape.expected_candidates(106) - 7.544).abs() < 0.05);
    }

    #[test]
    fn example_of_section_4_4_2() {
        // At leaf size 8 a first-level node of 32 keys has 5 nodes and 39 fixed bits, and 90 keys have parameter 6.
        let shape = TreeShape::thesis(8, Method::BruteForce).unwrap();
        let mut table = [Node::default(); 97];
        for keys in 0..97 {
            table[keys as usize] = shape.node(keys, &table[..keys as usize]);
        }
        assert_eq!((table[32].nodes, table[32].fixed_bits), (5, 39));
        assert_eq!(table[90].golomb, 6);
    }

    #[test]
    fn units_always_split() {
        for leaf in 2..=MAX_LEAF {
            let shape = TreeShape::thesis(leaf, Method::Grouped).unwrap();
            for keys in leaf + 1..=MAX_BUCKET as u32 {
                let unit = shape.unit(keys);
                assert!(unit > 0 && unit < keys && keys <= 15 * unit, "leaf {leaf}, {keys} keys, unit {unit}");
            }
        }
    }

    #[test]
    fn square_roots() {
        for x in [1e-6, 0.5, 1.0, 2.0, 3.0, 1e6, 1e30] {
            assert!((sqrt(x) * sqrt(x) / x - 1.0).abs() < 1e-12, "{x}");
        }
    }
}
