//! Operations between ranks that are threads, in wall-clock time, each beside the limit of the machine: the bare form of
//! the operation, written without the fabric.

use criterion::{BenchmarkGroup, Criterion, SamplingMode, measurement::WallTime};
pub(crate) use limits::Machine;
use limits::cores;
use onesided::{Fabric, Program, sim::shm::Threads};
use repro::figures::Paper;
use std::time::Duration;

/// The number of samples of a benchmark.
const SAMPLES: usize = 10;

/// Returns criterion, with times at which all benchmarks of the workspace take a minute or two.
pub(crate) fn criterion() -> Criterion {
    let (warm_up, measuring) = (Duration::from_millis(50), Duration::from_millis(300));
    let short = Criterion::default().sample_size(SAMPLES).warm_up_time(warm_up).measurement_time(measuring);
    short.nresamples(10_000).configure_from_args()
}

/// Runs a job of ranks that are threads, each on a core of its own if there are enough, and returns their outputs.
pub(crate) fn run<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    let bound = async |fabric: Fabric| {
        cores::pin_rank(fabric.rank().index())?;
        program.run(fabric).await
    };
    Threads::new(ranks).run(&bound).expect("it runs")
}

/// Runs jobs until they have repeated an operation `times` times, and returns the time taken. `job` takes the number of
/// repetitions, at most `most`, and returns their picoseconds, without the job's set-up.
pub(crate) fn in_jobs(times: u64, most: u32, job: impl Fn(u32) -> u64) -> Duration {
    let (mut left, mut picos) = (times, 0);
    while left > 0 {
        let some = left.min(u64::from(most)) as u32;
        picos += job(some);
        left -= u64::from(some);
    }
    Duration::from_nanos(picos / 1000)
}

/// The benchmarks of a paper.
pub(crate) struct Operations<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    machine: Machine,
}

impl<'a> Operations<'a> {
    pub(crate) fn new(criterion: &'a mut Criterion, paper: Paper) -> Self {
        let mut group = criterion.benchmark_group(format!("{paper}-threads"));
        // Longer samples would be the most disturbed by the set-up of jobs.
        group.sampling_mode(SamplingMode::Flat);
        Operations { group, machine: Machine::new().expect("memory for the limits") }
    }

    /// Benchmarks operations, each named by `name` and its variant, and their common limit. Both take a number of
    /// repetitions and return their time.
    pub(crate) fn beside(
        &mut self,
        name: &str,
        limit: (&str, impl Fn(&Machine, u64) -> Duration),
        operations: impl IntoIterator<Item = (String, impl Fn(u64) -> Duration)>,
    ) {
        let machine = &self.machine;
        let bound = sampled(&mut self.group, format!("{name}, limit: {}", limit.0), |times| limit.1(machine, times));
        for (variant, operation) in operations {
            let id = if variant.is_empty() { name.to_owned() } else { format!("{name}, {variant}") };
            let median = sampled(&mut self.group, id, operation);
            if let (Some(median), Some(bound)) = (median, bound) {
                println!("{:24}{:.2} times the limit, by the medians", "", median / bound);
            }
        }
    }
}

/// Benchmarks an operation and returns the median of the last samples, in nanoseconds; `None` if the filter excludes it
/// or only one repetition ran.
fn sampled(group: &mut BenchmarkGroup<'_, WallTime>, id: String, run: impl Fn(u64) -> Duration) -> Option<f64> {
    let mut samples = Vec::new();
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|times| {
            let took = run(times);
            samples.push(took.as_secs_f64() * 1e9 / times as f64);
            took
        });
    });
    let mut last = samples.split_off(samples.len().saturating_sub(SAMPLES));
    last.sort_by(f64::total_cmp);
    (last.len() > 1).then(|| last[last.len() / 2])
}
