//! Hits of a sequence in a filter, and thresholds for them.

use crate::Error;

/// Numbers of k-mers of one sequence. Repeated k-mers count each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hits {
    /// K-mers that may be in the filter.
    pub found: u64,
    /// K-mers of the sequence: windows of `k` letters that are all bases.
    pub kmers: u64,
}

/// Condition for a match: a least number of hits, and a least fraction of the k-mers.
///
/// ```
/// use warpset_sequence::{Hits, Threshold};
///
/// let threshold = Threshold::at_least(2).and_fraction(0.01)?;
/// assert!(threshold.is_met(Hits { found: 2, kmers: 120 }));
/// assert!(!threshold.is_met(Hits { found: 2, kmers: 900 })); // 9 would be enough
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    found: u64,
    fraction: f64,
}

impl Threshold {
    /// Requires at least `found` k-mers found.
    pub const fn at_least(found: u64) -> Threshold {
        Threshold { found, fraction: 0.0 }
    }

    /// Requires also this fraction of the k-mers of a sequence, rounded up.
    ///
    /// # Errors
    /// [`Error::InvalidFraction`] unless the fraction is from 0 to 1.
    pub fn and_fraction(self, fraction: f64) -> Result<Threshold, Error> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::InvalidFraction { fraction });
        }
        Ok(Threshold { fraction, ..self })
    }

    /// Whether these hits reach the threshold.
    pub fn is_met(self, hits: Hits) -> bool {
        hits.found >= self.found && hits.found as f64 >= self.fraction * hits.kmers as f64
    }
}

impl Default for Threshold {
    /// Requires one k-mer.
    fn default() -> Threshold {
        Threshold::at_least(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds() {
        let hits = |found, kmers| Hits { found, kmers };
        assert!(!Threshold::default().is_met(hits(0, 9)) && Threshold::default().is_met(hits(1, u64::MAX)));
        assert!(Threshold::at_least(0).is_met(hits(0, 0)));
        let half = Threshold::at_least(3).and_fraction(0.5).unwrap();
        assert_eq!(
            [hits(2, 2), hits(3, 6), hits(3, 7), hits(4, 7)].map(|hits| half.is_met(hits)),
            [false, true, false, true]
        );
        for fraction in [-0.1, 1.1, f64::NAN] {
            assert!(matches!(half.and_fraction(fraction), Err(Error::InvalidFraction { .. })));
        }
    }
}
