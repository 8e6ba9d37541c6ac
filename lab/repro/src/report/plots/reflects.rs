//! Speed-up against nodes (figures 8 to 10 of the XcalableMP paper).

use super::*;
use crate::{
    ReproError,
    xmp_paper::{Version, XmpRuns},
};
use plotters::prelude::*;

/// Returns the colour of a version, the same in all plots.
pub(in super::super) fn version_colour(version: Version) -> RGBColor {
    match version {
        Version::Mpi | Version::RdmaByHand => INK,
        Version::Datatypes | Version::Scattered => THEIRS,
        Version::Pack => OURS,
        Version::Async | Version::ScatteredAsync => NULL,
        Version::Overlap | Version::ScatteredOverlap => MRC,
        Version::Rdma => RGBColor(0xb9, 0x8a, 0xc9),
        Version::RdmaUnit => RGBColor(0x7d, 0x6a, 0xb0),
        Version::Blocks | Version::BlocksOverlap => RGBColor(0xf0, 0x9a, 0x6c),
    }
}

/// One of the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SpeedUp {
    /// Figure 8.
    Synchronous,
    /// Figure 9.
    Asynchronous,
    /// Figures 8 and 9, with derived datatypes put block by block.
    Scattered,
    /// Figure 10.
    Rdma,
}

impl SpeedUp {
    pub(in super::super) const ALL: [SpeedUp; 4] =
        [SpeedUp::Synchronous, SpeedUp::Asynchronous, SpeedUp::Scattered, SpeedUp::Rdma];

    fn words(self) -> &'static str {
        match self {
            SpeedUp::Synchronous => "speed-up of synchronous reflects against nodes",
            SpeedUp::Asynchronous => "speed-up of asynchronous reflects against nodes",
            SpeedUp::Scattered => "speed-up of reflects block by block against nodes",
            SpeedUp::Rdma => "speed-up of reflects by RDMA against nodes",
        }
    }

    /// Returns the versions in the figure, and ours.
    pub(in super::super) fn versions(self) -> &'static [Version] {
        match self {
            SpeedUp::Synchronous => &[Version::Mpi, Version::Datatypes, Version::Pack],
            SpeedUp::Asynchronous => &[Version::Datatypes, Version::Async, Version::Overlap],
            SpeedUp::Scattered => {
                &[Version::Mpi, Version::Scattered, Version::ScatteredAsync, Version::ScatteredOverlap]
            }
            SpeedUp::Rdma => &[Version::RdmaByHand, Version::Pack, Version::Rdma, Version::RdmaUnit, Version::Blocks],
        }
    }
}

/// Draws one figure.
pub(in super::super) fn speed_ups(runs: &XmpRuns, plot: SpeedUp) -> Result<String, ReproError> {
    let line = |version: Version| {
        let nodes = runs.plan.nodes.iter().map(|nodes| nodes.many());
        nodes.filter_map(|nodes| Some((f64::from(nodes), runs.speed_up(version, nodes)?))).collect::<Vec<_>>()
    };
    let lines: Vec<_> = plot.versions().iter().map(|version| (*version, line(*version))).collect();
    let ends =
        lines.iter().flat_map(|(_, line)| line).fold((1.0, 1.0), |(x, y): (f64, f64), at| (x.max(at.0), y.max(at.1)));
    svg(plot.words(), (1000, 430), |area| {
        let mut builder = wide(area);
        let mut chart = builder.build_cartesian_2d(0.0..ends.0 * 1.03, 0.0..ends.1 * 1.06)?;
        styled(&mut chart.configure_mesh(), "nodes", "speed-up")
            .x_labels(9)
            .y_labels(7)
            .x_label_formatter(&axis_number)
            .y_label_formatter(&axis_number)
            .draw()?;
        for (version, line) in &lines {
            let colour = version_colour(*version);
            chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?;
            chart.draw_series(line.iter().map(|&at| Circle::new(at, 3, colour.filled())))?;
        }
        Ok(())
    })
}
