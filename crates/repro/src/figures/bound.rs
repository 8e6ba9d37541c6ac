//! How far a simulated value may be from the published one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a simulated value must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// At most this share of the published value away from it: 0.1 is ±10 %.
    Relative(f64),
    /// Between the published value divided by and multiplied with this factor.
    Factor(f64),
    /// In an interval, ends included, whatever was published.
    Between(f64, f64),
    /// Greater than this.
    Above(f64),
    /// An ordering that must hold: 1 if it does, 0 if not.
    Holds,
}

impl Bound {
    /// Returns whether `simulated` meets the bound. A bound relative to a published value fails if
    /// there is none, and nothing that is not a number meets any bound.
    pub fn holds(self, simulated: f64, published: Option<f64>) -> bool {
        // Decimal fractions have no exact binary form: the ends belong to the interval.
        const ROUNDING: f64 = 1e-9;
        match (self, published) {
            (Bound::Relative(share), Some(p)) => (simulated - p).abs() <= (share + ROUNDING) * p.abs(),
            (Bound::Factor(factor), Some(p)) => {
                simulated >= p / factor * (1.0 - ROUNDING) && simulated <= p * factor * (1.0 + ROUNDING)
            }
            (Bound::Between(low, high), _) => (low..=high).contains(&simulated),
            (Bound::Above(least), _) => simulated > least,
            (Bound::Holds, _) => simulated == 1.0,
            (Bound::Relative(_) | Bound::Factor(_), None) => false,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Relative(share) => write!(f, "±{} %", (share * 1e4).round() / 1e2),
            Bound::Factor(factor) => write!(f, "factor {factor}"),
            Bound::Between(low, high) => write!(f, "{low} – {high}"),
            Bound::Above(least) => write!(f, "> {least}"),
            Bound::Holds => f.write_str("holds"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_belong_to_the_interval() {
        assert!(Bound::Relative(0.1).holds(2.53, Some(2.3)));
        assert!(!Bound::Relative(0.1).holds(2.54, Some(2.3)));
        assert!(!Bound::Relative(0.1).holds(2.06, Some(2.3)));
        assert!(Bound::Factor(2.0).holds(0.05, Some(0.1)) && Bound::Factor(2.0).holds(0.2, Some(0.1)));
        assert!(!Bound::Factor(2.0).holds(0.049, Some(0.1)) && !Bound::Factor(2.0).holds(0.21, Some(0.1)));
        assert!(Bound::Between(0.97, 1.03).holds(1.03, None) && !Bound::Between(0.97, 1.03).holds(1.04, None));
        assert!(!Bound::Above(0.9).holds(0.9, None));
        assert!(Bound::Holds.holds(1.0, None) && !Bound::Holds.holds(0.0, None));
    }

    #[test]
    fn nothing_relative_holds_without_a_value_and_nan_never_does() {
        assert!(!Bound::Relative(0.1).holds(1.0, None));
        assert!(!Bound::Factor(2.0).holds(1.0, None));
        for bound in
            [Bound::Relative(0.1), Bound::Factor(2.0), Bound::Between(0.0, 1.0), Bound::Above(0.0), Bound::Holds]
        {
            assert!(!bound.holds(f64::NAN, Some(1.0)), "{bound}");
        }
    }
}
