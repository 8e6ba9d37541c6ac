//! One job after the other, and the timeline of one.

use crate::{
    ReproError,
    progress::Progress,
    simulate::{Setting, Simulated, simulate},
};
use rdma_fabric::{Program, Time};
use tofu2_sim::virt::Timeline;

/// When what is measured begins: set-up is certainly over. Virtual time that nothing happens in costs nothing.
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

    /// The plan's next job.
    pub(crate) fn run<P: Program>(
        &mut self,
        label: String,
        mut setting: Setting,
        program: &P,
    ) -> Result<Simulated<P::Out>, ReproError> {
        self.begun += 1;
        let traced = self.traced.filter(|traced| traced.job == self.begun);
        setting.timeline = traced.map(|traced| (traced.entries, TRACED_FROM));
        let mut simulated = simulate(label, &setting, program, self.progress)?;
        self.timeline = simulated.timeline.take().or(self.timeline.take());
        Ok(simulated)
    }

    /// All jobs have run: what was recorded. `None` too if no job had the number.
    pub(crate) fn end(self) -> Option<Timeline> {
        self.progress.end();
        self.timeline
    }
}
