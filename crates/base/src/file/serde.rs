//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use std::fmt::{self, Display};

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};

use super::{Saved, from_bytes, to_bytes};

/// Serializes a structure as its saved bytes.
///
/// # Errors
/// The errors of the serializer.
pub fn serialize<T: Saved, S: Serializer>(structure: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(&to_bytes(structure))
}

/// Deserializes a structure from its saved bytes.
///
/// # Errors
/// Bytes that are no saved form of this structure, and the errors of the format.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Saved<Error: Display>,
    D: Deserializer<'de>,
{
    deserialize_with(deserializer, T::NAME, from_bytes)
}

/// Deserializes saved bytes, from which `read` builds the structure; `name` is for messages.
///
/// # Errors
/// The errors of `read` and of the format.
pub fn deserialize_with<'de, T, E, D>(
    deserializer: D,
    name: &'static str,
    read: fn(&[u8]) -> Result<T, E>,
) -> Result<T, D::Error>
where
    E: Display,
    D: Deserializer<'de>,
{
    deserializer.deserialize_bytes(Bytes { name, read })
}

struct Bytes<T, E> {
    name: &'static str,
    read: fn(&[u8]) -> Result<T, E>,
}

impl<'de, T, E: Display> Visitor<'de> for Bytes<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a saved {}", self.name)
    }

    fn visit_bytes<D: serde::de::Error>(self, bytes: &[u8]) -> Result<T, D> {
        (self.read)(bytes).map_err(D::custom)
    }

    /// Formats without bytes, JSON for one, make a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        (self.read)(&bytes).map_err(A::Error::custom)
    }
}
