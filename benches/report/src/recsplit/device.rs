//! Section 6.5 and figures 6.20 and 6.21 of the thesis: construction on a GPU, with the thesis's own points where its
//! text has them.

use super::thesis::{self, Point};
use super::{BUILD, LEAF, nanoseconds};
use crate::Figure;
use crate::chart::{Axis, Scale, Series, Style};
use crate::page::Grid;
use crate::rows::{groups, series, study};
use bench_record::Record;

const SPEED_UP: Axis =
    Axis { label: "speed-up over the original", scale: Scale::Log10, show: crate::chart::short_rate };
const RATIO: Axis = Axis { label: "times as fast", scale: Scale::Linear, show: |ratio| format!("{ratio:.1}") };

/// The study of whole builds.
pub const STUDY: &str = "leaf sizes on a device";
/// Reference of speed-ups: one thread without vectors and rotation.
const ORIGINAL: &str = "brute force, sequential";
/// The finaliser of the comparison, as rows name it.
const OTHER_REMIX: &str = ", 64-bit remix";

/// Keys from which on times are compared: of fewer, the longest searches decide.
const ENOUGH: u64 = 1000;
const ENOUGH_ON_DEVICE: u64 = 100_000;

type Shape = (f64, f64);

/// Returns leaf and bucket size.
fn shape(row: &Record) -> Option<Shape> {
    Some((row.number("leaf")?, row.number("bucket")?))
}

/// Builds on devices, and those of the host beside them.
fn builds<'a>(rows: &[&'a Record]) -> Vec<&'a Record> {
    let mut builds = study(rows, STUDY);
    builds.retain(|row| row.operation == "build");
    builds
}

/// Returns the label for a legend.
fn label(row: &Record) -> Option<String> {
    let name = row.text("variant")?;
    let queues = row.number("work_queues").map_or_else(String::new, |queues| format!(", {queues} work queues"));
    Some(if row.backend == "cpu" { name.to_owned() } else { format!("{name}{queues}, GPU") })
}

/// Returns the speed-up over the original at the same shape.
fn speed_up(builds: &[&Record], row: &Record) -> Option<f64> {
    let original =
        |base: &&&Record| base.text("variant") == Some(ORIGINAL) && base.n >= ENOUGH && shape(base) == shape(row);
    Some(nanoseconds(builds.iter().find(original)?)? / nanoseconds(row)?)
}

/// Keeps one point per leaf size: if several files have it, that of the first.
fn once(mut all: Vec<Series>) -> Vec<Series> {
    for series in &mut all {
        let mut seen = Vec::new();
        series.points.retain(|point| {
            let is_new = !seen.contains(&point.0);
            seen.push(point.0);
            is_new
        });
    }
    all.retain(|series| !series.points.is_empty());
    all
}

/// Returns the figures; those without rows are empty.
pub fn figures(rows: &[&Record]) -> Vec<Figure> {
    let builds = builds(rows);
    let mut figures = Vec::new();
    for (bucket, time, ratio) in [
        (5.0, "recsplit-device-build-bucket-5", "recsplit-device-speed-up-bucket-5"),
        (50.0, "recsplit-device-build-bucket-50", "recsplit-device-speed-up-bucket-50"),
        (500.0, "recsplit-device-build-bucket-500", "recsplit-device-speed-up-bucket-500"),
        (2000.0, "recsplit-device-build-bucket-2000", "recsplit-device-speed-up-bucket-2000"),
    ] {
        let of_bucket: Vec<&Record> =
            builds.iter().copied().filter(|row| row.number("bucket") == Some(bucket)).collect();
        let point = |row: &Record| Some((row.number("leaf")?, nanoseconds(row)?));
        figures.push(Figure::new(
            time,
            format!("Construction on a GPU, bucket size {bucket}"),
            format!(
                "Figure 6.20 of the thesis for bucket size {bucket}: whole builds over the leaf size, a million keys or as many as the \
                 time limit allows. The thesis's own points are drawn only, its text does not have them."
            ),
            (LEAF, BUILD),
            once(series(&of_bucket, label, point, Style::Measured)),
        ));
        let on_device: Vec<&Record> = of_bucket.iter().copied().filter(|row| row.backend != "cpu").collect();
        let point = |row: &Record| Some((row.number("leaf")?, speed_up(&of_bucket, row)?));
        let mut all = once(series(&on_device, label, point, Style::Measured));
        if !all.is_empty() {
            let own = thesis::speed_ups().filter(|point| point.bucket == Some(bucket));
            for point in own.filter(|point| point.implementation.starts_with("gpu")) {
                all.extend(of_thesis(&point, all.len()));
            }
        }
        figures.push(Figure::new(
            ratio,
            format!("Speed-up on a GPU, bucket size {bucket}"),
            format!(
                "Figure 6.21 of the thesis for bucket size {bucket}: speed-up over one thread without vectors and rotation, at the same \
                 shape. Hollow squares: the thesis's greatest, from its table 6.1, over the original implementation on its own machine."
            ),
            (LEAF, SPEED_UP),
            all,
        ));
    }
    figures.extend([remixes(&builds), work_queues(&builds)]);
    figures
}

