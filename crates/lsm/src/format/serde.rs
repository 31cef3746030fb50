//! Serialisation by serde, as the bytes of the saved form: compact in binary formats, checked on loading.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file;

use super::SavedPolicy;
use crate::cpu::Dictionary;
use crate::{OrderedKey, Value};

impl<K: OrderedKey, V: Value, P: SavedPolicy> Serialize for Dictionary<K, V, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file::serialize(self, serializer)
    }
}

impl<'de, K: OrderedKey, V: Value, P: SavedPolicy> Deserialize<'de> for Dictionary<K, V, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        file::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Lsm, SortedArray};

    #[test]
    fn through_json_and_back() {
        let lsm = Lsm::<u32, u64>::builder().build_from(&[3, 1, 2], &[30, 10, 20]).unwrap();
        let json = serde_json::to_string(&lsm).unwrap();
        assert_eq!(serde_json::from_str::<Lsm<u32, u64>>(&json).unwrap(), lsm);
        let array = SortedArray::<u32, ()>::builder().build_from(&[3, 1], &[(), ()]).unwrap();
        let json = serde_json::to_string(&array).unwrap();
        assert_eq!(serde_json::from_str::<SortedArray<u32, ()>>(&json).unwrap(), array);
        let error = serde_json::from_str::<Lsm<u32, ()>>(&json).unwrap_err().to_string();
        assert!(error.contains("this is a saved `SortedArray<u32, ()>`"), "{error}");
    }
}
