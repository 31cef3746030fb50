//! Rule by which reads match.

use warpset_sequence::needed_hits;

use crate::Error;

/// Rule by which a read, or a pair of reads, matches: a least number of hits, and their least share of all lookups.
///
/// With an index, different minimizers are looked up, those of both mates together. With a table of k-mers, all windows
/// of k bases are looked up.
///
/// ```
/// use warpset_kmers::Rule;
///
/// let rule = Rule::new(2, 0.01)?; // Deacon's
/// assert!(rule.matches(2, 150) && !rule.matches(1, 1));
/// assert!(!rule.matches(2, 201)); // 1 % are more than 2
/// # Ok::<(), warpset_kmers::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    hits: u64,
    share: f64,
}

impl Rule {
    /// Requires at least `hits` hits, and `share` of the lookups.
    ///
    /// # Errors
    /// [`Error::InvalidRule`] unless `hits` is at least 1 and `share` from 0 to 1.
    pub fn new(hits: u64, share: f64) -> Result<Rule, Error> {
        match hits > 0 && (0.0..=1.0).contains(&share) {
            true => Ok(Rule { hits, share }),
            false => Err(Error::InvalidRule { hits, share }),
        }
    }

    /// Rule of one hit.
    pub(crate) const ONE: Rule = Rule { hits: 1, share: 0.0 };
    /// Deacon's rule: two hits and 1 %.
    pub(crate) const DEACON: Rule = Rule { hits: 2, share: 0.01 };

    /// Returns the rule with another number of hits; with 0 all reads match.
    pub(crate) fn with_hits(self, hits: u64) -> Rule {
        Rule { hits, ..self }
    }

    /// Returns the least number of hits.
    pub fn hits(self) -> u64 {
        self.hits
    }

    /// Returns the least share.
    pub fn share(self) -> f64 {
        self.share
    }

    /// Returns the hits that suffice for `total` lookups: the least integer whose quotient by `total` is not below the
    /// share, in floating point. It does not fall as `total` grows.
    #[inline]
    pub(crate) fn needed(self, total: u64) -> u64 {
        if total == 0 {
            return self.hits;
        }
        needed_hits(self.hits, self.share, total)
    }

    /// Whether a read with `hits` hits of `total` lookups matches. A read without lookups does not.
    #[inline]
    pub fn matches(self, hits: u64, total: u64) -> bool {
        self.hits == 0 || (total > 0 && hits >= self.needed(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_least_ones() {
        let rule = |hits, share| Rule::new(hits, share).unwrap();
        assert_eq!(rule(1, 0.49).needed(5), 3);
        // A tenth of thirty is three, although the product is a little larger.
        assert_eq!(rule(1, 0.1).needed(30), 3);
        assert!(!rule(1, 0.0).matches(1, 0) && rule(1, 0.0).matches(1, 1) && rule(1, 1.0).matches(7, 7));
        for share in [0.0, 0.01, 0.1, 0.5, 0.99, 1.0] {
            let needed: Vec<u64> = (0..20_000).map(|total| rule(1, share).needed(total)).collect();
            assert!(needed.is_sorted(), "{share}");
        }
        for (hits, share) in [(0, 0.5), (1, -0.1), (1, 1.1), (1, f64::NAN)] {
            assert!(matches!(Rule::new(hits, share), Err(Error::InvalidRule { .. })));
        }
    }
}
