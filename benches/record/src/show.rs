//! Numbers and parameters of rows in words, for the screen and for pages.

use serde_json::Value;

use crate::Record;

/// Parameters that are results: other tables show them.
const RESULTS: [&str; 11] = [
    "truth",
    "said",
    "false_positives",
    "expected",
    "list_bits",
    "model_bits",
    "model_nanoseconds",
    "min_rate",
    "max_rate",
    "effective",
    "milliseconds",
];

/// Renders the parameters in one line: the implementation or variant first, the rest by name.
pub fn parameters(row: &Record) -> String {
    words(row, |_| true).join(", ")
}

/// Renders the parameters that `wanted` selects by name, in the order of [`parameters`].
pub fn words(row: &Record, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let show = |name: &str, value: &Value| match (name, value) {
        ("implementation" | "variant" | "key" | "input", Value::String(value)) => value.clone(),
        ("filter_bytes", Value::Number(number)) => number.as_f64().map_or_else(String::new, bytes),
        ("threads", value) if value == 1 => "1 thread".into(),
        ("threads" | "hashes", value) => format!("{value} {name}"),
        (_, Value::Number(number)) if number.is_f64() => {
            let number = format!("{:.4}", number.as_f64().unwrap_or_default());
            format!("{name} {}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        (_, Value::String(value)) => format!("{name} {value}"),
        (_, value) => format!("{name} {value}"),
    };
    let first = ["implementation", "variant", "input", "key", "filter_bytes"];
    let leading = first.iter().filter_map(|name| row.params.get_key_value(*name));
    let others = row.params.iter().filter(|(name, _)| ![&first[..], &RESULTS].concat().contains(&name.as_str()));
    leading.chain(others).filter(|(name, _)| wanted(name)).map(|(name, value)| show(name, value)).collect()
}

/// Renders a rate with its prefix: `1.23 G`.
pub fn rate(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.1}"),
    }
}

/// Renders a probability in percent, with three significant figures.
pub fn percent(value: f64) -> String {
    match 100.0 * value {
        0.0 => "0 %".into(),
        p if p >= 1.0 => format!("{p:.2} %"),
        p if p >= 0.01 => format!("{p:.4} %"),
        p => format!("{p:.2e} %"),
    }
}

/// Renders a size in binary units.
pub fn bytes(value: f64) -> String {
    match value {
        v if v >= (1u64 << 30) as f64 => format!("{:.4} GiB", v / (1u64 << 30) as f64),
        v if v >= (1 << 20) as f64 => format!("{:.4} MiB", v / (1 << 20) as f64),
        v if v >= 1024.0 => format!("{:.4} KiB", v / 1024.0),
        v => format!("{v} B"),
    }
    .replace(".0000 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((rate(1.5e9).as_str(), rate(2.25e6).as_str(), rate(7.0).as_str()), ("1.50 G", "2.2 M", "7.0"));
        assert_eq!(
            (percent(0.0123).as_str(), percent(0.0), percent(0.0013).as_str()),
            ("1.23 %", "0 %".into(), "0.1300 %")
        );
        assert_eq!(
            (bytes(8388608.0).as_str(), bytes(65536.0).as_str(), bytes(12.0).as_str()),
            ("8 MiB", "64 KiB", "12 B")
        );
    }
}
