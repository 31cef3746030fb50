//! Line charts as SVG: linear or logarithmic axes, a legend, no script.

mod range;

use svg::Document;
use svg::node::element::{Group, Line, Path, Rectangle, Text, Title, path::Data};

use range::Range;

/// Context of a drawing: its size, the plotting area (left, top, right, bottom), its colours.
struct Frame {
    width: f64,
    height: f64,
    area: (f64, f64, f64, f64),
    paper: &'static str,
    ink: &'static str,
    grid: &'static str,
    axis: &'static str,
    /// Whether it is part of a page, which adds title and legend and sets the colours.
    on_page: bool,
}

/// A file of its own: the legend is to the right of the plotting area.
const FILE: Frame = Frame {
    width: 860.0,
    height: 430.0,
    area: (78.0, 40.0, 610.0, 374.0),
    paper: "#ffffff",
    ink: "#222222",
    grid: "#e4e4e4",
    axis: "#444444",
    on_page: false,
};
/// On a page: with room for letters that a phone shows large.
const PAGE: Frame = Frame {
    width: 600.0,
    height: 400.0,
    area: (96.0, 12.0, 588.0, 334.0),
    paper: "var(--paper)",
    ink: "var(--ink)",
    grid: "var(--grid)",
    axis: "var(--axis)",
    on_page: true,
};

impl Frame {
    fn colour(&self, number: usize) -> String {
        let number = number % COLOURS.len();
        if self.on_page { format!("var(--c{number})") } else { COLOURS[number].into() }
    }
}

/// Okabe and Ito's colours, which colour-blind readers can distinguish; without yellow, which is too light for lines.
pub const COLOURS: [&str; 13] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b", "#9467bd", "#7f7f7f",
    "#bcbd22", "#00bfa5", "#ad1457",
];

/// Map of an axis from numbers to places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Evenly, from about the least value.
    FromLeast,
    /// By the decimal logarithm.
    Log10,
    /// By the binary logarithm: sizes.
    Log2,
}

impl Scale {
    /// Whether equal differences are equal distances.
    fn is_even(self) -> bool {
        matches!(self, Scale::Linear | Scale::FromLeast)
    }
}

/// An axis.
#[derive(Clone, Copy)]
pub struct Axis {
    /// Quantity, with the unit.
    pub label: &'static str,
    /// Its scale.
    pub scale: Scale,
    /// Writes a number beside a tick.
    pub show: fn(f64) -> String,
}

/// Style of a series.
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
    /// Hollow squares: a paper's own values.
    Paper,
    /// Hollow triangles: other people's code, run elsewhere.
    Anchor,
}

/// Renders a number without needless zeros, with a prefix: `10 k`, `2.5 M`.
pub fn short_rate(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", (v / 1e7).round() / 100.0),
        v if v >= 1e6 => format!("{} M", (v / 1e4).round() / 100.0),
        v if v >= 1e3 => format!("{} k", (v / 1e1).round() / 100.0),
        v => format!("{}", (v * 100.0).round() / 100.0),
    }
}

/// Renders a probability in percent, with two significant figures and no needless zeros: `10 %`, `0.013 %`.
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
    /// Style of drawing.
    pub style: Style,
    /// Index of the colour; equal numbers have equal colours.
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
    /// Series, in the order of drawing.
    pub series: Vec<Series>,
}

impl Chart {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Draws the chart as an SVG file.
    pub fn svg(&self) -> String {
        // The legend is as wide as its longest name.
        let letters = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or_default();
        let width = FILE.width.max(FILE.area.2 + 56.0 + 6.6 * letters as f64);
        self.draw(&Frame { width, ..FILE })
    }

    /// Draws the chart for a page: without title and legend, in the page's colours.
    pub fn svg_on_page(&self) -> String {
        self.draw(&PAGE)
    }

    /// Returns the legend for a page: a small drawing and a name per series.
    pub fn legend(&self) -> Vec<(String, String)> {
        let named = self.series.iter().filter(|series| !series.name.is_empty() && !series.points.is_empty());
        let entry = |series: &Series| {
            let swatch = Document::new().set("viewBox", (0, 0, 28, 12)).set("width", 28).set("height", 12);
            let drawn = legend_mark(series.style, &PAGE.colour(series.colour), PAGE.paper, 2.0, 6.0);
            (swatch.set("aria-hidden", "true").add(drawn).to_string(), series.name.clone())
        };
        named.map(entry).collect()
    }

