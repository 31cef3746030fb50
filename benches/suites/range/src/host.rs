//! Builds and lookups on the host.

use std::ops::Range;

use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use warpset::range::{Builder, DynamicBuilder, DynamicRangeFilter, RangeFilter};

use super::{BITS, LENGTH, input, plausible, rate, row};

/// Number of lookups.
const ASKED: usize = 1 << 21;

/// Makes one step per size.
pub fn steps(effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        Effort::Quick => &[1_000_000],
        Effort::Standard => &[1_000_000, 10_000_000],
        Effort::Full => &[1_000_000, 10_000_000, 100_000_000],
    };
    let step = |n| Step::new(format!("range filters: {n} keys"), move |session| measure_all(session, n));
    sizes.iter().map(|&n| step(n)).collect()
}

/// A filter to measure.
trait Subject: Sync {
    type Filter: Send + Sync;
    fn name(&self) -> (String, bool);
    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter>;
    fn bytes(filter: &Self::Filter) -> Option<usize>;
    fn one_by_one(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]);
    fn together(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]) -> anyhow::Result<()>;
}

impl Subject for Builder<u64> {
    type Filter = RangeFilter<u64>;

    fn name(&self) -> (String, bool) {
        ("range filter".into(), false)
    }
    fn build(&self, keys: &[u64]) -> anyhow::Result<RangeFilter<u64>> {
        Ok(self.build_from(keys)?)
    }
    fn bytes(filter: &RangeFilter<u64>) -> Option<usize> {
        Some(filter.memory_bytes() as usize)
    }
    fn one_by_one(filter: &RangeFilter<u64>, ranges: &[Range<u64>], answers: &mut [bool]) {
        ranges.iter().zip(answers).for_each(|(range, answer)| *answer = filter.may_contain(range.clone()));
    }
    fn together(filter: &RangeFilter<u64>, ranges: &[Range<u64>], answers: &mut [bool]) -> anyhow::Result<()> {
        Ok(filter.may_contain_bulk_into(ranges, answers)?)
    }
}

impl Subject for DynamicBuilder<u64> {
    type Filter = DynamicRangeFilter<u64>;

    fn name(&self) -> (String, bool) {
        ("dynamic range filter".into(), false)
    }
    fn build(&self, keys: &[u64]) -> anyhow::Result<DynamicRangeFilter<u64>> {
        Ok(self.build_from(keys)?)
    }
    fn bytes(filter: &DynamicRangeFilter<u64>) -> Option<usize> {
        Some(filter.memory_bytes() as usize)
    }
    fn one_by_one(filter: &DynamicRangeFilter<u64>, ranges: &[Range<u64>], answers: &mut [bool]) {
        ranges.iter().zip(answers).for_each(|(range, answer)| *answer = filter.may_contain(range.clone()));
    }
    fn together(filter: &DynamicRangeFilter<u64>, ranges: &[Range<u64>], answers: &mut [bool]) -> anyhow::Result<()> {
        Ok(filter.may_contain_bulk_into(ranges, answers)?)
    }
}

#[cfg(feature = "peers")]
mod peers {
    use super::*;

    /// The crate `grafite`, with the bits per key of ours.
    pub struct Grafite;

    impl Subject for Grafite {
        type Filter = grafite::RangeFilter;

        fn name(&self) -> (String, bool) {
            (format!("grafite {}", bench_frame::machine::version("grafite")), true)
        }
        fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
            let hasher = grafite::PairwiseIndependentHasher::new_with_space_budget(keys.len(), BITS, LENGTH);
            let hasher = hasher.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            Ok(grafite::RangeFilter::new(keys.iter().copied(), hasher))
        }
        fn bytes(_: &Self::Filter) -> Option<usize> {
            None
        }
        fn one_by_one(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]) {
            ranges.iter().zip(answers).for_each(|(range, answer)| *answer = filter.query(range.clone()));
        }
        fn together(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]) -> anyhow::Result<()> {
            Self::one_by_one(filter, ranges, answers);
            Ok(())
        }
    }

    /// Most keys of a filter of `range-filters`, whose builds and lookups take microseconds per key.
    pub const MOST_OF_DIVA: usize = 100_000;

    /// Diva of the crate `range-filters`, with its example's size of groups.
    pub struct Diva;

    impl Subject for Diva {
        type Filter = range_filters::Diva;

        fn name(&self) -> (String, bool) {
            (format!("range-filters {} Diva", bench_frame::machine::version("range-filters")), true)
        }
        fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
            Ok(range_filters::Diva::new_with_keys(keys, 1024, 0.01))
        }
        fn bytes(_: &Self::Filter) -> Option<usize> {
            None
        }
        fn one_by_one(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]) {
            ranges
                .iter()
                .zip(answers)
                .for_each(|(range, answer)| *answer = filter.range_query(range.start, range.end - 1));
        }
        fn together(filter: &Self::Filter, ranges: &[Range<u64>], answers: &mut [bool]) -> anyhow::Result<()> {
            Self::one_by_one(filter, ranges, answers);
            Ok(())
        }
    }
}

