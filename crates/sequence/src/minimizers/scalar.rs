//! Minimizers one base at a time.

use warpset_core::minimizer::{MOST_W, Scheme, Strands, code, order};

/// Capacity of a ring of k-mers: those of the largest window.
const RING: usize = MOST_W as usize;

/// Visits the positions of the minimizers of bases in the order of the windows; every letter is a base.
///
/// The leftmost and the rightmost least k-mer of a window are kept while they are inside it. When the leftmost has
/// left, every `w / 2` windows of random bases, all k-mers of the window are compared again.
pub(super) fn positions(bases: &[u8], scheme: Scheme, mut visit: impl FnMut(usize)) {
    let (k, w, window) = (scheme.k as usize, scheme.w as usize, scheme.window() as usize);
    if bases.len() < window {
        return;
    }
    let mut orders = [0u32; RING];
    let (mut strands, mut gs_and_ts) = (Strands::default(), 0);
    let (mut left, mut right, mut least) = (0, 0, u32::MAX);
    let mut last = usize::MAX;
    for end in 0..bases.len() {
        let base = code(bases[end]);
        strands.enter(base, scheme);
        gs_and_ts += u32::from(base >> 1);
        // The k-mer that ends here, and the window that ends here.
        let Some(kmer) = (end + 1).checked_sub(k) else { continue };
        let own = order(strands.hash());
        strands.leave(code(bases[kmer]), scheme);
        orders[kmer % RING] = own;
        if own < least {
            (left, right, least) = (kmer, kmer, own);
        } else if own == least {
            right = kmer;
        }
        let Some(first) = (kmer + 1).checked_sub(w) else { continue };
        if left < first {
            least = u32::MAX;
            for i in first..=kmer {
                let order = orders[i % RING];
                if order < least {
                    (left, right, least) = (i, i, order);
                } else if order == least {
                    right = i;
                }
            }
        }
        let taken = if scheme.takes_leftmost(gs_and_ts) { left } else { right };
        gs_and_ts -= u32::from(code(bases[first]) >> 1);
        if taken != last {
            visit(taken);
            last = taken;
        }
    }
}
