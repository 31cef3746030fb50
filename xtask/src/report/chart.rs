//! Line charts as SVG: linear or logarithmic axes, a legend, no script.

use svg::Document;
use svg::node::element::{Circle, Group, Line, Path, Rectangle, Text, Title, path::Data};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
/// The plotting area: left, top, right, bottom. The legend is to the right of it.
const AREA: (f64, f64, f64, f64) = (78.0, 40.0, 610.0, 374.0);
/// Okabe and Ito's colours, told apart by everybody; yellow left out, too light for lines.
const COLOURS: [&str; 13] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b", "#9467bd", "#7f7f7f",
    "#bcbd22", "#00bfa5", "#ad1457",
];

/// How an axis maps numbers to places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Evenly, from about the least value.
    Near,
    /// By the decimal logarithm.
    Log10,
    /// By the binary logarithm: sizes.
    Log2,
}

impl Scale {
    /// Whether equal differences are equal distances.
    fn is_even(self) -> bool {
        matches!(self, Scale::Linear | Scale::Near)
    }
}

/// An axis.
#[derive(Clone, Copy)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: &'static str,
    /// Its scale.
    pub scale: Scale,
    /// Writes a number beside a tick.
    pub show: fn(f64) -> String,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line through marked points: measured.
    Measured,
    /// A thin line through hollow points: another library, measured.
    Peer,
    /// Marked points only: measured, drawn over a theory of the same colour.
    Points,
    /// A thin line without marks: theory.
    Theory,
    /// A dashed line without marks: a limit.
    Limit,
}

/// A number without needless zeros, with a prefix: `10 k`, `2.5 M`.
pub fn short_rate(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", (v / 1e7).round() / 100.0),
        v if v >= 1e6 => format!("{} M", (v / 1e4).round() / 100.0),
        v if v >= 1e3 => format!("{} k", (v / 1e1).round() / 100.0),
        v => format!("{}", (v * 100.0).round() / 100.0),
    }
}

/// A probability in percent, two figures that count and no needless zeros: `10 %`, `0.013 %`.
pub fn short_percent(value: f64) -> String {
    let percent = 100.0 * value;
    if percent <= 0.0 {
        return "0 %".into();
    }
    let unit = 10f64.powf(percent.log10().floor() - 1.0);
    let digits = (1.0 - percent.log10().floor()).max(0.0) as usize;
    let text = format!("{:.digits$}", (percent / unit).round() * unit);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// One series.
pub struct Series {
    /// Its name in the legend; empty for none.
    pub name: String,
    /// Its points, any order.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
    /// Which colour; the same number is the same colour.
    pub colour: usize,
}

/// A chart.
pub struct Chart {
    /// The title above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

impl Chart {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Draws the chart.
    pub fn svg(&self) -> String {
        let (left, top, right, bottom) = AREA;
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Range::over(self.x.scale, points().map(|point| point.0));
        let y = Range::over(self.y.scale, points().map(|point| point.1));
        let place = |(a, b): (f64, f64)| (left + x.part(a) * (right - left), bottom - y.part(b) * (bottom - top));

        let mut document = Document::new()
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("viewBox", (0.0, 0.0, WIDTH, HEIGHT))
            .set("width", WIDTH)
            .set("height", HEIGHT)
            .set("role", "img")
            .set("font-family", "system-ui, 'Helvetica Neue', Arial, sans-serif")
            .set("font-size", 12)
            .add(Title::new(self.title.clone()))
            .add(Rectangle::new().set("width", WIDTH).set("height", HEIGHT).set("fill", "#ffffff"))
            .add(text(left, 22.0, "start", &self.title).set("font-size", 15).set("font-weight", 600));

        for tick in x.ticks(9) {
            let at = place((tick, y.low)).0;
            document =
                document.add(grid(at, top, at, bottom)).add(text(at, bottom + 17.0, "middle", &(self.x.show)(tick)));
        }
        for tick in y.ticks(8) {
            let at = place((x.low, tick)).1;
            document =
                document.add(grid(left, at, right, at)).add(text(left - 7.0, at + 4.0, "end", &(self.y.show)(tick)));
        }
        let frame = Path::new()
            .set("d", Data::new().move_to((left, top)).vertical_line_to(bottom).horizontal_line_to(right))
            .set("fill", "none")
            .set("stroke", "#444444");
        document = document.add(frame).add(text((left + right) / 2.0, HEIGHT - 14.0, "middle", self.x.label)).add(
            text(0.0, 0.0, "middle", self.y.label)
                .set("transform", format!("translate(16 {}) rotate(-90)", (top + bottom) / 2.0)),
        );

        let mut legend = top + 8.0;
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            // A logarithm has no place for zero.
            let shown = |&(a, b): &(f64, f64)| x.shows(a) && y.shows(b);
            let mut sorted: Vec<(f64, f64)> = series.points.iter().copied().filter(shown).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            document = document.add(series_group(series, &sorted, colour, place, self));
            if !series.name.is_empty() {
                document = document.add(legend_entry(series, colour, legend));
                legend += 19.0;
            }
        }
        document.to_string()
    }
}

fn text(x: f64, y: f64, anchor: &str, content: &str) -> Text {
    Text::new(content).set("x", x).set("y", y).set("text-anchor", anchor).set("fill", "#222222")
}

fn grid(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2).set("stroke", "#e4e4e4")
}

