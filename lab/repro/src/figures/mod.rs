//! Every figure printed in the five papers, as data.
//!
//! One [`Figure`] is one printed number (or range, or ordering) with its place in the paper, its
//! role ([`Status`]) and, if a model has to predict it unaided, the permitted deviation
//! ([`Bound`]). Units are those of the paper. A table cell with two numbers becomes two figures.

mod acp;
mod bound;
mod fmpl;
mod lock;
mod miss;
mod paper;
mod prdma;
mod xmp;

pub use bound::Bound;
pub use miss::{Case, Miss};
pub use paper::Paper;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The role of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It sets a parameter of the model, so agreement proves nothing.
    #[serde(rename = "CAL")]
    Calibrated,
    /// The model has to predict it unaided.
    #[serde(rename = "PRED")]
    Predicted,
    /// It states a fact about hardware or set-up, asserted as configuration.
    #[serde(rename = "SPEC")]
    Specified,
    /// Only an ordering is published.
    #[serde(rename = "ORD")]
    Ordering,
    /// It follows by arithmetic from other published figures.
    #[serde(rename = "DER")]
    Derived,
    /// No paper states it: a simulation reports its own value.
    #[serde(rename = "OWN")]
    Own,
}

impl Status {
    /// Returns the short word used in tables and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Status::Calibrated => "CAL",
            Status::Predicted => "PRED",
            Status::Specified => "SPEC",
            Status::Ordering => "ORD",
            Status::Derived => "DER",
            Status::Own => "OWN",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The published content of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Value(f64),
    /// The two ends of a range.
    Range(f64, f64),
    /// Words: an ordering or a list.
    Words(&'static str),
}

/// One printed figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// A unique identifier, e.g. `L4`; `A3-remote` if one table row holds two numbers.
    pub id: &'static str,
    /// The paper that contains it.
    pub paper: Paper,
    /// The workload, in a few words.
    pub what: &'static str,
    /// The number.
    pub published: Published,
    /// The unit as printed; empty for plain numbers and words.
    pub unit: &'static str,
    /// The section, figure or table.
    pub place: &'static str,
    /// Its role.
    pub status: Status,
    /// The permitted deviation of a model. Every [`Status::Predicted`], [`Status::Ordering`] and
    /// [`Status::Derived`] figure has one, fixed before the first run.
    pub bound: Option<Bound>,
    /// The record of a miss; `None` if the model is expected to meet the bound.
    pub miss: Option<Miss>,
    /// The reason why the model has nothing that the figure is about; `None` if it is simulated.
    pub not_modelled: Option<&'static str>,
    /// Contradictions and cautions; may be empty.
    pub remark: &'static str,
}

impl Figure {
    const fn bound(mut self, bound: Bound) -> Self {
        self.bound = Some(bound);
        self
    }

    const fn remark(mut self, remark: &'static str) -> Self {
        self.remark = remark;
        self
    }

    /// Records a miss in all runs of the figure.
    const fn miss(self, reason: &'static str) -> Self {
        self.miss_in(&[], reason)
    }

    /// Records a miss in these cases.
    const fn miss_in(mut self, cases: &'static [Case], reason: &'static str) -> Self {
        self.miss = Some(Miss { reason, cases });
        self
    }

    const fn not_modelled(mut self, reason: &'static str) -> Self {
        self.not_modelled = Some(reason);
        self
    }

    /// Returns the record of a miss in this case, if there is one.
    pub fn known_miss(&self, case: Option<Case>) -> Option<Miss> {
        self.miss.filter(|miss| miss.covers(case))
    }

    /// Returns the published number, if it is a single one.
    pub fn value(&self) -> Option<f64> {
        match self.published {
            Published::Value(value) => Some(value),
            Published::Range(..) | Published::Words(_) => None,
        }
    }
}

const fn figure(
    id: &'static str,
    what: &'static str,
    published: Published,
    unit: &'static str,
    place: &'static str,
    status: Status,
) -> Figure {
    let paper = match id.as_bytes()[0] {
        b'L' => Paper::Lock,
        b'A' => Paper::Acp,
        b'M' => Paper::Fmpl,
        b'R' => Paper::Prdma,
        _ => Paper::Xmp,
    };
    Figure { id, paper, what, published, unit, place, status, bound: None, miss: None, not_modelled: None, remark: "" }
}

