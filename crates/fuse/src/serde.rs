//! serde: fingerprints in the form of the crate `xorf`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::width::Width;

/// Fingerprints as `xorf` has them: those of 8 bits as bytes, wider ones as a sequence of numbers.
pub(crate) mod fingerprints {
    use super::*;

    pub(crate) fn serialize<F: Width + Serialize, S: Serializer>(
        fingerprints: &[F],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if F::BITS == 8 {
            serializer.serialize_bytes(bytemuck::cast_slice(fingerprints))
        } else {
            serializer.collect_seq(fingerprints)
        }
    }

    pub(crate) fn deserialize<'de, F, D>(deserializer: D) -> Result<Vec<F>, D::Error>
    where
        F: Width + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        if F::BITS == 8 {
            deserializer.deserialize_byte_buf(Bytes(PhantomData))
        } else {
            Vec::deserialize(deserializer)
        }
    }

    struct Bytes<F>(PhantomData<F>);

    impl<'de, F: Width + Deserialize<'de>> Visitor<'de> for Bytes<F> {
        type Value = Vec<F>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the fingerprints of a filter")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<F>, E> {
            Ok(bytemuck::pod_collect_to_vec(bytes))
        }

        /// Formats without bytes, JSON for one, have a sequence of numbers.
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<F>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = seq.next_element()? {
                all.push(one);
            }
            Ok(all)
        }
    }
}
