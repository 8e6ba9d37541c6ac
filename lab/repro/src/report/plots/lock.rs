//! The lock paper's plots (Figs. 8 and 10 to 12), and that of waves of all ranks.

use super::*;
use crate::{
    ReproError,
    figures::{self, Figure},
    lock_paper::{LockRuns, PairRun, TniRun, WhatIf},
    null_model, quantity,
    workloads::{WAVES, WaveLock},
};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use rma_lock::locks::LockKind;
use std::ops::Range;

const FEWEST: f64 = 3.2;
const MOST: f64 = 5200.0;

/// Draws the latency of a pair. Both axes are logarithmic.
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

/// Draws the same divided by the number of ranks, on a linear scale, where differences are visible.
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

/// Returns ranks and µs per pair.
fn simulated(runs: &LockRuns) -> impl Iterator<Item = (f64, f64)> {
    runs.scaling().map(|run| (f64::from(run.ranks), run.slowest_pair() * 1e6))
}

/// Returns the null model's value, in µs per pair and rank.
fn null_share() -> f64 {
    null_model::of("L2").map_or(f64::NAN, |null| null.value / 256.0)
}

/// Returns the published points: id, ranks, µs per pair.
fn published() -> impl Iterator<Item = (&'static str, f64, f64)> {
    // Fig. 10 gives seconds per 1000 pairs.
    let points = [("L1", 4.0, 1.0), ("L4", 128.0, 1e3), ("L2", 256.0, 1.0), ("L5", 1024.0, 1e3), ("L6", 4096.0, 1e3)];
    points
        .into_iter()
        .filter_map(|(id, ranks, scale)| Some((id, ranks, figures::find(id).and_then(Figure::value)? * scale)))
}

/// Draws every rank's time against its number; `published` contains times to mark.
pub(in super::super) fn by_rank(run: &PairRun, published: &[f64]) -> Result<String, ReproError> {
    let points = run.seconds().enumerate().map(|(rank, seconds)| (rank as f64, seconds)).collect();
    let axis = Axis { words: "rank", range: 0.0..f64::from(run.ranks), ticks: 6 };
    // Few ranks need larger dots.
    let dot = if run.ranks > 512 { 1 } else { 3 };
    finishing("finishing times by rank", run, points, axis, dot, published)
}

/// Draws the mean time of every node's ranks against the node's distance to the lock.
pub(in super::super) fn by_hops(run: &PairRun) -> Result<String, ReproError> {
    let seconds: Vec<f64> = run.seconds().collect();
    let width = run.ranks_per_node.max(1) as usize;
    let nodes = seconds.chunks(width).zip(run.hops.chunks(width));
    let points = nodes.map(|(s, hops)| (f64::from(hops[0]), s.iter().sum::<f64>() / s.len() as f64)).collect();
    let most = run.hops.iter().copied().max().unwrap_or(0);
    let axis = Axis { words: "hops to the lock's node", range: -0.5..f64::from(most) + 0.5, ticks: most as usize + 1 };
    finishing("finishing times by hops", run, points, axis, 4, &[])
}

struct Axis {
    words: &'static str,
    range: Range<f64>,
    ticks: usize,
}

fn finishing(
    plot: &'static str,
    run: &PairRun,
    points: Vec<(f64, f64)>,
    x: Axis,
    dot: i32,
    published: &[f64],
) -> Result<String, ReproError> {
    let top = run.seconds().chain(published.iter().copied()).fold(1e-9, f64::max) * 1.09;
    svg(plot, (520, 370), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(52)
            .y_label_area_size(70)
            .build_cartesian_2d(x.range.clone(), 0.0..top)?;
        styled(&mut chart.configure_mesh(), x.words, "1000 pairs (s)")
            .x_labels(x.ticks)
            .y_labels(6)
            .x_label_formatter(&axis_number)
            .y_label_formatter(&axis_number)
            .draw()?;
        for &seconds in published {
            let line = [(x.range.start, seconds), (x.range.end, seconds)];
            chart.draw_series(DashedLineSeries::new(line, 7, 5, THEIRS.stroke_width(2)))?;
        }
        chart.draw_series(points.iter().map(|&at| Circle::new(at, dot, OURS.mix(0.55).filled())))?;
        for &seconds in published {
            // Above the line, at its left end.
            let at = (x.range.start + (x.range.end - x.range.start) * 0.02, seconds + top * 0.01);
            let style = label().pos(Pos::new(HPos::Left, VPos::Bottom));
            chart.draw_series([Text::new(format!("{} s", quantity::number(seconds)), at, style)])?;
        }
        Ok(())
    })
}