/// Returns all figures of one paper, in the order of the paper.
pub fn of(paper: Paper) -> &'static [Figure] {
    match paper {
        Paper::Lock => lock::LOCK,
        Paper::Acp => acp::ACP,
        Paper::Fmpl => fmpl::FMPL,
        Paper::Prdma => prdma::PRDMA,
        Paper::Xmp => xmp::XMP,
    }
}

/// Returns all figures of all papers.
pub fn all() -> impl Iterator<Item = &'static Figure> {
    Paper::ALL.into_iter().flat_map(of)
}

/// Returns the figure with that id.
pub fn find(id: &str) -> Option<&'static Figure> {
    all().find(|figure| figure.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_carry_their_papers_letter() {
        let mut seen = BTreeSet::new();
        for figure in all() {
            assert!(seen.insert(figure.id), "{} stands twice", figure.id);
            let letter = match figure.paper {
                Paper::Lock => 'L',
                Paper::Acp => 'A',
                Paper::Fmpl => 'M',
                Paper::Prdma => 'R',
                Paper::Xmp => 'X',
            };
            assert!(figure.id.starts_with(letter), "{}", figure.id);
        }
        assert!(seen.len() > 80, "only {} figures", seen.len());
    }

    #[test]
    fn every_prediction_has_a_bound_that_its_own_value_meets() {
        let bounded = [Status::Predicted, Status::Ordering, Status::Derived];
        for figure in all().filter(|figure| bounded.contains(&figure.status) && figure.not_modelled.is_none()) {
            let bound = figure.bound.unwrap_or_else(|| panic!("{} has no bound", figure.id));
            if let Some(value) = figure.value() {
                assert!(bound.holds(value, Some(value)), "{}: {bound}", figure.id);
            }
        }
    }

    #[test]
    fn own_values_have_no_bound_and_misses_have_one() {
        for figure in all() {
            if matches!(figure.status, Status::Own) {
                assert!(figure.bound.is_none() && figure.miss.is_none() && !figure.remark.is_empty(), "{}", figure.id);
            }
            assert!(figure.miss.is_none() || figure.bound.is_some(), "{}: what does it miss?", figure.id);
            let is_simulated = figure.bound.is_some() || matches!(figure.status, Status::Own);
            assert!(is_simulated != figure.not_modelled.is_some(), "{}: a bound, or why there is none", figure.id);
            assert!(!figure.what.is_empty() && !figure.place.is_empty(), "{}", figure.id);
            if let Published::Range(low, high) = figure.published {
                assert!(low < high, "{}", figure.id);
            }
        }
    }

    #[test]
    fn derived_figures_follow_from_the_others() {
        let v = |id| find(id).and_then(Figure::value).expect(id);
        assert!((v("L12") - v("L11") / 1000.0 / (v("L2") * 1e-6)).abs() < 1.0);
        assert!((v("L7-ppn8") - v("L4") * 8.0).abs() < 1e-9);
        assert!((v("L7-ppn32") - v("L4") * 32.0).abs() < 1e-9);
        assert!((v("M3") - 100.0 * (1.0 - v("M1") / v("M2"))).abs() < 1e-9);
        assert_eq!(v("A10-safe"), v("A8-remote"));
        assert_eq!(v("A10-unsafe"), v("A4-remote"));
        assert_eq!(v("A11-safe"), v("A2-local"));
        assert_eq!(v("A11-unsafe"), v("A1-local"));
        assert!((v("A14") - (v("A4-remote") - v("A9-remote"))).abs() < 1e-9);
    }

    /// Bounds are fixed before a run. Changing one is a commit of its own, which changes this file.
    #[test]
    fn bounds_are_those_on_record() {
        let mut lines = String::new();
        for figure in all() {
            let bound = figure.bound.map_or("none".to_owned(), |bound| bound.to_string());
            let miss = figure.miss.map_or(String::new(), |miss| format!("  MISS{}", miss.listed()));
            let none = if figure.not_modelled.is_some() { "  not modelled" } else { "" };
            lines.push_str(&format!("{}  {}  {bound}{miss}{none}\n", figure.id, figure.status));
        }
        let recorded = include_str!("bounds.txt");
        let changed: Vec<_> = lines.lines().filter(|line| !recorded.lines().any(|known| known == *line)).collect();
        assert!(
            lines == recorded,
            "figures/bounds.txt has other lines, or another order; now:\n{}",
            changed.join("\n")
        );
    }
}
