//! Tables III and IV: lookups, counts and ranges, over the numbers of resident batches.

use warpset::gpu::{DeviceSlice, DeviceVec};
use warpset::lsm::MergePolicy;
use warpset::lsm::SortedArray;
use warpset::lsm::gpu::{Dictionary, LookupMethod};

use super::{Bench, Rates, Scale, spread, states};

/// Range queries, by their expected lengths.
const RANGES: [(u64, usize); 2] = [(8, 1 << 20), (1024, 1 << 15)];
/// Methods of lookups.
const METHODS: [(&str, LookupMethod); 2] = [("halving", LookupMethod::Halving), ("prepared", LookupMethod::Auto)];

/// Memory for answers.
struct Answers {
    values: DeviceVec<u32>,
    found: DeviceVec<u64>,
}

impl Bench<'_> {
    /// Measures Table III.
    pub(super) fn lookups(&mut self, scale: Scale) -> anyhow::Result<()> {
        let (log2_n, least) = scale.asked;
        let n = 1usize << log2_n;
        let keys = self.keys(n, |i| i as u32)?;
        let absent = self.keys(n, |i| u32::MAX - i as u32)?;
        let mut answers =
            Answers { values: self.device.alloc_zeroed(n)?, found: self.device.alloc_zeroed(n.div_ceil(64))? };
        for log2_batch in least..=log2_n {
            let mut lsm = self.empty(log2_batch)?;
            let mut array = SortedArray::<u32, u32>::builder().on(&self.device).build()?;
            // By operation, then by method; then the array's.
            let mut rates: [[[Rates; 2]; 2]; 2] = Default::default();
            let mut right = true;
            for (turn, r) in [1].into_iter().chain(states(n >> log2_batch)).enumerate() {
                let len = r << log2_batch;
                self.fill(&mut lsm, &keys, len, log2_batch)?;
                self.fill(&mut array, &keys, len, log2_batch)?;
                let present = self.keys(len, |i| spread(i, len))?;
                for (hit, asked) in [(false, absent.slice(..len)), (true, present.as_slice())] {
                    let check = turn == 0 || len == n;
                    for method in 0..2 {
                        let times = [
                            self.ask(&lsm, asked, METHODS[method].1, &mut answers).and_then(|time| {
                                right &= answers.are_right(asked, hit, check)?;
                                Ok(time)
                            })?,
                            self.ask(&array, asked, METHODS[method].1, &mut answers)?,
                        ];
                        right &= answers.are_right(asked, hit, check)?;
                        for (of, time) in times.into_iter().enumerate() {
                            // The first turn pays for the kernels.
                            if turn > 0 {
                                rates[of][usize::from(hit)][method].add(len, time);
                            }
                        }
                    }
                }
            }
            for (of, name) in ["lsm", "sorted array"].into_iter().enumerate() {
                for (hit, operation) in ["get, absent", "get, present"].into_iter().enumerate() {
                    for (method, (word, _)) in METHODS.into_iter().enumerate() {
                        let row = rates[of][hit][method].row(operation, "paper lookup", n, log2_batch);
                        self.add(row.by(name, false).param("method", word), right);
                    }
                }
            }
        }
        self.print("paper lookup", "Table III: lookups per second, over the numbers of resident batches");
        Ok(())
    }

    /// Returns the seconds of one call.
    fn ask<P: MergePolicy>(
        &self,
        of: &Dictionary<u32, u32, P>,
        asked: DeviceSlice<'_, u32>,
        method: LookupMethod,
        answers: &mut Answers,
    ) -> anyhow::Result<f64> {
        if method == LookupMethod::Auto {
            of.prepare()?;
        }
        let values = answers.values.slice_mut(..asked.len());
        let found = answers.found.slice_mut(..asked.len().div_ceil(64));
        self.seconds(|| {
            // SAFETY: all memory lives until the event has been waited for.
            unsafe { of.get_async_with(&self.stream, asked, values, found, method)? };
            Ok(())
        })
    }

    /// Measures Table IV.
    pub(super) fn ranges(&mut self, scale: Scale) -> anyhow::Result<()> {
        let n = 1usize << scale.asked.0;
        let few = self.device.is_emulator();
        let keys = self.keys(n, |i| i as u32)?;
        for log2_batch in scale.ranged.0..=scale.ranged.1 {
            for (length, count) in RANGES {
                let (length, count) = if few { (length.min(32), 16) } else { (length, count) };
                let mut lsm = self.empty(log2_batch)?;
                let lows = self.keys(count, |i| u32::MAX - i as u32)?;
                let lows_here = lows.to_vec()?;
                let mut counts = self.device.alloc_zeroed::<u64>(count)?;
                let (mut counting, mut listing) = (Rates::default(), Rates::default());
                let mut right = true;
                for (turn, r) in [1].into_iter().chain(states(n >> log2_batch).into_iter().step_by(3)).enumerate() {
                    let len = r << log2_batch;
                    self.fill(&mut lsm, &keys, len, log2_batch)?;
                    lsm.prepare()?;
                    let width = ((length << 32) / len as u64) as u32;
                    let highs: Vec<u32> = lows_here.iter().map(|low| low.saturating_add(width)).collect();
                    let highs = self.device.from_slice(&highs)?;
                    let counted = self.seconds(|| {
                        let (lows, highs) = (lows.as_slice(), highs.as_slice());
                        // SAFETY: all memory lives until the event has been waited for.
                        unsafe { lsm.count_range_async(&self.stream, lows, highs, counts.as_mut_slice())? };
                        Ok(())
                    })?;
                    let begin = std::time::Instant::now();
                    let listed = lsm.range_device(lows.as_slice(), highs.as_slice())?;
                    let seconds = begin.elapsed().as_secs_f64();
                    if turn > 0 {
                        counting.add(count, counted);
                        listing.add(count, seconds);
                    }
                    let sum: u64 = counts.to_vec()?.iter().sum();
                    let expected = length as f64 * count as f64;
                    let near = few || (sum as f64 - expected).abs() < 0.05 * expected;
                    right &= near && sum == listed.keys.len() as u64;
                    if turn == 0 {
                        right &= listed.keys.to_vec()? == listed.values.to_vec()?;
                    }
                }
                for (operation, rates) in [("count", counting), ("range", listing)] {
                    let row = rates.row(operation, "paper ranges", n, log2_batch).by("lsm", false);
                    self.add(row.param("length", length).param("ranges", count), right);
                }
            }
        }
        self.print("paper ranges", "Table IV: ranges per second, over the numbers of resident batches");
        Ok(())
    }
}

impl Answers {
    /// Whether all keys were found or none, and with what values if asked for.
    fn are_right(&self, asked: DeviceSlice<'_, u32>, hit: bool, values_too: bool) -> anyhow::Result<bool> {
        let words = self.found.slice(..asked.len().div_ceil(64)).to_vec()?;
        let found: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let mut right = found == if hit { asked.len() as u64 } else { 0 };
        if hit && values_too {
            right &= self.values.slice(..asked.len()).to_vec()? == asked.to_vec()?;
        }
        Ok(right)
    }
}
