//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Layout;
use crate::cpu::Bloom;

impl<L: Layout> Serialize for Bloom<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

struct Bytes<L>(PhantomData<L>);

impl<'de, L: Layout> Visitor<'de> for Bytes<L> {
    type Value = Bloom<L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a saved {}", L::NAME)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bloom<L>, E> {
        Bloom::from_bytes(bytes).map_err(E::custom)
    }

    /// Formats without bytes, JSON for one, make a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bloom<L>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        Bloom::from_bytes(&bytes).map_err(A::Error::custom)
    }
}

impl<'de, L: Layout> Deserialize<'de> for Bloom<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bloom<L>, D::Error> {
        deserializer.deserialize_bytes(Bytes(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlockedBloom, RaoBloom, SplitBlockBloom};

    #[test]
    fn through_json_and_back() {
        let filter: SplitBlockBloom = (0..100u64).collect();
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<SplitBlockBloom>(&json).unwrap(), filter);
        let rao: RaoBloom = (0..100u64).collect();
        assert_eq!(serde_json::from_value::<RaoBloom>(serde_json::to_value(&rao).unwrap()).unwrap(), rao);
        let error = serde_json::from_str::<BlockedBloom>(&json).unwrap_err().to_string();
        assert!(error.contains("expected structure 2, found 1"), "{error}");
        assert!(serde_json::from_str::<SplitBlockBloom>("[1, 2, 3]").is_err());
    }
}
