//! Time of start and wait of an exchange, by its size (Figs. 9 and 10).

use super::*;
use crate::{
    ReproError,
    figures::{self, Figure},
    null_model,
    prdma_paper::{How, Pattern, PrdmaPlan, PrdmaRuns},
};
use plotters::prelude::*;
use prdma_offload::Form;

/// The size of R1 and R4, in KiB.
const SIXTEEN: f64 = 16.0;
/// The largest size, in KiB.
const MOST: f64 = 64.0;

const FAST: How = How::persistent(Form::Fast);

fn colour(form: Form) -> RGBColor {
    match form {
        Form::Fast => OURS,
        Form::Queues(_) => WAIT,
        Form::Mrc => MRC,
        Form::Cpu => NULL,
    }
}

fn published(id: &str) -> Option<f64> {
    figures::find(id).and_then(Figure::value)
}

/// Draws all persistent forms on a pattern.
pub(in super::super) fn exchange_time(runs: &PrdmaRuns, pattern: Pattern) -> Result<String, ReproError> {
    let words = match pattern {
        Pattern::Line => "start and wait against size, 1-D 3-point",
        _ => "start and wait against size, 2-D 5-point",
    };
    let forms = [Form::Cpu, Form::Mrc, Form::Queues(2), Form::Fast];
    let line = |form| {
        let run = runs.of(pattern, How::persistent(form)).map(|run| run.line()).unwrap_or_default();
        run.into_iter().map(|(size, seconds)| (size / 1024.0, seconds * 1e6)).collect::<Vec<_>>()
    };
    let top = forms.iter().flat_map(|form| line(*form)).fold(1.0, |top: f64, at| top.max(at.1)) * 1.06;
    svg(words, (1000, 430), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .x_label_area_size(58)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..MOST * 1.01, 0.0..top)?;
        styled(&mut chart.configure_mesh(), "KiB to each neighbour", "start and wait, slowest rank (µs)")
            .x_labels(9)
            .y_labels(7)
            .x_label_formatter(&axis_number)
            .y_label_formatter(&axis_number)
            .draw()?;
        for form in forms {
            chart.draw_series(LineSeries::new(line(form), colour(form).stroke_width(2)))?;
            chart.draw_series(line(form).into_iter().map(|at| Circle::new(at, 3, colour(form).filled())))?;
        }
        if let (Pattern::Line, Some(micros)) = (pattern, published("R1")) {
            let mark = EmptyElement::at((SIXTEEN, micros)) + diamond(10, THEIRS) + diamond(7, WHITE);
            chart.draw_series([mark + Text::new("R1", (12, 8), label())])?;
        }
        Ok(())
    })
}

/// Draws the ratio of MRC to FAST, with the published range.
pub(in super::super) fn exchange_ratio(runs: &PrdmaRuns) -> Result<String, ReproError> {
    svg("MRC over FAST against size", (1000, 430), |area| {
        let line = |pattern| {
            let ratios = runs.ratios(pattern, How::persistent(Form::Mrc), FAST);
            ratios.into_iter().map(|(size, ratio)| (size as f64 / 1024.0, ratio)).collect::<Vec<_>>()
        };
        let (one, two) = (line(Pattern::Line), line(Pattern::Plane));
        let top = one.iter().chain(&two).fold(2.1, |top: f64, at| top.max(at.1 * 1.06));
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .x_label_area_size(58)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..MOST * 1.01, 0.9..top)?;
        styled(&mut chart.configure_mesh(), "KiB to each neighbour", "MRC / FAST")
            .x_labels(9)
            .y_labels(7)
            .x_label_formatter(&axis_number)
            .y_label_formatter(&axis_number)
            .draw()?;
        for id in ["R3-low", "R3-high"] {
            let Some(ratio) = published(id) else { continue };
            chart.draw_series(DashedLineSeries::new([(0.0, ratio), (MOST, ratio)], 7, 5, THEIRS.stroke_width(2)))?;
            chart.draw_series([Text::new(id, (MOST * 0.93, ratio + (top - 0.9) * 0.05), label())])?;
        }
        let null = (0..=64).map(|kib| {
            let kib = f64::from(kib);
            (kib, null_model::doubled(kib * PrdmaPlan::STEP as f64))
        });
        chart.draw_series(DashedLineSeries::new(null, 7, 6, NULL.stroke_width(2)))?;
        for (points, colour) in [(two, MRC), (one, OURS)] {
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
            chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, colour.filled())))?;
        }
        if let Some(ratio) = published("R4") {
            let mark = EmptyElement::at((SIXTEEN, ratio)) + diamond(10, THEIRS) + diamond(7, WHITE);
            chart.draw_series([mark + Text::new("R4", (12, 8), label())])?;
        }
        Ok(())
    })
}
