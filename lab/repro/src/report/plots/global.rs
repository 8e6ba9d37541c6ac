//! Atomic adds through global addresses (table 3 of the ACP paper), and their disturbance.

use super::*;
use crate::{
    ReproError,
    acp_paper::{AcpPlan, AcpRuns, Condition, How, Load},
    figures::{self, Figure},
    workloads::Target,
};
use plotters::prelude::*;

/// Half of the width of a bar.
const HALF: f64 = 0.19;

fn colour(target: Target) -> RGBColor {
    match target {
        Target::Remote => OURS,
        Target::Local => WAIT,
    }
}

/// Returns the colour of a line about disturbance.
pub(in super::super) fn load_colour(load: Load) -> RGBColor {
    match load {
        Load::Queue => OURS,
        Load::Bypass => WAIT,
        Load::Split => RGBColor(0x7a, 0x4f, 0xa3),
        Load::Direct => MRC,
        Load::Serving => RGBColor(0xd9, 0x9a, 0x1e),
        Load::Network => NULL,
    }
}

/// Returns the middle of a bar.
fn middle(place: usize, target: Target) -> f64 {
    place as f64 + 1.0 + if target == Target::Remote { -HALF } else { HALF }
}

/// Draws two bars for each kind of add, with the published values.
fn bars(
    words: &'static str,
    x: &str,
    runs: &AcpRuns,
    hows: &[How],
    name: impl Fn(usize) -> String,
    published: impl Fn(usize, Target) -> Option<(&'static str, f64)>,
) -> Result<String, ReproError> {
    svg(words, (1000, 430), |area| {
        let last = hows.len() as f64 + 0.6;
        let values = hows.iter().flat_map(|how| Target::BOTH.map(|target| runs.micros(*how, target)));
        let top = values.flatten().fold(1.0, f64::max) * 1.12;
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .x_label_area_size(58)
            .y_label_area_size(70)
            .build_cartesian_2d(0.4..last, 0.0..top)?;
        styled(&mut chart.configure_mesh(), x, "add and completion (µs)")
            .disable_x_mesh()
            .x_labels(hows.len() + 2)
            .x_label_formatter(&|at| {
                let place = at.round();
                let is_whole = (at - place).abs() < 1e-6 && (1.0..last).contains(&place);
                if is_whole { name(place as usize - 1) } else { String::new() }
            })
            .y_labels(8)
            .y_label_formatter(&axis_number)
            .draw()?;
        for (place, how) in hows.iter().enumerate() {
            for target in Target::BOTH {
                let at = middle(place, target);
                if let Some(micros) = runs.micros(*how, target) {
                    let corners = [(at - HALF * 0.92, 0.0), (at + HALF * 0.92, micros)];
                    chart.draw_series([Rectangle::new(corners, colour(target).filled())])?;
                }
                if let Some((id, micros)) = published(place, target) {
                    let mark = EmptyElement::at((at, micros)) + diamond(9, THEIRS) + diamond(6, WHITE);
                    chart.draw_series([mark + Text::new(id, (-22, -24), label())])?;
                }
            }
        }
        Ok(())
    })
}

/// Draws the eight conditions of table 3.
pub(in super::super) fn adds(runs: &AcpRuns) -> Result<String, ReproError> {
    let published = |place: usize, target: Target| {
        let id = format!("A{}-{}", place + 1, target.name());
        let figure = figures::find(&id)?;
        figure.value().map(|micros| ("", micros))
    };
    let name = |place: usize| format!("{}: {}", place + 1, Condition::TABLE[place]);
    let hows = Condition::TABLE.map(How::Table);
    bars("atomic add and completion in the eight conditions of table 3", "condition", runs, &hows, name, published)
}

/// Draws the what-if cases for the distance to the MPI library.
pub(in super::super) fn adds_what_if(runs: &AcpRuns) -> Result<String, ReproError> {
    let shown = [
        (How::Table(Condition::TABLE[3]), "condition 4"),
        (How::BypassOneThread, "4, bypass"),
        (How::LocalByCpu, "4, local by CPU"),
        (How::Split, "4, two helpers"),
        (How::OrderInHardware, "4, hw order"),
        (How::DirectPrepared, "no helper (ours)"),
        (How::Mpi, "extended RDMA"),
    ];
    let published = |place: usize, target: Target| {
        let (id, known) = match (shown[place].0, target) {
            (How::Table(_), Target::Remote) => ("A4-remote", "A4"),
            (How::Table(_), Target::Local) => ("A4-local", "A4"),
            (How::Mpi, Target::Remote) => ("A9-remote", "A9"),
            (How::Mpi, Target::Local) => ("A9-local", "A9"),
            _ => return None,
        };
        figures::find(id).and_then(Figure::value).map(|micros| (known, micros))
    };
    let (hows, name) = (shown.map(|shown| shown.0), |place: usize| shown[place].1.to_owned());
    bars("atomic add and completion of other designs", "", runs, &hows, name, published)
}

/// Draws the time of a rank's adds while other ranks copy to it.
pub(in super::super) fn disturbance(runs: &AcpRuns) -> Result<String, ReproError> {
    svg("atomic add while others delegate copies to the same rank", (1000, 430), |area| {
        let most = AcpPlan::INITIATORS.into_iter().max().map_or(1.0, f64::from);
        let line = |load: Load| {
            let runs = runs.disturbances.iter().filter(move |run| run.load == load);
            runs.map(|run| (f64::from(run.initiators), run.add * 1e6)).filter(|at| at.1.is_finite()).collect::<Vec<_>>()
        };
        let top = Load::ALL.iter().flat_map(|load| line(*load)).fold(1.0, |top: f64, at| top.max(at.1)) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .x_label_area_size(58)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..most * 1.02, 0.0..top)?;
        styled(&mut chart.configure_mesh(), "ranks that delegate copies of 64 KiB", "add and completion (µs)")
            .x_labels(9)
            .y_labels(8)
            .x_label_formatter(&axis_number)
            .y_label_formatter(&axis_number)
            .draw()?;
        for load in Load::ALL {
            chart.draw_series(LineSeries::new(line(load), load_colour(load).stroke_width(2)))?;
            chart.draw_series(line(load).into_iter().map(|at| Circle::new(at, 4, load_colour(load).filled())))?;
        }
        Ok(())
    })
}
