//! Running the plan in virtual time, and comparing what comes out.

use super::{AcpPlan, AddCase, Condition, DisturbanceRun, How, Load, disturbance::disturb};
use crate::{
    ReproError,
    figures::{self, Paper},
    outcome::Row,
    progress::Progress,
    simulate::{BEGIN, JobRecord, Runner, Setting, Shape},
    workloads::{Target, Together, global_adds, plain_adds},
};
use acp::EntryState;
use rdma_fabric::Time;
use tofu2_sim::virt::Timeline;

/// All ranks begin when set-up is certainly over; nobody needs an end by the clock for long.
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// What adds took.
#[derive(Clone, Debug, PartialEq)]
pub struct AddRun {
    /// What was run.
    pub case: AddCase,
    /// Seconds per add and its completion.
    pub seconds: f64,
    /// The job.
    pub job: JobRecord,
}

/// Everything the plan asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpRuns {
    /// What was asked for.
    pub plan: AcpPlan,
    /// By job of the plan.
    pub adds: Vec<AddRun>,
    /// By job of the plan.
    pub disturbances: Vec<DisturbanceRun>,
    /// The timeline that the plan asked for; `None` too if it has no such job.
    pub timeline: Option<Timeline>,
}

impl AcpRuns {
    /// Microseconds per add and its completion, if that was run.
    pub fn micros(&self, how: How, target: Target) -> Option<f64> {
        self.adds.iter().find(|run| run.case == AddCase { how, target }).map(|run| run.seconds * 1e6)
    }

    /// Microseconds per add of a disturbed rank, if that was run.
    pub fn disturbed(&self, load: Load, initiators: u32) -> Option<&DisturbanceRun> {
        self.disturbances.iter().find(|run| (run.load, run.initiators) == (load, initiators))
    }

    /// The jobs, in the order they ran.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        self.adds.iter().map(|run| &run.job).chain(self.disturbances.iter().map(|run| &run.job))
    }
}

/// Simulates everything the plan asks for.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &AcpPlan, progress: &mut Progress) -> Result<AcpRuns, ReproError> {
    let mut runner = Runner::new(progress, plan.jobs(), plan.traced);
    let mut adds = Vec::with_capacity(plan.adds.len());
    for &case in &plan.adds {
        let AddCase { how, target } = case;
        let (count, label) = (plan.count, format!("{} adds, {}, {}", plan.count, target.name(), how.name()));
        let setting = Setting::torus(how.on(&plan.platform), 2, 1, Shape::new(&[2]), plan.seed);
        let simulated = match how.options() {
            Some(options) => runner.run(label, setting, &async |fabric| {
                global_adds(fabric, options, target, count, TOGETHER).await
            })?,
            None => runner.run(label, setting, &async |fabric| {
                plain_adds(fabric, "fjmpi", target, count, TOGETHER).await
            })?,
        };
        let elapsed = simulated.outs.first().copied().unwrap_or(0);
        let seconds = elapsed as f64 * 1e-12 / f64::from(count);
        adds.push(AddRun { case, seconds, job: simulated.job });
    }
    let disturbed = plan.disturbances.iter().map(|&case| disturb(plan, case, &mut runner));
    let disturbances = disturbed.collect::<Result<_, _>>()?;
    let timeline = runner.end();
    Ok(AcpRuns { plan: plan.clone(), adds, disturbances, timeline })
}

/// Every figure of the paper that the runs say something about, in the paper's order.
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
            "A10-unsafe" => best(&[1, 3, 4], remote),
            "A11-safe" => best(&[2, 5, 6, 7, 8], local),
            "A11-unsafe" => best(&[1, 3, 4], local),
            "A12" => gain(3, 4, remote),
            "A13" => gain(5, 7, remote),
            "A14" => cell(4, remote).zip(runs.micros(How::Mpi, remote)).map(|(acp, mpi)| acp - mpi),
            "A16" => Some(EntryState::ALL.len() as f64),
            id => table_cell(id).and_then(|(number, target)| cell(number, target)),
        };
        rows.extend(value.map(|value| Row::simulated(figure, value)));
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

    #[test]
    fn scratch() {
        let t = std::time::Instant::now();
        let runs = run(&AcpPlan { count: 50, window: 500_000_000, ..AcpPlan::paper(0) }, &mut Progress::silent()).unwrap();
        for r in &runs.adds { println!("{:30} {:7} {:.3}", r.case.how.name(), r.case.target.name(), r.seconds * 1e6); }
        for d in &runs.disturbances { println!("{:30} {:3} {:.3} us {:.0} copies/s {} events", d.load.name(), d.initiators, d.add * 1e6, d.copies, d.job.cost.events); }
        println!("{}", crate::table::render(&compare(&runs), None));
        println!("{:?}", t.elapsed());
    }
}
