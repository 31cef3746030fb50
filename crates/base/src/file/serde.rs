//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};

use super::{Saved, from_bytes, to_bytes};

/// For `Serialize`.
pub fn serialize<T: Saved, S: Serializer>(structure: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(&to_bytes(structure))
}

/// For `Deserialize`.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Saved<Error: Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_bytes(Bytes(PhantomData))
}

struct Bytes<T>(PhantomData<T>);

impl<'de, T: Saved<Error: Display>> Visitor<'de> for Bytes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a saved {}", T::NAME)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        from_bytes(bytes).map_err(E::custom)
    }

    /// Formats without bytes, JSON for one, make a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        from_bytes(&bytes).map_err(A::Error::custom)
    }
}
