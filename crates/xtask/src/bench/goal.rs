//! What is asked of a figure.

use serde::{Deserialize, Serialize};

/// What the median of a case must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub(super) enum Goal {
    /// At most so many nanoseconds.
    Ns(f64),
    /// At most so many times the limit.
    Ratio(f64),
    /// At most so many nanoseconds more than the limit.
    More(f64),
}

impl Goal {
    /// Whether a median of `ns` beside the limit's keeps to it; `None` if there is no limit to compare with.
    pub(super) fn met(self, ns: f64, limit_ns: Option<f64>) -> Option<bool> {
        match self {
            Goal::Ns(most) => Some(ns <= most),
            Goal::Ratio(most) => limit_ns.map(|limit| ns <= limit * most),
            Goal::More(most) => limit_ns.map(|limit| ns <= limit + most),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Goal::Ns(most) => format!("≤ {most} ns"),
            Goal::Ratio(most) => format!("≤ ×{most:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            Goal::More(most) => format!("≤ +{most} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_inclusive_and_need_their_limit() {
        assert_eq!(Goal::Ns(8.0).met(8.0, None), Some(true));
        assert_eq!(Goal::Ns(8.0).met(8.1, Some(100.0)), Some(false));
        assert_eq!(Goal::Ratio(1.5).met(15.0, Some(10.0)), Some(true));
        assert_eq!(Goal::Ratio(1.5).met(15.1, Some(10.0)), Some(false));
        assert_eq!(Goal::Ratio(1.5).met(1.0, None), None);
        assert_eq!(Goal::More(1.0).met(3.5, Some(2.5)), Some(true));
        assert_eq!(Goal::More(1.0).met(3.6, Some(2.5)), Some(false));
    }

    #[test]
    fn goals_read_well() {
        assert_eq!(Goal::Ratio(1.5).text(), "≤ ×1.5");
        assert_eq!(Goal::Ratio(1.0 / 0.95).text(), "≤ ×1.053");
        assert_eq!(Goal::Ns(8.0).text(), "≤ 8 ns");
    }
}
