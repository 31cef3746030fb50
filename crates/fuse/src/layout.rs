//! From a number of keys to one graph, or to one graph per shard.

use std::ops::RangeInclusive;

use warpset_base::file::{FIELDS, FileError};
use warpset_core::fuse::graph::MAX_SEGMENT_BITS;
use warpset_core::fuse::{Graph, SHARD_SLOTS};

use crate::Error;
use crate::build::Settings;

/// Number of slots per key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Arity {
    /// Three: 1.13 slots per key, and a lookup reads three of them.
    #[default]
    Three = 3,
    /// Four: 1.08 slots per key, and a lookup reads four.
    Four = 4,
}

/// Whether a filter is one graph or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// One graph, as published; three-wise it is the array that other programs have. Its peeling takes one thread of a
    /// CPU, and hundreds of launches on a device.
    #[default]
    OneGraph,
    /// Many small graphs of at most 2^14 slots, one after the other, each with a seed of its own. Threads, or thread
    /// blocks of a device, peel them at the same time, each in its cache or shared memory. Takes a tenth more space.
    Sharded,
}

/// Parameters of a filter: with the keys, they say every byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bits of a slot.
    pub(crate) bits: u32,
    /// Bits of a value, in the low bits of slots; 0 for filters.
    pub(crate) value_bits: u32,
    pub(crate) arity: Arity,
    /// Different keys.
    pub(crate) keys: u64,
    pub(crate) seed: u64,
    /// The one graph, or that of every shard; without slots if there are no keys.
    pub(crate) graph: Graph,
    /// 0 if there is one graph.
    pub(crate) shards: u64,
}

/// The most bits of a fingerprint beside a value: those of a fingerprint.
pub(crate) const MOST_FINGERPRINT_BITS: u32 = 32;
/// The most slots of one graph: positions have 32 bits.
const MOST_SLOTS: u64 = u32::MAX as u64;
/// The most shards: each has 256 values of what picks the shard of a key, at least, so that all are of one size.
const MOST_SHARDS: u64 = 1 << 24;
/// Keys from which on the published length of segments always does.
const LARGE: u64 = 1_000_000;
/// Keys from which on fewer slots per key than published do for a shard.
const LARGE_SHARD: f64 = 4096.0;

impl Arity {
    /// Returns the published number of slots per key.
    fn slots_per_key(self, keys: f64) -> f64 {
        match self {
            Arity::Three => f64::max(1.125, 0.875 + 0.25 * 1e6_f64.ln() / keys.ln()),
            Arity::Four => f64::max(1.075, 0.77 + 0.305 * 6e5_f64.ln() / keys.ln()),
        }
    }

    /// Returns the published length of a segment, by its base-2 logarithm.
    fn segment_bits(self, keys: f64) -> u32 {
        let bits = match self {
            Arity::Three => keys.ln() / 3.33_f64.ln() + 2.25,
            Arity::Four => (keys.ln() / 2.91_f64.ln() - 0.5).max(2.0),
        };
        (bits as u32).min(MAX_SEGMENT_BITS)
    }

    /// Returns the average number of keys per shard of a large filter: so few that the fullest of a hundred thousand
    /// can be peeled.
    fn shard_keys(self) -> u64 {
        match self {
            Arity::Three => 13_200,
            Arity::Four => 13_700,
        }
    }
}

/// Returns a graph of at least `slots` slots, in whole segments.
fn graph_of(slots: u64, segment_bits: u32, arity: Arity) -> Graph {
    let more = arity as u64 - 1;
    let segments = slots.div_ceil(1 << segment_bits).max(more + 1);
    Graph { starts: ((segments - more) << segment_bits) as u32, segment_bits }
}

