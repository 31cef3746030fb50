//! serde: filters as the bytes of their saved form, compact in binary formats, and checked when they are read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file;

use crate::SequenceFilter;

impl Serialize for SequenceFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for SequenceFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SequenceFilter, D::Error> {
        file::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::SequenceFilter;

    #[test]
    fn through_json_and_back() {
        let filter = SequenceFilter::builder(50).k(9).build_from(&["GATTACACCGGTTA"]).unwrap();
        let json = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<SequenceFilter>(&json).unwrap() == filter);
        let broken = json.replacen("87", "88", 1);
        assert!(serde_json::from_str::<SequenceFilter>(&broken).is_err());
    }
}
