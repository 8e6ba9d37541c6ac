//! The plots, as SVG elements for the page: their colours, type sizes and canvas. The page contains
//! the legends.

mod exchange;
mod global;
mod lock;
mod messages;
mod peers;
mod reflects;

pub(super) use exchange::{exchange_ratio, exchange_time};
pub(super) use global::load_colour;
pub(super) use global::{adds, adds_what_if, disturbance};
pub(super) use lock::fetch_adds;
pub(super) use lock::{by_hops, by_rank};
pub(super) use lock::{colour, waves};
pub(super) use lock::{latency, share};
pub(super) use messages::{Curve, curves, library_colour};
pub use peers::Throughput;
pub(super) use peers::peers;
pub(super) use reflects::{SpeedUp, speed_ups, version_colour};

use crate::{ReproError, quantity};
use plotters::{
    chart::MeshStyle,
    coord::{Shift, ranged1d::ValueFormatter},
    prelude::*,
};
use std::error::Error;

/// Simulated values.
pub(in super::super) const OURS: RGBColor = RGBColor(0x1f, 0x5f, 0x99);
/// Published values.
pub(in super::super) const THEIRS: RGBColor = RGBColor(0xc2, 0x41, 0x0c);
/// Values of the null model.
pub(in super::super) const NULL: RGBColor = RGBColor(0x8a, 0x94, 0xa3);
/// Waiting, next to issuing in [`OURS`].
pub(in super::super) const WAIT: RGBColor = RGBColor(0x9c, 0xc3, 0xe4);

/// The form with the fewest queues, next to the fastest in [`OURS`].
pub(in super::super) const MRC: RGBColor = RGBColor(0x2f, 0x85, 0x5a);

pub(super) const INK: RGBColor = RGBColor(0x1c, 0x24, 0x30);
pub(super) const GRID: RGBColor = RGBColor(0xe6, 0xea, 0xee);

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn Error + Send + Sync>>;

/// Draws on a canvas and returns the element, without the namespace that only separate files need.
/// `words` is the text alternative of the plot, and names it in errors.
pub(super) fn svg(
    words: &'static str,
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, ReproError> {
    let failed = |problem: String| ReproError::Plot { plot: words, problem };
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area).map_err(|error| failed(error.to_string()))?;
        area.present().map_err(|error| failed(error.to_string()))?;
    }
    let labelled = format!(" role=\"img\" aria-label=\"{words}\"");
    Ok(text.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", &labelled, 1))
}

/// Returns a plot over the whole width, with space for the labels below it and at its left.
pub(super) fn wide<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'a, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(14).x_label_area_size(58).y_label_area_size(88);
    builder
}

/// Applies the common style to grid, axes and their names.
pub(super) fn styled<'m, 'a, 'b, X, Y, DB: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, DB>,
    x: &str,
    y: &str,
) -> &'m mut MeshStyle<'a, 'b, X, Y, DB>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .x_desc(x)
        .y_desc(y)
        .label_style(tick())
        .axis_desc_style(title())
}

/// The style of numbers on the axes.
pub(super) fn tick() -> TextStyle<'static> {
    ("sans-serif", 16).into_font().color(&INK)
}

/// The style of axis names.
pub(super) fn title() -> TextStyle<'static> {
    ("sans-serif", 17).into_font().color(&INK)
}

/// The style of ids next to published points.
pub(super) fn label() -> TextStyle<'static> {
    ("sans-serif", 16).into_font().color(&THEIRS)
}

/// Formats a number on an axis, without the rounding noise of equal steps.
pub(super) fn axis_number(value: &f64) -> String {
    quantity::number((value * 1e6).round() / 1e6)
}

/// Returns the marker of a published point, which consists of two of these, the inner one white.
pub(super) fn diamond(half: i32, colour: RGBColor) -> Polygon<(i32, i32)> {
    Polygon::new([(0, -half), (half, 0), (0, half), (-half, 0)], colour.filled())
}
