//! Sequential execution of jobs in virtual time: the network of their nodes, the cost of each job on
//! the host, and the timeline of one job.

use crate::{ReproError, Shape, progress::Progress, shape::ShapeNetwork};
use rdma_fabric::{Program, Time};
use serde::{Deserialize, Serialize};
use tofu2_sim::{
    JobError,
    virt::{Arbiter, Job, NetworkModel, Platform, Timeline, TofuShape, Torus},
};

/// The number of events between two progress reports.
const EVENTS_PER_REPORT: u64 = 1 << 18;

/// The machine and placement of a job.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The machine.
    pub platform: Platform,
    /// The number of ranks.
    pub ranks: u32,
    /// The number of ranks on each node.
    pub ranks_per_node: u32,
    /// The network of the nodes; `None` means a torus as close to a cube as possible.
    pub shape: Option<Shape>,
    /// The choice of a router between inputs.
    pub arbiter: Arbiter,
    /// Routers with arbitration at every port, or latency only.
    pub network: NetworkModel,
    /// The number of receiving TNIs; `None` means the platform's own.
    pub receive_tnis: Option<u32>,
    /// 0 keeps simultaneous events in the order of their creation; another number shuffles them.
    pub seed: u64,
    /// The maximum number of entries of a timeline, and the time from which it is recorded.
    pub timeline: Option<(usize, Time)>,
}

impl Setting {
    /// Returns nodes on a network of this shape, with arbitration at every port.
    pub fn routed(platform: Platform, ranks: u32, ranks_per_node: u32, shape: Shape, seed: u64) -> Self {
        let setting = Setting::latency(platform, ranks, ranks_per_node, seed);
        Setting { shape: Some(shape), network: NetworkModel::Router, ..setting }
    }

    /// Returns nodes without contention between them.
    pub fn latency(platform: Platform, ranks: u32, ranks_per_node: u32, seed: u64) -> Self {
        let network = NetworkModel::Latency;
        Setting {
            platform,
            ranks,
            ranks_per_node,
            shape: None,
            arbiter: Arbiter::default(),
            network,
            receive_tnis: None,
            seed,
            timeline: None,
        }
    }
}

/// A completed job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// The purpose of the job.
    pub label: String,
    /// The cost of the job.
    pub cost: Cost,
    /// Hash of all its events: equal for equal program, platform and seed.
    pub trace_hash: u64,
    /// Atomic operations executed.
    pub atomics: Option<u64>,
    /// Gets executed.
    pub gets: Option<u64>,
}

/// The output of the ranks, and the job's record.
#[derive(Clone, Debug)]
pub struct Simulated<Out> {
    /// The outputs, by rank.
    pub outs: Vec<Out>,
    /// Hops from every rank to rank 0; empty without a shape.
    pub hops_to_first: Vec<u32>,
    /// The record.
    pub job: JobRecord,
    /// The timeline, if the setting requests one.
    pub timeline: Option<Timeline>,
}

/// Runs a job.
///
/// # Errors
/// [`ReproError::Job`].
pub fn simulate<P: Program>(
    label: String,
    setting: &Setting,
    program: &P,
    progress: &mut Progress,
) -> Result<Simulated<P::Out>, ReproError> {
    let failed = |error: JobError| ReproError::Job { stage: label.clone(), error };
    let no_network = |error| ReproError::Network { stage: label.clone(), error };
    let ranks = setting.ranks as usize;
    let progress_alone = progress.is_alone();
    let mut job = Job::new(&setting.platform, ranks)
        .ranks_per_node(setting.ranks_per_node)
        .seed(setting.seed)
        .shuffle_ties(setting.seed != 0)
        .progress(EVENTS_PER_REPORT, progress.stage(&label));
    let mut hops_to_first = Vec::new();
    if let Some(shape) = setting.shape {
        let nodes = (0..setting.ranks).map(|rank| rank / setting.ranks_per_node);
        match shape.network {
            ShapeNetwork::Torus(sides) => {
                let torus = Torus::new(sides).map_err(|error| failed(error.into()))?;
                hops_to_first = nodes.map(|node| torus.hops(node, 0)).collect();
                job = job.torus(torus);
            }
            ShapeNetwork::Tofu(groups) => {
                let tofu = TofuShape::of_groups(groups).map_err(no_network)?;
                let hops: Result<Vec<u32>, _> = nodes.map(|node| tofu.hops(node, 0, None)).collect();
                hops_to_first = hops.map_err(no_network)?;
                job = job.shape(tofu);
            }
        }
        job = job.network(setting.network).arbiter(setting.arbiter);
    }
    if let Some(tnis) = setting.receive_tnis {
        job = job.receive_tnis(tnis);
    }
    if let Some((limit, from)) = setting.timeline {
        job = job.timeline(limit, from);
    }

    let resident_bytes = || progress_alone.then(peak_resident_bytes).flatten();
    let (cpu, resident) = (cpu_seconds(), resident_bytes());
    let run = job.run(program).map_err(failed)?;
    let grown = resident_bytes().zip(resident).map(|(after, before)| after.saturating_sub(before) / ranks as u64);
    drop(job);
    progress.stage_done();

    let job = JobRecord {
        label,
        cost: Cost {
            ranks: ranks as u64,
            events: run.stats.events,
            cpu_seconds: cpu_seconds() - cpu,
            bytes_per_rank: run.stats.bytes_per_rank as u64,
            resident_bytes_per_rank: grown,
        },
        trace_hash: run.stats.trace_hash,
        atomics: Some(run.stats.ops.atomics),
        gets: Some(run.stats.ops.gets),
    };
    Ok(Simulated { outs: run.outs, hops_to_first, job, timeline: run.timeline })
}

