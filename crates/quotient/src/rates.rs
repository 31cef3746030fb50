//! Rates of false positives and the size of the overflow region, by theory.

/// Returns the rate of false positives with `distinct` different fingerprints of `bits` bits. It is exact for uniform
/// hashes, because fingerprints are stored without loss.
pub(crate) fn of_distinct(distinct: u64, bits: u32) -> f64 {
    distinct as f64 / 2f64.powi(bits as i32)
}

/// Returns the expected rate after `keys` different keys: the expected share of fingerprints that at least one of them
/// has. About load times 2^-r.
pub(crate) fn expected(keys: u64, bits: u32) -> f64 {
    // 1 - (1 - 2^-bits)^keys, without cancellation.
    -(keys as f64 * (-(2f64.powi(-(bits as i32)))).ln_1p()).exp_m1()
}

/// Returns a number of slots after those of the quotients that suffices for `2^quotient_bits * load` hashed keys,
/// except with a probability below 2^-64.
///
/// Some item lies `x` slots or more after the end only if, for some `j`, the last `j` quotients have more than `j + x`
/// items. Their number is binomial with mean at most `load * j`, so by Chernoff's bound the probability for one `j` is
/// at most `exp(load * j * (e^t - 1) - t * (j + x))` for any `t > 0`. With the `t` that solves `load * (e^t - 1) = t`,
/// this is `exp(-t * x)` for every `j`. There are at most `2^quotient_bits` values of `j`, which gives the factor.
///
/// If up to `2^ordered_bits` different keys have one hash, the worst case is groups of exactly that size, for which
/// slots scale by that factor. Such keys do not fit with a probability below 2^-20. The factor is 2 here: for a Poisson
/// process `exp(t * (items - j))` is a supermartingale in `j`, which bounds all `j` at once, and such a process has the
/// given number of groups or more with a probability of at least one half.
pub(crate) fn overflow_bound(quotient_bits: u32, load: f64, ordered_bits: u32) -> u64 {
    let grows = |t: f64| load * t.exp_m1() > t;
    // The positive root is unique by convexity. At a load of 0.1 it is below 4.
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if grows(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let slots = |exponent: f64| (exponent * std::f64::consts::LN_2 / low.max(1e-3)).ceil() as u64 + 1;
    let groups = if ordered_bits > 0 { slots(21.0).saturating_mul(1 << ordered_bits) } else { 0 };
    slots(f64::from(quotient_bits) + 64.0).max(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_few_and_of_many() {
        assert_eq!(of_distinct(1 << 20, 25), 1.0 / 32.0);
        assert!((expected(1 << 20, 40) / 2f64.powi(-20) - 1.0).abs() < 1e-6);
        assert!((expected(1 << 20, 20) - (1.0 - (-1f64).exp())).abs() < 1e-6);
        assert_eq!(expected(0, 20), 0.0);
    }

    #[test]
    fn fuller_filters_spill_further() {
        let bounds: Vec<u64> = [0.1, 0.5, 0.75, 0.9, 0.95, 0.99].map(|load| overflow_bound(23, load, 0)).to_vec();
        assert!(bounds.is_sorted() && bounds[0] > 10 && bounds[5] < 4000, "{bounds:?}");
        // t = 0.1035 at a load of 0.95: (23 + 64) ln 2 / t.
        assert!((575..595).contains(&bounds[4]), "{bounds:?}");
    }
}
