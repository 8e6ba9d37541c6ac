//! Exchanges whose blocks are produced by several tasks and sent partition by partition.
//!
//! ```text
//! start -- ready(slot, partition), each once, from any task -- arrived(slot, partition) -- wait
//! ```
//! A partition is sent once it has been marked and its receiver is ready; no partition waits for
//! another. Its data are followed by a word with the iteration's number: a receiver that sees the
//! number may read the partition.
//!
//! # Data movement
//! With queues, `start` posts the commands that wait for READYs, and `ready` the partition's
//! commands: the network does the rest. In a queue with several neighbours, nothing leaves before
//! all of them are ready. With [`Form::Cpu`], data move in calls of this member: `ready`,
//! `arrived`, `test`, and the next wait send the partitions that are marked and may leave.
//!
//! # Several tasks
//! `ready`, `ready_range` and `arrived` take the request by shared reference: tasks, and threads
//! where the fabric is `Sync`, may call them at any time. The other methods take it exclusively.
//! All writes of a task to a partition before it marks the partition are sent.
//!
//! # Source
//! MPI 4.1, chapter 4.

mod making;
mod marks;

use crate::{
    Form, PrdmaError, Result, Side,
    buffer::{ClaimSet, Use},
    cost,
    engine::{Engine, PartitionEngine, Progress, QueuePartitions},
    init::{Blocks, Channel, Made},
};
use core::{fmt, ops::Range};
use fabric_offload::Triggers;
use marks::{BreakOnDrop, ReadyPartitions};
use rdma_fabric::{Deps, LocalWord, Rank, join};
use std::sync::OnceLock;

/// A persistent exchange whose blocks are sent partition by partition:
/// [`crate::Neighbourhood::partitioned_init`].
///
/// A partition to be sent may be written until it is marked, and a received one may be read once it
/// has [arrived](Partitioned::arrived).
pub struct Partitioned {
    made: Made<PartitionEngine>,
    /// Number of partitions of each slot.
    partitions: usize,
    /// By slot and partition: its number in the engine and its claim; `None` without a neighbour.
    outs: Vec<Option<(usize, ClaimSet)>>,
    /// One mark for each entry of `outs`.
    marked: ReadyPartitions,
    /// By slot and partition; `None` without a neighbour.
    ins: Vec<Option<In>>,
    active: bool,
    /// The reason why the request can only be freed.
    broken: OnceLock<PrdmaError>,
    /// The last iteration that was started, from 1.
    iteration: u64,
}

/// A partition that is received.
struct In {
    from: Rank,
    /// The word in which its sender reports that the partition has arrived.
    end: LocalWord<u64>,
    claim: ClaimSet,
}

impl fmt::Debug for Partitioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Partitioned { made: Made { form, .. }, partitions, iteration, active, .. } = self;
        let state = if *active { "active" } else { "inactive" };
        write!(f, "Partitioned({form}, {partitions} partitions, iteration {iteration}, {state})")
    }
}

impl Partitioned {
    /// Makes a request of `channels`, one for each partition of an edge, and the blocks'
    /// partitions.
    fn new(made: Made<PartitionEngine>, partitions: usize, channels: &[Channel], blocks: &Blocks) -> Result<Self> {
        let mut outs: Vec<_> = blocks.sends.iter().map(|_| None).collect();
        let mut ins: Vec<_> = blocks.receives.iter().map(|_| None).collect();
        let mut sent = 0;
        for channel in channels {
            if let Some(end) = channel.out {
                outs[end.slot] = Some((sent, ClaimSet::of([(Use::Send, &blocks.sends[end.slot])].into_iter())));
                sent += 1;
            }
            if let Some(end) = channel.inn {
                let claim = ClaimSet::of([(Use::Receive, &blocks.receives[end.slot])].into_iter());
                ins[end.slot] = Some(In { from: channel.rank, end: made.connections.end(channel)?, claim });
            }
        }
        let (marked, broken) = (ReadyPartitions::new(outs.len()), OnceLock::new());
        Ok(Partitioned { made, partitions, outs, marked, ins, active: false, broken, iteration: 0 })
    }

    /// Returns the form in which iterations are executed; the same at all members.
    pub fn form(&self) -> Form {
        self.made.form
    }

