//! Who carries an iteration out.

mod cpu;
mod cpu_parts;
mod dealing;
mod desk;
mod opening;
mod program;
#[cfg(test)]
pub(crate) mod program_model;
mod queue_parts;
mod queues;
mod transfer;

pub(crate) use cpu::CpuEngine;
pub(crate) use cpu_parts::CpuParts;
pub(crate) use dealing::{Edges, Relay, deal, widest};
pub(crate) use desk::Desk;
pub(crate) use opening::open_queue;
pub(crate) use program::{Data, Program, Step};
pub(crate) use queue_parts::QueueParts;
pub(crate) use queues::{Contact, Opened, QueueEngine};
pub(crate) use transfer::transfer;

use crate::Result;
use core::future::Future;

/// How far an iteration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All own blocks are received, and all sent ones may be written again.
    Done,
    /// Not yet.
    Pending,
}

/// One way to carry iterations out; they are numbered from 1.
///
/// Dropping one of the futures leaves the iteration where it is: a later call goes on, except that a start which was dropped may have posted in part.
pub(crate) trait Engine {
    /// Begin an iteration. Waits for nobody.
    fn start(&mut self, iteration: u64) -> impl Future<Output = Result<()>>;

    /// Wait for its end.
    fn wait(&mut self, iteration: u64) -> impl Future<Output = Result<()>>;

    /// Look whether it has ended, and do what can be done, also of what else this rank has [armed](rdma_fabric::triggered).
    fn test(&mut self, iteration: u64) -> impl Future<Output = Result<Progress>>;
}

/// The engine of a request.
pub(crate) enum AnyEngine {
    Queues(QueueEngine),
    Cpu(CpuEngine),
}

impl Engine for AnyEngine {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        match self {
            AnyEngine::Queues(engine) => engine.start(iteration).await,
            AnyEngine::Cpu(engine) => engine.start(iteration).await,
        }
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        match self {
            AnyEngine::Queues(engine) => engine.wait(iteration).await,
            AnyEngine::Cpu(engine) => engine.wait(iteration).await,
        }
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        match self {
            AnyEngine::Queues(engine) => engine.test(iteration).await,
            AnyEngine::Cpu(engine) => engine.test(iteration).await,
        }
    }
}
