//! `fuse_filter_agg`: binary fuse filters of a column's distinct values, and lookups in them.
//!
//! A filter is built from the words of its keys. A word is a key with itself as its word, so the filter has the same
//! bytes as one built from the keys.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpset_base::file::FileKind;
use warpset_base::filter::Filter;
use warpset_base::key::Key;
use warpset_fuse::{BinaryFuse, View, Width, word_of};

use crate::error::Cause;
use crate::statics::Static;
use crate::verified;

/// The filter that `fuse_filter_agg(x [, bits])` builds.
#[derive(Debug)]
pub(crate) struct FuseFilter;

impl Static for FuseFilter {
    const OF_KEYS: &'static str = "fuse_filter_agg";
    const PARAMETERS: &'static [(&'static str, DataType)] = &[("bits", DataType::Int64)];
    /// Build function of the requested width.
    type Settings = fn(&[u64]) -> Result<Vec<u8>, Cause>;
    type Item = u64;

    fn settings(parameters: &[ScalarValue]) -> Result<Self::Settings, Cause> {
        const NAME: &str = "bits";
        match parameters.first() {
            None | Some(ScalarValue::Int64(Some(8))) => Ok(build::<u8>),
            Some(ScalarValue::Int64(Some(16))) => Ok(build::<u16>),
            Some(ScalarValue::Int64(Some(32))) => Ok(build::<u32>),
            Some(ScalarValue::Int64(Some(bits))) => {
                Err(Cause::InvalidParameter { parameter: NAME, found: bits.to_string(), allowed: "8, 16 or 32" })
            }
            Some(_) => Err(Cause::NotLiteral { parameter: NAME }),
        }
    }

    fn item<K: Key>(key: &K) -> u64 {
        word_of(key)
    }

    fn build(build: &Self::Settings, words: &[u64]) -> Result<Vec<u8>, Cause> {
        build(words)
    }
}

fn build<F: Width>(words: &[u64]) -> Result<Vec<u8>, Cause> {
    Ok(BinaryFuse::<F>::builder().build_from(words)?.to_bytes())
}

/// Lookup function of a saved filter; its bytes start at a multiple of 8.
type Asked<K> = fn(&[u8], &[K], &mut [bool]) -> Result<(), Cause>;

/// Returns the lookup function of the binary fuse filter with this number in its header; `None` for other structures.
pub(crate) fn asker<K: Key>(structure: u16) -> Option<Asked<K>> {
    let askers: [(FileKind, Asked<K>); 3] = [
        (FileKind::BINARY_FUSE_8, ask::<u8, K>),
        (FileKind::BINARY_FUSE_16, ask::<u16, K>),
        (FileKind::BINARY_FUSE_32, ask::<u32, K>),
    ];
    askers.into_iter().find(|(known, _)| known.number == structure).map(|(_, ask)| ask)
}

fn ask<F: Width, K: Key>(saved: &[u8], keys: &[K], answers: &mut [bool]) -> Result<(), Cause> {
    let view: View<'_, F> = verified::open(saved, View::from_bytes, View::from_bytes_unverified)?;
    Ok(view.contains_bulk_into(keys, answers)?)
}
