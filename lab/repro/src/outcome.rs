//! Rows: one figure, published and simulated, side by side.

use crate::{
    figures::{Bound, Case, Figure, Paper, Published, Status},
    null_model,
    simulate::Cost,
};
use serde::{Deserialize, Serialize};

/// The comparison of one figure. `--json` writes a list of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The figure's id.
    pub id: String,
    /// The run among several of the same figure, e.g. a job shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The paper.
    pub paper: Paper,
    /// The workload.
    pub what: String,
    /// The unit of all values; empty for plain numbers.
    pub unit: String,
    /// The printed value; `None` for an ordering.
    pub published: Option<f64>,
    /// The simulated value; `None` if the figure is not simulated.
    pub simulated: Option<f64>,
    /// The null model's value.
    pub null: Option<f64>,
    /// The deviation of `simulated` from `published`, as a share of the latter.
    pub deviation: Option<f64>,
    /// The status of the figure.
    pub kind: Status,
    /// The bound that `simulated` must satisfy.
    pub bound: Option<Bound>,
    /// Whether it does; `None` without a bound or a value.
    pub within: Option<bool>,
    /// Whether the figure is on record as a miss of the model.
    #[serde(default)]
    pub known_miss: bool,
    /// Whether the model has nothing that the figure is about; `remark` has the reason.
    #[serde(default)]
    pub not_modelled: bool,
    /// Whether the null model would miss the bound, and the row is not on record as a miss.
    pub informative: bool,
    /// Section, figure, table of the paper.
    pub place: String,
    /// Contradictions and cautions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// The cost of the run, if that is part of the statement.
    #[serde(flatten)]
    pub cost: Option<Cost>,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A predicted or derived value, or an ordering, that satisfies its bound.
    Within,
    /// One that does not: the model contradicts the paper.
    Miss,
    /// A calibrated value that the model reproduces.
    Calibrated,
    /// A calibrated value that the model does not reproduce: the model differs from the calibrated
    /// one.
    CalibrationLost,
    /// A fact that the simulation respects.
    Asserted,
    /// Our own value; no paper states one.
    OwnValue,
    /// The model has nothing that the figure is about.
    NotModelled,
    /// Not part of this run.
    NotSimulated,
}

impl Verdict {
    /// Returns the verdict in words, for display.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Miss => "MISS",
            Verdict::Calibrated => "calibrated",
            Verdict::CalibrationLost => "CALIBRATION LOST",
            Verdict::Asserted => "asserted",
            Verdict::OwnValue => "own value",
            Verdict::NotModelled => "not modelled",
            Verdict::NotSimulated => "not simulated",
        }
    }
}

impl Row {
    /// Returns the row of `figure` with a simulated value in the figure's unit. NaN satisfies no
    /// bound.
    pub fn simulated(figure: &Figure, value: f64) -> Row {
        Row::of(figure, None, value)
    }

    /// Returns the same for a run in one of several cases, to which a recorded miss may be limited.
    pub fn simulated_in(figure: &Figure, case: Case, value: f64) -> Row {
        Row::of(figure, Some(case), value).case(case.shape.to_string())
    }

    fn of(figure: &Figure, case: Option<Case>, value: f64) -> Row {
        let mut row = Row::unsimulated(figure);
        let known = figure.known_miss(case);
        row.simulated = Some(value);
        row.deviation = row.published.filter(|&p| p != 0.0).map(|p| (value - p) / p);
        row.within = figure.bound.map(|bound| bound.holds(value, row.published));
        row.known_miss = known.is_some();
        row.informative = known.is_none() && null_model::informative(figure);
        // The reason of a miss belongs to a row that misses, and to no other.
        if let (Some(miss), Verdict::Miss) = (known, row.verdict()) {
            row.remark = miss.reason.to_owned();
        }
        row
    }

    /// Returns the row of `figure` if the model has nothing that it is about.
    pub fn not_modelled(figure: &Figure) -> Option<Row> {
        figure.not_modelled.map(|_| Row::unsimulated(figure))
    }

    /// Returns the row of `figure` without a value: it is listed but never counted.
    pub fn unsimulated(figure: &Figure) -> Row {
        Row {
            id: figure.id.to_owned(),
            case: None,
            paper: figure.paper,
            what: figure.what.to_owned(),
            unit: figure.unit.to_owned(),
            published: figure.value(),
            simulated: None,
            null: null_model::of(figure.id).map(|null| null.value),
            deviation: None,
            kind: figure.status,
            bound: figure.bound,
            within: None,
            known_miss: figure.miss.is_some(),
            informative: figure.miss.is_none() && null_model::informative(figure),
            place: figure.place.to_owned(),
            not_modelled: figure.not_modelled.is_some(),
            remark: match (figure.not_modelled, figure.published) {
                (Some(reason), Published::Words(words)) => format!("Published: {words}. {reason}"),
                (Some(reason), _) => reason.to_owned(),
                (None, _) => figure.remark.to_owned(),
            },
            cost: None,
        }
    }

