//! One fetch-add per rank, issue and wait stacked (Figs. 11 and 12).

use super::canvas::*;
use crate::{ReproError, lock_paper::TniRun, quantity};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

/// `highest` in seconds ends the axis, so that several plots can be compared.
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
