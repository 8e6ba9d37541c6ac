//! One row: a measured figure, its reference, and its goal.

use crate::{goal::Goal, quantity::Unit};
use comfy_table::{Cell, Table};
use evidence::page::number;
use serde::Serialize;

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
        let met = goal.met(ours, other).unwrap_or(false);
        Row { what, unit, ours, other, ratio: other.map(|other| ours / other), goal, met }
    }
}

/// Returns all rows as a table.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["row", "ours", "the other", "ratio", "goal", "verdict"]);
    let or_none = |text: Option<String>| number(text.unwrap_or_else(|| "–".to_owned()));
    for row in rows {
        table.add_row([
            Cell::new(&row.what),
            number(row.unit.text(row.ours)),
            or_none(row.other.map(|other| row.unit.text(other))),
            or_none(row.ratio.map(|ratio| format!("×{ratio:.3}"))),
            Cell::new(row.goal.text(row.unit)),
            Cell::new(if row.met { "met" } else { "MISSED" }),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_can_be_missed() {
        let met = |ours: f64, goal| Row::beside("a", Unit::Nanoseconds, ours, 100.0, goal).met;
        assert!(met(114.9, Goal::Ratio(1.15)) && !met(115.1, Goal::Ratio(1.15)));
        assert!(met(102.0, Goal::More(2.0)) && !met(102.1, Goal::More(2.0)));
        assert!(Row::alone("a", Unit::Core, 0.01, 0.01).met && !Row::alone("a", Unit::Core, 0.011, 0.01).met);
        assert!(!Row::beside("a", Unit::Bytes, f64::NAN, 1.0, Goal::Ratio(2.0)).met);
    }
}
