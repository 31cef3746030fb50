//! From which space on Consensus is built faster than RecSplit, on the CPU and on devices.

use super::super::Figure;
use super::super::chart::{Series, Style};
use super::super::page::Grid;
use super::super::rows::study;
use super::{BITS, BUILD, nanoseconds};
use bench_record::Record;

/// The study on the CPU.
const SPACES: &str = "spaces";
/// The study on devices.
const DEVICE_SPACES: &str = "spaces on a device";

/// Place of builds: a study, a label, and whether a row is of it.
struct Place {
    study: &'static str,
    label: &'static str,
    style: Style,
    has: fn(&Record) -> bool,
}

const PLACES: [Place; 2] = [
    Place {
        study: SPACES,
        label: "one core",
        style: Style::Measured,
        has: |row| row.backend == "cpu" && row.number("threads") == Some(1.0),
    },
    Place { study: DEVICE_SPACES, label: "GPU", style: Style::Limit, has: |row| row.backend == "cuda" },
];

/// Returns bits per key and nanoseconds for the largest number of keys of each function, the smallest functions first.
fn points(rows: &[&Record], place: &Place, is_consensus: bool) -> Vec<(f64, f64)> {
    let of_place = study(rows, place.study).into_iter().filter(|row| row.operation == "build" && (place.has)(row));
    let rows: Vec<&Record> =
        of_place.filter(|row| (row.text("variant") == Some("Consensus")) == is_consensus).collect();
    let most = rows.iter().map(|row| row.n).max();
    let largest = rows.into_iter().filter(|row| Some(row.n) == most);
    let mut points: Vec<_> = largest.filter_map(|row| Some((row.bits_per_item?, nanoseconds(row)?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Interpolates the time at a space between the points on both sides; beyond the last points, returns the time of the
/// nearest.
fn time_at(points: &[(f64, f64)], bits: f64) -> Option<f64> {
    let after = points.iter().position(|point| point.0 >= bits);
    Some(match after {
        None => points.last()?.1,
        Some(0) => return (points[0].0 == bits).then_some(points[0].1),
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            y0 * (y1 / y0).powf((bits - x0) / (x1 - x0))
        }
    })
}

/// Returns the most bits per key below which Consensus is always built faster.
fn crossing(consensus: &[(f64, f64)], others: &[(f64, f64)]) -> Option<f64> {
    let is_faster = |bits: f64| match (time_at(consensus, bits), time_at(others, bits)) {
        (Some(own), Some(other)) => own < other,
        (own, None) => own.is_some(),
        (None, _) => true,
    };
    let (from, to) = (consensus.first()?.0, others.last()?.0.max(consensus.last()?.0));
    let steps = 0..=((to - from) * 1000.0) as u32;
    let faster = steps.map(|step| from + f64::from(step) / 1000.0).take_while(|&bits| is_faster(bits));
    faster.last()
}

/// Plots time over space of both kinds.
pub fn figure(rows: &[&Record]) -> Figure {
    let mut all = Vec::new();
    for place in &PLACES {
        for (colour, name) in ["RecSplit", "Consensus"].into_iter().enumerate() {
            let points = points(rows, place, colour == 1);
            if !points.is_empty() {
                all.push(Series { name: format!("{name}, {}", place.label), points, style: place.style, colour });
            }
        }
    }
    Figure::new(
        "recsplit-spaces",
        "Consensus beside RecSplit",
        "Construction time over space of both kinds, each with the shapes that the bench takes: on one core, and on a GPU from keys in its \
         memory to a function there. RecSplit takes groups. The bound is 1.4427 bits per key.",
        (BITS, BUILD),
        all,
    )
}

/// Makes the table of spaces from which Consensus is built faster.
pub fn crossings(rows: &[&Record]) -> Grid {
    let line = |place: &Place| {
        let [others, own] = [false, true].map(|is_consensus| points(rows, place, is_consensus));
        Some(vec![place.label.into(), format!("{:.2}", crossing(&own, &others)?)])
    };
    Grid {
        name: "recsplit-spaces-crossings",
        title: "From which space on Consensus is built faster than RecSplit".into(),
        caption: "Below this many bits per key Consensus is built faster than RecSplit by groups, by the times of the figure before.".into(),
        header: ["on", "below, bits per key"].map(String::from).into(),
        rows: PLACES.iter().filter_map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_cross_where_times_are_equal() {
        let consensus = [(1.5, 100.0), (2.0, 50.0)];
        let others = [(1.6, 200.0), (1.8, 50.0), (2.0, 20.0)];
        let found = crossing(&consensus, &others).unwrap();
        // 100 * 2^(-2 (x - 1.5)) = 200 * 4^(-5 (x - 1.6))
        assert!((found - 1.75).abs() < 0.002, "{found}");
        assert!(crossing(&[], &others).is_none() && crossing(&consensus, &[]).is_none());
    }

    #[test]
    fn both_places_have_lines() {
        let row = |study: &str, variant: &str, backend: &str, bits: f64, seconds: f64| {
            let row = Record::new("recsplit", "build", 1000).param("study", study).param("threads", 1);
            let mut row = row.by(variant, false).time(seconds);
            (row.bits_per_item, row.backend) = (Some(bits), backend.into());
            row
        };
        let rows = [
            row(SPACES, "grouped", "cpu", 1.8, 2.0),
            row(SPACES, "Consensus", "cpu", 1.7, 1.0),
            row(DEVICE_SPACES, "grouped", "cuda", 1.8, 0.1),
            row(DEVICE_SPACES, "Consensus", "cuda", 1.7, 0.2),
        ];
        let rows: Vec<&Record> = rows.iter().collect();
        assert_eq!(figure(&rows).chart.series.len(), 4);
        assert_eq!(crossings(&rows).rows.len(), 2);
    }
}
