//! Measurements that the thesis reports: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's
//! thesis, KIT 2022, chapter 6, on an Intel Core i7-11700 and an Nvidia RTX 3090. The values are those of its table and
//! of its text; values that only the drawn figures show cannot be read from the text. The file has a line for each of
//! them nonetheless, with its page.

const FILE: &str = include_str!("thesis.csv");

/// A value of the thesis, or a figure without one.
#[derive(Debug)]
pub struct Point {
    /// The figure or table.
    pub figure: &'static str,
    /// The page on which its section begins.
    pub page: u32,
    /// Who: the thesis's names.
    pub implementation: &'static str,
    /// The shape, where it is said.
    pub bucket: Option<f64>,
    pub leaf: Option<f64>,
    /// Relation to the value: "up to", "about", or nothing.
    pub relation: &'static str,
    /// The value, if the text has one.
    pub value: Option<f64>,
    /// The quantity.
    pub what: &'static str,
    /// Remark.
    pub note: &'static str,
}

impl Point {
    fn of(line: &'static str) -> Option<Self> {
        let fields: Vec<&str> = line.splitn(9, ',').collect();
        let [figure, page, implementation, bucket, leaf, relation, value, what, note] = fields[..] else { return None };
        let number = |text: &str| text.parse().ok();
        let (bucket, leaf, value) = (number(bucket), number(leaf), number(value));
        Some(Self { figure, page: page.parse().ok()?, implementation, bucket, leaf, relation, value, what, note })
    }

    /// Renders the value in words.
    pub fn value_in_words(&self) -> String {
        match self.value {
            Some(value) => format!("{} {value}", self.relation).trim_start().into(),
            None => "not in the text".into(),
        }
    }
}

/// Returns all lines of the file.
pub fn points() -> impl Iterator<Item = Point> {
    FILE.lines().skip(1).filter_map(Point::of)
}

/// Returns the greatest speed-ups over the original: table 6.1.
pub fn speed_ups() -> impl Iterator<Item = Point> {
    points().filter(|point| point.figure == "Table 6.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        assert_eq!(points().count(), FILE.lines().count() - 1);
        assert_eq!(speed_ups().filter_map(|point| point.value).fold(0.0, f64::max), 1873.0);
    }
}
