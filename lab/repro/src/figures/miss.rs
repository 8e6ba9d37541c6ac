//! Records of misses: the cases in which the model is known to contradict a figure.

use crate::Shape;
use std::fmt;
use tofu2_sim::virt::Arbiter;

/// A case of a figure that depends on arbitration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The shape of the job's network.
    pub shape: Shape,
    /// The choice of its routers between inputs.
    pub arbiter: Arbiter,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arbiter = match self.arbiter {
            Arbiter::RoundRobin => "round robin",
            Arbiter::OldestFirst => "oldest first",
        };
        write!(f, "{}, {arbiter}", self.shape)
    }
}

/// The record of a miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    /// The reason why the model misses the bound.
    pub reason: &'static str,
    /// The cases that miss it; empty if the figure has no cases, or all of them miss it.
    pub cases: &'static [Case],
}

impl Miss {
    /// Returns whether a run in this case is expected to miss the bound.
    pub fn covers(&self, case: Option<Case>) -> bool {
        self.cases.is_empty() || case.is_some_and(|case| self.cases.contains(&case))
    }

    /// Returns the list of its cases in brackets; empty for a record without cases.
    pub fn listed(&self) -> String {
        let cases: Vec<String> = self.cases.iter().map(Case::to_string).collect();
        if cases.is_empty() { String::new() } else { format!(" [{}]", cases.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_covers_its_cases_only() {
        const ONE: Case = Case { shape: Shape::OF_FX100[0], arbiter: Arbiter::RoundRobin };
        let other = Case { arbiter: Arbiter::OldestFirst, ..ONE };
        let all = Miss { reason: "", cases: &[] };
        let one = Miss { cases: &[ONE], ..all };
        assert!(all.covers(None) && all.covers(Some(other)) && all.listed().is_empty());
        assert!(one.covers(Some(ONE)) && !one.covers(Some(other)) && !one.covers(None));
        assert_eq!(one.listed(), " [2×3×2 groups, round robin]");
    }
}
