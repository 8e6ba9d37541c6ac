//! The engines of the forms with control queues.
//!
//! # Partitions
//! Partitions of blocks are posted one by one behind the READYs that release them.
//! ```text
//! start                                       ready             ready
//! READY ... READY | NOP ... | SELF ... SELF | DATA ... END(p) | DATA ... END(q) | ...
//! ```
//! The start posts the [program](super::program) without its data. Credit that arrives before its
//! commands is kept, so a partition that is marked late leaves immediately, and one that is marked
//! early waits only for its receiver (in a queue with several neighbours: for all of them). An
//! iteration has the same number of slots regardless of the order, because it cannot end before all
//! partitions are posted. So the argument about credit is that of the program, with a network
//! interface that is slow between SELF and DATA.

use super::{CommandTemplate, Engine, Program, Progress, Result, cpu::have_reached};
use crate::PrdmaError;
use fabric_offload::{
    ControlQueue, Triggers,
    control_queue::{Completion, ExpectedReports, MrqKind, MrqNotice, QueueProgram},
};
use rdma_fabric::{Deps, Fabric, LocalWord, Rank};

/// Iterations executed by queues.
pub(crate) struct QueueEngine {
    /// The queues close before the memory that they address is freed.
    queues: Vec<RunningQueue>,
    /// The words that receive a separate END, in place of a notice.
    ends: Box<[LocalWord<u64>]>,
    /// The ranks that can delay the iteration.
    ranks: Box<[Rank]>,
    fabric: Fabric,
}

impl QueueEngine {
    /// Makes an engine of queues, each with its program and the notices of an iteration. Waits
    /// depend on `ranks`.
    pub(crate) fn new(
        fabric: &Fabric,
        queues: impl Iterator<Item = (ControlQueue, Program, u32)>,
        ranks: Box<[Rank]>,
    ) -> Self {
        let running = |(queue, program, notices): (ControlQueue, Program, u32)| {
            let prepare = |is_odd| {
                let commands: Vec<_> = program.commands.iter().map(|command| command.of_parity(is_odd)).collect();
                queue.prepare(commands)
            };
            let alternates = program.commands.iter().any(|command| matches!(command, CommandTemplate::Alternating(_)));
            let programs = [prepare(false), if alternates { prepare(true) } else { prepare(false) }];
            let each = ExpectedReports { edata: 0, notices, completions: program.completions };
            RunningQueue { queue, programs, each, outstanding: ExpectedReports::default() }
        };
        QueueEngine { queues: queues.map(running).collect(), ends: Box::default(), ranks, fabric: fabric.clone() }
    }

    /// Adds words that receive a separate END.
    pub(super) fn with_ends(self, ends: Box<[LocalWord<u64>]>) -> Self {
        QueueEngine { ends, ..self }
    }
}

struct RunningQueue {
    queue: ControlQueue,
    /// The commands of even iterations, and of odd ones.
    programs: [QueueProgram; 2],
    /// The reports of an iteration: a notice for each incoming edge, and completions.
    each: ExpectedReports,
    /// Those of the current iteration that have not been observed yet.
    outstanding: ExpectedReports,
}

impl RunningQueue {
    /// Takes what has arrived or arrives soon. Returns whether nothing is left to wait for.
    fn awaits_nothing(&mut self) -> bool {
        self.queue.take_expected(&mut self.outstanding, true);
        self.outstanding.is_empty()
    }

    fn take_notice(&mut self, notice: MrqNotice, iteration: u64) -> Result<()> {
        notice.status?;
        match notice.kind {
            MrqKind::RemotePut if notice.edata == iteration as u8 && self.outstanding.notices > 0 => {
                self.outstanding.notices -= 1;
                Ok(())
            }
            _ => {
                let rank = notice.peer.rank();
                Err(PrdmaError::WrongIteration { rank, got: notice.edata, iteration }.into())
            }
        }
    }

    fn take_completion(&mut self, completion: Completion) -> Result<()> {
        completion.status?;
        self.outstanding.completions = self.outstanding.completions.saturating_sub(1);
        Ok(())
    }
}

impl Engine for QueueEngine {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        for running in &mut self.queues {
            running.outstanding = ExpectedReports { edata: iteration as u8, ..running.each };
            let program = &running.programs[(iteration % 2) as usize];
            // Usually there is room, and no future is needed.
            if !running.queue.try_post_program(program, iteration) {
                Box::pin(running.queue.post_program(program, iteration, Deps::Ranks(&self.ranks))).await?;
            }
        }
        Ok(())
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        let deps = Deps::Ranks(&self.ranks);
        for running in &mut self.queues {
            while !running.awaits_nothing() {
                let (queue, triggers) = (&running.queue, Triggers::of(&self.fabric));
                // An entry that is already there needs no wait, which costs several times as much.
                if running.outstanding.notices > 0 {
                    let notice = match queue.poll_mrq()? {
                        Some(notice) => notice,
                        None => triggers.run_during(queue.await_notice(deps)).await?,
                    };
                    running.take_notice(notice, iteration)?;
                } else {
                    let completion = match queue.poll_tcq()? {
                        Some(completion) => completion,
                        None => triggers.run_during(queue.await_completion(deps)).await?,
                    };
                    running.take_completion(completion)?;
                }
            }
        }
        if self.ends.is_empty() {
            return Ok(());
        }
        Ok(Triggers::until_reached(&self.fabric, &self.ends, &self.ranks, iteration).await?)
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        Triggers::of(&self.fabric).advance().await;
        let mut progress = Progress::Done;
        for running in &mut self.queues {
            running.queue.take_expected(&mut running.outstanding, false);
            while running.outstanding.notices > 0 {
                match running.queue.poll_mrq()? {
                    Some(notice) => running.take_notice(notice, iteration)?,
                    None => break,
                }
            }
            while running.outstanding.completions > 0 {
                match running.queue.poll_tcq()? {
                    Some(completion) => running.take_completion(completion)?,
                    None => break,
                }
            }
            if !running.outstanding.is_empty() {
                progress = Progress::Pending;
            }
        }
        match progress {
            Progress::Done => Ok(have_reached(&self.fabric, &self.ends, iteration)?),
            Progress::Pending => Ok(Progress::Pending),
        }
    }
}

/// Queues, and the commands of each partition.
pub(crate) struct QueuePartitions {
    pub(super) engine: QueueEngine,
    /// The queue and the commands of each partition, in the order of the channels that send.
    pub(super) partitions: Vec<(usize, Vec<CommandTemplate>)>,
}

impl QueuePartitions {
    /// Posts partition `at`. Its queue has room for two iterations.
    pub(crate) async fn post(&self, at: usize, iteration: u64) -> Result<()> {
        let (queue, commands) = &self.partitions[at];
        for command in commands {
            let deps = Deps::Ranks(&self.engine.ranks);
            self.engine.queues[*queue].queue.post(command.posting(iteration), deps).await?;
        }
        Ok(())
    }
}

/// For partitions that are all [posted](QueuePartitions::post).
impl Engine for QueuePartitions {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        self.engine.start(iteration).await
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        self.engine.wait(iteration).await
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        self.engine.test(iteration).await
    }
}