impl Layout {
    /// Returns the parameters for `keys` different keys, at the `attempt`-th attempt with another seed.
    pub(crate) fn new(
        &Settings { bits, value_bits, arity, form, .. }: &Settings,
        keys: u64,
        seed: u64,
        attempt: u32,
    ) -> Result<Layout, Error> {
        let none =
            Layout { bits, value_bits, arity, keys, seed, graph: Graph { starts: 0, segment_bits: 0 }, shards: 0 };
        if keys == 0 {
            return Ok(none);
        }
        match form {
            Form::OneGraph => Ok(Layout { graph: one_graph(arity, keys, attempt)?, ..none }),
            Form::Sharded => {
                let shards = keys.div_ceil(arity.shard_keys());
                if shards > MOST_SHARDS {
                    return Err(Error::TooManyKeys { keys, most: MOST_SHARDS * arity.shard_keys() });
                }
                Ok(Layout { graph: shard_graph(arity, keys as f64 / shards as f64, shards > 1), shards, ..none })
            }
        }
    }

    /// Returns the number of bits in a slot: those of a fingerprint, of a value, or of both.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of bits in a value; 0 for filters.
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// Returns the number of slots per key.
    pub fn arity(&self) -> Arity {
        self.arity
    }

    /// Returns the form: one graph or many.
    pub fn form(&self) -> Form {
        if self.shards == 0 { Form::OneGraph } else { Form::Sharded }
    }

    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of graphs in the filter.
    pub fn graphs(&self) -> u64 {
        self.shards.max(1)
    }

    /// Returns the number of slots in one graph.
    pub fn graph_slots(&self) -> u64 {
        self.graph.slots(self.arity as u32)
    }

    /// Returns the number of slots in all graphs.
    pub fn slots(&self) -> u64 {
        self.graph_slots().saturating_mul(self.graphs())
    }

    /// Returns the number of 64-bit words that all slots take.
    #[inline]
    pub(crate) fn slot_words(&self) -> u64 {
        self.slots().saturating_mul(u64::from(self.bits)).div_ceil(64)
    }

    /// Returns the number of 64-bit words that the slots of a graph take. (Graphs of several shards take whole words.)
    pub(crate) fn shard_words(&self) -> u64 {
        (self.graph_slots() * u64::from(self.bits)).div_ceil(64)
    }

    /// Returns the number of 64-bit words: the slots, then one byte per shard with its seed.
    pub fn words(&self) -> u64 {
        self.slot_words().saturating_add(self.shards.div_ceil(8))
    }

    /// Returns the parameters of a header.
    pub(crate) fn to_fields(self) -> [u64; FIELDS] {
        let Graph { starts, segment_bits } = self.graph;
        let form = u64::from(self.bits) | (self.arity as u64) << 8;
        [form, self.keys, self.seed, starts.into(), segment_bits.into(), self.shards, self.value_bits.into(), 0]
    }

