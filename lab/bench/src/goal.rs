//! Goals that figures must meet, alone or beside a reference measured in the same run.

use crate::quantity::Unit;
use serde::{Deserialize, Serialize};

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub(crate) enum Goal {
    /// At most this much.
    #[serde(alias = "ns")]
    Most(f64),
    /// At most this many times the reference.
    Ratio(f64),
    /// At most this much more than the reference.
    More(f64),
}

/// The reason for which a goal is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fault {
    /// Ours: instructions that the limit does not have.
    Software,
    /// Ours: accesses to memory, or waits, that the protocol has and the limit has not: order of arrival, matching,
    /// recovery from deaths.
    Protocol,
    /// The machine: the fastest samples meet the goal, so caches, memory or other work slowed the median.
    Machine,
}

impl Fault {
    pub(crate) const ALL: [Fault; 3] = [Fault::Software, Fault::Protocol, Fault::Machine];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Software => "software",
            Fault::Protocol => "protocol",
            Fault::Machine => "machine",
        }
    }
}

impl Goal {
    /// Returns whether a figure meets the goal; `None` if there is no reference to compare with.
    pub(crate) fn met(self, figure: f64, reference: Option<f64>) -> Option<bool> {
        match self {
            Goal::Most(most) => Some(figure <= most),
            Goal::Ratio(most) => reference.map(|reference| figure <= reference * most),
            Goal::More(most) => reference.map(|reference| figure <= reference + most),
        }
    }

    pub(crate) fn text(self, unit: Unit) -> String {
        let exact = |figure: f64| match unit {
            Unit::Nanoseconds if figure < 1e3 => format!("{figure} ns"),
            _ => unit.text(figure),
        };
        match self {
            Goal::Most(most) => format!("≤ {}", exact(most)),
            Goal::Ratio(most) => format!("≤ ×{most:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            Goal::More(most) => format!("≤ +{}", exact(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_inclusive_and_need_their_reference() {
        assert_eq!(Goal::Most(8.0).met(8.0, None), Some(true));
        assert_eq!(Goal::Most(8.0).met(8.1, Some(100.0)), Some(false));
        assert_eq!(Goal::Ratio(1.5).met(15.0, Some(10.0)), Some(true));
        assert_eq!(Goal::Ratio(1.5).met(15.1, Some(10.0)), Some(false));
        assert_eq!(Goal::Ratio(1.5).met(1.0, None), None);
        assert_eq!(Goal::More(1.0).met(3.5, Some(2.5)), Some(true));
        assert_eq!(Goal::More(1.0).met(3.6, Some(2.5)), Some(false));
        assert_eq!(Goal::Ratio(2.0).met(f64::NAN, Some(1.0)), Some(false));
    }

    #[test]
    fn goals_read_well() {
        let text = |goal: Goal| goal.text(Unit::Nanoseconds);
        assert_eq!(
            [Goal::Ratio(1.5), Goal::Ratio(1.0 / 0.95), Goal::Ratio(1.0)].map(text),
            ["≤ ×1.5", "≤ ×1.053", "≤ ×1"]
        );
        assert_eq!([Goal::Most(8.0), Goal::More(1.0), Goal::Most(50e6)].map(text), ["≤ 8 ns", "≤ +1 ns", "≤ 50.0 ms"]);
        assert_eq!(Goal::Most(1024.0).text(Unit::Bytes), "≤ 1024 B");
    }

    #[test]
    fn goals_of_earlier_files_are_read() {
        assert_eq!(serde_json::from_str::<Goal>(r#"{"kind":"ns","value":8.0}"#).ok(), Some(Goal::Most(8.0)));
        assert_eq!(serde_json::to_string(&Goal::Most(8.0)).ok().as_deref(), Some(r#"{"kind":"most","value":8.0}"#));
    }
}
