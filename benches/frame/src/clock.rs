//! Timing: repeats, and which of them counts.

use std::time::{Duration, Instant};

/// Time budget of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Every structure in minutes on two cores.
    Quick,
    /// More sizes, more repeats.
    Standard,
    /// Sizes up to the memory of a large GPU.
    Full,
}

impl Effort {
    /// Returns the word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Standard => "standard",
            Effort::Full => "full",
        }
    }

    /// Returns the least number of repeats, unless one takes longer than [`Self::patience`].
    fn repeats(self) -> usize {
        match self {
            Effort::Quick => 3,
            Effort::Standard => 5,
            Effort::Full => 7,
        }
    }

    /// Repeats go on until they have taken this long together.
    fn patience(self) -> Duration {
        match self {
            Effort::Quick => Duration::from_millis(20),
            Effort::Standard => Duration::from_millis(250),
            Effort::Full => Duration::from_millis(500),
        }
    }
}

/// Statistic of the repeats that becomes a row's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The median.
    Median,
    /// The least; of work on one thread the least processor time, which other programs have no part in. For a machine
    /// that others use too.
    Least,
}

/// Runs `prepare` (untimed) and `work` (timed) on `state` several times and returns the median of the seconds.
///
/// The first run counts only if it is the only one: it pays for page faults and cold caches.
pub fn median_seconds<S>(
    effort: Effort,
    state: &mut S,
    prepare: impl FnMut(&mut S) -> anyhow::Result<()>,
    work: impl FnMut(&mut S) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut times = repeat(effort, 2, || start.elapsed(), state, prepare, work)?;
    if times.len() > 1 {
        times.remove(0);
    }
    Ok(median(&mut times))
}

/// Measures as [`median_seconds()`] does, but returns the least time; processor time if `one_thread`.
pub fn least_seconds<S>(
    effort: Effort,
    one_thread: bool,
    state: &mut S,
    prepare: impl FnMut(&mut S) -> anyhow::Result<()>,
    work: impl FnMut(&mut S) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let start = Instant::now();
    let now = || if one_thread { processor_time() } else { None }.unwrap_or_else(|| start.elapsed());
    let times = repeat(effort, 1, now, state, prepare, work)?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

/// Repeats the work at least `least` times and returns all times; `now` reads the clock.
fn repeat<S>(
    effort: Effort,
    least: usize,
    now: impl Fn() -> Duration,
    state: &mut S,
    mut prepare: impl FnMut(&mut S) -> anyhow::Result<()>,
    mut work: impl FnMut(&mut S) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    let mut spent = Duration::ZERO;
    while times.len() <= effort.repeats() || (spent < effort.patience() && times.len() < 1000) {
        prepare(state)?;
        let start = now();
        work(state)?;
        let time = now().saturating_sub(start);
        spent += time;
        times.push(time.as_secs_f64());
        if spent > 12 * effort.patience() && times.len() >= least {
            break;
        }
    }
    Ok(times)
}

/// Returns the processor time of all threads of this process, where the system reports it.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}

/// Returns the median; sorts its argument.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => times[n / 2],
        n => (times[n / 2 - 1] + times[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        let mut runs = (0, 0);
        let prepare = |runs: &mut (i32, i32)| {
            runs.0 += 1;
            Ok(())
        };
        let work = |runs: &mut (i32, i32)| {
            runs.1 += 1;
            Ok(())
        };
        let seconds = median_seconds(Effort::Quick, &mut runs, prepare, work).unwrap();
        assert!(runs.0 == runs.1 && runs.0 > 3 && seconds >= 0.0);
        assert!(median_seconds(Effort::Quick, &mut (), |()| Ok(()), |()| anyhow::bail!("no")).is_err());
    }

    #[test]
    fn least_times_are_not_above_the_median() {
        let mut sum = 0u64;
        let work = |sum: &mut u64| {
            *sum = (0..100_000u64).fold(*sum, |sum, i| std::hint::black_box(sum.rotate_left(5) ^ i));
            Ok(())
        };
        for one_thread in [false, true] {
            let least = least_seconds(Effort::Quick, one_thread, &mut sum, |_| Ok(()), work).unwrap();
            assert!((0.0..1.0).contains(&least), "{least}");
        }
    }
}
