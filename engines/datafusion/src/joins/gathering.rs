//! Keys of a running build side: hashes or integers per partition, and the filter after the last partition.
//!
//! The number of keys, and with it the right size of the filter, is known only at the end. So partitions collect
//! hashes, 8 bytes per row, which is less than the join itself keeps. If the join is on one column of integers, they
//! collect the integers: dense ones become a bitmap, others a Bloom filter. There is no filter if the engine's memory
//! pool has no space for them, or if there are more keys than a filter of the largest size is useful for.

use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{NullEquality, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use warpset_bloom::{Builder, Insert, SplitBlockBloom, SplitBlockLayout, as_hashed, rates};

use super::bitmap::{KeyBitmap, Span};
use super::bounds::Bounds;
use super::expression::KeysMayMatch;
use super::hash_rows::{hash_rows, integers};
use super::key_filter::{KeyFilter, Keys};
use super::settings::JoinSettings;
use super::usefulness::Usefulness;
use crate::error::Cause;

/// Bits per key where memory allows: 0.6% of the absent keys pass.
const BITS_PER_KEY: f64 = 11.5;
/// A gathering takes at most one part in this many of a limited memory pool.
const ONE_IN: usize = 16;
/// Up to this size, a bitmap may be larger than a Bloom filter.
const SMALL_BITMAP_BYTES: u64 = 1 << 18;
/// Up to this many hashes, distinct ones are counted; above, they are estimated from a sample.
const COUNTED: usize = 1 << 16;

/// Computes the layout of a filter for `keys` keys: [`BITS_PER_KEY`], but at most `most` bytes.
pub(crate) fn layout_for(keys: u64, most: u64) -> Result<SplitBlockLayout, Cause> {
    let layout = SplitBlockBloom::builder(keys.max(1)).bits_per_key(BITS_PER_KEY).layout()?;
    Ok(if bytes_of(&layout) <= most { layout } else { SplitBlockLayout::new((most / 32).max(1))? })
}

fn bytes_of(layout: &SplitBlockLayout) -> u64 {
    32 * warpset_bloom::Layout::blocks(layout)
}

/// Destination of a gathering.
#[derive(Debug)]
pub(crate) struct Target {
    /// Condition that scans and probe operators evaluate.
    pub(crate) condition: Arc<DynamicFilterPhysicalExpr>,
    /// Keys of the probe side, in the join's names.
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    /// Schema of the join's probe side.
    pub(crate) schema: SchemaRef,
    /// Whether NULL equals NULL.
    pub(crate) nulls: NullEquality,
}

/// One execution of a build side.
#[derive(Debug)]
pub(crate) struct Gathering {
    target: Arc<Target>,
    /// Identifies the execution: all of its partitions share it.
    context: Weak<TaskContext>,
    settings: JoinSettings,
    most_keys: u64,
    /// Hashes gathered so far.
    keys: AtomicU64,
    given_up: AtomicBool,
    progress: Mutex<Progress>,
    metrics: Metrics,
}

#[derive(Debug)]
struct Progress {
    /// Whether each partition has started.
    started: Vec<bool>,
    /// Number of partitions that have not ended.
    running: usize,
    ended: Vec<Part>,
}

/// Counters for `EXPLAIN ANALYZE`.
#[derive(Debug)]
struct Metrics {
    keys: Count,
    filter_bytes: Gauge,
    asked: Count,
    dropped: Count,
    unasked: Count,
}

impl Gathering {
    /// Returns a gathering of `partitions` partitions.
    pub(crate) fn new(
        target: &Arc<Target>,
        context: &Arc<TaskContext>,
        partitions: usize,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Gathering {
        let settings = JoinSettings::of(context.session_config().options());
        let mut most_keys = rates::worthwhile_keys(settings.most_filter_bytes as u64);
        if let MemoryLimit::Finite(bytes) = context.memory_pool().memory_limit() {
            most_keys = most_keys.min((bytes / ONE_IN / size_of::<u64>()) as u64);
        }
        let counter = |name: &'static str| MetricBuilder::new(metrics).global_counter(name);
        Gathering {
            target: target.clone(),
            context: Arc::downgrade(context),
            settings,
            most_keys,
            keys: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
            progress: Mutex::new(Progress { started: vec![false; partitions], running: partitions, ended: Vec::new() }),
            metrics: Metrics {
                keys: counter("keys"),
                filter_bytes: MetricBuilder::new(metrics).global_gauge("filter_bytes"),
                asked: counter("rows_asked"),
                dropped: counter("rows_dropped"),
                unasked: counter("rows_unasked"),
            },
        }
    }

    /// Starts a partition; `None` if it belongs to another execution.
    pub(crate) fn start(&self, partition: usize, context: &Arc<TaskContext>, types: &[DataType]) -> Option<Part> {
        if !std::ptr::eq(self.context.as_ptr(), Arc::as_ptr(context)) {
            return None;
        }
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let started = progress.started.get_mut(partition).filter(|started| !**started)?;
        *started = true;
        let consumer = MemoryConsumer::new(format!("FilterBuild[{partition}]"));
        let reservation = consumer.register(context.memory_pool());
        let integers =
            self.target.nulls == NullEquality::NullEqualsNothing && matches!(types, [only] if is_integer(only));
        Some(Part { keys: Vec::new(), integers, bounds: Bounds::new(types), reservation })
    }

    /// Declares that there will be no filter.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).ended.clear();
    }

    /// Adds a partition that was read to its end. After the last one, builds the filter and activates it.
    pub(crate) fn end(&self, part: Part) {
        let ended = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.ended.push(part);
            progress.running -= 1;
            if progress.running > 0 {
                return;
            }
            std::mem::take(&mut progress.ended)
        };
        if self.given_up.load(Relaxed) {
            return;
        }
        // Without a condition all rows pass, and the join decides by itself.
        if let Ok(condition) = self.condition(ended)
            && self.target.condition.update(condition).is_ok()
        {
            self.target.condition.mark_complete();
        }
    }

    /// Builds the condition for rows of the probe side.
    fn condition(&self, parts: Vec<Part>) -> Result<Arc<dyn PhysicalExpr>> {
        let target = &self.target;
        let different = count_different(&parts);
        self.metrics.keys.add(different as usize);
        if different == 0 {
            return Ok(lit(false));
        }
        let filter = self.filter(&parts, different).map_err(|cause| cause.of("register_joins"))?;
        let mut bounds: Option<Bounds> = None;
        for part in parts {
            match &mut bounds {
                Some(bounds) => bounds.merge(part.bounds),
                None => bounds = Some(part.bounds),
            }
        }
        let mut conditions = match bounds {
            Some(bounds) => bounds.conditions(&target.keys, &target.schema)?,
            None => Vec::new(),
        };
        if let Some(filter) = filter {
            conditions.push(Arc::new(KeysMayMatch::new(target.keys.clone(), Arc::new(filter))));
        }
        Ok(conjunction(conditions))
    }

    /// Builds the filter; `None` if it does not pay or does not fit in memory.
    fn filter(&self, parts: &[Part], different: u64) -> Result<Option<KeyFilter>, Cause> {
        let [most_bytes, most_bitmap] =
            [self.settings.most_filter_bytes, self.settings.most_bitmap_bytes].map(|most| most as u64);
        let layout = layout_for(different, most_bytes)?;
        let reservation = parts[0].reservation.new_empty();
        let keys = || parts.iter().flat_map(|part| &part.keys);
        let most = bytes_of(&layout).max(SMALL_BITMAP_BYTES).min(most_bitmap).min(most_bytes);
        let span = if parts[0].integers { Span::of(keys(), most) } else { None };
        let bytes = span.map_or(bytes_of(&layout), |span| span.bytes() as u64);
        if span.is_none() && !rates::worth_building(different, bytes) || reservation.try_grow(bytes as usize).is_err() {
            return Ok(None);
        }
        let keys = match span {
            Some(span) => Keys::Exact(KeyBitmap::of(span, keys())),
            None => {
                let mut filter = Builder::with_layout(layout).build()?;
                for part in parts {
                    match part.integers {
                        true => filter.insert_bulk(&part.keys)?,
                        false => filter.insert_bulk(as_hashed(&part.keys))?,
                    }
                }
                Keys::Hashed(filter)
            }
        };
        self.metrics.filter_bytes.set(bytes as usize);
        let Metrics { asked, dropped, unasked, .. } = &self.metrics;
        let usefulness = Usefulness::new(asked.clone(), dropped.clone(), unasked.clone());
        Ok(Some(KeyFilter { keys, nulls: self.target.nulls, usefulness, _reservation: reservation }))
    }
}

