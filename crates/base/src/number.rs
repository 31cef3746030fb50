//! Numbers in messages.

use std::fmt;

/// Formats a number with an exponent where that is shorter than its zeros.
pub fn short(number: &f64) -> impl fmt::Display {
    Short(*number)
}

struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0 | 1e-6..1e15 => write!(f, "{}", self.0),
            _ => write!(f, "{:e}", self.0),
        }
    }
}

/// Formats a number of things, with the plural where it belongs: "1 byte", "2 bytes".
pub fn count(number: u64, thing: &'static str) -> impl fmt::Display {
    Count(number, thing)
}

struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "byte").to_string()), ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn zeros_are_few() {
        let shown =
            [0.0, -0.01, 33.0, 1e-6, 1e14, 1e-7, 1.5e-300, -1e300, f64::INFINITY].map(|n| short(&n).to_string());
        assert_eq!(shown, ["0", "-0.01", "33", "0.000001", "100000000000000", "1e-7", "1.5e-300", "-1e300", "inf"]);
        assert_eq!(short(&f64::NAN).to_string(), "NaN");
    }
}
