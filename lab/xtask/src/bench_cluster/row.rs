//! One row: a measured figure, its reference, and its goal.

use comfy_table::{Cell, CellAlignment, Table};
use core::time::Duration;
use serde::Serialize;

/// The bound of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) enum Goal {
    /// At most this multiple of the reference.
    Times(f64),
    /// At most this much more than the reference.
    More(f64),
    /// At most this much.
    Most(f64),
}

/// The unit of figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) enum Unit {
    Nanoseconds,
    Bytes,
    /// Parts of a CPU.
    Core,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    what: String,
    unit: Unit,
    ours: f64,
    other: Option<f64>,
    ratio: Option<f64>,
    goal: Goal,
    pub(super) met: bool,
}

impl Row {
    /// Makes a row of a figure with a reference.
    pub(super) fn beside(what: impl Into<String>, unit: Unit, ours: f64, other: f64, goal: Goal) -> Self {
        Self::new(what.into(), unit, ours, Some(other), goal)
    }

    /// Makes a row of a figure without a reference.
    pub(super) fn alone(what: impl Into<String>, unit: Unit, ours: f64, most: f64) -> Self {
        Self::new(what.into(), unit, ours, None, Goal::Most(most))
    }

    fn new(what: String, unit: Unit, ours: f64, other: Option<f64>, goal: Goal) -> Self {
        let most = match (goal, other) {
            (Goal::Times(times), Some(other)) => times * other,
            (Goal::More(more), Some(other)) => other + more,
            (Goal::Most(most), _) => most,
            // Nothing to compare with.
            _ => f64::NEG_INFINITY,
        };
        Row { what, unit, ours, other, ratio: other.map(|other| ours / other), goal, met: ours <= most }
    }
}

impl Unit {
    fn text(self, figure: f64) -> String {
        match self {
            Unit::Nanoseconds if figure < 1e3 => format!("{figure:.1} ns"),
            Unit::Nanoseconds if figure < 1e6 => format!("{:.2} µs", figure / 1e3),
            Unit::Nanoseconds => format!("{:.1?}", Duration::from_nanos(figure as u64)),
            Unit::Bytes => format!("{figure:.0} B"),
            Unit::Core => format!("{:.2} %", figure * 100.0),
        }
    }
}

/// Returns all rows as a table.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["row", "ours", "the other", "ratio", "goal", "verdict"]);
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let or_none = |text: Option<String>| number(text.unwrap_or_else(|| "–".to_owned()));
        table.add_row([
            Cell::new(&row.what),
            number(row.unit.text(row.ours)),
            or_none(row.other.map(|other| row.unit.text(other))),
            or_none(row.ratio.map(|ratio| format!("×{ratio:.3}"))),
            Cell::new(match row.goal {
                Goal::Times(times) => format!("≤ ×{times}"),
                Goal::More(more) => format!("≤ +{}", row.unit.text(more)),
                Goal::Most(most) => format!("≤ {}", row.unit.text(most)),
            }),
            Cell::new(if row.met { "met" } else { "MISSED" }),
        ]);
    }
    table
}

/// Returns the 10th percentile, because other processes also use the machine.
pub(super) fn tenth(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 10).copied()
}

/// Returns the figure in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_can_be_missed() {
        let met = |ours: f64, goal| Row::beside("a", Unit::Nanoseconds, ours, 100.0, goal).met;
        assert!(met(114.9, Goal::Times(1.15)) && !met(115.1, Goal::Times(1.15)));
        assert!(met(102.0, Goal::More(2.0)) && !met(102.1, Goal::More(2.0)));
        assert!(Row::alone("a", Unit::Core, 0.01, 0.01).met && !Row::alone("a", Unit::Core, 0.011, 0.01).met);
        assert!(!Row::beside("a", Unit::Bytes, f64::NAN, 1.0, Goal::Times(2.0)).met);
    }

    #[test]
    fn figures_read_well() {
        let text = |unit: Unit, figure| unit.text(figure);
        assert_eq!(text(Unit::Nanoseconds, 3.25), "3.2 ns");
        assert_eq!(text(Unit::Nanoseconds, 24_310.0), "24.31 µs");
        assert_eq!(text(Unit::Nanoseconds, 1.5e9), "1.5s");
        assert_eq!((text(Unit::Bytes, 1024.0), text(Unit::Core, 0.0123)), ("1024 B".into(), "1.23 %".into()));
    }
}
