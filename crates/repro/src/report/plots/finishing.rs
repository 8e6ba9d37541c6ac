//! When each rank is done with its pairs (Fig. 10).

use super::canvas::*;
use crate::{ReproError, lock_paper::PairRun, quantity};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::ops::Range;

/// Every rank's time against its number; `published` are times to mark.
pub(in super::super) fn by_rank(run: &PairRun, published: &[f64]) -> Result<String, ReproError> {
    let points = run.seconds().enumerate().map(|(rank, seconds)| (rank as f64, seconds)).collect();
    let axis = Axis { words: "rank", range: 0.0..f64::from(run.ranks), ticks: 6 };
    // Few ranks need larger dots.
    let dot = if run.ranks > 512 { 1 } else { 3 };
    finishing("finishing times by rank", run, points, axis, dot, published)
}

/// The mean time of every node's ranks against the node's distance to the lock.
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
