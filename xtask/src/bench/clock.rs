//! Timing: repeats and their median.

use std::time::{Duration, Instant};

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Minutes on two cores, every structure.
    Quick,
    /// More sizes, more repeats.
    Standard,
    /// Sizes up to the memory of a large GPU.
    Full,
}

impl Effort {
    /// At least this many repeats, unless one takes longer than [`Self::patience`].
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
            Effort::Quick => Duration::from_millis(60),
            Effort::Standard => Duration::from_millis(250),
            Effort::Full => Duration::from_millis(500),
        }
    }
}

/// Runs `prepare` (untimed) and `work` (timed) on `state` several times and returns the median of the seconds.
///
/// The first run counts only if it is the only one: it pays for page faults and cold caches.
pub fn median_seconds<S>(
    effort: Effort,
    state: &mut S,
    mut prepare: impl FnMut(&mut S) -> anyhow::Result<()>,
    mut work: impl FnMut(&mut S) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    let mut spent = Duration::ZERO;
    while times.len() <= effort.repeats() || (spent < effort.patience() && times.len() < 1000) {
        prepare(state)?;
        let start = Instant::now();
        work(state)?;
        let time = start.elapsed();
        spent += time;
        times.push(time.as_secs_f64());
        if spent > 12 * effort.patience() && times.len() > 1 {
            break;
        }
    }
    if times.len() > 1 {
        times.remove(0);
    }
    Ok(median(&mut times))
}

/// The median; sorts its argument.
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
}
