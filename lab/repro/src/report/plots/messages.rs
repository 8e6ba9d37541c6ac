//! Curves by library: bandwidth against size, and times against nodes (figures 7 to 11 of the FMPL
//! paper).

use super::*;
use crate::{
    ReproError,
    figures::{self, Figure},
    fmpl_paper::{Alone, FmplPlan, FmplRuns},
    workloads::messages::{Library, Memory},
};
use plotters::prelude::*;

/// Returns the colour of a library, the same in all its plots.
pub(in super::super) fn library_colour(library: Library) -> RGBColor {
    match library {
        Library::Fmpl => OURS,
        Library::FmplSoftware => MRC,
        Library::BlacsFmpl => WAIT,
        Library::Tcw => INK,
        Library::Mpi(Memory::Rdma) => THEIRS,
        Library::Mpi(Memory::Copied) => RGBColor(0xf0, 0x9a, 0x6c),
        Library::BlacsMpi(Memory::Rdma) => NULL,
        Library::BlacsMpi(Memory::Copied) => RGBColor(0xb9, 0x8a, 0xc9),
    }
}

/// One of the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Curve {
    /// Figure 7: between two ranks.
    BetweenTwo,
    /// Figure 8.
    Barrier,
    /// Figure 9: 8 KB.
    Broadcast,
    /// Figure 10: all sizes on 16 nodes.
    BroadcastRate,
    /// Figure 11: 8 KB.
    Reduction,
}

const SHORT: usize = FmplPlan::SHORT;

impl Curve {
    pub(in super::super) const ALL: [Curve; 5] =
        [Curve::BetweenTwo, Curve::Barrier, Curve::Broadcast, Curve::BroadcastRate, Curve::Reduction];

    fn words(self) -> &'static str {
        match self {
            Curve::BetweenTwo => "bandwidth between two ranks against size",
            Curve::Barrier => "time of a barrier against nodes",
            Curve::Broadcast => "time of a broadcast of 8 KB against nodes",
            Curve::BroadcastRate => "bandwidth of a broadcast to 16 nodes against size",
            Curve::Reduction => "time of a reduction of 8 KB against nodes",
        }
    }

    /// Returns whether the plot has sizes on the x axis and rates on the y axis.
    fn is_rate(self) -> bool {
        matches!(self, Curve::BetweenTwo | Curve::BroadcastRate)
    }

    /// Returns the libraries in the figure.
    pub(in super::super) fn libraries(self) -> &'static [Library] {
        match self {
            Curve::BetweenTwo => &Library::BETWEEN_TWO,
            _ => &Library::COLLECTIVE,
        }
    }

    /// Returns a library's curve: bytes and MB/s, or nodes and microseconds.
    fn points(self, runs: &FmplRuns, library: Library) -> Vec<(f64, f64)> {
        let rate = |points: &[(usize, f64)]| {
            points.iter().map(|&(bytes, seconds)| (bytes as f64, bytes as f64 * 1e-6 / seconds)).collect()
        };
        let of_nodes = |seconds: fn(&Alone) -> Option<f64>| {
            let runs = runs.collectives.iter().filter(|run| run.library == library);
            runs.filter_map(|run| Some((f64::from(run.nodes), seconds(run)? * 1e6))).collect()
        };
        match self {
            Curve::BetweenTwo => {
                let run = runs.between_two.iter().find(|run| run.library == library);
                run.map(|run| rate(&run.points)).unwrap_or_default()
            }
            Curve::BroadcastRate => {
                runs.alone(library, FmplPlan::NODES).map(|run| rate(&run.broadcasts)).unwrap_or_default()
            }
            Curve::Barrier => of_nodes(|run| Some(run.barrier)),
            Curve::Broadcast => of_nodes(|run| run.broadcast(SHORT)),
            Curve::Reduction => of_nodes(|run| Some(run.reduction)),
        }
    }

    /// Returns the printed points: id, size or nodes, value.
    fn printed(self) -> &'static [(&'static str, f64)] {
        const LONGEST: f64 = FmplPlan::LONGEST as f64;
        const LONG: f64 = FmplPlan::LONG as f64;
        match self {
            Curve::BetweenTwo => &[("M11", LONGEST), ("M13", LONGEST), ("M14", LONGEST), ("M15", LONGEST)],
            Curve::BroadcastRate => &[("M16", LONG), ("M18", LONG)],
            _ => &[],
        }
    }
}

/// Draws one figure with all libraries.
pub(in super::super) fn curves(runs: &FmplRuns, curve: Curve) -> Result<String, ReproError> {
    let lines: Vec<_> = curve.libraries().iter().map(|library| (*library, curve.points(runs, *library))).collect();
    let top = lines.iter().flat_map(|(_, line)| line).fold(1.0, |top: f64, at| top.max(at.1)) * 1.06;
    svg(curve.words(), (1000, 430), |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin(14).x_label_area_size(58).y_label_area_size(70);
        // Sizes are placed by their binary logarithm.
        let place = |x: f64| if curve.is_rate() { x.log2() } else { x };
        let range = if curve.is_rate() { 3.0..24.5 } else { 2.0..16.4 };
        let mut chart = builder.build_cartesian_2d(range, 0.0..top)?;
        let (x, y) = if curve.is_rate() { ("bytes", "MB/s") } else { ("nodes", "µs, until the last has ended") };
        let size = |power: &f64| match 2f64.powf(power.round()) {
            bytes if bytes >= 1048576.0 => format!("{} MB", bytes / 1048576.0),
            bytes if bytes >= 1024.0 => format!("{} KB", bytes / 1024.0),
            bytes => format!("{bytes}"),
        };
        let format: &dyn Fn(&f64) -> String = if curve.is_rate() { &size } else { &axis_number };
        styled(&mut chart.configure_mesh(), x, y)
            .x_labels(if curve.is_rate() { 8 } else { 15 })
            .y_labels(7)
            .x_label_formatter(format)
            .y_label_formatter(&axis_number)
            .draw()?;
        for (library, line) in lines.iter().rev() {
            let colour = library_colour(*library);
            let line = || line.iter().map(|&(x, y)| (place(x), y));
            chart.draw_series(LineSeries::new(line(), colour.stroke_width(2)))?;
            chart.draw_series(line().map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        for &(id, x) in curve.printed() {
            let Some(value) = figures::find(id).and_then(Figure::value) else { continue };
            let mark = EmptyElement::at((place(x), value)) + diamond(8, THEIRS) + diamond(5, WHITE);
            chart.draw_series([mark + Text::new(id, (-34, 10), label())])?;
        }
        Ok(())
    })
}
