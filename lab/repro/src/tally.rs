//! Counts over rows.

use crate::{
    figures::Status,
    outcome::{Row, Verdict},
};

/// Counts over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Predictions, orderings and derived values that the model contradicts.
    pub misses: usize,
    /// Simulated predictions and orderings.
    pub predictions: usize,
    /// Those within their bound.
    pub within: usize,
    /// Simulated predictions whose null model misses the bound.
    pub informative: usize,
    /// Those within their bound.
    pub informative_within: usize,
    /// Simulated values that follow by arithmetic, and those within their bound.
    pub derived: usize,
    /// Those within their bound.
    pub derived_within: usize,
    /// Calibrated values that were simulated.
    pub calibrated: usize,
    /// Those that the model reproduces.
    pub given_back: usize,
    /// Asserted facts.
    pub asserted: usize,
    /// Figures of which the simulation reports its own value.
    pub own: usize,
    /// Figures of which the model has nothing.
    pub not_modelled: usize,
    /// Figures that are not part of the run.
    pub not_simulated: usize,
}

impl Tally {
    /// Counts `rows`.
    pub fn of(rows: &[Row]) -> Tally {
        let mut tally = Tally::default();
        for row in rows {
            let verdict = row.verdict();
            let met = usize::from(verdict == Verdict::Within);
            tally.misses += usize::from(verdict == Verdict::Miss);
            match (verdict, row.kind) {
                (Verdict::NotModelled, _) => tally.not_modelled += 1,
                (Verdict::NotSimulated, _) => tally.not_simulated += 1,
                (Verdict::OwnValue, _) => tally.own += 1,
                (_, Status::Calibrated) => {
                    tally.calibrated += 1;
                    tally.given_back += usize::from(verdict == Verdict::Calibrated);
                }
                (_, Status::Specified) => tally.asserted += 1,
                (_, Status::Derived) => {
                    tally.derived += 1;
                    tally.derived_within += met;
                }
                _ => {
                    tally.predictions += 1;
                    tally.within += met;
                    if row.informative {
                        tally.informative += 1;
                        tally.informative_within += met;
                    }
                }
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    fn row(id: &str, value: f64) -> Row {
        Row::simulated(figures::find(id).expect(id), value)
    }

    #[test]
    fn what_is_not_simulated_counts_as_nothing_else() {
        let rows: Vec<Row> = figures::all().map(Row::unsimulated).collect();
        let tally = Tally::of(&rows);
        let not_modelled = figures::all().filter(|figure| figure.not_modelled.is_some()).count();
        assert_eq!(tally, Tally { not_modelled, not_simulated: rows.len() - not_modelled, ..Tally::default() });
    }

    #[test]
    fn informative_predictions_are_counted_apart() {
        let rows = [row("L1", 2.3), row("L8", 0.05), row("L9", 0.5), row("L4", 0.069), row("L12", 900.0)];
        let tally = Tally::of(&rows);
        assert_eq!((tally.misses, tally.predictions, tally.within), (1, 3, 2));
        assert_eq!((tally.informative, tally.informative_within), (2, 1));
        assert_eq!((tally.calibrated, tally.given_back), (1, 1));
        assert_eq!((tally.derived, tally.derived_within), (1, 1));
    }
}
