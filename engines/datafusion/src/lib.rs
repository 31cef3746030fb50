//! Warpset's filters as functions and aggregates of Apache DataFusion, and of engines built on it.
//!
//! | SQL | result |
//! | --- | --- |
//! | `bloom_filter_agg(x [, items [, bits_per_item or fpr [, column]]])` | a split-block Bloom filter of a column |
//! | `bloom_filter_merge(filter)` | the union of filters |
//! | `fuse_filter_agg(x [, bits])` | a binary fuse filter of a column's distinct values, of 8, 16 or 32 bits |
//! | `sized_filter_agg(x [, most_bytes])` | a split-block Bloom filter sized by its distinct keys |
//! | `key_hash(x [, ...])` | one number for the keys of several columns |
//! | `might_contain(filter, x)` | whether `x` may be in a Bloom filter or a binary fuse filter |
//! | `quotient_filter_agg(x [, items [, fpr]])` | a quotient filter of a column, with counts |
//! | `quotient_filter_merge(filter)` | the sum of quotient filters |
//! | `quotient_filter_count(filter, x)` | the number of copies of `x`, never too small |
//! | `quotient_filter_contains(filter, x [, copies])` | whether `x` was counted at least `copies` times, 1 by default |
//! | `approx_intersection_count(a, b)` | the number of rows that two quotient filters share |
//! | `perfect_hash_agg(x)` | a minimal perfect hash function of a column's distinct values |
//! | `perfect_hash_index(function, x)` | the number of `x`, consecutive from 0 |
//! | `lookup_or_null(function, x)` | the value of `x` in a static function, NULL for values that a filtered one rejects |
//! | `range_may_contain(filter, low, high)` | whether a range filter may have a key from `low` to `high` |
//! | `shared_filter(structure)` | the same structure, which the engine never copies |
//! | `bloom_filter_to_parquet(filter)`, `bloom_filter_to_presto(filter)` | the filter in the format of another engine |
//! | `spark_bloom_filter_agg(x [, items [, bits [, version]]])` | the filter of Spark's `bloom_filter_agg` |
//! | `spark_might_contain(filter, x)` | whether `x` may be in a filter of Apache Spark |
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let mut context = SessionContext::new();
//! warpset_datafusion::register_all(&mut context)?;
//! // Rows of a large table that may have a partner in a small one, before a join or an exchange.
//! let found = context
//!     .sql(
//!         "SELECT count(*) FROM range(100000) AS sales
//!          WHERE might_contain((SELECT bloom_filter_agg(value, 1000) FROM range(1000)), value)",
//!     )
//!     .await?
//!     .to_string()
//!     .await?;
//! println!("{found}"); // 1000, and about one percent of the others
//! # Ok(())
//! # }
//! ```
//!
//! **Results** are saved structures: the bytes of `to_bytes` in the structure's crate for the same keys, whatever the
//! number of partitions and machines. Their type is `Dictionary(Int32, Binary)`, so that the engine copies four bytes
//! where it repeats a row; functions take all binary types. An aggregate of no values is NULL, as is a lookup in or of
//! NULL. Wrong bytes are an error; a thread checks each filter once ([`Cause`] lists the other errors).
//!
//! **Keys**: see the table in `docs/engines.md`. Integers hash by their value, with XXH64 as in Parquet, strings and
//! binaries by their bytes, dates, timestamps and decimals by the stored integer. Spark's functions of the same names
//! have other hashes (Murmur3, or their own XXH64 with seed 42) and other bytes, which `spark_might_contain` reads, and
//! `might_contain` does not.
//!
//! **Parameters** are literals. `items` is the expected number of keys, one million by default: all partial filters of
//! a call have that size, whatever their contents. More keys raise the rate of false positives of a Bloom filter; a
//! quotient filter grows. `bits` per fingerprint are 8 by default; a binary fuse filter has the size of its keys.
//! `column` is the physical type of a Parquet column, for [`PhysicalType::Int32`](warpset_bloom::PhysicalType): such
//! columns hash integers as four bytes.
//!
//! **Joins** need none of these. After [`register_joins`], the engine filters the larger side of a join by itself; on
//! engines with distributed plans, [`screen_by_subquery`] does.
//!
//! **On a GPU**: [`might_contain_on`] returns a `might_contain` that looks large batches up on a device. The feature
//! `cuda` binds the driver at run time.

mod aggregate;
mod arguments;
mod blobs;
mod bloom;
mod contains;
mod convert;
mod device;
mod error;
mod filters;
mod function;
mod fuse;
mod gather;
mod growing;
mod joins;
mod keys;
mod lookup;
mod parameters;
mod perfect_hash;
mod quotient;
mod range;
mod rows;
mod share;
mod sized;
mod spark;
mod spark_agg;
mod statics;
mod verified;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use warpset_bloom::SplitBlockBloom;
use warpset_quotient::RankSelectQuotientFilter;

pub use device::might_contain_on;
pub use error::{Cause, Error};
pub use joins::{
    FilterBuildExec, FilterProbeExec, JoinSettings, KeysMayMatch, ScreenBySubquery, ScreenJoins, register_joins,
    screen_by_subquery,
};

use aggregate::Aggregate;
use filters::{FilterOfFilters, FilterOfKeys};
use function::LookupOrNull;
use fuse::FuseFilter;
use lookup::{Lookup, MightContain};
use perfect_hash::{PerfectHash, PerfectHashIndex};
use quotient::QuotientFilterCount;
use sized::SizedFilter;
use spark_agg::SparkFilter;
use statics::StaticOfKeys;

/// The first program of the page, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/engines.md")]
struct Page;

/// Returns all aggregates.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    vec![
        Aggregate::<FilterOfKeys<SplitBlockBloom>>::function(),
        Aggregate::<FilterOfFilters<SplitBlockBloom>>::function(),
        Aggregate::<FilterOfKeys<RankSelectQuotientFilter>>::function(),
        Aggregate::<FilterOfFilters<RankSelectQuotientFilter>>::function(),
        Aggregate::<StaticOfKeys<FuseFilter>>::function(),
        Aggregate::<StaticOfKeys<PerfectHash>>::function(),
        Aggregate::<SizedFilter>::function(),
        Aggregate::<SparkFilter>::function(),
    ]
}

/// Returns all functions of single rows.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    let [to_parquet, to_presto] = convert::functions();
    vec![
        Lookup::function(MightContain),
        Lookup::function(QuotientFilterCount),
        Lookup::function(PerfectHashIndex),
        Lookup::function(LookupOrNull),
        contains::function(),
        range::function(),
        quotient::intersection_count(),
        to_parquet,
        to_presto,
        share::function(),
        spark::function(),
        joins::key_hash::function(),
    ]
}

/// Registers all functions and aggregates, and replaces those with the same names.
pub fn register_all(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in scalars() {
        registry.register_udf(function)?;
    }
    for function in aggregates() {
        registry.register_udaf(function)?;
    }
    Ok(())
}
