//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file;

use crate::QuotientFilter;
use crate::slot_kind::SlotKind;

impl<K: SlotKind> Serialize for QuotientFilter<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file::serialize(self, serializer)
    }
}

impl<'de, K: SlotKind> Deserialize<'de> for QuotientFilter<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QuotientFilter<K>, D::Error> {
        file::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::Insert;
    use crate::StandardQuotientFilter;

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
