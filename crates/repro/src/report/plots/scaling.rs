//! A pair's latency against the number of ranks (Fig. 8).

use super::canvas::*;
use crate::{
    ReproError,
    figures::{self, Figure},
    lock_paper::LockRuns,
    null_model, quantity,
};
use plotters::prelude::*;

const FEWEST: f64 = 3.2;
const MOST: f64 = 5200.0;

/// Both axes logarithmic.
pub(in super::super) fn latency(runs: &LockRuns) -> Result<String, ReproError> {
    svg("latency of a pair against the number of ranks", (1000, 500), |area| {
        let decades = vec![2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
        let mut chart = wide(area).build_cartesian_2d(
            (FEWEST..MOST).log_scale().with_key_points(powers_of_two()),
            (1.4f64..3600.0).log_scale().with_key_points(decades),
        )?;
        styled(&mut chart.configure_mesh(), "ranks locking at once", "one pair, slowest rank (µs)")
            .x_label_formatter(&|x| quantity::number(*x))
            .y_label_formatter(&|y| quantity::number(*y))
            .draw()?;
        let null = [FEWEST, MOST].map(|ranks| (ranks, null_share() * ranks));
        chart.draw_series(DashedLineSeries::new(null, 7, 6, NULL.stroke_width(2)))?;
        let ours: Vec<(f64, f64)> = simulated(runs).collect();
        chart.draw_series(LineSeries::new(ours.iter().copied(), OURS.stroke_width(2)))?;
        chart.draw_series(ours.iter().map(|&at| Circle::new(at, 5, OURS.filled())))?;
        for (id, ranks, micros) in published() {
            let mark = EmptyElement::at((ranks, micros)) + diamond(10, THEIRS) + diamond(7, WHITE);
            chart.draw_series([mark + Text::new(id, (15, 6), label())])?;
        }
        Ok(())
    })
}

/// The same divided by the number of ranks, on a linear scale, where differences can be seen.
pub(in super::super) fn share(runs: &LockRuns) -> Result<String, ReproError> {
    svg("latency of a pair divided by the number of ranks", (1000, 330), |area| {
        let ours: Vec<(f64, f64)> = simulated(runs).map(|(ranks, micros)| (ranks, micros / ranks)).collect();
        let values = || ours.iter().map(|at| at.1).chain(published().map(|(_, ranks, micros)| micros / ranks));
        let (low, high) = (values().fold(null_share(), f64::min), values().fold(null_share(), f64::max));
        let room = (high - low).max(0.02) * 0.2;
        let mut chart = wide(area)
            .build_cartesian_2d((FEWEST..MOST).log_scale().with_key_points(powers_of_two()), low - room..high + room)?;
        styled(&mut chart.configure_mesh(), "ranks locking at once", "pair / ranks (µs)")
            .y_labels(6)
            .x_label_formatter(&|x| quantity::number(*x))
            .y_label_formatter(&axis_number)
            .draw()?;
        let null = [FEWEST, MOST].map(|ranks| (ranks, null_share()));
        chart.draw_series(DashedLineSeries::new(null, 7, 6, NULL.stroke_width(2)))?;
        chart.draw_series(LineSeries::new(ours.iter().copied(), OURS.stroke_width(2)))?;
        chart.draw_series(ours.iter().map(|&at| Circle::new(at, 5, OURS.filled())))?;
        for (id, ranks, micros) in published() {
            let mark = EmptyElement::at((ranks, micros / ranks)) + diamond(10, THEIRS) + diamond(7, WHITE);
            chart.draw_series([mark + Text::new(id, (-8, 12), label())])?;
        }
        Ok(())
    })
}

fn powers_of_two() -> Vec<f64> {
    (2..=12).map(|power| f64::from(1 << power)).collect()
}

/// Ranks and µs per pair.
fn simulated(runs: &LockRuns) -> impl Iterator<Item = (f64, f64)> {
    runs.scaling().map(|run| (f64::from(run.ranks), run.slowest_pair() * 1e6))
}

/// What the null model says, in µs per pair and rank.
fn null_share() -> f64 {
    null_model::of("L2").map_or(f64::NAN, |null| null.value / 256.0)
}

/// The published points: id, ranks, µs per pair.
fn published() -> impl Iterator<Item = (&'static str, f64, f64)> {
    // Fig. 10 gives seconds per 1000 pairs.
    let points = [("L1", 4.0, 1.0), ("L4", 128.0, 1e3), ("L2", 256.0, 1.0), ("L5", 1024.0, 1e3), ("L6", 4096.0, 1e3)];
    points
        .into_iter()
        .filter_map(|(id, ranks, scale)| Some((id, ranks, figures::find(id).and_then(Figure::value)? * scale)))
}