    /// Returns why the form has fewer queues than members requested: the first obstacle that
    /// prevented this member from obtaining the queues it requested. It is
    /// [`FabricError::Unsupported`](rdma_fabric::FabricError::Unsupported) if the fabric has no
    /// control queues, [`PrdmaError::Limit`] if too few are free or an iteration needs a deeper one
    /// than the network allows, or another error of the fabric; [`PrdmaError::ElsewhereFailed`] if
    /// only another member could not obtain its queues. `None` if options alone determined the
    /// form.
    pub fn obstacle(&self) -> Option<&PrdmaError> {
        self.made.obstacle.as_ref()
    }

    /// Returns the number of partitions of each block.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Returns whether the request has been started and not yet waited for.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Returns the number of iterations started so far.
    pub fn iterations(&self) -> u64 {
        self.iteration
    }

    fn sound(&self) -> Result<()> {
        self.broken.get().map_or(Ok(()), |error| Err(PrdmaError::Broken(Box::new(error.clone()))))
    }

    /// Breaks the request if `done` is an error; the first error is kept. If a neighbour's loss is
    /// known by now, the error becomes that loss.
    fn kept<T>(&self, done: Result<T>) -> Result<T> {
        let done = done.map_err(|error| self.made.connections.name_loss(&self.made.fabric, error));
        if let Err(error) = &done {
            let _ = self.broken.set(error.clone());
        }
        done
    }

    /// Starts an iteration (`MPI_Start`). No data is sent yet, but neighbours may send from now on.
    /// Does not wait for other members.
    ///
    /// # Errors
    /// [`PrdmaError::Active`], [`PrdmaError::Broken`]; an error of the fabric breaks the request,
    /// as does a start that is dropped half-way.
    pub async fn start(&mut self) -> Result<()> {
        self.sound()?;
        if self.active {
            return Err(PrdmaError::Active { iteration: self.iteration });
        }
        self.ins.iter().flatten().try_for_each(|inn| inn.claim.unviewed())?;
        self.iteration += 1;
        self.marked.clear();
        self.ins.iter().flatten().for_each(|inn| inn.claim.activate());
        // Holds until the start is complete.
        let _ = self.broken.set(PrdmaError::HalfStarted { iteration: self.iteration });
        self.made.fabric.charge(cost::START).await;
        let started = self.made.engine.start(self.iteration).await;
        self.broken.take();
        self.active = started.is_ok();
        self.kept(started.map_err(Into::into))
    }

    /// Marks a partition to be sent along a destination slot as ready (`MPI_Pready`): it is sent
    /// once its receiver is ready, and must not be written until the request has been waited for.
    /// Each partition is marked once per iteration. Marks of a slot without a neighbour have no
    /// effect.
    ///
    /// A call that is dropped half-way has marked the partition; with queues it may break the
    /// request: [`PrdmaError::HalfReady`].
    ///
    /// # Errors
    /// [`PrdmaError::Inactive`], [`PrdmaError::NoPartition`], [`PrdmaError::ReadyTwice`],
    /// [`PrdmaError::InUse`] if a view writes the partition, all of which change nothing;
    /// [`PrdmaError::Broken`]; an error of the fabric breaks the request.
    pub async fn ready(&self, slot: usize, partition: usize) -> Result<()> {
        self.ready_range(slot, partition..partition.saturating_add(1)).await
    }

    /// Marks several partitions of a slot, or none of them (`MPI_Pready_range`).
    ///
    /// # Errors
    /// As [`Partitioned::ready`].
    pub async fn ready_range(&self, slot: usize, partitions: Range<usize>) -> Result<()> {
        self.sound()?;
        if !self.active {
            return Err(PrdmaError::Inactive);
        }
        let places = self.places(Side::Destination, slot, partitions.clone())?;
        self.outs[places.clone()].iter().flatten().try_for_each(|(_, claim)| claim.unviewed())?;
        self.marked.mark(places.clone()).map_err(|taken| PrdmaError::ReadyTwice {
            slot,
            partition: taken % self.partitions,
            iteration: self.iteration,
        })?;
        let numbers = self.outs[places].iter().flatten().map(|(number, claim)| {
            claim.activate();
            *number
        });
        match &self.made.engine {
            PartitionEngine::Queues(queues) => {
                let half = PrdmaError::HalfReady { slot, first: partitions.start, end: partitions.end };
                let posting = BreakOnDrop::new(&self.broken, half);
                let posted = self.post(queues, numbers).await;
                posting.finish();
                self.kept(posted)
            }
            PartitionEngine::Cpu(cpu) => {
                numbers.for_each(|number| cpu.arm(number, self.iteration));
                Triggers::of(&self.made.fabric).advance().await;
                Ok(())
            }
        }
    }

