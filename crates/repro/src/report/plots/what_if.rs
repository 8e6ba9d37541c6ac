//! A wave of all ranks against their number, for each form of the lock.

use super::canvas::*;
use crate::{ReproError, lock_paper::WhatIf, quantity, workloads::Form};
use plotters::prelude::*;

/// The colour of a form.
pub(in super::super) fn colour(form: Form) -> RGBColor {
    match form {
        Form::Flat => OURS,
        Form::Packed => WAIT,
        Form::Nodes => THEIRS,
        Form::Tree => RGBColor(0x2f, 0x85, 0x5a),
    }
}

/// Both axes logarithmic; so many receiving TNIs.
pub(in super::super) fn waves(waves: &[WhatIf], tnis: u32) -> Result<String, ReproError> {
    svg("time of lock_all and unlock_all of all ranks against their number", (1000, 460), |area| {
        let mut chart = wide(area).build_cartesian_2d(
            (3.0f64..1e6).log_scale().with_key_points(vec![10.0, 100.0, 1e3, 1e4, 1e5, 1e6]),
            (1e-6f64..1.0).log_scale().with_key_points((-6..=0).map(|power| 10f64.powi(power)).collect()),
        )?;
        styled(&mut chart.configure_mesh(), "ranks", "lock_all and unlock_all")
            .x_label_formatter(&|x| quantity::number(*x))
            .y_label_formatter(&|y| quantity::seconds(*y))
            .draw()?;
        for form in Form::ALL {
            let points = || {
                let these = waves.iter().filter(move |wave| wave.form == form && wave.tnis == tnis);
                these.map(|wave| (f64::from(wave.ranks), wave.pair()))
            };
            let width = if form == Form::Packed { 6 } else { 2 };
            chart.draw_series(LineSeries::new(points(), colour(form).stroke_width(width)))?;
            chart.draw_series(points().map(|at| Circle::new(at, 4, colour(form).filled())))?;
        }
        Ok(())
    })
}
