//! Control of filters that drop too few rows.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use datafusion::physical_plan::metrics::Count;

/// Rows per decision: about a batch.
const WINDOW: u64 = 1 << 13;
/// A filter that drops less than one row in this many is suspended.
const ONE_IN: u64 = 16;
/// Rows that pass without a lookup in the first suspension; each further suspension is twice as long.
const FIRST_PAUSE: u64 = 1 << 18;
/// Most doublings.
const MOST_DOUBLINGS: u32 = 12;

/// Counter of the rows that a filter drops. After a window with too few, the filter is suspended, then tried again:
/// tables are often sorted by a column that correlates with the keys.
///
/// Threads count independently. A row that one thread misses from another moves the end of a window by at most a batch.
#[derive(Debug)]
pub(crate) struct Usefulness {
    /// Rows that were looked up.
    asked: Count,
    /// Rows that were dropped.
    dropped: Count,
    /// Rows that passed without a lookup.
    unasked: Count,
    window_asked: AtomicU64,
    window_dropped: AtomicU64,
    /// Rows left in the current suspension.
    pause: AtomicU64,
    pauses: AtomicU32,
}

impl Usefulness {
    /// Returns a counter that adds to these metrics.
    pub(crate) fn new(asked: Count, dropped: Count, unasked: Count) -> Usefulness {
        Usefulness {
            asked,
            dropped,
            unasked,
            window_asked: AtomicU64::new(0),
            window_dropped: AtomicU64::new(0),
            pause: AtomicU64::new(0),
            pauses: AtomicU32::new(0),
        }
    }

    /// Whether to look up the next `rows` rows. If not, counts them as passed.
    pub(crate) fn asks(&self, rows: usize) -> bool {
        if self.pause.load(Relaxed) == 0 {
            return true;
        }
        let less = |pause: u64| Some(pause.saturating_sub(rows as u64));
        // The closure never refuses.
        let _ = self.pause.fetch_update(Relaxed, Relaxed, less);
        self.unasked.add(rows);
        false
    }

    /// Records the result of a lookup.
    pub(crate) fn record(&self, rows: usize, dropped: usize) {
        self.asked.add(rows);
        self.dropped.add(dropped);
        self.window_dropped.fetch_add(dropped as u64, Relaxed);
        if self.window_asked.fetch_add(rows as u64, Relaxed) + rows as u64 >= WINDOW {
            let (asked, dropped) = (self.window_asked.swap(0, Relaxed), self.window_dropped.swap(0, Relaxed));
            if dropped * ONE_IN >= asked {
                self.pauses.store(0, Relaxed);
            } else {
                let doublings = self.pauses.fetch_add(1, Relaxed).min(MOST_DOUBLINGS);
                self.pause.store(FIRST_PAUSE << doublings, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: usize = 8192;

    /// Runs batches that lose `dropped` rows each; returns the number of batches that were looked up.
    fn run(usefulness: &Usefulness, batches: usize, dropped: usize) -> usize {
        let ask = |_: &usize| {
            let asks = usefulness.asks(BATCH);
            if asks {
                usefulness.record(BATCH, dropped);
            }
            asks
        };
        (0..batches).filter(ask).count()
    }

    #[test]
    fn a_filter_that_drops_nothing_is_asked_less_and_less() {
        let (asked, dropped, unasked) = (Count::new(), Count::new(), Count::new());
        let usefulness = Usefulness::new(asked.clone(), dropped.clone(), unasked.clone());
        let pause = FIRST_PAUSE as usize / BATCH;
        assert_eq!(run(&usefulness, 10, BATCH / 2), 10);
        assert_eq!(run(&usefulness, 1, BATCH / 20), 1);
        assert_eq!(run(&usefulness, pause, 0), 0);
        assert_eq!(run(&usefulness, 1, 0), 1);
        assert_eq!(run(&usefulness, 2 * pause, 0), 0);
        // Active again as soon as it drops rows.
        assert_eq!(run(&usefulness, 20, BATCH), 20);
        assert_eq!(asked.value() + unasked.value(), (32 + 3 * pause) * BATCH);
        assert_eq!(dropped.value(), 25 * BATCH + BATCH / 20);
    }
}
