//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file;

use crate::{StaticKey, StaticMap, Value};

impl<K: StaticKey, V: Value> Serialize for StaticMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file::serialize(self, serializer)
    }
}

impl<'de, K: StaticKey, V: Value> Deserialize<'de> for StaticMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        file::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::{StaticMap, StaticSet};

    #[test]
    fn through_json_and_back() {
        let map = StaticMap::<u32, u64>::builder().build_from(&[3, 1, 2], &[30, 10, 20]).unwrap();
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::from_str::<StaticMap<u32, u64>>(&json).unwrap(), map);
        let error = serde_json::from_str::<StaticSet<u32>>(&json).unwrap_err().to_string();
        assert!(error.contains("this is a saved `StaticMap<u32, u64>`"), "{error}");
    }
}