/// Keys of one partition.
#[derive(Debug)]
pub(crate) struct Part {
    /// Hashes, or the keys themselves if they are `integers`.
    keys: Vec<u64>,
    integers: bool,
    bounds: Bounds,
    reservation: MemoryReservation,
}

impl Part {
    /// Adds the keys of a batch; false if there will be no filter, after which the caller stops adding.
    pub(crate) fn add(&mut self, keys: &[ArrayRef], gathering: &Gathering) -> bool {
        let nulls = gathering.target.nulls;
        let rows = if self.integers { integers(&keys[0]) } else { hash_rows(keys, nulls) };
        let Ok(rows) = rows else { return false };
        if gathering.given_up.load(Relaxed) || !self.make_room(rows.hashes.len()) {
            return false;
        }
        let before = self.keys.len();
        let mut last = self.keys.last().copied();
        let mut push = |hash: u64| {
            // Build sides are often sorted by their keys.
            if last != Some(hash) {
                self.keys.push(hash);
                last = Some(hash);
            }
        };
        match &rows.valid {
            None => rows.hashes.iter().for_each(|&hash| push(hash)),
            Some(valid) => valid.valid_indices().for_each(|row| push(rows.hashes[row])),
        }
        self.bounds.add(keys, nulls);
        let added = (self.keys.len() - before) as u64;
        gathering.keys.fetch_add(added, Relaxed) + added <= gathering.most_keys
    }

