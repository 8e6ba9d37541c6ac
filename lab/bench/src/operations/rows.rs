//! From samples to rows: one per case, size and class, with its goal.

use super::{
    cases,
    ranks::Ranks,
    sampling::{Form, Measured, Sample},
};
use crate::{
    goal::{Fault, Goal},
    outside::placement::Class,
    statistics::{least, median},
};
use serde::{Deserialize, Serialize};

/// The minimum number of clean samples with which a class is reported.
const FEWEST: usize = 7;

/// A figure and its context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// The case's name.
    pub(super) name: String,
    /// A description of the measured operation.
    pub(super) what: String,
    /// Bytes of a transfer; 0 if there is none.
    pub(super) bytes: usize,
    /// The distance between the ranks' cores.
    pub(super) class: Class,
    /// Median of the ping-pongs before the samples: ns one way.
    pub(super) ping_pong_ns: f64,
    /// The figure.
    pub(super) figure: Figure,
    /// The limit of the machine, as measured between the figure's samples.
    pub(super) limit: Option<Limit>,
    /// The figure divided by the limit, as medians.
    pub(super) ratio: Option<f64>,
    /// The goal, if there is one.
    pub(super) goal: Option<Goal>,
    /// Whether the median meets the goal. Absent if there is no goal, no limit was measured, or too
    /// few samples were clean.
    pub(super) met: Option<bool>,
    /// The reason for a miss.
    #[serde(default)]
    pub(super) fault: Option<Fault>,
}

/// The figure of the samples of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    /// The fastest sample, in nanoseconds per operation.
    pub(super) min_ns: f64,
    /// The median.
    pub(super) median_ns: f64,
    /// The number of samples.
    pub(super) samples: usize,
}

/// The fastest of the bare forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Limit {
    /// The name of the form.
    pub(super) form: String,
    /// The figure of the form.
    pub(super) figure: Figure,
}

/// Returns the rows of the results of several rounds.
pub(super) fn rows(rounds: Vec<Vec<Measured>>) -> Vec<Row> {
    merged(rounds).iter().flat_map(of_case).collect()
}

/// Returns one entry per case and size, with the samples of all rounds.
fn merged(rounds: Vec<Vec<Measured>>) -> Vec<Measured> {
    let mut merged: Vec<Measured> = Vec::new();
    for measured in rounds.into_iter().flatten() {
        match merged.iter_mut().find(|known| known.name == measured.name && known.bytes == measured.bytes) {
            None => merged.push(measured),
            Some(known) => {
                for (known, form) in known.forms.iter_mut().zip(measured.forms) {
                    known.samples.extend(form.samples);
                }
            }
        }
    }
    let place = |measured: &Measured| cases::all().position(|case| case.name == measured.name);
    merged.sort_by_key(|measured| (place(measured), measured.bytes));
    merged
}

fn of_case(measured: &Measured) -> Vec<Row> {
    let classes: Vec<Row> = Class::DISTANCES.into_iter().filter_map(|class| row(measured, class)).collect();
    if classes.is_empty() { row(measured, Class::Any).into_iter().collect() } else { classes }
}

fn row(measured: &Measured, class: Class) -> Option<Row> {
    let case = cases::find(&measured.name)?;
    let (first, bare) = measured.forms.split_first()?;
    let own = of_class(first, class);
    let figure = figure(&own)?;
    let limits = bare.iter().filter_map(|form| {
        let figure = self::figure(&of_class(form, class))?;
        Some(Limit { form: form.name.clone(), figure })
    });
    let limit = limits.min_by(|a, b| a.figure.median_ns.total_cmp(&b.figure.median_ns));
    // Unclean samples prove nothing, unless ranks share cores intentionally.
    let judged = class != Class::Any || cases::ranks_of(case) != Ranks::Pair;
    let beside = limit.as_ref().map(|limit| limit.figure.median_ns);
    let (goal, ours) = case.goal.unzip();
    let met = goal.filter(|_| judged).and_then(|goal| goal.met(figure.median_ns, beside));
    let is_met_at_best = goal.and_then(|goal| goal.met(figure.min_ns, limit.as_ref().map(|limit| limit.figure.min_ns)));
    let fault = if is_met_at_best == Some(true) { Some(Fault::Machine) } else { ours };
    Some(Row {
        name: measured.name.clone(),
        what: case.what.to_owned(),
        bytes: measured.bytes,
        class,
        ping_pong_ns: median(own.iter().map(|sample| sample.ping_pong).collect())?,
        ratio: beside.filter(|&ns| ns > 0.0).map(|ns| figure.median_ns / ns),
        goal,
        met,
        fault: fault.filter(|_| met == Some(false)),
        figure,
        limit,
    })
}

