//! Visible part of an axis, the places of values on it, and its labelled values.

use super::Scale;

/// The part of an axis that is shown.
pub struct Range {
    scale: Scale,
    pub low: f64,
    high: f64,
}

impl Range {
    /// Returns the range of these values.
    pub fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && (scale.is_even() || *value > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 2.0) } else { (low, high) };
        match scale {
            Scale::Linear => Self { scale, low: low.min(0.0), high: if high > 0.0 { high * 1.08 } else { 1.0 } },
            // A little air, and never an empty range.
            Scale::FromLeast => {
                let air = ((high - low) * 0.05).max(1e-3 * high.abs()).max(1e-9);
                Self { scale, low: low - air, high: high + air }
            }
            Scale::Log10 => Self { scale, low: low / 1.4, high: high * 1.4 },
            Scale::Log2 => Self { scale, low: low / 1.1, high: high * 1.1 },
        }
    }

    /// Whether the scale has a place for a value.
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale.is_even() || value > 0.0)
    }

    /// Returns the place of a value, from 0 to 1; values that a logarithm cannot show are at 0.
    pub fn part(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear | Scale::FromLeast => (value - self.low) / (self.high - self.low),
            _ if value <= 0.0 => 0.0,
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        part.clamp(0.0, 1.0)
    }

    /// Returns about `wanted` round numbers within the range, at most.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let inside = |value: &f64| *value >= self.low && *value <= self.high;
        match self.scale {
            Scale::Linear | Scale::FromLeast => {
                let rough = (self.high - self.low) / wanted as f64;
                let decade = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|step| *step >= rough);
                let step = step.unwrap_or(decade);
                let first = (self.low / step).ceil() as i64;
                (0..=wanted as i64).map(|i| (first + i) as f64 * step).filter(inside).collect()
            }
            Scale::Log10 => {
                let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                let per_decade: &[f64] = if (self.high / self.low).log10() < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let stride = (decades.clone().count() * per_decade.len()).div_ceil(2 * wanted).max(1);
                let all = decades.step_by(stride).flat_map(|e| per_decade.iter().map(move |m| m * 10f64.powi(e)));
                all.filter(inside).collect()
            }
            Scale::Log2 => {
                let powers = self.low.log2().ceil() as i32..=self.high.log2().floor() as i32;
                let stride = powers.clone().count().div_ceil(wanted).max(1);
                powers.step_by(stride).map(|e| 2f64.powi(e)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let ticks = |scale, low, high| Range { scale, low, high }.ticks(8);
        assert_eq!(ticks(Scale::Linear, 0.0, 32.0), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(ticks(Scale::Log2, 60.0, 300.0), [64.0, 128.0, 256.0]);
        assert_eq!(ticks(Scale::Log10, 0.5, 2e4), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(ticks(Scale::Log10, 0.9, 6.0), [1.0, 2.0, 5.0]);
    }
}
