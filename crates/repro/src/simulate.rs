//! Jobs in virtual time, one after the other: the torus of their nodes, what each costs the machine
//! it runs on, and the timeline of one.

use crate::{ReproError, progress::Progress};
use rdma_fabric::{Program, Time};
use serde::{Deserialize, Serialize};
use std::fmt;
use tofu2_sim::{
    JobError,
    virt::{Job, NetworkModel, Platform, Timeline, Torus},
};

/// Events between two reports of progress.
const EVENTS_PER_REPORT: u64 = 1 << 18;

/// How a job is placed on which machine.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) platform: Platform,
    pub(crate) ranks: u32,
    pub(crate) ranks_per_node: u32,
    /// The torus of the nodes; without one, it is as close to a cube as possible.
    pub(crate) shape: Option<Shape>,
    /// Routers with arbitration at every port, or latency only.
    pub(crate) network: NetworkModel,
    /// The platform's own number if `None`.
    pub(crate) receive_tnis: Option<u32>,
    /// 0 keeps events of one moment in the order they were made; another number shuffles them.
    pub(crate) seed: u64,
    /// Record a timeline of at most so many entries, from that time on.
    pub(crate) timeline: Option<(usize, Time)>,
}

impl Setting {
    pub(crate) fn torus(platform: Platform, ranks: u32, ranks_per_node: u32, shape: Shape, seed: u64) -> Self {
        let network = NetworkModel::Router;
        Setting {
            platform,
            ranks,
            ranks_per_node,
            shape: Some(shape),
            network,
            receive_tnis: None,
            seed,
            timeline: None,
        }
    }

    pub(crate) fn latency(platform: Platform, ranks: u32, ranks_per_node: u32, seed: u64) -> Self {
        let network = NetworkModel::Latency;
        Setting { platform, ranks, ranks_per_node, shape: None, network, receive_tnis: None, seed, timeline: None }
    }
}

/// A job that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// What it was for.
    pub label: String,
    /// What it cost.
    pub cost: Cost,
    /// Hash of all its events: equal for equal program, platform and seed.
    pub trace_hash: u64,
    /// Atomic operations executed.
    pub atomics: Option<u64>,
    /// Gets executed.
    pub gets: Option<u64>,
}

/// What the ranks produced, and the job's record.
pub(crate) struct Simulated<Out> {
    pub(crate) outs: Vec<Out>,
    /// Hops from every rank to rank 0; empty without a torus.
    pub(crate) hops_to_first: Vec<u32>,
    pub(crate) job: JobRecord,
    /// If the setting asks for one.
    pub(crate) timeline: Option<Timeline>,
}

/// Runs `program` as `setting` says.
pub(crate) fn simulate<P: Program>(
    label: String,
    setting: &Setting,
    program: &P,
    progress: &mut Progress,
) -> Result<Simulated<P::Out>, ReproError> {
    let failed = |error: JobError| ReproError::Job { stage: label.clone(), error };
    let ranks = setting.ranks as usize;
    let mut job = Job::new(&setting.platform, ranks)
        .ranks_per_node(setting.ranks_per_node)
        .seed(setting.seed)
        .shuffle_ties(setting.seed != 0)
        .progress(EVENTS_PER_REPORT, progress.stage(&label));
    let mut hops_to_first = Vec::new();
    if let Some(shape) = setting.shape {
        let torus = Torus::new(shape.sides()).map_err(|error| failed(error.into()))?;
        hops_to_first = (0..setting.ranks).map(|rank| torus.hops(rank / setting.ranks_per_node, 0)).collect();
        job = job.torus(torus).network(setting.network);
    }
    if let Some(tnis) = setting.receive_tnis {
        job = job.receive_tnis(tnis);
    }
    if let Some((limit, from)) = setting.timeline {
        job = job.timeline(limit, from);
    }

    let (cpu, resident) = (cpu_seconds(), peak_resident_bytes());
    let run = job.run(program).map_err(failed)?;
    let grown = peak_resident_bytes().zip(resident).map(|(after, before)| after.saturating_sub(before) / ranks as u64);
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

/// When what is measured begins: set-up is certainly over. Virtual time that nothing happens in
/// costs nothing.
pub(crate) const BEGIN: Time = Time::from_picos(1_000_000_000_000);

/// When timelines begin: a little before that.
const TRACED_FROM: Time = Time::from_picos(999_990_000_000);

/// Which job's timeline to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Its number in the plan, from 1.
    pub job: usize,
    /// Entries that are kept, from the moment on when all ranks begin.
    pub entries: usize,
}

/// Runs the jobs of a plan.
pub(crate) struct Runner<'a> {
    progress: &'a mut Progress,
    traced: Option<Traced>,
    /// Jobs begun.
    begun: usize,
    timeline: Option<Timeline>,
}

impl<'a> Runner<'a> {
    /// For so many jobs.
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

    /// Returns all jobs have run: what was recorded. `None` too if no job had the number.
    pub(crate) fn end(self) -> Option<Timeline> {
        self.progress.end();
        self.timeline
    }
}

/// CPU time this process has used, in seconds. Wall time would tell about the neighbours.
#[cfg(unix)]
pub(crate) fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Time since the first call, in seconds: the next best where CPU time is not to be had in a
/// portable way.
#[cfg(not(unix))]
pub(crate) fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

/// Returns the most memory this process ever had resident, in bytes; `None` where the system does
/// not tell.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// One simulated job and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Ranks simulated.
    pub ranks: u64,
    /// Events processed.
    pub events: u64,
    /// CPU seconds of this machine; elapsed seconds where the system is no Unix.
    pub cpu_seconds: f64,
    /// Simulator memory per rank, in bytes, as the simulator counts it.
    pub bytes_per_rank: u64,
    /// Growth of the process's peak resident memory per rank, in bytes; 0 if an earlier job had
    /// needed as much. `None` where the system does not tell.
    pub resident_bytes_per_rank: Option<u64>,
}

/// Sides of a torus. Where a paper gives none, several are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(&'static [u32]);

impl Shape {
    /// Returns the torus of these sides.
    pub const fn new(sides: &'static [u32]) -> Self {
        Shape(sides)
    }

    /// Number of nodes along each axis.
    pub const fn sides(self) -> &'static [u32] {
        self.0
    }

    /// Number of nodes.
    pub fn nodes(self) -> u32 {
        self.0.iter().product()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, side) in self.0.iter().enumerate() {
            write!(f, "{}{side}", if i == 0 { "" } else { "×" })?;
        }
        Ok(())
    }
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