fn measure_all(session: &mut Session, n: usize) -> anyhow::Result<()> {
    let ours = RangeFilter::<u64>::builder().bits_per_key(BITS.into());
    let (keys, _) = input(n, 0);
    measure(session, &ours, &keys, plausible)?;
    let dynamic = DynamicRangeFilter::<u64>::builder(n as u64).fpr_at(rate(), LENGTH);
    // Bits are whole, so the rate of ranges of random keys is as low as a third of the one that was asked for.
    measure(session, &dynamic, &keys, |passed, asked| passed < (1.1 * rate() * asked as f64) as usize + 10)?;
    measure_updates(session, &dynamic, &keys)?;
    #[cfg(feature = "peers")]
    {
        measure(session, &peers::Grafite, &keys, plausible)?;
        // Its rate follows the distance of neighbouring keys, not the length of ranges.
        measure(session, &peers::Diva, &keys[..n.min(peers::MOST_OF_DIVA)], |_, _| true)?;
    }
    Ok(())
}

fn measure<S: Subject>(
    session: &mut Session,
    subject: &S,
    keys: &[u64],
    plausible: impl Fn(usize, usize) -> bool,
) -> anyhow::Result<()> {
    let (name, is_peer) = subject.name();
    let asked = if session.effort == Effort::Quick { ASKED / 4 } else { ASKED };
    let ranges: Vec<Range<u64>> = input(0, asked).1.into_iter().map(|first| first..first + LENGTH).collect();
    let mut ascending = keys.to_vec();
    ascending.sort_unstable();
    for &threads in session.threads(true) {
        if is_peer && threads != Threads::One {
            continue;
        }
        let (unsorted, filter) = session.made(threads, || subject.build(keys))?;
        let (sorted, _) = session.made(threads, || subject.build(&ascending))?;
        let mut times = vec![("build", keys.len(), unsorted), ("build, ascending keys", keys.len(), sorted)];
        let (mut one, mut many) = (vec![false; asked], vec![false; asked]);
        S::one_by_one(&filter, &ranges, &mut one);
        if threads == Threads::One {
            let seconds = session.time(threads, &mut one, |one| {
                S::one_by_one(&filter, &ranges, one);
                Ok(())
            })?;
            times.push(("range, one by one", asked, seconds));
        }
        let seconds = session.time(threads, &mut many, |many| S::together(&filter, &ranges, many))?;
        times.push(("range, batch", asked, seconds));
        let right = one == many && plausible(one.iter().filter(|&&answer| answer).count(), asked);
        for (operation, n, seconds) in times {
            let mut row = row(operation, n, seconds, keys.len()).by(name.clone(), is_peer);
            row.bits_per_item = S::bytes(&filter).map(|bytes| 8.0 * bytes as f64 / keys.len() as f64);
            session.add(&Target::Cpu, threads, row, right);
        }
    }
    Ok(())
}

/// Measures insertions of a tenth of the keys into a filter of the others, and their removal.
fn measure_updates(session: &mut Session, builder: &DynamicBuilder<u64>, keys: &[u64]) -> anyhow::Result<()> {
    let (others, changed) = keys.split_at(keys.len() - keys.len() / 10);
    let (before, after) = (builder.build_from(others)?, builder.build_from(keys)?);
    for &threads in session.threads(true) {
        let mut filter = before.clone();
        let mut times = Vec::new();
        if threads == Threads::One {
            let seconds = session.time_change(threads, &before, &mut filter, |filter| {
                Ok(changed.iter().try_for_each(|&key| filter.insert(key))?)
            })?;
            times.push(("insert, one by one", seconds, filter == after));
        }
        let seconds = session.time_change(threads, &before, &mut filter, |filter| Ok(filter.insert_bulk(changed)?))?;
        times.push(("insert, batch", seconds, filter == after));
        let seconds =
            session.time_change(threads, &after, &mut filter, |filter| Ok(filter.remove_bulk(changed).map(drop)?))?;
        times.push(("remove, batch", seconds, filter == before));
        for (operation, seconds, right) in times {
            let row = row(operation, changed.len(), seconds, keys.len()).by(builder.name().0, false);
            session.add(&Target::Cpu, threads, row, right);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_on_the_host() {
        let rows = Session::rows_of(vec![Step::new("range filters", |session| measure_all(session, 20_000))]);
        assert!(rows.iter().all(|row| row.checked) && rows.len() >= 4, "{}", rows.len());
    }
}