    fn draw(&self, frame: &Frame) -> String {
        let (left, top, right, bottom) = frame.area;
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Range::over(self.x.scale, points().map(|point| point.0));
        let y = Range::over(self.y.scale, points().map(|point| point.1));
        let place =
            |(a, b): (f64, f64)| (tenth(left + x.part(a) * (right - left)), tenth(bottom - y.part(b) * (bottom - top)));

        let mut document = Document::new().set("viewBox", (0.0, 0.0, frame.width, frame.height)).set("role", "img");
        if !frame.on_page {
            document = document
                .set("xmlns", "http://www.w3.org/2000/svg")
                .set("width", frame.width)
                .set("height", frame.height)
                .set("font-family", "system-ui, 'Helvetica Neue', Arial, sans-serif")
                .set("font-size", 12);
        }
        document = document.add(Title::new(self.title.clone()));
        if !frame.on_page {
            let background = Rectangle::new().set("width", frame.width).set("height", frame.height);
            let title = text(frame, left, 22.0, "start", &self.title).set("font-size", 15).set("font-weight", 600);
            document = document.add(background.set("fill", frame.paper)).add(title);
        }
        for (number, tick) in x.ticks(9).into_iter().enumerate() {
            let at = place((tick, y.low)).0;
            // With large letters, only every second label fits.
            let class = if number % 2 == 1 { "odd" } else { "even" };
            let label = text(frame, at, bottom + 19.0, "middle", &(self.x.show)(tick)).set("class", class);
            document = document.add(grid(frame, at, top, at, bottom)).add(label);
        }
        for tick in y.ticks(8) {
            let at = place((x.low, tick)).1;
            let label = text(frame, left - 7.0, at + 4.0, "end", &(self.y.show)(tick));
            document = document.add(grid(frame, left, at, right, at)).add(label);
        }
        let axes = Path::new()
            .set("d", Data::new().move_to((left, top)).vertical_line_to(bottom).horizontal_line_to(right))
            .set("fill", "none")
            .set("stroke", frame.axis);
        let y_label = text(frame, 0.0, 0.0, "middle", self.y.label)
            .set("transform", format!("translate(16 {}) rotate(-90)", (top + bottom) / 2.0));
        document = document
            .add(axes)
            .add(text(frame, (left + right) / 2.0, frame.height - 14.0, "middle", self.x.label))
            .add(y_label);

        let mut legend = top + 8.0;
        for series in &self.series {
            let colour = frame.colour(series.colour);
            // A logarithm has no place for zero.
            let shown = |&(a, b): &(f64, f64)| x.shows(a) && y.shows(b);
            let mut sorted: Vec<(f64, f64)> = series.points.iter().copied().filter(shown).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            document = document.add(series_group(series, &sorted, &colour, frame.paper, place, self));
            if !series.name.is_empty() && !frame.on_page {
                let x = right + 18.0;
                let name = text(frame, x + 31.0, legend + 4.0, "start", &series.name);
                document = document.add(legend_mark(series.style, &colour, frame.paper, x, legend).add(name));
                legend += 19.0;
            }
        }
        document.to_string()
    }
}

fn text(frame: &Frame, x: f64, y: f64, anchor: &str, content: &str) -> Text {
    Text::new(content).set("x", x).set("y", y).set("text-anchor", anchor).set("fill", frame.ink)
}

fn grid(frame: &Frame, x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2).set("stroke", frame.grid)
}

fn stroke(style: Style) -> Option<(f64, &'static str)> {
    match style {
        Style::Measured => Some((2.0, "none")),
        Style::Points => None,
        Style::Peer | Style::Paper | Style::Anchor => Some((1.0, "2 3")),
        Style::Theory => Some((1.3, "none")),
        Style::Limit => Some((1.5, "6 4")),
    }
}

fn marked(style: Style) -> bool {
    !matches!(style, Style::Theory | Style::Limit)
}

/// Draws the mark of a point, with the note that appears under the pointer.
fn mark(style: Style, x: f64, y: f64, colour: &str, paper: &str, note: Option<String>) -> Path {
    let start = |dx: f64, dy: f64| Data::new().move_to((tenth(x + dx), tenth(y + dy)));
    let shape = match style {
        Style::Paper => start(-4.0, -4.0).horizontal_line_by(8).vertical_line_by(8).horizontal_line_by(-8).close(),
        Style::Anchor => start(0.0, -5.0).line_by((4.5, 8)).line_by((-9, 0)).close(),
        _ => start(-3.5, 0.0)
            .elliptical_arc_by((3.5, 3.5, 0, 1, 0, 7, 0))
            .elliptical_arc_by((3.5, 3.5, 0, 1, 0, -7, 0))
            .close(),
    };
    let hollow = matches!(style, Style::Peer | Style::Paper | Style::Anchor);
    let path = Path::new().set("d", shape).set("fill", if hollow { paper } else { colour }).set("stroke", colour);
    match note {
        Some(note) => path.add(Title::new(note)),
        None => path,
    }
}

/// Rounds to a tenth of a unit, less than a screen shows.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn series_group(
    series: &Series,
    sorted: &[(f64, f64)],
    colour: &str,
    paper: &str,
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
    // A line of one point has no length.
    for &point in sorted.iter().filter(|_| marked(series.style) || sorted.len() == 1) {
        let (x, y) = place(point);
        let note = format!("{}: {}, {}", series.name, (chart.x.show)(point.0), (chart.y.show)(point.1));
        group = group.add(mark(series.style, x, y, colour, paper, Some(note)));
    }
    group
}

/// Draws a series' sample for the legend, 24 units wide.
fn legend_mark(style: Style, colour: &str, paper: &str, x: f64, y: f64) -> Group {
    let mut group = Group::new();
    if let Some((width, dashes)) = stroke(style) {
        let line = Line::new().set("x1", x).set("y1", y).set("x2", x + 24.0).set("y2", y);
        group = group.add(line.set("stroke", colour).set("stroke-width", width).set("stroke-dasharray", dashes));
    }
    if marked(style) {
        group = group.add(mark(style, x + 12.0, y, colour, paper, None));
    }
    group
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
        for scale in [Scale::Linear, Scale::FromLeast, Scale::Log10, Scale::Log2] {
            for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, 0.0), (5.0, -1.0)], vec![(1e-9, 3.0), (1e9, 1e12)]] {
                let svg = chart(scale, points).svg();
                let page = chart(scale, vec![(1.0, 2.0), (3.0, 4.0)]).svg_on_page();
                assert!(page.contains("var(--c0)") && !page.contains('#'), "{page}");
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
}
