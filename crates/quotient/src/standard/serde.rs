//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::StandardQuotientFilter;

impl Serialize for StandardQuotientFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = StandardQuotientFilter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a saved standard quotient filter")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<StandardQuotientFilter, E> {
        StandardQuotientFilter::from_bytes(bytes).map_err(E::custom)
    }

    /// Formats without bytes, JSON for one, make a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<StandardQuotientFilter, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        StandardQuotientFilter::from_bytes(&bytes).map_err(A::Error::custom)
    }
}

impl<'de> Deserialize<'de> for StandardQuotientFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StandardQuotientFilter, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn through_json_and_back() {
        let mut filter = StandardQuotientFilter::builder(100).build().unwrap();
        filter.insert_bulk(&(0..100u64).collect::<Vec<_>>()).unwrap();
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<StandardQuotientFilter>(&json).unwrap(), filter);
        let broken = json.replacen("87", "88", 1);
        assert!(serde_json::from_str::<StandardQuotientFilter>(&broken).is_err());
    }
}
