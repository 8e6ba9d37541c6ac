//! A job of ranks that may share cores: its meetings, and the results of its cases.

use super::{Case, all};
use crate::{
    operations::{
        ranks::JobPlan,
        sampling::{Form, Measured, Sample},
    },
    outside::{
        bare::Bare,
        lines,
        placement::{PingPong, pin},
        rendezvous::{Abandoned, Rendezvous, share_core},
    },
};
use core::sync::atomic::Ordering::Release;
use rdma_fabric::{Fabric, ProgramResult};

/// One rank of the job.
pub(super) struct Crowd<'a> {
    pub(super) bare: &'a Bare,
    pub(super) me: usize,
    pub(super) ranks: usize,
    rendezvous: Rendezvous<'a>,
    ping_pong: PingPong,
}

impl<'a> Crowd<'a> {
    /// Binds the calling rank to its core.
    pub(super) fn new(fabric: &Fabric, bare: &'a Bare, plan: &JobPlan) -> ProgramResult<Self> {
        let (me, ranks) = (fabric.rank().index(), fabric.ranks());
        pin(plan.cores[me % plan.cores.len()])?;
        if plan.cores.len() < 2 {
            share_core();
        }
        Ok(Crowd { bare, me, ranks, rendezvous: Rendezvous::new(bare, me, ranks), ping_pong: PingPong::default() })
    }

    /// Announces the current case, for the progress display.
    pub(super) fn announce(&self, case: &Case) {
        if let Some(number) = all().position(|known| known.name == case.name) {
            self.bare.word(lines::PROGRESS).store(number as u64 + 1, Release);
        }
    }

    /// Synchronises all ranks.
    pub(super) fn assemble(&mut self) -> Result<(), Abandoned> {
        self.rendezvous.assemble()
    }

    /// Synchronises all ranks, and ranks 0 and 1 measure a ping-pong; returns its time there.
    pub(super) fn ping_pong(&mut self) -> Result<f64, Abandoned> {
        self.assemble()?;
        // The others sleep in the next assembly.
        if self.me < 2 { self.ping_pong.measure(self.bare, self.me) } else { Ok(0.0) }
    }
}

/// Returns a case with its samples.
pub(super) fn measured(case: &Case, bytes: usize, forms: Vec<(&str, Vec<Sample>)>) -> Measured {
    let forms = forms.into_iter().map(|(name, samples)| Form { name: name.to_owned(), samples }).collect();
    Measured { name: case.name.to_owned(), bytes, forms }
}
