//! Running the plan in virtual time, and comparing the results.

use super::{ExchangeCase, How, Machine, Pattern, PrdmaPlan, machine};
use crate::{
    ReproError,
    figures::{self, Paper},
    outcome::Row,
    progress::Progress,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    statistics::{deviation_from_line, slope},
    workloads::{Together, exchanges},
};
use prdma_offload::Form;
use rdma_fabric::Time;
use tofu2_sim::virt::Timeline;

/// All ranks begin after the end of set-up, and stay until all have finished.
pub(super) const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// The measured times of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeRun {
    /// The pattern of neighbours.
    pub pattern: Pattern,
    /// The form of the exchange.
    pub how: How,
    /// Bytes to and from each neighbour, and seconds per iteration at the slowest rank.
    pub points: Vec<(usize, f64)>,
    /// The job.
    pub job: JobRecord,
}

impl ExchangeRun {
    /// Returns the seconds per iteration at that size, if it was run.
    pub fn at(&self, size: usize) -> Option<f64> {
        self.points.iter().find(|point| point.0 == size).map(|point| point.1)
    }

    /// Returns bytes and seconds, for statistics and plots.
    pub fn line(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|&(size, seconds)| (size as f64, seconds)).collect()
    }
}

/// The results of all jobs of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PrdmaRuns {
    /// The plan.
    pub plan: PrdmaPlan,
    /// One entry for each job of the plan.
    pub runs: Vec<ExchangeRun>,
    /// Facts about the machine.
    pub machine: Option<Machine>,
    /// The timeline that the plan requests; also `None` if the plan has no such job.
    pub timeline: Option<Timeline>,
}

impl PrdmaRuns {
    /// Returns the jobs, in the order of their execution.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        self.runs.iter().map(|run| &run.job).chain(self.machine.iter().flat_map(|machine| &machine.jobs))
    }

    /// Returns the run of that pattern and form.
    pub fn of(&self, pattern: Pattern, how: How) -> Option<&ExchangeRun> {
        self.runs.iter().find(|run| run.pattern == pattern && run.how == how)
    }

    /// Returns the time of one form divided by that of another, for each size that both have.
    pub fn ratios(&self, pattern: Pattern, how: How, over: How) -> Vec<(usize, f64)> {
        let (Some(run), Some(over)) = (self.of(pattern, how), self.of(pattern, over)) else { return Vec::new() };
        run.points.iter().filter_map(|&(size, seconds)| Some((size, seconds / over.at(size)?))).collect()
    }
}

/// Simulates all jobs of the plan.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &PrdmaPlan, progress: &mut Progress) -> Result<PrdmaRuns, ReproError> {
    let mut runner = Runner::new(progress, plan.count(), plan.traced);
    let mut runs = Vec::with_capacity(plan.jobs.len());
    for job in &plan.jobs {
        let ExchangeCase { pattern, how, ref sizes } = *job;
        let label = match sizes[..] {
            [size] => format!("{pattern}, {how}: {size} B"),
            _ => format!("{pattern}, {how}: {} sizes", sizes.len()),
        };
        let (shape, on_a_node) = (pattern.shape(), pattern.ranks_per_node());
        let setting = Setting::routed(plan.platform.clone(), shape.nodes() * on_a_node, on_a_node, shape, plan.seed);
        let simulated =
            runner.run(label, setting, &async |fabric| exchanges(fabric, plan.exchange(job), TOGETHER).await)?;
        let slowest = |at: usize| simulated.outs.iter().map(|rank| rank[at]).max().unwrap_or(0);
        let seconds = |at| slowest(at) as f64 * 1e-12 / f64::from(plan.iterations);
        let points = sizes.iter().enumerate().map(|(at, &size)| (size, seconds(at))).collect();
        runs.push(ExchangeRun { pattern, how, points, job: simulated.job });
    }
    let machine = Some(machine::run(plan, &mut runner)?);
    let timeline = runner.end();
    Ok(PrdmaRuns { plan: plan.clone(), runs, machine, timeline })
}

/// The size of R1 and R4.
const SIXTEEN_KIB: usize = 16_384;

const FAST: How = How::persistent(Form::Fast);
const MRC: How = How::persistent(Form::Mrc);

