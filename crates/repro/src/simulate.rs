//! One job in virtual time, with what it cost.

use crate::{
    ReproError,
    cost::{Cost, cpu_seconds, peak_resident_bytes},
    progress::Progress,
    shape::Shape,
};
use rdma_fabric::{Program, Time};
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
    /// With a shape: routers with arbitration at every port. Without: latency only.
    pub(crate) shape: Option<Shape>,
    /// The platform's own number if `None`.
    pub(crate) receive_tnis: Option<u32>,
    /// 0 keeps events of one moment in the order they were made; another number shuffles them.
    pub(crate) seed: u64,
    /// Record a timeline of at most so many entries, from that time on.
    pub(crate) timeline: Option<(usize, Time)>,
}

impl Setting {
    pub(crate) fn torus(platform: Platform, ranks: u32, ranks_per_node: u32, shape: Shape, seed: u64) -> Self {
        Setting { platform, ranks, ranks_per_node, shape: Some(shape), receive_tnis: None, seed, timeline: None }
    }

    pub(crate) fn latency(platform: Platform, ranks: u32, ranks_per_node: u32, seed: u64) -> Self {
        Setting { platform, ranks, ranks_per_node, shape: None, receive_tnis: None, seed, timeline: None }
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
}

/// What the ranks produced, and the job's record.
pub(crate) struct Simulated<Out> {
    pub(crate) outs: Vec<Out>,
    /// Hops from every rank to rank 0; empty without a torus.
    pub(crate) hops_to_first: Vec<u32>,
    pub(crate) job: JobRecord,
    /// If one was asked for.
    pub(crate) timeline: Option<Timeline>,
}

/// Run `program` as `setting` says.
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
        job = job.torus(torus).network(NetworkModel::Router);
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
    };
    Ok(Simulated { outs: run.outs, hops_to_first, job, timeline: run.timeline })
}