fn stroke(style: Style) -> Option<(f64, &'static str)> {
    match style {
        Style::Measured => Some((2.0, "none")),
        Style::Points => None,
        Style::Peer => Some((1.0, "2 3")),
        Style::Theory => Some((1.3, "none")),
        Style::Limit => Some((1.5, "6 4")),
    }
}

fn marked(style: Style) -> bool {
    matches!(style, Style::Measured | Style::Points | Style::Peer)
}

fn dot(style: Style, x: f64, y: f64, colour: &str) -> Circle {
    let fill = if style == Style::Peer { "#ffffff" } else { colour };
    Circle::new().set("cx", x).set("cy", y).set("r", 3.5).set("fill", fill).set("stroke", colour)
}

fn series_group(
    series: &Series,
    sorted: &[(f64, f64)],
    colour: &str,
    place: impl Fn((f64, f64)) -> (f64, f64),
    chart: &Chart,
) -> Group {
    let mut group = Group::new();
    if let (Some((width, dashes)), Some(&first)) = (stroke(series.style), sorted.first()) {
        let start = Data::new().move_to(place(first));
        let line = sorted[1..].iter().fold(start, |line, &point| line.line_to(place(point)));
        group = group.add(
            Path::new()
                .set("d", line)
                .set("fill", "none")
                .set("stroke", colour)
                .set("stroke-width", width)
                .set("stroke-dasharray", dashes)
                .set("stroke-linejoin", "round"),
        );
    }
    for &point in sorted.iter().filter(|_| marked(series.style)) {
        let (x, y) = place(point);
        let note = format!("{}: {}, {}", series.name, (chart.x.show)(point.0), (chart.y.show)(point.1));
        group = group.add(dot(series.style, x, y, colour).add(Title::new(note)));
    }
    group
}

fn legend_entry(series: &Series, colour: &str, y: f64) -> Group {
    let x = AREA.2 + 18.0;
    let mut group = Group::new();
    if let Some((width, dashes)) = stroke(series.style) {
        let line = Line::new().set("x1", x).set("y1", y).set("x2", x + 24.0).set("y2", y);
        group = group.add(line.set("stroke", colour).set("stroke-width", width).set("stroke-dasharray", dashes));
    }
    if marked(series.style) {
        group = group.add(dot(series.style, x + 12.0, y, colour));
    }
    group.add(text(x + 31.0, y + 4.0, "start", &series.name))
}

/// The part of an axis that is shown.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && (scale.is_even() || *value > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 2.0) } else { (low, high) };
        match scale {
            Scale::Linear => Self { scale, low: low.min(0.0), high: if high > 0.0 { high * 1.08 } else { 1.0 } },
            // A little air, and never an empty range.
            Scale::Near => {
                let air = ((high - low) * 0.05).max(1e-3 * high.abs()).max(1e-9);
                Self { scale, low: low - air, high: high + air }
            }
            Scale::Log10 => Self { scale, low: low / 1.4, high: high * 1.4 },
            Scale::Log2 => Self { scale, low: low / 1.1, high: high * 1.1 },
        }
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale.is_even() || value > 0.0)
    }

    /// Where a value lies, from 0 to 1; values that a logarithm cannot show lie at 0.
    fn part(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear | Scale::Near => (value - self.low) / (self.high - self.low),
            _ if value <= 0.0 => 0.0,
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        part.clamp(0.0, 1.0)
    }

    /// At most about `wanted` round numbers within the range.
    fn ticks(&self, wanted: usize) -> Vec<f64> {
        let inside = |value: &f64| *value >= self.low && *value <= self.high;
        match self.scale {
            Scale::Linear | Scale::Near => {
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

    fn chart(scale: Scale, points: Vec<(f64, f64)>) -> Chart {
        let axis = Axis { label: "axis", scale, show: |value| format!("{value:.1}") };
        let series = Series { name: "a < b".into(), points, style: Style::Measured, colour: 0 };
        Chart { title: "title".into(), x: axis, y: axis, series: vec![series] }
    }

    #[test]
    fn any_points_give_finite_drawings() {
        for scale in [Scale::Linear, Scale::Near, Scale::Log10, Scale::Log2] {
            for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, 0.0), (5.0, -1.0)], vec![(1e-9, 3.0), (1e9, 1e12)]] {
                let svg = chart(scale, points).svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.contains("a &lt; b"), "{svg}");
            }
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([10_000.0, 2.5e6, 1e9, 7.0].map(short_rate), ["10 k", "2.5 M", "1 G", "7"]);
        assert_eq!([0.1, 0.00013, 1e-7, 0.0, 1.0].map(short_percent), ["10 %", "0.013 %", "0.00001 %", "0 %", "100 %"]);
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |scale, low, high| Range { scale, low, high }.ticks(8);
        assert_eq!(ticks(Scale::Linear, 0.0, 32.0), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(ticks(Scale::Log2, 60.0, 300.0), [64.0, 128.0, 256.0]);
        assert_eq!(ticks(Scale::Log10, 0.5, 2e4), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(ticks(Scale::Log10, 0.9, 6.0), [1.0, 2.0, 5.0]);
    }
}
