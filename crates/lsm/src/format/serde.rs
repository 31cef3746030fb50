//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file::{self, Saved};

use super::Imaged;
use crate::{Lsm, OrderedKey, SortedArray, Value};

macro_rules! values_of_serde {
    ($type:ident) => {
        impl<K: OrderedKey, V: Value> Serialize for $type<K, V> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                file::serialize(&self.image().map_err(S::Error::custom)?, serializer)
            }
        }

        impl<'de, K: OrderedKey, V: Value> Deserialize<'de> for $type<K, V> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <<Self as Imaged>::Image as Saved>::NAME;
                file::deserialize_with(deserializer, name, |bytes| Self::from_bytes(bytes))
            }
        }
    };
}
values_of_serde!(Lsm);
values_of_serde!(SortedArray);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn through_json_and_back() {
        let lsm = Lsm::<u32, u64>::builder().build_from(&[3, 1, 2], &[30, 10, 20]).unwrap();
        let json = serde_json::to_string(&lsm).unwrap();
        assert_eq!(serde_json::from_str::<Lsm<u32, u64>>(&json).unwrap(), lsm);
        let array = SortedArray::<u32, ()>::builder().build_from(&[3, 1], &[(), ()]).unwrap();
        let json = serde_json::to_string(&array).unwrap();
        assert_eq!(serde_json::from_str::<SortedArray<u32, ()>>(&json).unwrap(), array);
        let error = serde_json::from_str::<Lsm<u32, ()>>(&json).unwrap_err().to_string();
        assert!(error.contains("expected structure 32, found 33"), "{error}");
    }
}
