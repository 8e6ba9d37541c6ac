//! Running the plan in virtual time, and comparing the results.

use super::{AcpPlan, AddCase, Condition, DisturbanceRun, How, Load, disturbance::disturb};
use crate::{
    ReproError,
    figures::{self, Paper},
    outcome::Row,
    progress::Progress,
    shape::Shape,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    workloads::{Target, Together, entry_states, global_adds, plain_adds},
};
use acp::EntryState;
use rdma_fabric::Time;
use tofu2_sim::virt::Timeline;

/// All ranks begin after the end of set-up; the end time is never the limit.
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// The measured time of a job of adds.
#[derive(Clone, Debug, PartialEq)]
pub struct AddRun {
    /// The job's parameters.
    pub case: AddCase,
    /// Seconds per add and its completion.
    pub seconds: f64,
    /// The job.
    pub job: JobRecord,
}

/// The states of command-queue entries, of table 1.
#[derive(Clone, Debug, PartialEq)]
pub struct StatesRun {
    /// Those that an entry entered.
    pub entered: Vec<EntryState>,
    /// The job.
    pub job: JobRecord,
}

/// The results of all jobs of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpRuns {
    /// The plan.
    pub plan: AcpPlan,
    /// One entry for each job of the plan.
    pub adds: Vec<AddRun>,
    /// The states of entries.
    pub states: Option<StatesRun>,
    /// One entry for each job of the plan.
    pub disturbances: Vec<DisturbanceRun>,
    /// The timeline that the plan requests; also `None` if the plan has no such job.
    pub timeline: Option<Timeline>,
}

impl AcpRuns {
    /// Returns microseconds per add and its completion, if that job was run.
    pub fn micros(&self, how: How, target: Target) -> Option<f64> {
        self.adds.iter().find(|run| run.case == AddCase { how, target }).map(|run| run.seconds * 1e6)
    }

    /// Returns the results for a disturbed rank, if that job was run.
    pub fn disturbed(&self, load: Load, initiators: u32) -> Option<&DisturbanceRun> {
        self.disturbances.iter().find(|run| (run.load, run.initiators) == (load, initiators))
    }

    /// Returns the jobs, in the order of their execution.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        let states = self.states.iter().map(|run| &run.job);
        self.adds.iter().map(|run| &run.job).chain(states).chain(self.disturbances.iter().map(|run| &run.job))
    }
}

/// Simulates all jobs of the plan.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &AcpPlan, progress: &mut Progress) -> Result<AcpRuns, ReproError> {
    let mut runner = Runner::new(progress, plan.jobs(), plan.traced);
    let mut adds = Vec::with_capacity(plan.adds.len());
    for &case in &plan.adds {
        let AddCase { how, target } = case;
        let (count, label) = (plan.count, format!("{} adds, {}, {}", plan.count, target.name(), how.name()));
        let setting = Setting::routed(how.on(&plan.platform), 2, 1, Shape::new(&[2]), plan.seed);
        let simulated = match how.options() {
            Some(options) => runner
                .run(label, setting, &async |fabric| global_adds(fabric, options, target, count, TOGETHER).await)?,
            None => runner
                .run(label, setting, &async |fabric| plain_adds(fabric, "fjmpi", target, count, TOGETHER).await)?,
        };
        let elapsed = simulated.outs.first().copied().unwrap_or(0);
        let seconds = elapsed as f64 * 1e-12 / f64::from(count);
        adds.push(AddRun { case, seconds, job: simulated.job });
    }
    let setting = Setting::routed(plan.platform.clone(), 3, 1, Shape::new(&[3]), plan.seed);
    let options = Condition::TABLE[0].options();
    let simulated =
        runner.run("states of entries".into(), setting, &async |fabric| entry_states(fabric, options).await)?;
    let entered = simulated.outs.into_iter().next().unwrap_or_default();
    let states = Some(StatesRun { entered, job: simulated.job });
    let disturbed = plan.disturbances.iter().map(|&case| disturb(plan, case, &mut runner));
    let disturbances = disturbed.collect::<Result<_, _>>()?;
    let timeline = runner.end();
    Ok(AcpRuns { plan: plan.clone(), adds, states, disturbances, timeline })
}

/// Returns a row for every figure of the paper to which the runs apply, in the paper's order.
pub fn compare(runs: &AcpRuns) -> Vec<Row> {
    let mut rows = Vec::new();
    let cell = |number: usize, target| runs.micros(How::Table(*Condition::TABLE.get(number - 1)?), target);
    let best = |numbers: &[usize], target| numbers.iter().filter_map(|&number| cell(number, target)).reduce(f64::min);
    let gain = |from, to, target| cell(from, target).zip(cell(to, target)).map(|(from, to)| from - to);
    let (remote, local) = (Target::Remote, Target::Local);
    for figure in figures::of(Paper::Acp) {
        let value = match figure.id {
            "A9-remote" => runs.micros(How::Mpi, remote),
            "A9-local" => runs.micros(How::Mpi, local),
            "A10-safe" => best(&[2, 5, 6, 7, 8], remote),
            "A10-condition" => [2, 5, 6, 7, 8]
                .into_iter()
                .filter_map(|number| Some((number, cell(number, remote)?)))
                .min_by(|one, other| one.1.total_cmp(&other.1))
                .map(|(number, _)| number as f64),
            "A10-unsafe" => best(&[1, 3, 4], remote),
            "A11-safe" => best(&[2, 5, 6, 7, 8], local),
            "A11-unsafe" => best(&[1, 3, 4], local),
            "A12" => gain(3, 4, remote),
            "A13" => gain(5, 7, remote),
            "A14" => cell(4, remote).zip(runs.micros(How::Mpi, remote)).map(|(acp, mpi)| acp - mpi),
            "A16" => runs.states.as_ref().map(|run| run.entered.len() as f64),
            id => table_cell(id).and_then(|(number, target)| cell(number, target)),
        };
        rows.extend(value.map(|value| Row::simulated(figure, value)).or_else(|| Row::not_modelled(figure)));
        if figure.id == "A4-remote"
            && let Some(value) = runs.micros(How::OverMpi, remote)
        {
            rows.push(Row::simulated(figure, value).case("from A9, A1 local"));
        }
    }
    rows
}

