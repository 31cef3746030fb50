//! Table II and figure 4: insertion from empty, batch after batch.

use serde_json::Value as Json;
use warpset::gpu::{DeviceVec, Event};
use warpset::lsm::MergePolicy;
use warpset::lsm::SortedArray;
use warpset::lsm::gpu::Dictionary;

use super::{Bench, Rates, key, spread};

/// Batches that are queued at once.
const QUEUED: usize = 64;
/// Every batch's time is kept for the figure where there are at most this many.
const POINTS: usize = 256;

impl Bench<'_> {
    /// Inserts `2^log2_n` elements with each of these batch sizes.
    pub(super) fn insertions(
        &mut self,
        log2_n: u32,
        batches: std::ops::RangeInclusive<u32>,
        array_too: bool,
    ) -> anyhow::Result<()> {
        let n = 1usize << log2_n;
        let keys = self.keys(n, |i| i as u32)?;
        for log2_batch in batches {
            self.insertion("lsm", self.empty(log2_batch)?, &keys, log2_batch)?;
            if array_too {
                let array = SortedArray::<u32, u32>::builder().on(&self.device).build()?;
                self.insertion("sorted array", array, &keys, log2_batch)?;
            }
        }
        self.print("paper insertion", "Table II: insertion from empty, elements per second");
        Ok(())
    }

    fn insertion<P: MergePolicy>(
        &mut self,
        name: &str,
        mut of: Dictionary<u32, u32, P>,
        keys: &DeviceVec<u32>,
        log2_batch: u32,
    ) -> anyhow::Result<()> {
        let (n, batch) = (keys.len(), 1 << log2_batch);
        let mut times = Vec::new();
        // The first turn, short, pays for the kernels.
        for len in [n.min(16 * batch), n] {
            of.clear()?;
            let mut events = Vec::with_capacity(len / batch);
            for first in (0..len).step_by(batch) {
                // Memory that batches have replaced is freed once they are done.
                if events.len() % QUEUED == QUEUED - 1 {
                    self.stream.synchronize()?;
                }
                let (start, end) = (self.device.new_event()?, self.device.new_event()?);
                let keys = keys.slice(first..first + batch);
                start.record(&self.stream)?;
                // SAFETY: the keys live until the stream has been waited for.
                unsafe { of.insert_async(&self.stream, keys, keys)? };
                end.record(&self.stream)?;
                events.push((start, end));
            }
            self.stream.synchronize()?;
            let seconds = |(start, end): &(Event, Event)| Ok(f64::from(end.elapsed_ms(start)?) * 1e-3);
            times = events.iter().map(seconds).collect::<anyhow::Result<Vec<f64>>>()?;
        }
        let mut rates = Rates::default();
        times.iter().for_each(|&time| rates.add(batch, time));
        let mut row = rates.row("insert batches", "paper insertion", n, log2_batch);
        row = row.by(name, false).param("elements", n).param("effective", effective(&times, batch));
        if times.len() <= POINTS {
            row = row.param("milliseconds", times.iter().map(|time| Json::from(time * 1e3)).collect::<Vec<_>>());
        }
        let right = self.holds(&of, n)?;
        self.add(row, right);
        Ok(())
    }

    /// Whether keys `0..n` are there, by a few of them, and none of others.
    fn holds<P: MergePolicy>(&self, of: &Dictionary<u32, u32, P>, n: usize) -> anyhow::Result<bool> {
        let asked = 1 << 12;
        let there: Vec<u32> = (0..asked).map(|i| key(spread(i, n))).collect();
        let mut right = of.resident_len() == n as u64;
        right &= of.get_bulk(&there)?.iter().zip(&there).all(|(value, key)| *value == Some(*key));
        let others: Vec<u32> = (0..asked).map(|i| key(u32::MAX - i as u32)).collect();
        Ok(right && of.count_contained_bulk(&others)? == 0)
    }
}

/// Returns the points of Figure 4b: a number of elements and the rate until then, where the number of batches has one
/// or two bits.
fn effective(times: &[f64], batch: usize) -> Vec<Json> {
    let mut sum = 0.0;
    let mut pairs = Vec::new();
    for (i, time) in times.iter().enumerate() {
        sum += time;
        let resident = (i + 1) * batch;
        if (i + 1).count_ones() <= 2 {
            pairs.push(vec![Json::from(resident), Json::from(resident as f64 / sum)].into());
        }
    }
    pairs
}