    /// Returns the same row for one of several runs.
    pub fn case(mut self, case: impl Into<String>) -> Row {
        self.case = Some(case.into());
        self
    }

    /// Returns the same row with the cost of its run.
    pub fn cost(mut self, cost: Cost) -> Row {
        self.cost = Some(cost);
        self
    }

    /// Returns the verdict on the row.
    pub fn verdict(&self) -> Verdict {
        match (self.kind, self.simulated, self.within) {
            (_, None, _) if self.not_modelled => Verdict::NotModelled,
            (_, None, _) => Verdict::NotSimulated,
            (Status::Own, ..) => Verdict::OwnValue,
            (Status::Calibrated, _, Some(false)) => Verdict::CalibrationLost,
            (Status::Calibrated, ..) => Verdict::Calibrated,
            (_, _, Some(false)) => Verdict::Miss,
            (Status::Specified, ..) => Verdict::Asserted,
            (_, _, Some(true)) => Verdict::Within,
            (_, _, None) => Verdict::OwnValue,
        }
    }

    /// Returns whether `--check` fails on the row: the verdict is not the recorded one.
    pub fn differs(&self) -> bool {
        match self.verdict() {
            Verdict::Miss => !self.known_miss,
            Verdict::Within | Verdict::Asserted => self.known_miss,
            Verdict::CalibrationLost => true,
            Verdict::Calibrated | Verdict::OwnValue | Verdict::NotModelled | Verdict::NotSimulated => false,
        }
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
    fn verdicts() {
        assert_eq!(row("L1", 2.34).verdict(), Verdict::Within);
        assert_eq!(row("L1", 2.6).verdict(), Verdict::Miss);
        assert_eq!(row("L1", f64::NAN).verdict(), Verdict::Miss);
        assert_eq!(row("L4", 0.069).verdict(), Verdict::Calibrated);
        assert_eq!(row("L4", 0.09).verdict(), Verdict::CalibrationLost);
        assert_eq!(row("L10", 0.36).verdict(), Verdict::Miss);
        assert_eq!(row("L9-ranks", 0.9).verdict(), Verdict::OwnValue);
        assert_eq!(row("L14", 2.0).verdict(), Verdict::Asserted);
        assert_eq!(row("L14", 3.0).verdict(), Verdict::Miss);
        assert_eq!(row("L9", 0.95).verdict(), Verdict::Within);
        assert_eq!(Row::unsimulated(figures::find("R4").expect("R4")).verdict(), Verdict::NotSimulated);
    }

    #[test]
    fn a_check_fails_on_new_misses_and_on_those_that_no_longer_are() {
        for (id, value, differs) in
            [("L1", 2.34, false), ("L1", 2.6, true), ("L10", 0.36, false), ("L10", 1.0, true), ("L4", 0.09, true)]
        {
            assert_eq!(row(id, value).differs(), differs, "{id}: {value}");
        }
        assert!(!Row::unsimulated(figures::find("L10").expect("L10")).differs());
    }

    #[test]
    fn a_record_names_the_cases_that_miss_and_only_these_show_the_reason() {
        let l9 = figures::find("L9").expect("L9");
        let miss = l9.miss.expect("a record");
        let [recorded, ..] = *miss.cases else { panic!("no cases") };
        let other = Case { shape: crate::Shape::OF_FX100[2], ..recorded };
        for (case, value, differs) in
            [(recorded, 0.8, false), (recorded, 0.95, true), (other, 0.95, false), (other, 0.8, true)]
        {
            let row = Row::simulated_in(l9, case, value);
            assert_eq!(row.differs(), differs, "{case}: {value}");
            assert_eq!(row.remark == miss.reason, value < 0.9 && case == recorded, "{case}: {value}");
            assert_eq!(row.informative, case == other, "{case}");
        }
        let within = row("L10", 1.0);
        assert!(within.known_miss && within.remark.is_empty(), "{within:?}");
    }

    #[test]
    fn json_round_trip() {
        let cost = Cost {
            ranks: 663_552,
            events: 26_542_080,
            cpu_seconds: 2.4,
            bytes_per_rank: 301,
            resident_bytes_per_rank: None,
        };
        let rows = vec![row("L10", 0.36).cost(cost), row("L8", 0.05).case("8×16"), row("L3", 1.0)];
        let text = serde_json::to_string_pretty(&rows).expect("rows are plain data");
        let back: Vec<Row> = serde_json::from_str(&text).expect("what was written can be read");
        assert_eq!(back, rows);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value[0]["ranks"], 663_552);
        assert_eq!(value[0]["events"], 26_542_080);
        assert_eq!(value[0]["kind"], "PRED");
        assert_eq!((&value[0]["within"], &value[0]["known_miss"]), (&false.into(), &true.into()));
        assert_eq!(value[1]["case"], "8×16");
        assert!(value[2].get("ranks").is_none());
    }
}
