//! The published figures of a paper, in virtual time.
//!
//! Criterion measures the value returned for a number of iterations: here that is the simulated value, in the figure's
//! unit. Its line therefore shows the reproduced figure, and a later run is compared with this one. The line below has
//! the published value and the verdict, as in `cargo reproduce`. One simulation serves all figures of a paper; it is
//! omitted if the filter selects none of them.

use criterion::{
    Criterion, SamplingMode, Throughput,
    measurement::{Measurement, ValueFormatter},
};
use repro::{
    JobRecord, ReproError,
    figures::{self, Bound, Figure, Paper},
    outcome::Row,
    provenance::Provenance,
    quantity, table,
    tally::Tally,
};
use std::{
    cell::{Cell, OnceCell},
    env,
    hint::black_box,
    rc::Rc,
    time::Duration,
};

/// A reproduced paper.
pub(crate) struct Reproduced {
    pub(crate) rows: Vec<Row>,
    pub(crate) jobs: Vec<JobRecord>,
}

/// The relative amount by which every second sample is longer. A simulated value has no variance, and the test with
/// which criterion compares two runs divides by it.
const SPREAD: f64 = 1e-9;
/// A deterministic value that changes is a change, however small; rounding is not.
const NOISE: f64 = 1e-6;

/// Benchmarks all figures of a paper that have a bound. `simulate` receives whether a smoke test is enough.
pub(crate) fn published(paper: Paper, simulate: impl Fn(bool) -> Result<Reproduced, ReproError>) {
    let bounded: Vec<&Figure> = figures::of(paper).iter().filter(|figure| figure.bound.is_some()).collect();
    let Some(first) = bounded.first() else { return };
    let current = Rc::new(Cell::new(*first));
    let figure_unit = FigureUnit(FigureFormatter(Rc::clone(&current)));
    let mut criterion = Criterion::default().with_measurement(figure_unit).configure_from_args();
    let mut group = criterion.benchmark_group(paper.name());
    // The simulation is not part of the iterations, which cost nothing: the least that criterion accepts.
    group.sample_size(10).sampling_mode(SamplingMode::Flat).nresamples(2000).noise_threshold(NOISE);
    group.warm_up_time(Duration::from_nanos(1)).measurement_time(Duration::from_millis(1));
    let (smoke, reproduced, mut selected) = (is_smoke_test(), OnceCell::new(), Vec::new());
    for figure in bounded {
        current.set(figure);
        let mut samples = 0u32;
        group.bench_function(figure.id, |bencher| {
            let reproduced = reproduced.get_or_init(|| match simulate(smoke) {
                Ok(reproduced) => reproduced,
                Err(error) => panic!("{paper}: {error}"),
            });
            let value = reproduced.rows.iter().find(|row| row.id == figure.id).map_or(0.0, measured);
            samples += 1;
            let value = if samples.is_multiple_of(2) { value * (1.0 + SPREAD) } else { value };
            bencher.iter_custom(|times| {
                // Criterion chooses the number of iterations by the time that they take.
                (0..times).for_each(|_| {
                    black_box(value);
                });
                value * times as f64
            });
        });
        if samples > 0 && !smoke {
            let rows = reproduced.get().into_iter().flat_map(|reproduced: &Reproduced| &reproduced.rows);
            for row in rows.filter(|row| row.id == figure.id) {
                println!("{:24}{}", "", table::line(row));
                selected.push(row.clone());
            }
        }
    }
    group.finish();
    if let Some(reproduced) = reproduced.get().filter(|_| !smoke) {
        let origin = Provenance { command: String::new(), seed: 0, quick: None, jobs: reproduced.jobs.clone() };
        for line in table::summary(&Tally::of(&selected)).into_iter().chain([origin.line()]) {
            println!("{paper}: {line}");
        }
        println!();
    }
}

/// Returns the value that criterion receives: for an ordering 1 if it holds, else -1, because criterion refuses 0.
fn measured(row: &Row) -> f64 {
    match (row.bound, row.simulated) {
        (Some(Bound::Holds), Some(value)) => 2.0 * value - 1.0,
        (_, value) => value.unwrap_or(0.0),
    }
}

/// Returns whether criterion runs every benchmark once (`cargo test --benches`, `cargo bench -- --test`).
fn is_smoke_test() -> bool {
    let given = |option: &str| env::args().any(|argument| argument == option);
    given("--test") || !given("--bench")
}

/// Simulated values as a measurement, in the unit of the current figure.
struct FigureUnit(FigureFormatter);

impl Measurement for FigureUnit {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        unreachable!("values are returned by `iter_custom`")
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.0
    }
}

/// Formats values in the unit of the current figure.
struct FigureFormatter(Rc<Cell<&'static Figure>>);

impl ValueFormatter for FigureFormatter {
    fn format_value(&self, value: f64) -> String {
        let figure = self.0.get();
        match figure.bound {
            Some(Bound::Holds) => if value > 0.0 { "holds" } else { "fails" }.to_owned(),
            _ => quantity::with_unit(value, figure.unit),
        }
    }

    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        self.0.get().unit
    }

    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        self.0.get().unit
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        self.0.get().unit
    }
}