    async fn post(&self, queues: &QueuePartitions, numbers: impl Iterator<Item = usize>) -> Result<()> {
        for number in numbers {
            queues.post(number, self.iteration).await?;
        }
        Ok(())
    }

    /// Returns whether a partition along a source slot has arrived (`MPI_Parrived`): then it may be
    /// read (acquire), although the request is active. Returns `true` if the request is inactive,
    /// or the slot has no neighbour.
    ///
    /// # Errors
    /// [`PrdmaError::NoPartition`], [`PrdmaError::Broken`]; an error of the fabric breaks the
    /// request, including [`rdma_fabric::FabricError::PeerLost`] if the neighbour is lost and the
    /// partition has not arrived.
    pub async fn arrived(&self, slot: usize, partition: usize) -> Result<bool> {
        self.sound()?;
        let at = self.places(Side::Source, slot, partition..partition.saturating_add(1))?.start;
        let Some(inn) = self.ins[at].as_ref().filter(|_| self.active) else {
            return Ok(true);
        };
        Triggers::of(&self.made.fabric).advance().await;
        let come = self.made.fabric.wait_until(&inn.end, Deps::One(inn.from), |number| number >= self.iteration);
        let here = self.kept(join::now(come).transpose().map_err(PrdmaError::from))?.is_some();
        if here {
            inn.claim.end(false);
        }
        Ok(here)
    }

    /// Waits for the end of the iteration (`MPI_Wait`): all partitions have arrived (acquire), and
    /// sent ones may be modified again. Returns immediately if the request is inactive. May be
    /// dropped and called again.
    ///
    /// # Errors
    /// [`PrdmaError::NotReady`] if a partition has not been marked, in which case nothing is waited
    /// for and the request stays active. Otherwise as [`crate::Request::wait`].
    pub async fn wait(&mut self) -> Result<()> {
        self.sound()?;
        if !self.active {
            return Ok(());
        }
        self.all_marked()?;
        let waited = self.made.engine.wait(self.iteration).await;
        self.end(waited.map_err(Into::into))
    }

    /// Checks whether the iteration has ended, and ends it if so (`MPI_Test`). Returns `true` if
    /// the request is now inactive.
    ///
    /// # Errors
    /// As [`Partitioned::wait`].
    pub async fn test(&mut self) -> Result<bool> {
        self.sound()?;
        if !self.active {
            return Ok(true);
        }
        self.all_marked()?;
        match self.made.engine.test(self.iteration).await {
            Ok(Progress::Pending) => Ok(false),
            ended => self.end(ended.map(drop).map_err(Into::into)).map(|()| true),
        }
    }

    fn all_marked(&self) -> Result<()> {
        let idle = self.outs.iter().enumerate().find(|(at, out)| out.is_some() && self.marked.is_idle(*at));
        idle.map_or(Ok(()), |(at, _)| {
            let (slot, partition) = (at / self.partitions, at % self.partitions);
            Err(PrdmaError::NotReady { slot, partition, iteration: self.iteration })
        })
    }

    fn end(&mut self, ended: Result<()>) -> Result<()> {
        self.active = false;
        self.outs.iter().flatten().for_each(|(_, claim)| claim.end(false));
        self.ins.iter().flatten().for_each(|inn| inn.claim.end(false));
        self.kept(ended)
    }

    /// Returns the indices of a slot's partitions.
    fn places(&self, side: Side, slot: usize, partitions: Range<usize>) -> Result<Range<usize>> {
        let all = if side == Side::Destination { self.outs.len() } else { self.ins.len() };
        let slots = all / self.partitions;
        let Range { start: first, end } = partitions;
        if slot >= slots || first > end || end > self.partitions {
            return Err(PrdmaError::NoPartition { side, slot, first, end, slots, partitions: self.partitions });
        }
        Ok(slot * self.partitions + first..slot * self.partitions + end)
    }
}
