//! Messages of a program to the coordinator.

use super::line::Line;
use crate::{
    Error,
    wire::{ITEM_LIMIT, Up},
};
use std::sync::Arc;

/// Sends messages to the coordinator for a session, from within an event or from any thread. It
/// holds no resources once its session has been dropped.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Line>);

impl Speaker {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self(line)
    }

    pub(super) fn line(&self) -> &Line {
        &self.0
    }

    /// Answers [`Event::Drain`](crate::Event::Drain): this process no longer has operations in
    /// flight. An answer to an earlier epoch is ignored.
    pub fn drained(&self, epoch: u64) -> Result<(), Error> {
        self.0.send(&Up::Drained { epoch })
    }

    /// Answers [`Event::Reopen`](crate::Event::Reopen) with `contact`, the data that other ranks
    /// need to communicate with this process. An answer to an earlier epoch is ignored.
    pub fn reopened(&self, epoch: u64, contact: Vec<u8>) -> Result<(), Error> {
        if contact.len() > ITEM_LIMIT {
            return Err(Error::TooLarge { size: contact.len(), limit: ITEM_LIMIT });
        }
        self.0.send(&Up::Reopened { epoch, contact })
    }

    /// Leaves the job. The session still receives events and has to answer them as long as other
    /// ranks may communicate with this process: until all have ended, or the session is dropped.
    pub fn left(&self) -> Result<(), Error> {
        self.0.send_end(&Up::Left)
    }

    /// Reports that this rank's program has failed, after it has drained all its operations. The
    /// rank is notified of the end of the job, but not of further losses.
    pub fn lost(&self, text: &str) -> Result<(), Error> {
        self.0.send_end(&Up::Lost { text: text.into() })
    }

    /// Reports that this rank has waited for other ranks for some time and has no operations in
    /// flight, with a `stamp` that changes whenever the rank has made progress or anything has
    /// arrived; or, with `None`, that this no longer holds. When all running ranks have reported
    /// that they wait, they are asked again, and if no stamp has changed, they are notified that
    /// they wait for each other ([`Event::Deadlock`](crate::Event)).
    pub fn waits(&self, stamp: Option<u64>) -> Result<(), Error> {
        self.0.send(&Up::Waits { stamp })
    }

    /// Answers [`Event::Confirm`](crate::Event::Confirm) with the current stamp of this rank, if
    /// the rank waits for other ranks and has no operations in flight.
    pub fn still_waiting(&self, wave: u64, stamp: Option<u64>) -> Result<(), Error> {
        self.0.send(&Up::Still { wave, stamp })
    }

    /// Aborts the job. Only the first abort of a job counts; all ranks are notified of it.
    pub fn abort(&self, code: i32, text: &str) -> Result<(), Error> {
        self.0.send_abort(code, text)
    }
}