/// Returns the samples that count for a class, none if they are too few.
fn of_class(form: &Form, class: Class) -> Vec<Sample> {
    let counts = |sample: &&Sample| class == Class::Any || sample.clean && Class::of(sample.ping_pong) == class;
    let samples: Vec<Sample> = form.samples.iter().filter(counts).copied().collect();
    if class == Class::Any || samples.len() >= FEWEST { samples } else { Vec::new() }
}

impl Form {
    /// Returns the fastest sample at this distance, in ns; `None` if too few were clean.
    pub(crate) fn least(&self, class: Class) -> Option<f64> {
        least(of_class(self, class).iter().map(|sample| sample.ns))
    }
}

fn figure(samples: &[Sample]) -> Option<Figure> {
    let times: Vec<f64> = samples.iter().map(|sample| sample.ns).collect();
    Some(Figure { min_ns: least(times.iter().copied())?, samples: times.len(), median_ns: median(times)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ns: &[f64], ping_pong: f64, clean: bool) -> Vec<Sample> {
        ns.iter().map(|&ns| Sample { ns, ping_pong, clean }).collect()
    }

    fn measured(name: &str, forms: &[(&str, Vec<Sample>)]) -> Measured {
        let forms = forms.iter().map(|(name, samples)| Form { name: (*name).into(), samples: samples.clone() });
        Measured { name: name.into(), bytes: 8, forms: forms.collect() }
    }

    const SEVEN: [f64; 7] = [5.0, 4.0, 6.0, 9.0, 5.0, 3.0, 5.0];

    #[test]
    fn classes_are_never_mixed() {
        let mut own = samples(&SEVEN, 50.0, true);
        own.extend(samples(&SEVEN.map(|ns| ns * 10.0), 230.0, true));
        own.extend(samples(&[0.1; 9], 50.0, false));
        let mut bare = samples(&SEVEN.map(|ns| ns / 2.0), 50.0, true);
        bare.extend(samples(&SEVEN, 230.0, true));
        let rows = rows(vec![vec![measured("lock-exclusive", &[("fabric", own), ("MCS lock", bare)])]]);
        assert_eq!(rows.len(), 2);
        let [near, far] = &rows[..] else { unreachable!() };
        assert_eq!(
            (near.class, near.figure.min_ns, near.figure.median_ns, near.figure.samples),
            (Class::Near, 3.0, 5.0, 7)
        );
        assert_eq!((near.ratio, near.met, near.fault), (Some(2.0), Some(true), None), "at most twice");
        assert_eq!((far.class, far.figure.median_ns, far.ratio, far.met), (Class::Far, 50.0, Some(10.0), Some(false)));
        assert_eq!(far.fault, Some(Fault::Protocol));
    }

    #[test]
    fn a_miss_that_the_fastest_samples_do_not_have_is_the_machines() {
        let bare = samples(&SEVEN.map(|ns| ns / 2.0), 50.0, true);
        let own = samples(&[3.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0], 50.0, true);
        let rows = rows(vec![vec![measured("lock-exclusive", &[("fabric", own), ("MCS lock", bare)])]]);
        assert_eq!((rows[0].met, rows[0].fault), (Some(false), Some(Fault::Machine)));
    }

    #[test]
    fn too_few_clean_samples_make_a_row_of_all() {
        let mut own = samples(&SEVEN[..6], 50.0, true);
        own.extend(samples(&[1.0], 230.0, false));
        let rows = rows(vec![vec![measured("fetch-add", &[("fabric", own)])]]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].class, rows[0].figure.samples, rows[0].figure.min_ns), (Class::Any, 7, 1.0));
        assert_eq!((rows[0].limit.clone(), rows[0].ratio, rows[0].met), (None, None, None), "not judged");
    }

    #[test]
    fn rounds_add_up_and_the_fastest_bare_form_is_the_limit() {
        let round = |ns: f64| {
            let bare = [("memcpy", samples(&[4.0; 4], 50.0, true)), ("rep movsb", samples(&[ns; 4], 50.0, true))];
            let mut forms = vec![("fabric", samples(&[6.0; 4], 50.0, true))];
            forms.extend(bare);
            vec![measured("put-buffer", &forms)]
        };
        let rows = rows(vec![round(3.0), round(3.0)]);
        assert_eq!(rows.len(), 1);
        let limit = rows[0].limit.as_ref().unwrap();
        assert_eq!((&limit.form[..], limit.figure.samples, rows[0].ratio), ("rep movsb", 8, Some(2.0)));
        assert_eq!(rows[0].met, Some(false));
    }
}