/// Returns a row for every figure of the paper to which the runs apply, in the paper's order.
pub fn compare(runs: &PrdmaRuns) -> Vec<Row> {
    let mut rows = Vec::new();
    let ratios = runs.ratios(Pattern::Line, MRC, FAST);
    let values = || ratios.iter().map(|&(_, ratio)| ratio);
    let per_byte = |how| runs.of(Pattern::Line, how).and_then(|run| slope(&run.line()));
    let observed = |fact: fn(&Machine) -> f64| runs.machine.as_ref().map(fact);
    for figure in figures::of(Paper::Prdma) {
        let value = match figure.id {
            "R1" => runs.of(Pattern::Line, FAST).and_then(|run| run.at(SIXTEEN_KIB)).map(|seconds| seconds * 1e6),
            "R2" => per_byte(FAST).map(|seconds| 1e-9 / seconds),
            "R3-low" => values().reduce(f64::min),
            "R3-high" => values().reduce(f64::max),
            "R4" => ratios.iter().find(|(size, _)| *size == SIXTEEN_KIB).map(|&(_, ratio)| ratio),
            "R5" => per_byte(MRC).zip(per_byte(FAST)).map(|(mrc, fast)| mrc / fast),
            "R12" => runs.of(Pattern::Line, FAST).and_then(|run| deviation_from_line(&run.line())),
            "R7-links" => observed(|machine| machine.links as f64),
            "R7-rate" => observed(|machine| machine.link_rate * 1e-9),
            "R8" => observed(|machine| machine.at_once as f64),
            "R9" => observed(|machine| machine.queues_per_engine),
            // The rank with fewer.
            "R10" => observed(|machine| machine.queues_of_two.into_iter().min().unwrap_or(0) as f64),
            "R11" => observed(|machine| f64::from(u8::from(machine.session_rule))),
            _ => None,
        };
        rows.extend(value.map(|value| Row::simulated(figure, value)).or_else(|| Row::not_modelled(figure)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        outcome::Verdict,
        prdma_paper::{ExchangeCase, PrdmaPlan, run},
        progress::Progress,
    };
    use tofu2_sim::virt::Platform;

    /// Returns the decisive sizes: both ends, the size with the lowest ratio, and the size of R1
    /// and R4.
    fn deciding(platform: Platform) -> PrdmaPlan {
        let sizes = [0, 1024, 2048, SIXTEEN_KIB, PrdmaPlan::MOST];
        let jobs = [FAST, MRC].map(|how| ExchangeCase { pattern: Pattern::Line, how, sizes: sizes.to_vec() }).into();
        PrdmaPlan { jobs, iterations: 5, platform, ..PrdmaPlan::paper(0) }
    }

    fn rows(platform: Platform) -> Vec<Row> {
        compare(&run(&deciding(platform), &mut Progress::silent()).expect("it runs"))
    }

    fn mutated(changes: &[(&str, u64)]) -> Platform {
        changes.iter().fold(Platform::fx100(), |platform, (name, value)| platform.with(name, *value).expect(name))
    }

    /// Returns the figures for which `--check` fails.
    fn misses(platform: Platform) -> Vec<String> {
        rows(platform).into_iter().filter(|row| row.differs()).map(|row| row.id).collect()
    }

    #[test]
    fn the_machine_gives_calibrated_figures_back_and_meets_the_bounds() {
        let rows = rows(Platform::fx100());
        let verdict = |id: &str| rows.iter().find(|row| row.id == id).map(Row::verdict);
        for id in ["R1", "R2", "R3-low"] {
            assert_eq!(verdict(id), Some(Verdict::Calibrated), "{id}: {rows:#?}");
        }
        for id in ["R3-high", "R4"] {
            assert_eq!(verdict(id), Some(Verdict::Within), "{id}: {rows:#?}");
        }
    }

    #[test]
    fn start_and_chain_are_what_the_figures_ask_for() {
        let bare = mutated(&[("software.prdma.start", 0), ("queue_chain", 0)]);
        let runs = run(&deciding(bare), &mut Progress::silent()).expect("it runs");
        let line = |how| runs.of(Pattern::Line, how).expect("it was run").line();
        let (fast, mrc) = (line(FAST), line(MRC));
        let bare_r1 = fast.iter().find(|point| point.0 == SIXTEEN_KIB as f64).expect("16 KiB").1;
        let start = 5e-6 - bare_r1;
        let owed = fast.iter().zip(&mrc).map(|(fast, mrc)| 1.2 * (fast.1 + start) - (mrc.1 + start));
        let chain = owed.fold(0.0, f64::max);
        // To the nanosecond.
        let of_table = |name| (Platform::fx100().value(name).expect(name) as f64 * 1e-3).round();
        assert_eq!((start * 1e9).round(), of_table("software.prdma.start"));
        assert_eq!((chain * 1e9).round(), of_table("queue_chain"));
    }

    #[test]
    fn another_machine_fails_the_check() {
        assert_eq!(misses(Platform::fx100()), [""; 0]);
        assert!(misses(mutated(&[("software.prdma.start", 1_000_000)])).contains(&"R1".to_owned()));
        assert!(misses(mutated(&[("queue_chain", 0)])).contains(&"R3-low".to_owned()));
        assert!(misses(mutated(&[("payload_byte", 120_000)])).contains(&"R2".to_owned()));
        let slow = mutated(&[("software.prdma.start", 3_000_000), ("queue_chain", 0)]);
        assert!(misses(slow).contains(&"R4".to_owned()));
    }
}
