//! Completions, and errors for which no report was requested.

use super::{Entry, Poster};
use crate::queues::view::View;
use rdma_fabric::control_queue::{Completion, QueueError};

impl Poster {
    /// Fetches the entries of the shared TCQ.
    pub(crate) fn fetch(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        let damaged = queue.corrupt("the transmit complete queue");
        // Read before the tail: entries that arrive later belong to commands from that position on.
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
                    let here = Completion { tag, status: if entry.kept { Ok(()) } else { status } };
                    let later = self.remote.as_ref().and_then(|remote| remote.tracks(entry.position));
                    self.completions.push_back(later.map_or(Entry::Here(here), |number| Entry::Later(tag, number)));
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

    /// Returns the number of entries of the shared TCQ that were fetched.
    #[inline]
    pub(crate) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Fetches new entries of the shared TCQ. If there are none, this reads no word that an
    /// executor writes with every command.
    #[inline]
    fn fetch_if_any(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        if queue.is_session() && queue.completed() != self.fetched {
            self.fetch(queue)?;
        }
        Ok(())
    }

    /// Takes completions that report success, in place of [`Poster::completion`], and subtracts them from
    /// `expected`. Stops at any other.
    #[inline]
    pub(crate) fn take_completions(&mut self, queue: &View<'_>, expected: &mut u32) {
        if !queue.is_session() || self.remote.is_some() || !self.completions.is_empty() {
            return;
        }
        // In this order, as in `fetch`.
        let (read, tail) = (queue.turns().read(), queue.completed());
        while *expected > 0 && self.fetched != tail {
            match self.tags.front() {
                Some(&(position, _)) if queue.has_completed_well(self.fetched, position) => {}
                _ => return,
            }
            self.tags.pop_front();
            self.fetched = self.fetched.wrapping_add(1);
            *expected -= 1;
        }
        if self.fetched == tail && read <= self.write {
            self.fetched_at = read;
        }
    }

    /// Takes the next completion.
    pub(crate) fn completion(&mut self, queue: &View<'_>) -> Result<Option<Completion>, QueueError> {
        if self.completions.is_empty() {
            self.fetch_if_any(queue)?;
        }
        match self.completions.front() {
            Some(&Entry::Here(completion)) => {
                self.completions.pop_front();
                Ok(Some(completion))
            }
            Some(&Entry::Later(tag, number)) => {
                let come = self.remote.as_ref().and_then(|remote| remote.take_completion(number));
                let Some(status) = come else { return self.trouble(queue).map(|()| None) };
                self.completions.pop_front();
                Ok(Some(Completion { tag, status }))
            }
            None => self.trouble(queue).map(|()| None),
        }
    }

    /// Returns the error that is to be reported, if there is one.
    pub(crate) fn trouble(&mut self, queue: &View<'_>) -> Result<(), QueueError> {
        self.fetch_if_any(queue)?;
        if let Some(error) = self.kept_error() {
            return Err(error);
        }
        match queue.stopped() {
            None => Ok(()),
            Some(_) if self.stop_reported => Err(QueueError::Stopped(queue.id)),
            Some(why) => {
                self.stop_reported = true;
                Err(queue.stop_error(why))
            }
        }
    }

    /// Takes the error that was not reported.
    pub(crate) fn take_error(&mut self, queue: &View<'_>) -> Option<QueueError> {
        if queue.is_session()
            && let Err(error) = self.fetch(queue)
        {
            self.error.get_or_insert(error);
        }
        self.kept_error()
    }

    /// Takes the recorded error of a command that completed here or on another node.
    fn kept_error(&mut self) -> Option<QueueError> {
        self.error.take().or_else(|| self.remote.as_ref()?.take_error())
    }
}