    /// Reserves memory for `more` hashes; false if the pool refuses.
    fn make_room(&mut self, more: usize) -> bool {
        let needed = self.keys.len() + more;
        if needed > self.keys.capacity() {
            let capacity = needed.max(2 * self.keys.capacity());
            if self.reservation.try_resize(capacity * size_of::<u64>()).is_err() {
                return false;
            }
            self.keys.reserve_exact(capacity - self.keys.len());
        }
        true
    }
}

/// Whether keys of this type are integers of at most 64 bits.
fn is_integer(column: &DataType) -> bool {
    use DataType::*;
    column.is_integer() || matches!(column, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_))
}

/// Counts distinct hashes or integers, exactly or in one of 64 classes.
fn count_different(parts: &[Part]) -> u64 {
    let all = || parts.iter().flat_map(|part| part.keys.iter().copied());
    // The high bits of a product are even for sequences of integers, too.
    let sampled = |key: &u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58 == 0;
    let total: usize = parts.iter().map(|part| part.keys.len()).sum();
    let (mut sample, scale): (Vec<u64>, u64) =
        if total <= COUNTED { (all().collect(), 1) } else { (all().filter(sampled).collect(), 64) };
    sample.sort_unstable();
    sample.dedup();
    // A sample of few keys with many copies may miss some, or all.
    (scale * sample.len() as u64 + if scale > 1 { COUNTED as u64 / 64 } else { 0 }).min(total as u64)
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};

    use super::*;

    fn part(hashes: impl Iterator<Item = u64>) -> Part {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let reservation = MemoryConsumer::new("test").register(&pool);
        Part { keys: hashes.collect(), integers: false, bounds: Bounds::new(&[]), reservation }
    }

    #[test]
    fn different_hashes_are_counted_with_a_small_error() {
        let layout = SplitBlockLayout::new(1).unwrap();
        let hash = |key: u64| layout.hash(key).0;
        assert_eq!(count_different(&[]), 0);
        assert_eq!(count_different(&[part((0..1000).map(hash)), part((500..1500).map(hash))]), 1500);
        for copies in [1, 4] {
            let found = count_different(&[part((0..copies * 500_000).map(|key| hash(key % 500_000)))]);
            assert!((470_000..530_000).contains(&found), "{copies}: {found}");
        }
        // Two keys with half a million copies each.
        assert!((2..2000).contains(&count_different(&[part((0..1_000_000).map(|i| hash(i % 2)))])));
    }
}
