//! Posting to a queue: the checks before it, the fast path and the general one.

use super::Queue;
use crate::queues::{executor::WorkList, fast_put::FastPut, poster::failed, view::View};
use rdma_fabric::{
    FabricError, Refused, Result,
    control_queue::{Blocks, Command, Posting, ProgramCommand, QueueError, Stadd},
};

impl Queue {
    /// Makes all checks that do not access memory.
    #[inline]
    fn examine(&self, posting: &Posting) -> Result<(), QueueError> {
        let Posting { command, sps, .. } = posting;
        let limit = |what, value: u64, limit: u64| Err(QueueError::Limit { queue: self.id, what, value, limit });
        if let Command::Put { len, blocks, .. } | Command::Get { len, blocks, .. } = *command {
            if len > self.longest {
                return limit("the length in bytes", len.into(), self.longest.into());
            }
            if blocks.count == 0 {
                return limit("the number of blocks", 0, u32::MAX.into());
            }
            if blocks != Blocks::ONE && u64::from(blocks.count).saturating_mul(blocks.stride) >= 1 << Stadd::OFFSET_BITS
            {
                return limit(
                    "the stride of the blocks",
                    blocks.stride,
                    (1 << Stadd::OFFSET_BITS) / u64::from(blocks.count),
                );
            }
        }
        if *sps > 15 {
            return limit("the advance in slots", (*sps).into(), 15);
        }
        let most = u64::from(self.geometry.depth) - 1;
        if command.slots() > most {
            return limit("the number of slots", command.slots(), most);
        }
        if *sps != 0 && self.geometry.checked && !command.advances() {
            return Err(QueueError::CreditIgnored { queue: self.id, sps: *sps });
        }
        Ok(())
    }

    /// Executes a short put, if `posting` is one and the fast path applies.
    #[inline(always)]
    pub(crate) fn post_fast(&self, posting: &Posting) -> FastPut {
        let Ok(queue) = self.view() else { return FastPut::Not };
        if queue.is_session() {
            return FastPut::Not;
        }
        self.poster().put_fast(&queue, &self.executor(), posting)
    }

    /// Posts a command, ahead of those that wait for room.
    #[inline]
    pub(crate) fn post_one(&self, posting: &Posting) -> Result<(), Refused<()>> {
        match self.post_fast(posting) {
            FastPut::Done => Ok(()),
            FastPut::Released(queue) => {
                self.executor().help(queue);
                Ok(())
            }
            FastPut::Not => self.post_general(posting),
        }
    }

    /// Posts any command.
    #[inline(never)]
    pub(crate) fn post_general(&self, posting: &Posting) -> Result<(), Refused<()>> {
        self.examine(posting).map_err(failed)?;
        let queue = self.view().map_err(failed)?;
        let executor = self.executor();
        if self.patient && posting.remote_notice && !queue.is_session() && !executor.admits_notice(posting) {
            return Err(Refused::Full(()));
        }
        let mut work = WorkList::new();
        let posted = self.poster().post(&queue, &executor, posting, None, &mut work);
        executor.finish(work);
        posted
    }

    /// Posts as many commands as there is room for, and returns their number.
    pub(crate) fn post_many(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let queue = match self.view() {
            Ok(queue) => queue,
            Err(error) => return (0, Err(failed(error))),
        };
        if !queue.is_session() {
            for (at, posting) in postings.iter().enumerate() {
                if let Err(refused) = self.post_one(posting) {
                    return (at, Err(refused));
                }
            }
            return (postings.len(), Ok(()));
        }
        queue.expect_turn();
        let (executor, mut work) = (self.executor(), WorkList::new());
        let examine = |posting: &Posting| self.examine(posting);
        let posted = self.poster().queue_up_many(&queue, &executor, postings, examine, &mut work);
        executor.finish_own(&queue, work);
        posted
    }

    /// Prepares a program, if the queue is in session mode.
    pub(super) fn prepare_program(&self, commands: &[ProgramCommand]) -> Option<usize> {
        let queue = self.view().ok().filter(View::is_session)?;
        commands.iter().all(|command| self.examine(&command.posting).is_ok()).then_some(())?;
        self.poster().prepare(&queue, commands)
    }

    /// Posts repetition `number` of a program, all or nothing. Returns whether it did.
    pub(super) fn post_program(&self, program: usize, number: u64) -> bool {
        let Ok(queue) = self.view() else { return false };
        queue.expect_turn();
        let must_turn = self.poster().queue_up_program(&queue, program, number);
        if must_turn == Some(true) {
            self.executor().turn_own(&queue);
        }
        must_turn.is_some()
    }

    /// Posts a command that has waited, if it is `place`'s turn and there is room.
    pub(crate) fn post_in_turn(&self, posting: Posting, place: u64) -> Result<Option<()>> {
        self.help();
        let (queue, executor) = (self.view()?, self.executor());
        let mut work = WorkList::new();
        let mut poster = self.poster();
        // Checked first, because commands executed between the two steps make room.
        let stuck = poster.is_stuck(&queue, place);
        let posted = poster.post(&queue, &executor, &posting, Some(place), &mut work);
        drop(poster);
        executor.finish(work);
        match posted {
            Ok(()) => Ok(Some(())),
            Err(Refused::Failed(error, ())) => Err(error),
            Err(Refused::Full(())) if stuck => Err(FabricError::Deadlock { waiting: 1 }),
            Err(Refused::Full(())) => Ok(None),
        }
    }
}