/// Returns the condition and target of a cell of table 3.
fn table_cell(id: &str) -> Option<(usize, Target)> {
    let (number, target) = id.strip_prefix('A')?.split_once('-')?;
    let target = Target::BOTH.into_iter().find(|known| known.name() == target)?;
    number.parse().ok().filter(|number| (1..=Condition::TABLE.len()).contains(number)).map(|number| (number, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Verdict;
    use tofu2_sim::virt::Platform;

    /// Runs the table and the job with which it is compared.
    fn table(platform: Platform) -> AcpRuns {
        let plan = AcpPlan { count: 20, disturbances: Vec::new(), platform, ..AcpPlan::paper(0) };
        run(&plan, &mut Progress::silent()).expect("it runs")
    }

    fn mutated(changes: &[(&str, u64)]) -> Platform {
        changes.iter().fold(Platform::fx100(), |platform, (name, value)| platform.with(name, *value).expect(name))
    }

    /// Returns the figures for which `--check` fails.
    fn misses(platform: Platform) -> Vec<String> {
        let rows = compare(&table(platform));
        rows.into_iter().filter(|row| row.differs()).map(|row| row.id).collect()
    }

    #[test]
    fn the_machine_gives_calibrated_figures_back_and_meets_the_bounds() {
        let rows = compare(&table(Platform::fx100()));
        let verdicts = |id: &str| rows.iter().filter(|row| row.id == id).map(Row::verdict).collect::<Vec<_>>();
        for id in ["A1-local", "A2-local", "A3-local", "A4-local", "A5-local", "A7-local", "A9-remote", "A9-local"] {
            assert_eq!(verdicts(id), [Verdict::Calibrated], "{id}: {rows:#?}");
        }
        let bounded = [figures::Status::Predicted, figures::Status::Derived];
        for figure in figures::of(Paper::Acp).iter().filter(|figure| bounded.contains(&figure.status)) {
            let expected = if figure.miss.is_some() { Verdict::Miss } else { Verdict::Within };
            let rows = if figure.id == "A4-remote" { 2 } else { 1 };
            assert_eq!(verdicts(figure.id), vec![expected; rows], "{}", figure.id);
        }
    }

    #[test]
    fn costs_are_what_the_figures_ask_for() {
        let names = ["thread", "network", "descriptor", "thread_safe", "thread_safe_cpu", "bypass"]
            .map(|name| format!("software.acp.{name}"));
        let free: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        let bare = table(mutated(&free));
        let owed = |number: usize| {
            let id = format!("A{number}-local");
            let micros = bare.micros(How::Table(Condition::TABLE[number - 1]), Target::Local).expect("it was run");
            figures::find(&id).and_then(figures::Figure::value).expect("a number") - micros
        };
        let [thread, network, descriptor, safe, safe_by_cpu, bypass] =
            names.each_ref().map(|name| Platform::fx100().value(name).expect("a constant") as f64 * 1e-6);
        let expected = [
            (1, thread),
            (2, thread + safe_by_cpu),
            (3, thread + network + descriptor),
            (4, thread + network),
            (5, thread + network + descriptor + safe),
            (7, thread + network + descriptor + safe + bypass),
        ];
        for (number, cost) in expected {
            // To the nanosecond.
            assert!((owed(number) - cost).abs() < 1e-3, "A{number} local: {} and {cost}", owed(number));
        }
    }

    #[test]
    fn another_machine_fails_the_check() {
        assert_eq!(misses(Platform::fx100()), [""; 0]);
        for (change, missed) in [
            (("software.acp.thread", 1_000_000), "A14"),
            (("software.acp.network", 0), "A3-local"),
            (("software.acp.thread_safe", 0), "A5-remote"),
            (("software.acp.thread_safe_cpu", 280_000), "A2-local"),
            (("software.acp.bypass", 0), "A7-local"),
            (("software.acp.descriptor", 0), "A3-local"),
            (("software.acp.served", 5_000_000), "A1-remote"),
            (("wire_round_trip", 300_000), "A9-local"),
        ] {
            let misses = misses(mutated(&[change]));
            assert!(misses.iter().any(|id| id == missed), "{change:?}: {misses:?}");
        }
    }

    #[test]
    fn equal_plans_give_equal_runs_and_disturbance_costs_something() {
        let cases =
            [Load::Queue, Load::Direct].into_iter().flat_map(|load| [0, 4].map(|initiators| (load, initiators)));
        let plan =
            AcpPlan { adds: Vec::new(), disturbances: cases.collect(), window: 500_000_000, ..AcpPlan::paper(7) };
        let [one, other] = [0; 2].map(|_| run(&plan, &mut Progress::silent()).expect("it runs"));
        let hashes = |runs: &AcpRuns| runs.jobs().map(|job| job.trace_hash).collect::<Vec<_>>();
        assert_eq!(hashes(&one), hashes(&other));
        for load in [Load::Queue, Load::Direct] {
            let [alone, disturbed] = [0, 4].map(|initiators| one.disturbed(load, initiators).expect("it was run"));
            assert!(disturbed.add > alone.add * 1.02, "{load}: {} and {}", alone.add, disturbed.add);
            assert!(disturbed.copies > 1e4 && alone.copies == 0.0, "{load}: {disturbed:?}");
        }
    }
}