/// Draws fetch-adds. `highest`, in seconds, is the end of the axis, so that several plots can be
/// compared.
pub(in super::super) fn fetch_adds(run: &TniRun, highest: f64) -> Result<String, ReproError> {
    svg("single fetch-adds by rank", (520, 340), |area| {
        let ranks = run.ranks.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.7..ranks - 0.3, 0.0..highest * 1e6 * 1.1)?;
        styled(&mut chart.configure_mesh(), "rank", "one fetch-add (µs)")
            .disable_x_mesh()
            .x_labels(9)
            .y_labels(6)
            .x_label_formatter(&|x| quantity::number(x.round()))
            .y_label_formatter(&axis_number)
            .draw()?;
        for (rank, one) in run.ranks.iter().enumerate() {
            let (left, right) = (rank as f64 - 0.38, rank as f64 + 0.38);
            let (issue, end) = (one.issue as f64 * 1e-6, one.elapsed() as f64 * 1e-6);
            chart.draw_series([
                Rectangle::new([(left, 0.0), (right, issue)], OURS.filled()),
                Rectangle::new([(left, issue), (right, end)], WAIT.filled()),
            ])?;
        }
        let words = match run.tnis {
            1 => "1 receiving TNI".to_owned(),
            tnis => format!("{tnis} receiving TNIs"),
        };
        area.draw(&Text::new(words, (84, 12), title().pos(Pos::new(HPos::Left, VPos::Top))))?;
        Ok(())
    })
}

/// Returns the colour of a form.
pub(in super::super) fn colour(form: WaveLock) -> RGBColor {
    match form {
        WaveLock::One(LockKind::ReaderPreference) => OURS,
        WaveLock::One(LockKind::Packed) => WAIT,
        WaveLock::One(LockKind::ByNode) => THEIRS,
        WaveLock::One(_) => RGBColor(0x2f, 0x85, 0x5a),
        WaveLock::EachRank => RGBColor(0x80, 0x5a, 0xd5),
    }
}

/// Draws waves with this number of receiving TNIs. Both axes are logarithmic.
pub(in super::super) fn waves(waves: &[WhatIf], tnis: u32) -> Result<String, ReproError> {
    svg("time of lock_all and unlock_all of all ranks against their number", (1000, 460), |area| {
        // Half of the last label is beyond the end of the axis.
        let mut chart = wide(area).margin_right(48).build_cartesian_2d(
            (3.0f64..1e6).log_scale().with_key_points(vec![10.0, 100.0, 1e3, 1e4, 1e5, 1e6]),
            (1e-6f64..1.0).log_scale().with_key_points((-6..=0).map(|power| 10f64.powi(power)).collect()),
        )?;
        styled(&mut chart.configure_mesh(), "ranks", "lock_all and unlock_all")
            .x_label_formatter(&|x| quantity::number(*x))
            .y_label_formatter(&|y| quantity::seconds(*y))
            .draw()?;
        // Two lines coincide: the wide one is drawn below all others.
        let is_wide = |form| form == WaveLock::One(LockKind::Packed);
        let (below, above): (Vec<_>, Vec<_>) = WAVES.iter().map(|(form, _)| *form).partition(|form| is_wide(*form));
        for form in below.into_iter().chain(above) {
            let points = || {
                let these = waves.iter().filter(move |wave| wave.form == form && wave.tnis == tnis);
                these.map(|wave| (f64::from(wave.ranks), wave.pair()))
            };
            let width = if is_wide(form) { 8 } else { 2 };
            chart.draw_series(LineSeries::new(points(), colour(form).stroke_width(width)))?;
            chart.draw_series(points().map(|at| Circle::new(at, 4, colour(form).filled())))?;
        }
        Ok(())
    })
}
