//! Throughput of published locks and ours against the number of clients.

use super::*;
use crate::{
    ReproError,
    peers::{Competitor, Peer},
    quantity,
    workloads::locks::WriterShare,
};
use plotters::prelude::*;
use rma_lock::locks::LockKind;

/// Returns the colour of a lock: warm for published locks, cold for ours, grey for baselines.
fn colour(lock: Competitor) -> RGBColor {
    match lock {
        Competitor::Peer(Peer::ShiftLock) => THEIRS,
        Competitor::Peer(Peer::DecLock) => RGBColor(0xf0, 0x9a, 0x6c),
        Competitor::Peer(Peer::Mcs) => NULL,
        Competitor::Peer(Peer::Spin) => RGBColor(0xc4, 0xcb, 0xd4),
        Competitor::Ours(LockKind::ReaderPreference) => OURS,
        Competitor::Ours(LockKind::Packed) => WAIT,
        Competitor::Ours(LockKind::Fair) => MRC,
        Competitor::Ours(LockKind::BackOff) => RGBColor(0xb9, 0x8a, 0xc9),
        Competitor::Ours(_) => INK,
    }
}

const LEGEND: u32 = 190;

/// The throughput of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// The number of clients.
    pub clients: u32,
    /// The share of writers.
    pub writers: WriterShare,
    /// The lock.
    pub lock: Competitor,
    /// Acquisitions of all clients per second.
    pub per_second: f64,
}

/// Draws a plot for each share of writers, side by side, as a separate file.
pub(in super::super) fn peers(rows: &[Throughput]) -> Result<String, ReproError> {
    let mut shares: Vec<WriterShare> = Vec::new();
    let mut locks: Vec<Competitor> = Vec::new();
    for row in rows {
        if !shares.contains(&row.writers) {
            shares.push(row.writers);
        }
        if !locks.contains(&row.lock) {
            locks.push(row.lock);
        }
    }
    let width = 450 * shares.len().max(1) as u32 + LEGEND;
    let most = rows.iter().map(|row| row.clients).max().unwrap_or(2);
    let rates = || rows.iter().map(|row| row.per_second).filter(|&rate| rate > 0.0);
    let (low, high) = (rates().fold(1e6, f64::min) * 0.7, rates().fold(1e3, f64::max) * 1.4);
    let numbers = [16.0, 256.0, 4096.0, 65536.0, 663_552.0].into_iter().filter(|&clients| clients <= f64::from(most));
    let numbers: Vec<f64> = numbers.collect();
    let drawn = svg("throughput of locks against the number of clients", (width, 440), |area| {
        area.fill(&WHITE)?;
        let (plots, legend) = area.split_horizontally(width - LEGEND);
        for (part, share) in plots.split_evenly((1, shares.len().max(1))).into_iter().zip(&shares) {
            let mut builder = ChartBuilder::on(&part);
            builder
                .margin(12)
                .x_label_area_size(52)
                .y_label_area_size(104)
                .caption(format!("{share} writers"), title());
            let mut chart = builder.build_cartesian_2d(
                (12.0..f64::from(most) * 1.4).log_scale().with_key_points(numbers.clone()),
                (low..high).log_scale().with_key_points((0..9).map(|power| 10f64.powi(power)).collect()),
            )?;
            styled(&mut chart.configure_mesh(), "clients", "acquisitions a second")
                .x_label_formatter(&|x| quantity::count(*x as u64))
                .y_label_formatter(&|y| quantity::count(*y as u64))
                .draw()?;
            for &lock in locks.iter().rev() {
                let line = || {
                    let these = rows.iter().filter(move |row| row.lock == lock && row.writers == *share);
                    these.map(|row| (f64::from(row.clients), row.per_second)).filter(|at| at.1 > 0.0)
                };
                chart.draw_series(LineSeries::new(line(), colour(lock).stroke_width(2)))?;
                chart.draw_series(line().map(|at| Circle::new(at, 4, colour(lock).filled())))?;
            }
        }
        for (at, &lock) in (40..).step_by(26).zip(&locks) {
            legend.draw(&PathElement::new([(6, at + 8), (34, at + 8)], colour(lock).stroke_width(3)))?;
            legend.draw(&Text::new(lock.to_string(), (42, at), tick()))?;
        }
        Ok(())
    })?;
    // A separate file needs the namespace.
    Ok(drawn.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1))
}
