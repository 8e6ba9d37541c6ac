//! The owner's side of a queue: its posts, and the completions and errors that come back.

mod completions;
mod program;
mod session;

use super::{
    executor::{Executor, WorkList},
    remote::RemoteCommands,
    route::Routes,
    view::View,
};
use crate::queues::format::{descriptor::each_block, ring};
use program::PreparedProgram;
use rdma_fabric::{
    Refused,
    control_queue::{Completion, Pointers, Posting, QueueError},
};
use std::{collections::VecDeque, sync::Arc};

/// The owner's private state of a queue, protected by the queue's lock.
#[derive(Debug, Default)]
pub(crate) struct Poster {
    /// The next slot to be written.
    write: u64,
    /// Slots of a session queue before this position may start.
    startable: u64,
    /// The read pointer of a session queue when it was last read.
    read: u64,
    /// Commands that wait for a start, in a queue that is not in session mode.
    delayed: VecDeque<Posting>,
    /// The number of slots of the delayed commands.
    delayed_slots: u64,
    /// Position and tag of each command of a session queue whose requested completion has not
    /// arrived yet.
    tags: VecDeque<(u64, u64)>,
    /// The number of entries of the shared TCQ that were fetched.
    fetched: u64,
    /// The read pointer at the last fetch: later entries belong to commands from that position on.
    fetched_at: u64,
    completions: VecDeque<Entry>,
    /// The first error that was not reported in another way.
    error: Option<QueueError>,
    /// Whether the reason why the queue has stopped was reported.
    stop_reported: bool,
    /// Posts that wait for room, in order of arrival.
    line: VecDeque<u64>,
    next_in_line: u64,
    /// Programs of a session queue.
    programs: Vec<PreparedProgram>,
    /// Remembered routes of commands.
    pub(crate) routes: Routes<8>,
    /// The queue's commands that were sent to other nodes, in a job that runs on several nodes.
    remote: Option<Arc<RemoteCommands>>,
}

/// A completion in its position among the others.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Here(Completion),
    /// The completion comes with the reply of another node: the tag, and the number of the command
    /// among those sent there.
    Later(u64, u64),
}

impl Poster {
    /// The state of a new queue.
    pub(crate) fn new(remote: Option<Arc<RemoteCommands>>) -> Self {
        Poster { remote, ..Poster::default() }
    }

    /// Posts `posting`, whose numbers have been checked, unless posts other than `turn` are waiting
    /// in line.
    #[inline]
    pub(crate) fn post(
        &mut self,
        queue: &View<'_>,
        executor: &Executor<'_>,
        posting: &Posting,
        turn: Option<u64>,
        work: &mut WorkList<'_>,
    ) -> Result<(), Refused<()>> {
        if self.line.front().copied() != turn && !self.line.is_empty() {
            return Err(Refused::Full(()));
        }
        if let Some(why) = queue.stopped() {
            return Err(failed(queue.stop_error(why)));
        }
        if queue.is_session() {
            self.queue_up(queue, posting, executor, work)
        } else {
            self.run(queue, executor, posting, work)
        }
    }

    /// Returns whether a queue that is not in session mode would execute a command immediately: no
    /// post is in line, and none is delayed.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.line.is_empty() && self.delayed.is_empty()
    }

    /// Counts a command of one slot that was executed immediately.
    #[inline(always)]
    pub(crate) fn took_slot(&mut self) {
        self.write += 1;
    }

    /// Stores a completion.
    #[inline]
    pub(crate) fn completed(&mut self, completion: Completion) {
        self.completions.push_back(Entry::Here(completion));
    }

    /// Executes a command and the delayed ones before it, or delays it.
    #[inline]
    fn run(
        &mut self,
        queue: &View<'_>,
        executor: &Executor<'_>,
        posting: &Posting,
        work: &mut WorkList<'_>,
    ) -> Result<(), Refused<()>> {
        let slots = posting.command.slots();
        if self.delayed_slots + slots > ring::usable(queue.geometry.depth) {
            return Err(Refused::Full(()));
        }
        let is_remote = posting.command.target().is_some_and(|to| executor.job.is_remote(to.rank()));
        if is_remote && self.remote.as_ref().is_some_and(|remote| remote.is_full()) {
            return Err(Refused::Full(()));
        }
        self.write += slots;
        if posting.delay_start {
            self.delayed.push_back(*posting);
            self.delayed_slots += slots;
            return Ok(());
        }
        while let Some(earlier) = self.delayed.pop_front() {
            self.delayed_slots -= earlier.command.slots();
            self.execute(queue, executor, &earlier, work);
        }
        self.execute(queue, executor, posting, work);
        Ok(())
    }

    #[inline]
    fn execute(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting, work: &mut WorkList<'_>) {
        if posting.command.commands() == 1 {
            return self.execute_one(queue, executor, posting, work);
        }
        each_block(*posting).for_each(|one| self.execute_one(queue, executor, &one, work));
    }

    #[inline]
    fn execute_one(&mut self, queue: &View<'_>, executor: &Executor<'_>, posting: &Posting, work: &mut WorkList<'_>) {
        let performed = executor.perform(queue, posting, None, work);
        if posting.tcq_notice {
            let here = Completion { tag: posting.tag, status: performed.local };
            let later = performed.later.map(|number| Entry::Later(posting.tag, number));
            self.completions.push_back(later.unwrap_or(Entry::Here(here)));
        }
        if let Some(error) = performed.unheard(posting) {
            self.error.get_or_insert(error);
        }
    }

    /// Returns whether no action of other ranks will ever make room for the post at this place in
    /// line, because everything in the ring waits for a start and no post is ahead of it.
    pub(crate) fn is_stuck(&self, queue: &View<'_>, place: u64) -> bool {
        let is_idle = self.remote.as_ref().is_none_or(|remote| remote.is_idle());
        self.line.front() == Some(&place) && is_idle && (!queue.is_session() || queue.turns().is_unstarted())
    }

    pub(crate) fn pointers(&self, queue: &View<'_>) -> Pointers {
        if !queue.is_session() {
            return Pointers { read: self.write - self.delayed_slots, write: self.write, scheduled: self.write };
        }
        let (read, scheduled) = queue.turns().standing();
        Pointers { read, write: self.write, scheduled }
    }

    /// Joins the line of posts that wait for room. Returns its place in the line.
    pub(crate) fn stand_in_line(&mut self) -> u64 {
        let place = self.next_in_line;
        self.next_in_line += 1;
        self.line.push_back(place);
        place
    }

    /// Leaves the line. Returns whether other posts remain in it.
    pub(crate) fn leave_line(&mut self, place: u64) -> bool {
        self.line.retain(|&other| other != place);
        !self.line.is_empty()
    }
}

pub(crate) fn failed(error: QueueError) -> Refused<()> {
    Refused::Failed(error.into(), ())
}
