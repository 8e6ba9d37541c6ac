//! Limits on the deviation of a simulated value from the published one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The condition that a simulated value must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// It deviates from the published value by at most this share of it: 0.1 is ±10 %.
    Relative(f64),
    /// It lies between the published value divided by this factor and multiplied by it.
    Factor(f64),
    /// It lies in an interval, ends included, regardless of the published value.
    Between(f64, f64),
    /// It is greater than this.
    Above(f64),
    /// It is less than this.
    Below(f64),
    /// It is an ordering that must hold: 1 if it does, 0 if not.
    Holds,
}

impl Bound {
    /// Returns whether `simulated` satisfies the bound. A bound relative to a published value fails
    /// if there is none, and NaN satisfies no bound.
    pub fn holds(self, simulated: f64, published: Option<f64>) -> bool {
        // Decimal fractions have no exact binary representation, but the ends belong to the
        // interval.
        const ROUNDING: f64 = 1e-9;
        match (self, published) {
            (Bound::Relative(share), Some(p)) => (simulated - p).abs() <= (share + ROUNDING) * p.abs(),
            (Bound::Factor(factor), Some(p)) => {
                simulated >= p / factor * (1.0 - ROUNDING) && simulated <= p * factor * (1.0 + ROUNDING)
            }
            (Bound::Between(low, high), _) => (low..=high).contains(&simulated),
            (Bound::Above(least), _) => simulated > least,
            (Bound::Below(most), _) => simulated < most,
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
            Bound::Below(most) => write!(f, "< {most}"),
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
        assert!(!Bound::Above(0.9).holds(0.9, None) && !Bound::Below(1.0).holds(1.0, None));
        assert!(Bound::Holds.holds(1.0, None) && !Bound::Holds.holds(0.0, None));
    }

    #[test]
    fn nothing_relative_holds_without_a_value_and_nan_never_does() {
        assert!(!Bound::Relative(0.1).holds(1.0, None));
        assert!(!Bound::Factor(2.0).holds(1.0, None));
        for bound in [
            Bound::Relative(0.1),
            Bound::Factor(2.0),
            Bound::Between(0.0, 1.0),
            Bound::Above(0.0),
            Bound::Below(1.0),
            Bound::Holds,
        ] {
            assert!(!bound.holds(f64::NAN, Some(1.0)), "{bound}");
        }
    }
}
