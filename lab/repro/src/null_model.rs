//! The predictions of a trivial model.
//!
//! A prediction proves something only if a model without any mechanism would miss the bound. The
//! *null model* of a figure is the most generous of such models: the service time of the
//! calibration point times the number of ranks (a straight line through the origin), a queue that
//! serves in order of arrival, or the sum of printed parts. A prediction is *informative* only if
//! the null model's value misses the figure's bound; that is computed, never claimed.

use crate::figures::{self, Figure, Status};

/// A null model's value for one figure, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Null {
    /// The predicted value.
    pub value: f64,
    /// The derivation of the value.
    pub how: &'static str,
}

const fn null(value: f64, how: &'static str) -> Option<Null> {
    Some(Null { value, how })
}

fn printed(id: &str) -> f64 {
    figures::find(id).and_then(Figure::value).unwrap_or(f64::NAN)
}

/// Returns the straight line through L4: seconds per pair and rank.
fn line() -> f64 {
    printed("L4") / 1000.0 / 128.0
}

/// Returns the null model of a predicted or derived figure; `None` for other figures.
pub fn of(id: &str) -> Option<Null> {
    const LINE: &str = "line through L4 and the origin";
    const PARTS: &str = "sum of printed parts";
    const DOUBLED: &str =
        "line through R1 with the slope of R2; MRC starts at R3's lower end and has the payload twice";
    match id {
        "L1" => null(line() * 4.0 * 1e6, LINE),
        "L2" => null(line() * 256.0 * 1e6, LINE),
        "L3" => null(1.0, LINE),
        "L5" => null(line() * 1024.0 * 1000.0, LINE),
        "L6" => null(line() * 4096.0 * 1000.0, LINE),
        "L8" | "L8-oldest" => null(1.0, "first come, first served: all finish together"),
        "L9" | "L9-oldest" => null(0.0, "first come, first served: order independent of place"),
        "L10" => null(line() * 663_552.0, LINE),
        "L12" => null(printed("L11") / 1000.0 / (line() * 256.0), "L11 over the line through L4"),

        "A1-remote" => {
            null(printed("A1-local") + 2.0 * printed("A3-remote"), "A1 local, and two operations of A3 remote")
        }
        "A2-remote" => {
            null(printed("A2-local") + 2.0 * printed("A3-remote"), "A2 local, and two operations of A3 remote")
        }
        "A3-remote" => null(printed("A3-local") + wire(), PARTS),
        "A4-remote" => null(printed("A9-remote") + printed("A1-local"), "A9 remote and A1 local"),
        "A5-remote" => null(printed("A5-local") + wire(), PARTS),
        "A6-local" => null(printed("A4-local") + printed("A5-local") - printed("A3-local"), PARTS),
        "A6-remote" => null(printed("A4-local") + printed("A5-local") - printed("A3-local") + wire(), PARTS),
        "A7-remote" => null(printed("A7-local") + wire(), PARTS),
        "A8-local" => null(printed("A4-local") + printed("A7-local") - printed("A3-local"), PARTS),
        "A8-remote" => null(printed("A4-local") + printed("A7-local") - printed("A3-local") + wire(), PARTS),
        "A14" => null(printed("A4-local") - printed("A9-local"), "A4 local less A9 local"),

        "M1" => null(printed("M6") + printed("M7-data"), PARTS),
        "M24" => null((printed("M1") * printed("M2")).sqrt() * 1000.0, "latencies and the link's rate"),
        "M25" => null(1.0, "a latency and a rate: always rising"),
        "M26" | "M27" | "M28" => null(1.0, "equal"),
        "M9-gap" => null(printed("M8-init") + printed("M8-header"), PARTS),
        "M11" | "M12" => null(1000.0, "link rate"),
        "M15" => null(
            1.0 / (1.0 / printed("M13") + 1.0 / printed("M14") - 1.0 / 1000.0),
            "costs per byte of M13 and M14 added",
        ),
        "M18" => null(1000.0 / 4.0, "link rate over 4 stages"),

        "X6" | "X7" | "X7-puts" | "X7-flat" | "X8" | "X8-puts" | "X9" | "X9-unit" => {
            null(0.0, "bytes over the link's rate: all versions take equally long")
        }

        "R12" => null(0.0, "line through R1 with the slope of R2"),
        "R3-high" => null(doubled(65_536.0), DOUBLED),
        "R4" => null(doubled(16_384.0), DOUBLED),
        "R5" => null(2.0, "the payload twice"),
        _ => None,
    }
}

