//! The engines, which execute iterations.

mod assignment;
mod contact;
mod cpu;
mod data;
mod open_queues;
mod program;
#[cfg(test)]
pub(crate) mod program_model;
mod queues;

pub(crate) use assignment::{Demand, Relay, assign_queues, widest};
pub(crate) use contact::{CpuContact, transfer};
pub(crate) use cpu::{CpuEngine, CpuPartitions, awaited};
pub(crate) use data::Data;
pub(crate) use open_queues::{OpenQueues, QueueContact, open_queue};
pub(crate) use program::{CommandTemplate, MOST_SPS, Program, ring_depth};
pub(crate) use queues::{QueueEngine, QueuePartitions};

use crate::PrdmaError;
use core::future::Future;

/// The result of an engine. The error is boxed: each future that forwards a result moves all of it,
/// and errors are rare.
pub(crate) type Result<T, E = Box<PrdmaError>> = core::result::Result<T, E>;

/// The progress of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All blocks for this member have been received, and all sent ones may be modified again.
    Done,
    /// Some data are still in flight.
    Pending,
}

/// A way to execute iterations, which are numbered from 1.
///
/// Dropping one of the futures keeps the state of the iteration, and a later call continues it,
/// except that a start that was dropped may have posted only some of its commands.
pub(crate) trait Engine {
    /// Starts an iteration. Does not wait for any other member.
    fn start(&mut self, iteration: u64) -> impl Future<Output = Result<()>>;

    /// Waits until all puts of this member have been issued, if the CPU issues them.
    fn issue(&mut self) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Waits until the iteration has ended.
    fn wait(&mut self, iteration: u64) -> impl Future<Output = Result<()>>;

    /// Checks whether the iteration has ended, after making progress with it and with anything else
    /// that this rank has [armed](fabric_offload::triggered).
    fn test(&mut self, iteration: u64) -> impl Future<Output = Result<Progress>>;
}

/// An engine with control queues or one without.
pub(crate) enum QueuesOrCpu<Q, C> {
    Queues(Q),
    Cpu(C),
}

/// The engine of a request.
pub(crate) type AnyEngine = QueuesOrCpu<QueueEngine, CpuEngine>;

/// The engine of a partitioned request.
pub(crate) type PartitionEngine = QueuesOrCpu<QueuePartitions, CpuPartitions>;

impl<Q: Engine, C: Engine> Engine for QueuesOrCpu<Q, C> {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        match self {
            QueuesOrCpu::Queues(engine) => engine.start(iteration).await,
            QueuesOrCpu::Cpu(engine) => engine.start(iteration).await,
        }
    }

    async fn issue(&mut self) -> Result<()> {
        match self {
            QueuesOrCpu::Queues(engine) => engine.issue().await,
            QueuesOrCpu::Cpu(engine) => engine.issue().await,
        }
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        match self {
            QueuesOrCpu::Queues(engine) => engine.wait(iteration).await,
            QueuesOrCpu::Cpu(engine) => engine.wait(iteration).await,
        }
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        match self {
            QueuesOrCpu::Queues(engine) => engine.test(iteration).await,
            QueuesOrCpu::Cpu(engine) => engine.test(iteration).await,
        }
    }
}
