//! serde, as the bytes of the saved form: compact in binary formats, checked on the way in.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warpset_base::file;

use crate::Layout;
use crate::cpu::Bloom;

impl<L: Layout> Serialize for Bloom<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        file::serialize(self, serializer)
    }
}

impl<'de, L: Layout> Deserialize<'de> for Bloom<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bloom<L>, D::Error> {
        file::deserialize(deserializer)
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
        assert!(error.contains("this is a saved `SplitBlockBloom`"), "{error}");
        assert!(serde_json::from_str::<SplitBlockBloom>("[1, 2, 3]").is_err());
    }
}