/// Returns the ratio of MRC to FAST for a size in bytes: FAST is the line of R1 and R2, and MRC
/// starts at R3-low times its start and has the payload twice.
pub(crate) fn doubled(size: f64) -> f64 {
    let micros_per_byte = 1e-3 / printed("R2");
    let constant = printed("R1") - 16_384.0 * micros_per_byte;
    (printed("R3-low") * constant + 2.0 * size * micros_per_byte) / (constant + size * micros_per_byte)
}

/// Returns the additional time of leaving the node, from A9.
fn wire() -> f64 {
    printed("A9-remote") - printed("A9-local")
}

/// Returns whether a model has to perform better than the null model to satisfy the figure's bound.
///
/// Only predictions, including orderings, can be informative: figures that calibrate the model or
/// follow by arithmetic are not. Whether a run of the figure is a known miss is another question.
pub fn informative(figure: &Figure) -> bool {
    match (figure.status, figure.bound, of(figure.id)) {
        (Status::Predicted | Status::Ordering, Some(bound), Some(null)) => !bound.holds(null.value, figure.value()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(id: &str) -> f64 {
        of(id).expect(id).value
    }

    #[test]
    fn the_line_goes_through_its_calibration_point() {
        assert!((value("L1") - 2.156).abs() < 1e-3);
        assert!((value("L2") - 138.0).abs() < 1e-9);
        assert!((value("L5") - 0.552).abs() < 1e-9);
        assert!((value("L6") - 2.208).abs() < 1e-9);
        assert!((value("L10") - 0.3577).abs() < 1e-4);
        assert!((value("L12") - 826.09).abs() < 0.01);
        assert!((value("M15") - 511.0).abs() < 1.0);
    }

    #[test]
    fn every_prediction_has_a_null_model() {
        for figure in figures::all().filter(|figure| figure.status == Status::Predicted) {
            let null = of(figure.id).unwrap_or_else(|| panic!("{} has no null model", figure.id));
            assert!(null.value.is_finite(), "{}", figure.id);
        }
    }

    #[test]
    fn of_the_lock_only_the_arbitration_figures_are_informative() {
        let expected = figures::of(figures::Paper::Lock).iter().filter(|f| f.miss.is_none() && informative(f));
        let ids: Vec<_> = expected.map(|f| f.id).collect();
        assert_eq!(ids, ["L8", "L9-oldest"]);
    }

    #[test]
    fn of_global_addresses_messages_and_exchanges_sums_of_printed_numbers_come_as_close() {
        assert!((value("A1-remote") - 9.25).abs() < 1e-9 && (value("A4-remote") - 3.69).abs() < 1e-9);
        assert!((value("R3-high") - 1.729).abs() < 1e-3 && (value("R4") - 1.462).abs() < 1e-3);
        for paper in [figures::Paper::Acp, figures::Paper::Fmpl, figures::Paper::Prdma] {
            assert!(figures::of(paper).iter().all(|figure| figure.miss.is_some() || !informative(figure)), "{paper}");
        }
    }

    #[test]
    fn calibrated_and_derived_figures_never_are() {
        for figure in figures::all().filter(|figure| !matches!(figure.status, Status::Predicted | Status::Ordering)) {
            assert!(!informative(figure), "{}", figure.id);
        }
    }
}