    /// Returns the parameters that a header has, if a structure with slots of `bits` bits, and among them `value_bits`
    /// of a value, can have them.
    pub(crate) fn from_fields(
        bits: RangeInclusive<u32>,
        value_bits: RangeInclusive<u32>,
        fields: [u64; FIELDS],
    ) -> Result<Layout, Error> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        let [form, keys, seed, starts, segment_bits, shards, values, unused] = fields;
        let (slot, value) = ((form & 0xff) as u32, u32::try_from(values).unwrap_or(u32::MAX));
        if !bits.contains(&slot) {
            return invalid("bits of a slot", slot.into());
        }
        let has_values = *value_bits.end() > 0;
        if has_values != (value > 0) || value > slot || (has_values && slot - value > MOST_FINGERPRINT_BITS) {
            return invalid("bits of a value", values);
        }
        if !value_bits.contains(&value) {
            return Err(Error::OtherValues { expected: *value_bits.end(), found: value });
        }
        let arity = match form >> 8 {
            3 => Arity::Three,
            4 => Arity::Four,
            other => return invalid("slots of a key", other),
        };
        if unused != 0 {
            return invalid("unused parameters", unused);
        }
        let layout = match Layout::checked(slot, arity, keys, seed, starts, segment_bits) {
            Ok(layout) => Layout { shards, value_bits: value, ..layout },
            Err((field, value)) => return invalid(field, value),
        };
        let too_many =
            shards > MOST_SHARDS || (shards > 0 && !(1..=u64::from(SHARD_SLOTS)).contains(&layout.graph_slots()));
        if too_many {
            return invalid("shards", shards);
        }
        if keys > layout.slots() {
            return invalid("keys", keys);
        }
        Ok(layout)
    }

    /// Returns one graph with these parameters, or the parameter that no graph has.
    pub(crate) fn checked(
        bits: u32,
        arity: Arity,
        keys: u64,
        seed: u64,
        starts: u64,
        segment_bits: u64,
    ) -> Result<Layout, (&'static str, u64)> {
        if segment_bits > MAX_SEGMENT_BITS.into() {
            return Err(("the logarithm of a segment's length", segment_bits));
        }
        let segment_bits = segment_bits as u32;
        let graph = Graph { starts: u32::try_from(starts).unwrap_or(u32::MAX), segment_bits };
        if starts > MOST_SLOTS
            || graph.slots(arity as u32) > MOST_SLOTS
            || !starts.is_multiple_of(graph.segment().into())
        {
            return Err(("the number of first slots", starts));
        }
        Ok(Layout { bits, value_bits: 0, arity, keys, seed, graph, shards: 0 })
    }
}

/// Returns the published graph of that many keys. A graph rarely peels if the number of keys is just above one at which
/// segments double; so every fourth attempt takes segments of half the length in the same array, as `xorf` does.
fn one_graph(arity: Arity, keys: u64, attempt: u32) -> Result<Graph, Error> {
    let count = keys as f64;
    let slots = if keys == 1 { 0 } else { (count * arity.slots_per_key(count)).round() as u64 };
    let segment_bits = arity.segment_bits(count);
    let room = MOST_SLOTS - ((arity as u64 + 1) << segment_bits);
    if slots > room {
        let most = (MOST_SLOTS - ((arity as u64 + 1) << MAX_SEGMENT_BITS)) as f64 / arity.slots_per_key(1e9);
        return Err(Error::TooManyKeys { keys, most: most as u64 });
    }
    let graph = graph_of(slots, segment_bits, arity);
    if attempt % 4 != 1 || keys <= 4 || keys >= LARGE || segment_bits == 0 {
        return Ok(graph);
    }
    let starts = graph.starts + ((arity as u32 - 1) << (segment_bits - 1));
    Ok(Graph { starts, segment_bits: segment_bits - 1 })
}

/// Returns the graph of shards of `mean` keys each, which have some more if there are `several`. Segments are shorter
/// than published, so that more of them fit; measured in `docs/log/fuse.md`.
fn shard_graph(arity: Arity, mean: f64, several: bool) -> Graph {
    // Three of a hundred thousand shards have more.
    let keys = if several { mean + 4.0 * mean.sqrt() } else { mean };
    let published = if mean < 2.0 { 0.0 } else { arity.slots_per_key(mean) };
    let factor = match arity {
        _ if mean < LARGE_SHARD => published,
        Arity::Three => published - 0.04,
        Arity::Four => published - 0.06,
    };
    let slots = (keys * factor).ceil() as u64;
    let segment_bits = match (arity, slots) {
        (Arity::Three, 12_000..) => 9,
        (Arity::Three, 3_000..) | (Arity::Four, 12_000..) => 8,
        (Arity::Three, 800..) | (Arity::Four, 4_000..) => 7,
        (Arity::Three, 250..) | (Arity::Four, 1_000..) => 6,
        (Arity::Three, 80..) | (Arity::Four, 300..) => 5,
        (_, 40..) => 4,
        (_, 20..) => 3,
        _ => 2,
    };
    let most = u64::from(SHARD_SLOTS);
    let graph = graph_of(slots, segment_bits, arity);
    if graph.slots(arity as u32) > most { graph_of(most, segment_bits, arity) } else { graph }
}