/// Makes a series of a point of the thesis.
fn of_thesis(point: &Point, colour: usize) -> Option<Series> {
    let name = format!("paper: {}", point.implementation);
    Some(Series { name, points: vec![(point.leaf?, point.value?)], style: Style::Paper, colour })
}

/// Plots the ratio of the times of two kinds of builds over the leaf size, one series per bucket size and method.
fn ratios(
    builds: &[&Record],
    is_other: impl Fn(&Record, &str) -> bool,
    is_own: impl Fn(&Record, &str) -> bool,
) -> Vec<Series> {
    let mut all = Vec::new();
    for (i, bucket) in groups(builds, |row| row.number("bucket")).into_iter().enumerate() {
        for (method, style) in [("brute force", Style::Limit), ("rotation", Style::Measured)] {
            let of = |row: &&&Record| row.number("bucket") == Some(bucket) && row.backend != "cpu";
            let own = builds.iter().filter(of).filter(|row| is_own(row, method));
            let points: Vec<(f64, f64)> = own
                .filter_map(|row| {
                    let other = builds.iter().filter(of).find(|other| {
                        is_other(other, method)
                            && shape(other) == shape(row)
                            && other.n == row.n
                            && row.n >= ENOUGH_ON_DEVICE
                    })?;
                    Some((row.number("leaf")?, nanoseconds(other)? / nanoseconds(row)?))
                })
                .collect();
            if !points.is_empty() {
                all.push(Series { name: format!("bucket {bucket}, {method}"), points, style, colour: i });
            }
        }
    }
    once(all)
}

fn remixes(builds: &[&Record]) -> Figure {
    let is_other = |row: &Record, method: &str| row.text("variant") == Some(&format!("{method}{OTHER_REMIX}"));
    let is_own = |row: &Record, method: &str| row.text("variant") == Some(method);
    Figure::new(
        "recsplit-device-remix",
        "The 32-bit finaliser on a GPU",
        "Figure 6.12 of the thesis: construction with the 32-bit finaliser, times as fast as with the 64-bit one. The thesis's text says up \
         to 1.7 for large leaves; its points are drawn only.",
        (LEAF, RATIO),
        ratios(builds, is_other, is_own),
    )
}

fn work_queues(builds: &[&Record]) -> Figure {
    let is_of = |row: &Record, method: &str| row.text("variant") == Some(&format!("{method}, bucket by bucket"));
    let is_own = |row: &Record, method: &str| is_of(row, method) && row.number("work_queues").is_some();
    let is_other = |row: &Record, method: &str| is_of(row, method) && row.number("work_queues").is_none();
    Figure::new(
        "recsplit-device-work-queues",
        "Work queues",
        "Figure 6.18 of the thesis: construction bucket by bucket with more work queues, times as fast as with the driver's 8. The thesis's \
         text says up to 3.5 at bucket size 50 by brute force, and 2.5 with rotation; its points are drawn only.",
        (LEAF, RATIO),
        ratios(builds, is_other, is_own),
    )
}

