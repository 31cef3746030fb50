//! Measurements that papers report, and those of the authors' code where we ran it, drawn in the same charts as ours.
//!
//! `papers.csv` has one line per point. `paper` is a value that a text or table gives, with its place and machine;
//! values that only a drawing shows are not there. `anchor` is other people's code, run by us on a machine that the
//! line names. The papers: V. Rao, "Implementation of the Bloom Filter on GPU using CUDA", 2010; A. Geil, M.
//! Farach-Colton, J. D. Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018, on a Tesla
//! K40c and a GeForce GTX 1080; D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", KIT 2022. The
//! tables of the GPU LSM paper are in `lsm/paper.json`, the thesis's speed-ups in `recsplit/thesis.csv`.

use super::Figure;
use super::chart::{Series, Style};

const FILE: &str = include_str!("papers.csv");

struct Point {
    figure: &'static str,
    style: Style,
    series: String,
    at: (f64, f64),
    source: &'static str,
}

fn point(line: &'static str) -> Option<Point> {
    let fields: Vec<&str> = line.splitn(6, ';').collect();
    let [figure, kind, series, x, y, source] = fields[..] else { return None };
    let style = match kind {
        "paper" => Style::Paper,
        "anchor" => Style::Anchor,
        _ => return None,
    };
    Some(Point { figure, style, series: format!("{kind}: {series}"), at: (x.parse().ok()?, y.parse().ok()?), source })
}

fn points() -> impl Iterator<Item = Point> {
    FILE.lines().skip(1).filter_map(point)
}

/// Adds the points of others to the figures that have some of ours.
pub fn add(figures: &mut [Figure]) {
    for figure in figures.iter_mut().filter(|figure| !figure.chart.is_empty()) {
        let all = &mut figure.chart.series;
        let mut colour = all.iter().map(|series| series.colour + 1).max().unwrap_or_default();
        let mut sources: Vec<&str> = Vec::new();
        for point in points().filter(|point| point.figure == figure.name) {
            match all.iter_mut().find(|series| series.name == point.series) {
                Some(series) => series.points.push(point.at),
                None => {
                    all.push(Series { name: point.series, points: vec![point.at], style: point.style, colour });
                    colour += 1;
                }
            }
            // A source up to its settings: the caption names it once.
            let source = point.source.split(", leaf").next().unwrap_or_default();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        if !sources.is_empty() {
            figure.caption += &format!(" Squares and triangles are not measured in this run: {}.", sources.join("; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Scale};

    #[test]
    fn every_line_is_read() {
        assert_eq!(points().count(), FILE.lines().count() - 1);
        assert!(points().all(|point| !point.source.is_empty() && point.at.0 > 0.0 && point.at.1 > 0.0));
    }

    #[test]
    fn points_of_others_stand_beside_ours_only() {
        let axis = Axis { label: "axis", scale: Scale::Linear, show: |value| value.to_string() };
        let figure = |points| {
            let series = Series { name: "ours".into(), points, style: Style::Measured, colour: 0 };
            Figure::new("quotient-build-fill-cuda-q23", "title", "caption.", (axis, axis), vec![series])
        };
        let mut figures = [figure(vec![(0.5, 1e9)]), figure(Vec::new())];
        add(&mut figures);
        let added = &figures[0].chart.series[1];
        assert_eq!((added.points.len(), added.colour, added.style), (2, 1, Style::Paper));
        assert!(figures[0].caption.contains("Geil et al., abstract (70 % full)"));
        assert_eq!(figures[1].chart.series.len(), 1);
    }
}