/// The time at which measurements begin, after the end of set-up. Virtual time without events costs
/// nothing.
pub const BEGIN: Time = Time::from_picos(1_000_000_000_000);

/// The time at which timelines begin: a little earlier.
const TRACED_FROM: Time = Time::from_picos(999_990_000_000);

/// The job whose timeline is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Its number in the plan, from 1.
    pub job: usize,
    /// The number of recorded entries, from the time at which all ranks begin.
    pub entries: usize,
}

/// Runs the jobs of a plan.
pub(crate) struct Runner<'a> {
    progress: &'a mut Progress,
    traced: Option<Traced>,
    /// The number of jobs begun.
    begun: usize,
    timeline: Option<Timeline>,
}

impl<'a> Runner<'a> {
    /// Creates a runner for this number of jobs.
    pub(crate) fn new(progress: &'a mut Progress, jobs: usize, traced: Option<Traced>) -> Self {
        progress.expect(jobs);
        Runner { progress, traced, begun: 0, timeline: None }
    }

    /// Runs the plan's next job.
    pub(crate) fn run<P: Program>(
        &mut self,
        label: String,
        mut setting: Setting,
        program: &P,
    ) -> Result<Simulated<P::Out>, ReproError> {
        self.begun += 1;
        let traced = self.traced.filter(|traced| traced.job == self.begun);
        let (recorded, asked_for) = (traced.map(|traced| (traced.entries, TRACED_FROM)), setting.timeline);
        setting.timeline = recorded.or(asked_for);
        let mut simulated = simulate(label, &setting, program, self.progress)?;
        if recorded.is_some() {
            self.timeline.clone_from(&simulated.timeline);
        }
        if asked_for.is_none() {
            simulated.timeline = None;
        }
        Ok(simulated)
    }

    /// Ends the plan after all jobs have run, and returns the recorded timeline. `None` also if no
    /// job had the number.
    pub(crate) fn end(self) -> Option<Timeline> {
        self.progress.end();
        self.timeline
    }
}

/// Returns the CPU time used by this thread, in seconds. Wall-clock time would depend on other
/// processes, and that of the process on other plans.
#[cfg(unix)]
pub fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Returns the time since the first call, in seconds, for systems on which CPU time is not
/// available in a portable way.
#[cfg(not(unix))]
pub fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

/// Returns the peak resident memory of this process in bytes; `None` if the system does not report
/// it.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The cost of one simulated job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The number of simulated ranks.
    pub ranks: u64,
    /// The number of processed events.
    pub events: u64,
    /// CPU seconds of this machine; elapsed seconds on systems other than Unix.
    pub cpu_seconds: f64,
    /// Memory of the simulator per rank in bytes, as counted by the simulator.
    pub bytes_per_rank: u64,
    /// Growth of the process's peak resident memory per rank in bytes; 0 if an earlier job needed
    /// as much. `None` if the system does not report it, or other jobs ran at the same time.
    pub resident_bytes_per_rank: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work_and_only_forward() {
        let before = cpu_seconds();
        let mut x = 1u64;
        while cpu_seconds() - before < 0.002 {
            x = std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
        assert!(cpu_seconds() > before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peak_memory_sees_a_large_allocation() {
        let before = peak_resident_bytes().expect("Linux tells");
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_resident_bytes().expect("Linux tells") >= before.max(block.len() as u64));
    }
}