/// Returns the greatest speed-up of each kind of build, for table 6.1: name, speed-up, bucket and leaf size.
pub fn greatest(rows: &[&Record]) -> Vec<Vec<String>> {
    let builds = builds(rows);
    let on_device: Vec<&Record> = builds.iter().copied().filter(|row| row.backend != "cpu").collect();
    let best = |name: &String| {
        let of_name = on_device.iter().filter(|row| label(row).as_ref() == Some(name));
        let best = of_name.filter_map(|row| Some((speed_up(&builds, row)?, shape(row)?)));
        best.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let line = |name: String| {
        let (speed_up, (leaf, bucket)) = best(&name)?;
        Some(vec![name, format!("{speed_up:.0}"), bucket.to_string(), leaf.to_string()])
    };
    groups(&on_device, label).into_iter().filter_map(line).collect()
}

/// Compares the thesis's text on its figures 6.12 to 6.21 with the greatest of our values.
pub fn beside_the_thesis(rows: &[&Record]) -> Grid {
    let builds = builds(rows);
    let greatest = |figure: &Figure| {
        let values = figure.chart.series.iter().flat_map(|series| &series.points).map(|point| point.1);
        values.reduce(f64::max).map(|value| format!("up to {value:.2}"))
    };
    let ours = |point: &Point| match point.figure {
        "Figure 6.12" => greatest(&remixes(&builds)),
        "Figure 6.18" => greatest(&work_queues(&builds)),
        "Figure 6.20" if point.value.is_some() => builds
            .iter()
            .filter(|row| row.backend != "cpu" && row.bits_per_item.is_some_and(|bits| bits < 1.575))
            .filter_map(|row| nanoseconds(row))
            .reduce(f64::min)
            .map(|time| format!("{time:.2} below 1.575 bits")),
        "Figure 6.13" | "Figure 6.14" | "Figure 6.19" => Some("drawn above".into()),
        "Figure 6.15" => Some("not measured: our kernels have one factor, 3".into()),
        "Figure 6.16" | "Figure 6.17" => Some("not measured: no kernels of the other form".into()),
        _ => None,
    };
    let line = |point: Point| {
        vec![
            point.figure.into(),
            point.page.to_string(),
            point.what.into(),
            point.implementation.into(),
            point.value_in_words(),
            ours(&point).unwrap_or_default(),
            point.note.into(),
        ]
    };
    let figures = thesis::points().filter(|point| point.figure != "Table 6.1");
    Grid {
        name: "recsplit-thesis-figures",
        title: "The thesis's figures of builds on a GPU, as far as its text has values".into(),
        caption: "Figures 6.12 to 6.21: the values that the thesis's text gives, on its machine (Nvidia RTX 3090), beside ours where the rows \
            have them. The page is that on which the section begins. Pages with \"not in the text\" have the values in a drawing only."
            .into(),
        header: ["figure", "page", "what", "who", "thesis", "ours", "note"].map(String::from).into(),
        rows: if builds.is_empty() { Vec::new() } else { figures.map(line).collect() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(backend: &str, variant: &str, leaf: u32, seconds: f64) -> Record {
        let row = Record::new("recsplit", "build", 100_000).param("study", STUDY).param("variant", variant);
        let mut row = row.param("leaf", leaf).param("bucket", 50).time(seconds);
        row.backend = backend.into();
        row
    }

    #[test]
    fn speed_ups_and_ratios_are_of_the_same_shape() {
        let mut queues = row("cuda", "rotation, bucket by bucket", 17, 0.5);
        queues = queues.param("work_queues", 32);
        let rows = [
            row("cpu", ORIGINAL, 17, 60.0),
            row("cuda", "rotation", 17, 0.02),
            row("cuda", "rotation, 64-bit remix", 17, 0.03),
            row("cuda", "rotation", 8, 0.01),
            row("cuda", "rotation, bucket by bucket", 17, 1.0),
            queues,
        ];
        let rows: Vec<&Record> = rows.iter().collect();
        assert_eq!(greatest(&rows)[0], ["rotation, GPU", "3000", "50", "17"]);
        let figures = figures(&rows);
        let series = |name: &str| &figures.iter().find(|figure| figure.name == name).unwrap().chart.series;
        let ratio = |name: &str| series(name)[0].points[0].1;
        assert!((ratio("recsplit-device-remix") - 1.5).abs() < 1e-9);
        assert!((ratio("recsplit-device-work-queues") - 2.0).abs() < 1e-9);
        let speed_ups = series("recsplit-device-speed-up-bucket-50");
        assert_eq!(speed_ups.last().unwrap().points, [(17.0, 1873.0)]);
        assert!(series("recsplit-device-speed-up-bucket-5").is_empty());
        assert_eq!(beside_the_thesis(&rows).rows.len(), 12);
    }
}
