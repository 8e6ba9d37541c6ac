//! What comes back of commands: completions, and the errors that nobody asked to hear of.

use super::Poster;
use crate::shm::control_queue::words::View;
use rdma_fabric::control_queue::{Completion, QueueError};

impl Poster {
    /// Fetch what the shared TCQ has.
    pub(super) fn fetch(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        let damaged = queue.corrupt("the transmit complete queue");
        // Before the tail: entries that come after this are of commands from there on.
        let (read, tail) = (queue.turns().read(), queue.completed());
        if tail.wrapping_sub(self.fetched) > u64::from(queue.geometry.depth) || read > self.write {
            return Err(damaged);
        }
        while self.fetched != tail {
            let entry = queue.completion(self.fetched);
            self.fetched = self.fetched.wrapping_add(1);
            let status = entry.status.decode().ok_or(damaged)?;
            let asked = match self.tags.front() {
                Some(&(position, tag)) if position == entry.position => Some(tag),
                Some(&(position, _)) if position < entry.position => return Err(damaged),
                _ => None,
            };
            match (asked, status) {
                (Some(tag), status) => {
                    self.tags.pop_front();
                    let here = if entry.kept { Ok(()) } else { status };
                    self.completions.push_back(Completion { tag, status: here });
                    if let (true, Err(error)) = (entry.kept, status) {
                        self.error.get_or_insert(error);
                    }
                }
                (None, Err(error)) => _ = self.error.get_or_insert(error),
                (None, Ok(())) => return Err(damaged),
            }
        }
        self.fetched_at = read;
        Ok(())
    }

    /// Fetch if there is anything. Where there is not, this looks at nothing that an executor writes with each command.
    #[inline]
    fn fetch_if_any(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        if queue.is_session() && queue.completed() != self.fetched {
            self.fetch(queue)?;
        }
        Ok(())
    }

    /// The next completion.
    pub(in super::super) fn completion(&mut self, queue: &View<'_>) -> Result<Option<Completion>, QueueError> {
        if self.completions.is_empty() {
            self.fetch_if_any(queue)?;
        }
        match self.completions.pop_front() {
            Some(completion) => Ok(Some(completion)),
            None => self.trouble(queue).map(|()| None),
        }
    }

    /// An error that is to be reported, if there is one.
    pub(in super::super) fn trouble(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        self.fetch_if_any(queue)?;
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match queue.stopped() {
            None => Ok(()),
            Some(_) if self.told => Err(QueueError::Stopped(queue.id)),
            Some(why) => {
                self.told = true;
                Err(queue.stop_error(why))
            }
        }
    }

    /// The error that was not reported.
    pub(in super::super) fn take_error(&mut self, queue: &View<'_>) -> Option<QueueError> {
        if queue.is_session()
            && let Err(error) = self.fetch(queue)
        {
            self.error.get_or_insert(error);
        }
        self.error.take()
    }
}
