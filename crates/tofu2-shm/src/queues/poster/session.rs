//! Commands of a session queue, which are written into the shared ring and then allowed to start.

use super::{Poster, failed};
use crate::queues::{
    executor::{Executor, WorkList},
    format::{
        descriptor::{self, each_block},
        ring,
    },
    view::View,
};
use rdma_fabric::{
    Refused,
    control_queue::{Posting, QueueError},
};

impl Poster {
    /// Posts as many of `postings` to a session queue as there is room for, lets them start
    /// together, and returns their number. `examine` checks the numbers of each.
    ///
    /// # Errors
    /// The error of the next posting, or of the queue; those before it are posted.
    pub(crate) fn queue_up_many(
        &mut self,
        queue: &View<'_>,
        executor: &Executor<'_>,
        postings: &[Posting],
        examine: impl Fn(&Posting) -> Result<(), QueueError>,
        work: &mut WorkList<'_>,
    ) -> (usize, Result<(), Refused<()>>) {
        if !self.line.is_empty() {
            return (0, Err(Refused::Full(())));
        }
        if let Some(why) = queue.stopped() {
            return (0, Err(failed(queue.stop_error(why))));
        }
        let (mut posted, mut refused, startable) = (0, Ok(()), self.startable);
        for posting in postings {
            refused = examine(posting).map_err(failed).and_then(|()| self.write_down(queue, posting));
            if refused.is_err() {
                break;
            }
            posted += 1;
        }
        if self.startable != startable {
            self.start(queue, executor, work);
        }
        (posted, refused)
    }

    /// Writes a command into the shared ring, and lets it start unless it is delayed.
    pub(crate) fn queue_up(
        &mut self,
        queue: &View<'_>,
        posting: &Posting,
        executor: &Executor<'_>,
        work: &mut WorkList<'_>,
    ) -> Result<(), Refused<()>> {
        self.write_down(queue, posting)?;
        if !posting.delay_start {
            self.start(queue, executor, work);
        }
        Ok(())
    }

    /// Lets the commands that were written start.
    #[inline]
    fn start(&self, queue: &View<'_>, executor: &Executor<'_>, work: &mut WorkList<'_>) {
        if self.must_turn(queue) {
            executor.released(queue.id, work);
        }
    }

    /// Lets the commands that were written start. Returns whether the poster has to take a turn.
    #[inline]
    pub(super) fn must_turn(&self, queue: &View<'_>) -> bool {
        let turns = queue.turns();
        if turns.has_credit() {
            turns.hand_over(self.startable);
            return true;
        }
        turns.start(self.startable);
        turns.is_due()
    }

    /// Writes a command into the shared ring without starting it.
    #[inline]
    fn write_down(&mut self, queue: &View<'_>, posting: &Posting) -> Result<(), Refused<()>> {
        let (depth, slots) = (queue.geometry.depth, posting.command.slots());
        // Executed slots stay executed, so the read pointer is read again only if its old value is
        // not enough.
        if ring::has_room(self.read, self.write, slots, depth) != Some(true) {
            self.read = queue.turns().read();
            match ring::has_room(self.read, self.write, slots, depth) {
                Some(true) => {}
                Some(false) => return Err(Refused::Full(())),
                None => return Err(failed(queue.corrupt("the transmit order queue"))),
            }
        }
        // Every command may add an entry; all entries that have not been fetched must fit.
        if self.write + slots - self.fetched_at > u64::from(depth) {
            self.fetch(queue).map_err(failed)?;
        }
        if posting.command.commands() == 1 {
            self.write_one(queue, posting);
        } else {
            each_block(*posting).for_each(|one| self.write_one(queue, &one));
        }
        if !posting.delay_start {
            self.startable = self.write;
        }
        Ok(())
    }

    #[inline]
    fn write_one(&mut self, queue: &View<'_>, one: &Posting) {
        let descriptor = descriptor::encode(one);
        if one.tcq_notice {
            self.tags.push_back((self.write, one.tag));
        }
        queue.write_slot(self.write, descriptor.first);
        self.write += 1;
        if let Some(second) = descriptor.second {
            queue.write_slot(self.write, second);
            self.write += 1;
        }
    }

    /// Returns the number of commands that were never started. To be called once no rank executes
    /// commands any longer.
    pub(crate) fn remaining(&self, queue: &View<'_>) -> u64 {
        if !queue.is_session() {
            return self.delayed.iter().map(|posting| u64::from(posting.command.commands())).sum();
        }
        let mut position = queue.turns().read();
        let mut commands = 0;
        // A damaged slot counts as a command of one slot; a damaged pointer leaves none.
        while position < self.write && self.write - position <= u64::from(queue.geometry.depth) {
            position += descriptor::slots(&queue.read_slot(position)).unwrap_or(1);
            commands += 1;
        }
        commands
    }
}
